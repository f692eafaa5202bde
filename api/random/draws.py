"""Draws of random numbers from a key, each a transform of uniform bits. ``handlax.random`` exports these functions.

Uniform floats are made of bits: a mantissa under the exponent of 1, minus 1. All else is arithmetic, so that vmap, jit
and grad go through: ``grad(lambda s: s * normal(key))`` is the reparametrised gradient.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..effects.arithmetic import abs, add, floor, mul, nextafter, rem, sign, sqrt, sub
from ..effects.arrays import Array, lift, scalar
from ..effects.bitwise import bitwise_and, bitwise_or, shift_right_logical
from ..effects.broadcasting import broadcast_shape
from ..effects.comparison import eq, ge, gt, le, lt, max, min, select
from ..effects.contraction import dot_general
from ..effects.conversion import BitcastConvertType, convert
from ..effects.dtypes import (
    ANY_INTEGER,
    ANY_UNSIGNED,
    FLOATING,
    canonical,
    default_float,
    default_int,
    finfo,
    iinfo,
    int32,
    int64,
    is_complex,
    is_signed,
    itemsize_bits,
    to_real,
    uint32,
    uint64,
)
from ..effects.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.linalg import cholesky
from ..effects.refusals import no_sharding
from ..effects.shapes import broadcast, canonical_shape, reduce_sum
from ..effects.slicing import index_in_dim
from ..effects.special import erf, erf_inv, exp, log, log1p, pow, tan
from ..effects.stack import perform
from ..effects.threefry import UINT, random_bits
from .keys import pair, single

SQRT2 = math.sqrt(2)


def floating(name: str, dtype: Any) -> Any:
    """The floating dtype that was named, or the default one."""
    found = default_float() if dtype is None else canonical(dtype)
    if found not in FLOATING:
        raise DTypeMismatch(f"{name}: the dtype must be float16, bfloat16, float32 or float64, got {found}.")
    return found


def fitted(name: str, shape: tuple[int, ...], *bounds: Any) -> None:
    """Raise ShapeMismatch unless all bounds broadcast to ``shape``."""
    for x in bounds:
        if x.type.shape and broadcast_shape(name, x.type.shape, shape) != shape:
            raise ShapeMismatch(f"{name}: parameters must broadcast to the shape {shape}, got {x.type}.")


def parameters(name: str, shape: Any, dtype: Any, *values: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape, by default that to which all parameters broadcast, and these as arrays of ``dtype``."""
    arrays = [convert(lift(x), dtype) for x in values]
    if shape is None:
        return broadcast_shape(name, *[x.type.shape for x in arrays]), arrays
    found = canonical_shape(shape, name)
    fitted(name, found, *arrays)
    return found, arrays


def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform random bits: unsigned integers, all equally likely.

    Args:
        dtype: an unsigned one; by default as wide as the default integer, uint32.

    >>> from handlax import random
    >>> random.bits(random.key(0), (2,), "uint8")
    Array([167, 146], dtype=uint8)
    """
    no_sharding("bits", out_sharding)
    found = (uint64 if default_int() == int64 else uint32) if dtype is None else canonical(dtype)
    if found not in ANY_UNSIGNED or itemsize_bits(found) not in UINT:
        raise DTypeMismatch(f"random.bits: the dtype must be uint8, uint16, uint32 or uint64, got {found}.")
    return random_bits(single("random.bits", key), itemsize_bits(found), canonical_shape(shape, "random.bits"))


class _Format(NamedTuple):
    """What making a float of bits needs to know of its dtype, as operands."""

    drawn: int  # random bits for each float
    words: Any  # the unsigned dtype of its width
    shift: Any  # how far bits go right to be the mantissa
    exponent: Any  # the bits of 1
    cast: Any
    one: Any
    tiny: float
    eps: float
    below_one: float  # the largest float under 1


@lru_cache(maxsize=8)
def _format(dtype: Any) -> _Format:
    info = finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    drawn, uint = 8 if mantissa < 8 else width, UINT[width]
    exponent = int(np.ones((), dtype).view(uint))
    return _Format(
        drawn, uint, scalar(drawn - mantissa, uint), scalar(exponent, uint), BitcastConvertType(dtype),
        scalar(1.0, dtype), float(info.tiny), float(info.eps), 1 - float(info.epsneg),
    )  # fmt: skip


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform floats in [0, 1): multiples of the dtype's epsilon, from bits under the exponent of 1."""
    form = _format(dtype)
    words = random_bits(key, form.drawn, shape)
    if words.type.dtype != form.words:
        words = convert(words, form.words)
    return sub(perform(form.cast, bitwise_or(shift_right_logical(words, form.shift), form.exponent)), form.one)


def between(key: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Uniform floats from ``low`` to ``high``: numbers, or arrays of ``dtype`` that broadcast to ``shape``."""
    u = unit(key, shape, dtype)
    if not isinstance(low, Array) and not isinstance(high, Array):
        low, span = _interval(low, high, dtype)
        return max(low, add(mul(u, span), low))
    return max(spread(low, shape), u * (high - low) + low)


@lru_cache(maxsize=64)
def _interval(low: float, high: float, dtype: Any) -> tuple[Any, Any]:
    """The lower bound and the width of an interval, computed in its dtype."""
    start, stop = np.asarray(low).astype(dtype), np.asarray(high).astype(dtype)
    return scalar(float(start), dtype), scalar(float(stop - start), dtype)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    return broadcast(x, shape) if x.type.shape else x


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *, out_sharding: Any = None
) -> Any:
    """Floats from ``minval`` (included) to ``maxval`` (not included), uniformly.

    Shapes: ``minval`` and ``maxval`` broadcast to ``shape``.

    >>> from handlax import random
    >>> random.uniform(random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    no_sharding("uniform", out_sharding)
    dtype = floating("random.uniform", dtype)
    one = single("random.uniform", key)
    shape = canonical_shape(shape, "random.uniform")
    if type(minval) in (int, float) and type(maxval) in (int, float) and minval == 0 and maxval == 1:
        return unit(one, shape, dtype)
    low, high = convert(lift(minval), dtype), convert(lift(maxval), dtype)
    fitted("random.uniform", shape, low, high)
    return between(one, shape, dtype, low, high)


def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Normally distributed numbers of mean 0 and variance 1; complex ones have variance 1/2 in each part.

    >>> from handlax import random
    >>> random.normal(random.key(0), (2, 3)).shape
    (2, 3)
    """
    no_sharding("normal", out_sharding)
    one = single("random.normal", key)
    shape = canonical_shape(shape, "random.normal")
    if dtype is not None and is_complex(canonical(dtype)):
        dtype = canonical(dtype)
        real, imaginary = [convert(_normal(k, shape, to_real(dtype)), dtype) for k in pair(one)]
        return (real + scalar(1j, dtype) * imaginary) / scalar(SQRT2, dtype)
    return _normal(one, shape, floating("random.normal", dtype))


def _normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return mul(erf_inv(_open(key, shape, dtype)), scalar(SQRT2, dtype))


def _open(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform in the open interval (-1, 1)."""
    return between(key, shape, dtype, -_format(dtype).below_one, 1.0)


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Normally distributed numbers of mean 0 and variance 1 that lie strictly between ``lower`` and ``upper``.

    Shapes: ``lower`` and ``upper`` broadcast to ``shape``, by default to each other.
    """
    no_sharding("truncated_normal", out_sharding)
    dtype = floating("random.truncated_normal", dtype)
    shape, (low, high) = parameters("random.truncated_normal", shape, dtype, lower, upper)
    one = single("random.truncated_normal", key)
    drawn = erf_inv(between(one, shape, dtype, erf(low / SQRT2), erf(high / SQRT2))) * SQRT2
    least = nextafter(low, scalar(math.inf, dtype))
    most = nextafter(high, scalar(-math.inf, dtype))
    return min(spread(most, shape), max(spread(least, shape), drawn))


def randint(
    key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Integers from ``minval`` (included) to ``maxval`` (not included), uniformly; ``minval`` where that is empty.

    Shapes: ``minval`` and ``maxval`` broadcast to ``shape``. Bounds that the dtype cannot hold are clipped to it, and a
    ``maxval`` above its largest number includes that number.
    Raises: DTypeMismatch: the dtype is not an integer one.

    >>> from handlax import random
    >>> random.randint(random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], dtype=int32)
    """
    no_sharding("randint", out_sharding)
    dtype = default_int() if dtype is None else canonical(dtype)
    if dtype not in ANY_INTEGER:
        raise DTypeMismatch(f"random.randint: the dtype must be an integer one, got {dtype}.")
    one = single("random.randint", key)
    shape = canonical_shape(shape, "random.randint")
    low, high = int(iinfo(dtype).min), int(iinfo(dtype).max)
    if itemsize_bits(dtype) < 32:  # 32 bits are drawn and counted with, the result is narrowed
        start, _ = _clipped(minval, int32, low, high)
        stop, _ = _clipped(maxval, int32, low, high + 1)
        return convert(_integers(one, shape, start, stop, None), dtype)
    start, _ = _clipped(minval, dtype, low, high)
    stop, beyond = _clipped(maxval, dtype, low, high)
    return _integers(one, shape, start, stop, beyond)


def _clipped(bound: Any, dtype: Any, low: int, high: int) -> tuple[Any, Any]:
    """A bound as ``dtype``, no less than ``low`` and no more than ``high``; and where it is more, None if nowhere."""
    if isinstance(bound, (int, np.integer)):
        number = int(bound)
        inside = low if number < low else high if number > high else number
        return scalar(inside, dtype), scalar(True) if number > high else None
    x = lift(bound)
    if x.type.dtype not in ANY_INTEGER:
        x = convert(x, default_int())
    source = x.type.dtype
    least, most = int(iinfo(source).min), int(iinfo(source).max)
    beyond = gt(x, scalar(high, source)) if most > high else None
    if least < low:
        x = max(x, scalar(low, source))
    if most > high:
        x = min(x, scalar(high, source))
    return convert(x, dtype), beyond


def _integers(key: Any, shape: tuple[int, ...], start: Any, stop: Any, beyond: Any) -> Any:
    """``start`` plus a number of twice the bits modulo the span: high words are worth 2**bits modulo the span."""
    fitted("random.randint", shape, start, stop)
    bound = broadcast_shape("random.randint", start.type.shape, stop.type.shape)
    start, stop = spread(start, bound), spread(stop, bound)
    dtype = start.type.dtype
    width = itemsize_bits(dtype)
    uint = UINT[width]
    upper, lower = [random_bits(k, width, shape) for k in pair(key)]
    span = select(le(stop, start), _ones(bound, uint), convert(stop - start, uint))
    if beyond is not None:  # one more; the span of all numbers is 0, modulo which nothing changes
        span = select(bitwise_and(spread(beyond, bound), gt(stop, start)), span + scalar(1, uint), span)
    half = rem(scalar(2 ** (width // 2), uint), span)
    multiplier = spread(rem(half * half, span), shape)
    span = spread(span, shape)
    offset = rem(rem(upper, span) * multiplier + rem(lower, span), span)
    return spread(start, shape) + (convert(offset, dtype) if is_signed(dtype) else offset)


def _ones(shape: tuple[int, ...], dtype: Any) -> Any:
    return broadcast(scalar(1, dtype), shape) if shape else scalar(1, dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Any:
    """True with probability ``p``.

    Args:
        mode: ``high`` draws two numbers for each result, so that small probabilities are exact.
    Raises: DTypeMismatch: ``p`` is not a float.

    >>> from handlax import random
    >>> random.bernoulli(random.key(0), 0.9, (3,))
    Array([False, False,  True], dtype=bool)
    """
    no_sharding("bernoulli", out_sharding)
    one, probability = single("random.bernoulli", key), lift(p)
    dtype = probability.type.dtype
    if dtype not in FLOATING:
        raise DTypeMismatch(f"random.bernoulli: the probability must be a float, got {probability.type}.")
    if mode not in ("low", "high"):
        raise BadArgument(f"random.bernoulli: mode must be 'low' or 'high', got {mode!r}.")
    shape, (probability,) = parameters("random.bernoulli", shape, dtype, probability)
    probability = spread(probability, shape)
    if mode == "low":
        return lt(unit(one, shape, dtype), probability)
    first, second = _two(one, shape, dtype)
    return lt(second * _format(dtype).eps, probability - first)


def _two(key: Any, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    both = unit(key, (2, *shape), dtype)
    return [index_in_dim(both, i, keepdims=False) for i in range(2)]


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None) -> Any:
    """Gumbel distributed numbers: ``-log(-log(u))`` for uniform ``u``.

    Args:
        mode: ``high`` draws two numbers for each result, which makes large ones as dense as small ones; else ``low``.
    """
    no_sharding("gumbel", out_sharding)
    dtype = floating("random.gumbel", dtype)
    one = single("random.gumbel", key)
    shape = canonical_shape(shape, "random.gumbel")
    if mode not in (None, "low", "high"):
        raise BadArgument(f"random.gumbel: mode must be 'low' or 'high', got {mode!r}.")
    if mode != "high":
        return -log(-log(between(one, shape, dtype, _format(dtype).tiny, 1.0)))
    first, second = _two(one, shape, dtype)
    eps = _format(dtype).eps
    fine = second * eps + first + eps * eps / 2
    return -log(-log1p(-select(ge(first, scalar(0.5, dtype)), first, fine)))


def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Exponentially distributed numbers of mean 1."""
    no_sharding("exponential", out_sharding)
    dtype = floating("random.exponential", dtype)
    return -log1p(-unit(single("random.exponential", key), canonical_shape(shape, "random.exponential"), dtype))


def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Laplace distributed numbers: an exponential one with a random sign."""
    no_sharding("laplace", out_sharding)
    dtype = floating("random.laplace", dtype)
    u = _open(single("random.laplace", key), canonical_shape(shape, "random.laplace"), dtype)
    return sign(u) * log1p(-abs(u))


def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Logistically distributed numbers: ``log(u / (1 - u))`` for uniform ``u``."""
    no_sharding("logistic", out_sharding)
    dtype = floating("random.logistic", dtype)
    one = single("random.logistic", key)
    u = between(one, canonical_shape(shape, "random.logistic"), dtype, _format(dtype).tiny, 1.0)
    return log(u) - log1p(-u)


def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Cauchy distributed numbers: the tangent of a uniform angle."""
    no_sharding("cauchy", out_sharding)
    dtype = floating("random.cauchy", dtype)
    one = single("random.cauchy", key)
    u = between(one, canonical_shape(shape, "random.cauchy"), dtype, _format(dtype).eps, 1.0)
    return tan((u - 0.5) * math.pi)


def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """1 or -1, equally likely; of the default integer dtype unless another is named."""
    no_sharding("rademacher", out_sharding)
    found = default_int() if dtype is None else canonical(dtype)
    heads = bernoulli(single("random.rademacher", key), 0.5, canonical_shape(shape, "random.rademacher"))
    return convert(heads, found) * 2 - 1


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Pareto distributed numbers: ``x >= 1`` with density ``b / x**(b + 1)``."""
    no_sharding("pareto", out_sharding)
    dtype = floating("random.pareto", dtype)
    shape, (b,) = parameters("random.pareto", shape, dtype, b)
    return exp(exponential(key, shape, dtype) / b)


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Weibull distributed numbers: ``scale * e**(1 / concentration)`` for exponential ``e``."""
    dtype = floating("random.weibull_min", dtype)
    shape, (scale, concentration) = parameters("random.weibull_min", shape, dtype, scale, concentration)
    return pow(exponential(key, shape, dtype), spread(1.0 / concentration, shape)) * scale


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Rayleigh distributed numbers: the length of a normal vector of two parts of deviation ``scale``."""
    no_sharding("rayleigh", out_sharding)
    dtype = floating("random.rayleigh", dtype)
    shape, (scale,) = parameters("random.rayleigh", shape, dtype, scale)
    return scale * sqrt(log(unit(single("random.rayleigh", key), shape, dtype)) * -2.0)


def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Maxwell distributed numbers: the length of a normal vector of three parts."""
    no_sharding("maxwell", out_sharding)
    dtype = floating("random.maxwell", dtype)
    shape = canonical_shape(shape, "random.maxwell")
    x = _normal(single("random.maxwell", key), (*shape, 3), dtype)
    return sqrt(reduce_sum(x * x, (len(shape),)))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """``loc + scale * x``, for Maxwell distributed ``x`` with a random sign."""
    dtype = floating("random.double_sided_maxwell", dtype)
    shape, (loc, scale) = parameters("random.double_sided_maxwell", shape, dtype, loc, scale)
    first, second = pair(single("random.double_sided_maxwell", key))
    return rademacher(second, shape, dtype) * maxwell(first, shape, dtype) * scale + loc


def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
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
) -> Any:
    """``exp(sigma * x)`` for normal ``x``."""
    no_sharding("lognormal", out_sharding)
    dtype = floating("random.lognormal", dtype)
    shape, (sigma,) = parameters("random.lognormal", shape, dtype, sigma)
    return exp(_normal(single("random.lognormal", key), shape, dtype) * sigma)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The number of trials up to the first success, of probability ``p`` each; of an integer dtype."""
    no_sharding("geometric", out_sharding)
    found = default_int() if dtype is None else canonical(dtype)
    if found not in ANY_INTEGER:
        raise DTypeMismatch(f"random.geometric: the dtype must be an integer one, got {found}.")
    probability = lift(p)
    wide = probability.type.dtype if probability.type.dtype in FLOATING else default_float()
    shape, (probability,) = parameters("random.geometric", shape, wide, probability)
    u = unit(single("random.geometric", key), shape, wide)
    u = select(eq(u, scalar(0, wide)), _ones(shape, wide), u)
    return convert(floor(log(u) / spread(log1p(-probability), shape)) + 1.0, found)


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Wald (inverse Gaussian) distributed numbers of this mean and of scale 1: when a Brownian motion first gets there.

    Source: J. Michael et al., Generating random variates using transformations with multiple roots (1976).
    """
    no_sharding("wald", out_sharding)
    dtype = floating("random.wald", dtype)
    shape, (mean,) = parameters("random.wald", shape, dtype, mean)
    first, second = pair(single("random.wald", key))
    mean = spread(mean, shape)
    x = _normal(first, shape, dtype)
    y = x * x
    smaller = mean + mean * mean * y / 2.0 - mean / 2.0 * sqrt(mean * 4.0 * y + mean * mean * (y * y))
    return select(le(unit(second, shape, dtype), mean / (mean + smaller)), smaller, mean * mean / smaller)


def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Any:
    """Normal vectors of this mean and covariance: ``mean + l x`` for ``l l^T == cov`` and normal ``x``.

    Shapes: ``mean[*s, n], cov[*t, n, n] -> [*shape, n]``; ``s`` and ``t`` broadcast to ``shape``, by default to each
    other.
    Args:
        method: ``cholesky``, for positive definite covariances.
    """
    no_sharding("multivariate_normal", out_sharding)
    dtype = floating("random.multivariate_normal", dtype)
    if method != "cholesky":
        raise BadArgument(f"random.multivariate_normal: method must be 'cholesky', got {method!r}.")
    middle, spreading = convert(lift(mean), dtype), convert(lift(cov), dtype)
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
    x = _normal(single("random.multivariate_normal", key), (*shape, *n), dtype)
    factor, rank = cholesky(spreading), len(shape)
    if len(factor.type.shape) == 2:
        drawn = dot_general(x, factor, (((rank,), (1,)), ((), ())))
    else:
        over = tuple(range(rank))
        drawn = dot_general(spread(factor, (*shape, *n, *n)), x, (((rank + 1,), (rank,)), (over, over)))
    return spread(middle, (*shape, *n)) + drawn
