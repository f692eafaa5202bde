"""Uniform bits and floats, integers, Bernoulli, Rademacher and normal draws from a key.

A uniform float is random bits as the mantissa of a float in [1, 2), minus 1. All else is arithmetic on these, so that
vmap, jit and grad apply: ``grad(lambda s: s * normal(key))`` is the reparametrised gradient.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.caches import cached
from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.base.stack import perform
from ..effects.core.arrays import Array, as_array, scalar
from ..effects.functions.unsupported import no_sharding
from ..effects.operations.elementwise.arithmetic import add, mul, nextafter, rem, sub
from ..effects.operations.elementwise.bitwise import bitwise_and, bitwise_or, shift_right_logical
from ..effects.operations.elementwise.comparison import gt, le, lt, max, min, select
from ..effects.operations.elementwise.conversion import BitcastConvertType, convert
from ..effects.operations.elementwise.transcendental import erf, erf_inv
from ..effects.operations.foundations.shapes import broadcast, canonical_shape
from ..effects.operations.manipulation.operand_promotion import broadcast_shape
from ..effects.operations.manipulation.slicing import index_in_dim
from ..effects.operations.random_bits import UINT
from ..effects.operations.random_generators import key_bits
from ..effects.types.dtypes import (
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
from ..interpreters.core.eager_programs import programs
from .keys import pair, single

__all__ = ["bernoulli", "bits", "normal", "rademacher", "randint", "truncated_normal", "uniform"]


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
    arrays = [convert(x, dtype) for x in values]
    if shape is None:
        return broadcast_shape(name, *[x.type.shape for x in arrays]), arrays
    found = canonical_shape(shape, name)
    fitted(name, found, *arrays)
    return found, arrays


def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
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
        raise BadArgument(f"random.bits: the dtype must be uint8, uint16, uint32 or uint64, got {found}.")
    return key_bits(single("random.bits", key), itemsize_bits(found), canonical_shape(shape, "random.bits"))


class FloatFormat(NamedTuple):
    """Constants for making uniform floats of one dtype from random bits."""

    drawn: int  # random bits for each float
    words: Any  # the unsigned dtype of its width
    shift: Any  # how far bits go right to be the mantissa
    exponent: Any  # the bits of 1
    cast: Any
    one: Any
    tiny: float
    eps: float
    below_one: float  # the largest float under 1


@cached("formats of random floats", 8)
def float_format(dtype: Any) -> FloatFormat:
    """The bits of the floats of a dtype, as samplers draw them."""
    info = finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    drawn, uint = 8 if mantissa < 8 else width, UINT[width]
    exponent = int(np.ones((), dtype).view(uint))
    return FloatFormat(
        drawn, uint, scalar(drawn - mantissa, uint), scalar(exponent, uint), BitcastConvertType(dtype),
        scalar(1.0, dtype), float(info.tiny), float(info.eps), 1 - float(info.epsneg),
    )  # fmt: skip


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform floats in [0, 1): multiples of the dtype's epsilon, from bits under the exponent of 1."""
    form = float_format(dtype)
    words = key_bits(key, form.drawn, shape)
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


@cached("random intervals", 64)
def _interval(low: float, high: float, dtype: Any) -> tuple[Any, Any]:
    """The lower bound and the width of an interval, computed in its dtype."""
    start, stop = np.asarray(low).astype(dtype), np.asarray(high).astype(dtype)
    return scalar(float(start), dtype), scalar(float(stop - start), dtype)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    return broadcast(x, shape) if x.type.shape else x


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *, out_sharding: Any = None
) -> Array:
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
    low, high = convert(minval, dtype), convert(maxval, dtype)
    fitted("random.uniform", shape, low, high)
    return between(one, shape, dtype, low, high)


def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
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
        real, imaginary = [convert(standard_normal(k, shape, to_real(dtype)), dtype) for k in pair(one)]
        return (real + scalar(1j, dtype) * imaginary) / scalar(SQRT2, dtype)
    return standard_normal(one, shape, floating("random.normal", dtype))


def standard_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return mul(erf_inv(open_units(key, shape, dtype)), scalar(SQRT2, dtype))


def open_units(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform in the open interval (-1, 1)."""
    return between(key, shape, dtype, -float_format(dtype).below_one, 1.0)


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
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
) -> Array:
    """Integers from ``minval`` (included) to ``maxval`` (not included), uniformly; ``minval`` if the interval is empty.

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
    x = as_array(bound)
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
    upper, lower = [key_bits(k, width, shape) for k in pair(key)]
    span = select(le(stop, start), ones(bound, uint), convert(stop - start, uint))
    if beyond is not None:  # one more; the span of all numbers is 0, modulo which nothing changes
        span = select(bitwise_and(spread(beyond, bound), gt(stop, start)), span + scalar(1, uint), span)
    half = rem(scalar(2 ** (width // 2), uint), span)
    multiplier = spread(rem(half * half, span), shape)
    span = spread(span, shape)
    offset = rem(rem(upper, span) * multiplier + rem(lower, span), span)
    return spread(start, shape) + (convert(offset, dtype) if is_signed(dtype) else offset)


def ones(shape: tuple[int, ...], dtype: Any) -> Any:
    return broadcast(scalar(1, dtype), shape) if shape else scalar(1, dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Array:
    """True with probability ``p``.

    Args:
        mode: ``high`` draws two numbers for each result, so that small probabilities are exact.
    Raises: DTypeMismatch: ``p`` is not a float.

    >>> from handlax import random
    >>> random.bernoulli(random.key(0), 0.9, (3,))
    Array([False, False,  True], dtype=bool)
    """
    no_sharding("bernoulli", out_sharding)
    one, probability = single("random.bernoulli", key), as_array(p)
    dtype = probability.type.dtype
    if dtype not in FLOATING:
        raise DTypeMismatch(f"random.bernoulli: the probability must be a float, got {probability.type}.")
    if mode not in ("low", "high"):
        raise BadArgument(f"random.bernoulli: mode must be 'low' or 'high', got {mode!r}.")
    shape, (probability,) = parameters("random.bernoulli", shape, dtype, probability)
    probability = spread(probability, shape)
    if mode == "low":
        return lt(unit(one, shape, dtype), probability)
    first, second = two_units(one, shape, dtype)
    return lt(second * float_format(dtype).eps, probability - first)


def two_units(key: Any, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    both = unit(key, (2, *shape), dtype)
    return [index_in_dim(both, i, keepdims=False) for i in range(2)]


def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """1 or -1, equally likely; of the default integer dtype unless another is named."""
    no_sharding("rademacher", out_sharding)
    found = default_int() if dtype is None else canonical(dtype)
    heads = bernoulli(single("random.rademacher", key), 0.5, canonical_shape(shape, "random.rademacher"))
    return convert(heads, found) * 2 - 1


programs(globals())
