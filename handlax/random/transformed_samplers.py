"""Samplers that are functions of uniform or normal numbers: gumbel, exponential, laplace, cauchy, lognormal, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..effects.base.errors import BadArgument, ShapeMismatch, need_one_of
from ..effects.core.arrays import Array, as_array, scalar
from ..effects.functions.out_shardings import cuts_result
from ..effects.operations.dot_general import dot_general
from ..effects.operations.elementwise.arithmetic import abs, div, floor, mul, sign, sqrt
from ..effects.operations.elementwise.comparison import eq, ge, le, lt, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp, log, log1p, pow, tan
from ..effects.operations.foundations.shapes import broadcast_in_dim, canonical_shape, full, permute, reduce_sum
from ..effects.operations.linalg.cholesky import cholesky
from ..effects.operations.linalg.eigh import eigh
from ..effects.operations.linalg.matrices import columns_of, diagonal
from ..effects.operations.linalg.qr import qr
from ..effects.operations.linalg.svd import svd
from ..effects.operations.manipulation.operand_promotion import broadcast_shape
from ..effects.operations.reductions.reductions import reduce_max
from ..effects.types.dtypes import FLOATING, canonical, default_float, result_type, to_inexact
from ..interpreters.core.eager_programs import programs
from .basic_samplers import (
    at_least_32_bits,
    between,
    checked,
    float_format,
    floating,
    integral,
    normal,
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
    "maxwell", "multivariate_normal", "orthogonal", "pareto", "rayleigh", "triangular", "wald", "weibull_min",
]


@cuts_result
def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None) -> Array:
    """Gumbel distributed numbers: ``-log(-log(u))`` for uniform ``u``.

    Args:
        mode: "low", the default, draws one uniform float for each result, "high" two, for an accurate upper tail.
    """
    one, shape, dtype = checked("gumbel", key, shape, dtype)
    need_one_of("random.gumbel: mode", mode, (None, "low", "high"))
    if mode != "high":
        return -log(-log(between(one, shape, dtype, float_format(dtype).tiny, 1.0)))
    first, second = two_units(one, shape, dtype)
    eps = float_format(dtype).eps
    fine = second * eps + first + eps * eps / 2
    return -log(-log1p(-select(ge(first, scalar(0.5, dtype)), first, fine)))


@cuts_result
def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Exponentially distributed numbers of mean 1."""
    one, shape, dtype = checked("exponential", key, shape, dtype)
    return -log1p(-unit(one, shape, dtype))


@cuts_result
def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Laplace distributed numbers: ``sign(u) * log(1 - abs(u))`` for uniform ``u`` in (-1, 1)."""
    one, shape, dtype = checked("laplace", key, shape, dtype)
    u = open_units(one, shape, dtype)
    return sign(u) * log1p(-abs(u))


@cuts_result
def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Logistically distributed numbers: ``log(u / (1 - u))`` for uniform ``u``."""
    one, shape, dtype = checked("logistic", key, shape, dtype)
    u = between(one, shape, dtype, float_format(dtype).tiny, 1.0)
    return log(u) - log1p(-u)


@cuts_result
def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Cauchy distributed numbers: ``tan(pi * (u - 1/2))`` for uniform ``u``."""
    one, shape, dtype = checked("cauchy", key, shape, dtype)
    return tan((between(one, shape, dtype, float_format(dtype).eps, 1.0) - 0.5) * math.pi)


@cuts_result
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Pareto distributed numbers: ``x >= 1`` with density ``b / x**(b + 1)``."""
    one, shape, dtype, b = checked("pareto", key, shape, dtype, b)
    return exp(exponential(one, shape, dtype) / b)


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Weibull distributed numbers: ``scale * e**(1 / concentration)`` for exponential ``e``."""
    one, shape, dtype, scale, concentration = checked("weibull_min", key, shape, dtype, scale, concentration)
    return pow(exponential(one, shape, dtype), spread(1.0 / concentration, shape)) * scale


@cuts_result
def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Rayleigh distributed numbers: the norms of vectors of two normal numbers of standard deviation ``scale``."""
    one, shape, dtype, scale = checked("rayleigh", key, shape, dtype, scale)
    u = unit(one, shape, dtype)
    u = select(eq(u, 0.0), full(u.type, float_format(dtype).eps / 2), u)  # 0 stands for the numbers below epsilon
    return scale * sqrt(log(u) * -2.0)


@cuts_result
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Maxwell distributed numbers: the norms of vectors of three standard normal numbers."""
    one, shape, dtype = checked("maxwell", key, shape, dtype)
    x = standard_normal(one, (*shape, 3), dtype)
    return sqrt(reduce_sum(x * x, (len(shape),)))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Array:
    """``loc + scale * x`` for a Maxwell distributed ``x`` with a random sign."""
    one, shape, dtype, loc, scale = checked("double_sided_maxwell", key, shape, dtype, loc, scale)
    first, second = pair(one)
    return rademacher(second, shape, dtype) * maxwell(first, shape, dtype) * scale + loc


@cuts_result
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Numbers whose density rises linearly from 0 at ``left`` to ``mode``, and falls linearly to 0 at ``right``."""
    one, shape, dtype, *values = checked("triangular", key, shape, dtype, left, mode, right)
    left, mode, right = [spread(x, shape) for x in values]
    u = unit(one, shape, dtype)
    rising = left + sqrt(u * (right - left) * (mode - left))
    falling = right - sqrt((1 - u) * (right - left) * (right - mode))
    return select(lt(u, (mode - left) / (right - left)), rising, falling)


@cuts_result
def lognormal(
    key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """``exp(sigma * x)`` for standard normal ``x``."""
    one, shape, dtype, sigma = checked("lognormal", key, shape, dtype, sigma)
    return exp(standard_normal(one, shape, dtype) * sigma)


@cuts_result
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Integers: the number of trials, each successful with probability ``p``, up to and with the first success."""
    dtype = integral("random.geometric", dtype)
    probability = as_array(p)
    kind = probability.type.dtype if probability.type.dtype in FLOATING else default_float()
    wide = at_least_32_bits(kind)  # the number of trials may exceed the largest number of 16 bits
    shape, (probability,) = parameters("random.geometric", shape, wide, probability)
    u = convert(unit(single("random.geometric", key), shape, kind), wide)
    u = select(eq(u, scalar(0, wide)), ones(shape, wide), u)
    return convert(floor(log(u) / spread(log1p(-probability), shape)) + 1.0, dtype)


@cuts_result
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Wald (inverse Gaussian) distributed numbers of mean ``mean`` and scale 1.

    Source: J. Michael et al., Generating random variates using transformations with multiple roots (1976).
    """
    one, shape, dtype, mean = checked("wald", key, shape, dtype, mean)
    first, second = pair(one)
    mean = spread(mean, shape)
    x = standard_normal(first, shape, dtype)
    half = mean * x * x / 2.0
    ratio = 1.0 + half + sqrt(half) * sqrt(half + 2.0)  # of the larger root to the mean, and of the mean to the smaller
    return select(le(unit(second, shape, dtype), ratio / (1.0 + ratio)), mean / ratio, mean * ratio)


def _by_eigenvectors(cov: Any) -> Any:
    """A matrix l with ``l @ l.T == cov``: eigenvectors times the roots of eigenvalues; tiny eigenvalues count as 0."""
    v, w = eigh(cov)
    n = w.type.shape[-1]
    bound = reduce_max(abs(w), (w.ndim - 1,)) * (n * float_format(w.type.dtype).eps)
    rounded = lt(abs(w), broadcast_in_dim(bound, w.type.shape, tuple(range(w.ndim - 1))))
    return v * columns_of(sqrt(select(rounded, full(w.type, 0), w)), n)


def _by_singular_vectors(cov: Any) -> Any:
    """A matrix l with ``l @ l.T == cov``: singular vectors times the roots of singular values."""
    u, s, _ = svd(cov)
    return u * columns_of(sqrt(s), s.type.shape[-1])


# method -> a function of a covariance that gives a matrix l with l @ l.T == cov
FACTORS: dict[str, Callable[[Any], Any]] = {"cholesky": cholesky, "eigh": _by_eigenvectors, "svd": _by_singular_vectors}


@cuts_result
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
    """Normal vectors of mean ``mean`` and covariance ``cov``.

    They are ``mean + l @ x`` for standard normal vectors x and a matrix l with ``l @ l.T == cov``.

    Shapes: ``mean[*s, n], cov[*t, n, n] -> [*shape, n]``; ``s`` and ``t`` broadcast to ``shape``, by default to each
    other.
    Args:
        dtype: by default the promoted dtype of ``mean`` and ``cov``.
        method: how l is computed: "cholesky" for positive definite covariances; "eigh", from eigenvalues, or "svd",
            from singular values, also for singular covariances.
    """
    dtype = floating("random.multivariate_normal", to_inexact(result_type(mean, cov)) if dtype is None else dtype)
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


@cuts_result
def orthogonal(
    key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *, out_sharding: Any = None
) -> Array:
    """Random orthogonal matrices, uniform in the Haar measure; unitary matrices if ``dtype`` is complex.

        q = orthogonal(key, n):  q @ q.mT.conj() == identity

    Shapes: ``[*shape, n, m]``, where m is n by default. The rows are orthonormal if ``n <= m``, the columns if
    ``n >= m``.

    Source: Mezzadri, How to generate random matrices from the classical compact groups (2007).

    >>> from handlax import random
    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(abs(q @ q.mT - random.orthogonal(random.key(1), 3) @ random.orthogonal(random.key(1), 3).mT).max() < 1e-5)
    True
    """
    columns = n if m is None else m
    sizes = canonical_shape(shape, "orthogonal")
    rank = len(sizes)
    dtype = default_float() if dtype is None else canonical(dtype)
    q, r = qr(normal(key, (*sizes, max(n, columns), min(n, columns)), dtype), full_matrices=False)
    d = diagonal(r)
    phase = div(d, convert(abs(d), d.type.dtype))
    x = mul(q, broadcast_in_dim(phase, q.type.shape, (*range(rank), rank + 1)))
    return x if n >= columns else permute(x, (*range(rank), rank + 1, rank))


programs(globals())
