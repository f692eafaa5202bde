"""Samplers that transform uniform or normal draws: gumbel, exponential, laplace, cauchy, lognormal, wald, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.core.arrays import Array, as_array, scalar
from ..effects.functions.unsupported import no_sharding
from ..effects.operations.dot_general import dot_general
from ..effects.operations.elementwise.arithmetic import abs, floor, sign, sqrt
from ..effects.operations.elementwise.comparison import eq, ge, le, lt, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp, log, log1p, pow, tan
from ..effects.operations.foundations.shapes import broadcast_in_dim, canonical_shape, full, reduce_sum
from ..effects.operations.linalg.cholesky import cholesky
from ..effects.operations.linalg.eigh import eigh
from ..effects.operations.linalg.matrices import columns_of
from ..effects.operations.linalg.svd import svd
from ..effects.operations.manipulation.operand_promotion import broadcast_shape
from ..effects.operations.reductions.reductions import reduce_max
from ..effects.types.dtypes import ANY_INTEGER, FLOATING, canonical, default_float, default_int, result_type, to_inexact
from ..interpreters.core.eager_programs import programs
from .basic_samplers import (
    between,
    float_format,
    floating,
    ones,
    open_units,
    parameters,
    rademacher,
    spread,
    standard_normal,
    two_units,
    unit,
)
from .keys import pair, single

__all__ = [
    "cauchy", "double_sided_maxwell", "exponential", "geometric", "gumbel", "laplace", "logistic", "lognormal",
    "maxwell", "multivariate_normal", "pareto", "rayleigh", "triangular", "wald", "weibull_min",
]  # fmt: skip


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None) -> Array:
    """Gumbel distributed numbers: ``-log(-log(u))`` for uniform ``u``.

    Args:
        mode: ``high`` draws two numbers for each result, for accurate upper tails; ``low`` draws one.
    """
    no_sharding("gumbel", out_sharding)
    dtype = floating("random.gumbel", dtype)
    one = single("random.gumbel", key)
    shape = canonical_shape(shape, "random.gumbel")
    if mode not in (None, "low", "high"):
        raise BadArgument(f"random.gumbel: mode must be 'low' or 'high', got {mode!r}.")
    if mode != "high":
        return -log(-log(between(one, shape, dtype, float_format(dtype).tiny, 1.0)))
    first, second = two_units(one, shape, dtype)
    eps = float_format(dtype).eps
    fine = second * eps + first + eps * eps / 2
    return -log(-log1p(-select(ge(first, scalar(0.5, dtype)), first, fine)))


def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Exponentially distributed numbers of mean 1."""
    no_sharding("exponential", out_sharding)
    dtype = floating("random.exponential", dtype)
    return -log1p(-unit(single("random.exponential", key), canonical_shape(shape, "random.exponential"), dtype))


def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Laplace distributed numbers: an exponential one with a random sign."""
    no_sharding("laplace", out_sharding)
    dtype = floating("random.laplace", dtype)
    u = open_units(single("random.laplace", key), canonical_shape(shape, "random.laplace"), dtype)
    return sign(u) * log1p(-abs(u))


def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Logistically distributed numbers: ``log(u / (1 - u))`` for uniform ``u``."""
    no_sharding("logistic", out_sharding)
    dtype = floating("random.logistic", dtype)
    one = single("random.logistic", key)
    u = between(one, canonical_shape(shape, "random.logistic"), dtype, float_format(dtype).tiny, 1.0)
    return log(u) - log1p(-u)


def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Cauchy distributed numbers: the tangent of a uniform angle."""
    no_sharding("cauchy", out_sharding)
    dtype = floating("random.cauchy", dtype)
    one = single("random.cauchy", key)
    u = between(one, canonical_shape(shape, "random.cauchy"), dtype, float_format(dtype).eps, 1.0)
    return tan((u - 0.5) * math.pi)


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Pareto distributed numbers: ``x >= 1`` with density ``b / x**(b + 1)``."""
    no_sharding("pareto", out_sharding)
    dtype = floating("random.pareto", dtype)
    shape, (b,) = parameters("random.pareto", shape, dtype, b)
    return exp(exponential(key, shape, dtype) / b)


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Weibull distributed numbers: ``scale * e**(1 / concentration)`` for exponential ``e``."""
    dtype = floating("random.weibull_min", dtype)
    shape, (scale, concentration) = parameters("random.weibull_min", shape, dtype, scale, concentration)
    return pow(exponential(key, shape, dtype), spread(1.0 / concentration, shape)) * scale


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Rayleigh distributed numbers: the length of a normal vector of two parts of deviation ``scale``."""
    no_sharding("rayleigh", out_sharding)
    dtype = floating("random.rayleigh", dtype)
    shape, (scale,) = parameters("random.rayleigh", shape, dtype, scale)
    return scale * sqrt(log(unit(single("random.rayleigh", key), shape, dtype)) * -2.0)


def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Maxwell distributed numbers: the length of a normal vector of three parts."""
    no_sharding("maxwell", out_sharding)
    dtype = floating("random.maxwell", dtype)
    shape = canonical_shape(shape, "random.maxwell")
    x = standard_normal(single("random.maxwell", key), (*shape, 3), dtype)
    return sqrt(reduce_sum(x * x, (len(shape),)))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Array:
    """``loc + scale * x``, for Maxwell distributed ``x`` with a random sign."""
    dtype = floating("random.double_sided_maxwell", dtype)
    shape, (loc, scale) = parameters("random.double_sided_maxwell", shape, dtype, loc, scale)
    first, second = pair(single("random.double_sided_maxwell", key))
    return rademacher(second, shape, dtype) * maxwell(first, shape, dtype) * scale + loc


def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Numbers whose density rises linearly from ``left`` to ``mode`` and falls to ``right``."""
    no_sharding("triangular", out_sharding)
    dtype = floating("random.triangular", dtype)
    shape, values = parameters("random.triangular", shape, dtype, left, mode, right)
    left, mode, right = [spread(x, shape) for x in values]
    u = unit(single("random.triangular", key), shape, dtype)
    rising = left + sqrt(u * (right - left) * (mode - left))
    falling = right - sqrt((1 - u) * (right - left) * (right - mode))
    return select(lt(u, (mode - left) / (right - left)), rising, falling)


def lognormal(
    key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """``exp(sigma * x)`` for normal ``x``."""
    no_sharding("lognormal", out_sharding)
    dtype = floating("random.lognormal", dtype)
    shape, (sigma,) = parameters("random.lognormal", shape, dtype, sigma)
    return exp(standard_normal(single("random.lognormal", key), shape, dtype) * sigma)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """The number of trials up to the first success, of probability ``p`` each; of an integer dtype."""
    no_sharding("geometric", out_sharding)
    found = default_int() if dtype is None else canonical(dtype)
    if found not in ANY_INTEGER:
        raise DTypeMismatch(f"random.geometric: the dtype must be an integer one, got {found}.")
    probability = as_array(p)
    wide = probability.type.dtype if probability.type.dtype in FLOATING else default_float()
    shape, (probability,) = parameters("random.geometric", shape, wide, probability)
    u = unit(single("random.geometric", key), shape, wide)
    u = select(eq(u, scalar(0, wide)), ones(shape, wide), u)
    return convert(floor(log(u) / spread(log1p(-probability), shape)) + 1.0, found)


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Wald (inverse Gaussian) distributed numbers of this mean and of scale 1.

    Source: J. Michael et al., Generating random variates using transformations with multiple roots (1976).
    """
    no_sharding("wald", out_sharding)
    dtype = floating("random.wald", dtype)
    shape, (mean,) = parameters("random.wald", shape, dtype, mean)
    first, second = pair(single("random.wald", key))
    mean = spread(mean, shape)
    x = standard_normal(first, shape, dtype)
    y = x * x
    smaller = mean + mean * mean * y / 2.0 - mean / 2.0 * sqrt(mean * 4.0 * y + mean * mean * (y * y))
    return select(le(unit(second, shape, dtype), mean / (mean + smaller)), smaller, mean * mean / smaller)


def _by_eigenvectors(cov: Any) -> Any:
    """``v sqrt(w)`` for eigenvalues w, of which those that are negative by rounding are 0."""
    v, w = eigh(cov)
    n = w.type.shape[-1]
    bound = reduce_max(abs(w), (w.ndim - 1,)) * (n * float_format(w.type.dtype).eps)
    rounded = lt(abs(w), broadcast_in_dim(bound, w.type.shape, tuple(range(w.ndim - 1))))
    return v * columns_of(sqrt(select(rounded, full(w.type, 0), w)), n)


def _by_singular_vectors(cov: Any) -> Any:
    u, s, _ = svd(cov)
    return u * columns_of(sqrt(s), s.type.shape[-1])


# method -> an l with l l^T == cov
FACTORS: dict[str, Callable[[Any], Any]] = {"cholesky": cholesky, "eigh": _by_eigenvectors, "svd": _by_singular_vectors}


def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Normal vectors of this mean and covariance: ``mean + l x`` for ``l l^T == cov`` and normal ``x``.

    Shapes: ``mean[*s, n], cov[*t, n, n] -> [*shape, n]``; ``s`` and ``t`` broadcast to ``shape``, by default to each
    other.
    Args:
        dtype: by default that of the mean and the covariance, promoted.
        method: ``cholesky``, for positive definite covariances; ``eigh`` and ``svd``, by the square roots of
            eigenvalues and of singular values, for singular ones too.
    """
    no_sharding("multivariate_normal", out_sharding)
    if dtype is None:
        dtype = to_inexact(result_type(mean, cov))
    dtype = floating("random.multivariate_normal", dtype)
    if method not in FACTORS:
        raise BadArgument(f"random.multivariate_normal: method must be of {', '.join(FACTORS)}, got {method!r}.")
    middle, spreading = convert(mean, dtype), convert(cov, dtype)
    n = middle.type.shape[-1:]
    if not n or spreading.type.shape[-2:] != (*n, *n):
        raise ShapeMismatch(
            f"random.multivariate_normal: a mean [..., n] and a covariance [..., n, n] are needed, "
            f"got {middle.type} and {spreading.type}."
        )
    lead = (middle.type.shape[:-1], spreading.type.shape[:-2])
    if shape is None:
        shape = broadcast_shape("random.multivariate_normal", *lead)
    shape = canonical_shape(shape, "random.multivariate_normal")
    if broadcast_shape("random.multivariate_normal", shape, *lead) != shape:
        raise ShapeMismatch(f"random.multivariate_normal: {lead[0]} and {lead[1]} must broadcast to the shape {shape}.")
    x = standard_normal(single("random.multivariate_normal", key), (*shape, *n), dtype)
    factor, rank = FACTORS[method](spreading), len(shape)
    if len(factor.type.shape) == 2:
        drawn = dot_general(x, factor, (((rank,), (1,)), ((), ())))
    else:
        over = tuple(range(rank))
        drawn = dot_general(spread(factor, (*shape, *n, *n)), x, (((rank + 1,), (rank,)), (over, over)))
    return spread(middle, (*shape, *n)) + drawn


programs(globals())
