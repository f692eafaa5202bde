"""Uniform bits and floats, integers, Bernoulli, Rademacher and normal draws from a key.

A uniform float is random bits as the mantissa of a float in [1, 2), minus 1. All else is arithmetic on these, so that
vmap, jit and grad apply: ``grad(lambda s: s * normal(key))`` is the reparametrised gradient.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.caches import cached
from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch, need_one_of
from ..effects.base.stack import perform
from ..effects.core.arrays import Array, as_array, scalar
from ..effects.functions.out_shardings import cuts_result
from ..effects.operations.elementwise.arithmetic import add, is_finite, mul, nextafter, rem, sub
from ..effects.operations.elementwise.bitwise import bitwise_and, bitwise_or, shift_right_logical
from ..effects.operations.elementwise.comparison import gt, le, lt, max, min, select
from ..effects.operations.elementwise.conversion import BitcastConvertType, convert
from ..effects.operations.elementwise.transcendental import erf_inv
from ..effects.operations.foundations.shapes import broadcast, canonical_shape
from ..effects.operations.manipulation.operand_promotion import broadcast_shape
from ..effects.operations.manipulation.slicing import index_in_dim
from ..effects.operations.random_bits import UINT
from ..effects.operations.random_generators import key_bits
from ..effects.types import dtypes
from ..interpreters.core.eager_programs import programs
from .keys import pair, single

__all__ = ["bernoulli", "bits", "normal", "rademacher", "randint", "uniform"]


SQRT2 = math.sqrt(2)


def floating(name: str, dtype: Any) -> Any:
    """``dtype``, or the default float for None. Raises: DTypeMismatch: it is not a floating dtype."""
    dtype = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    if dtype not in dtypes.FLOATING:
        raise DTypeMismatch(f"{name}: the dtype must be float16, bfloat16, float32 or float64, got {dtype}.")
    return dtype


def at_least_32_bits(dtype: Any) -> Any:
    """The dtype in which a sampler computes: float32 for a float of 16 bits, else ``dtype`` itself."""
    return dtypes.float32 if dtypes.itemsize_bits(dtype) < 32 else dtype


def integral(name: str, dtype: Any) -> Any:
    """``dtype``, or the default integer for None. Raises: DTypeMismatch: it is not an integer dtype."""
    dtype = dtypes.default_int() if dtype is None else dtypes.canonical(dtype)
    if dtype not in dtypes.ANY_INTEGER:
        raise DTypeMismatch(f"{name}: the dtype must be an integer one, got {dtype}.")
    return dtype


def fitted(name: str, shape: tuple[int, ...], *bounds: Any) -> None:
    """Raise ShapeMismatch unless all bounds broadcast to ``shape``."""
    for x in bounds:
        if x.type.shape and broadcast_shape(name, x.type.shape, shape) != shape:
            raise ShapeMismatch(f"{name}: parameters must broadcast to the shape {shape}, got {x.type}.")


def parameters(name: str, shape: Any, dtype: Any, *values: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of a sample, and the parameters of its distribution as arrays of ``dtype``.

    The default shape is that to which all parameters broadcast. Raises: ShapeMismatch: one does not broadcast to it.
    """
    arrays = [convert(x, dtype) for x in values]
    if shape is None:
        return broadcast_shape(name, *[x.type.shape for x in arrays]), arrays
    shape = canonical_shape(shape, name)
    fitted(name, shape, *arrays)
    return shape, arrays


def checked(name: str, key: Any, shape: Any, dtype: Any, *values: Any) -> tuple[Any, ...]:
    """The arguments of the sampler ``random.name``: one key, the shape, a floating dtype, and parameters of that dtype.

    Raises: BadArgument, DTypeMismatch, ShapeMismatch: the sampler does not take such an argument.
    """
    where = f"random.{name}"
    dtype = floating(where, dtype)
    if not values:
        return single(where, key), canonical_shape(shape, where), dtype
    shape, arrays = parameters(where, shape, dtype, *values)
    return single(where, key), shape, dtype, *arrays


@cuts_result
def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Uniform random bits: unsigned integers, each value of the dtype equally likely.

    Args:
        dtype: uint8, uint16, uint32 or uint64; by default uint32, or uint64 where the default integer is int64.

    >>> from handlax import random
    >>> random.bits(random.key(0), (2,), "uint8")
    Array([167, 146], dtype=uint8)
    """
    default = dtypes.uint64 if dtypes.default_int() == dtypes.int64 else dtypes.uint32
    dtype = default if dtype is None else dtypes.canonical(dtype)
    if dtype not in dtypes.ANY_UNSIGNED or dtypes.itemsize_bits(dtype) not in UINT:
        raise BadArgument(f"random.bits: the dtype must be uint8, uint16, uint32 or uint64, got {dtype}.")
    return key_bits(single("random.bits", key), dtypes.itemsize_bits(dtype), canonical_shape(shape, "random.bits"))


class FloatFormat(NamedTuple):
    """The constants by which uniform floats of one dtype are made from random bits."""

    drawn: int  # the number of random bits for each float
    words: Any  # the unsigned dtype as wide as the float
    shift: Any  # the distance by which random bits are shifted right to become the mantissa
    exponent: Any  # the float 1.0 as bits
    cast: Any  # the operation that reads bits as a float
    one: Any  # the float 1.0
    tiny: float
    eps: float
    below_one: float  # the largest float under 1


@cached("formats of random floats", 8)
def float_format(dtype: Any) -> FloatFormat:
    """The constants by which uniform floats of a dtype are made from random bits."""
    info = dtypes.finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    drawn, uint = 8 if mantissa < 8 else width, UINT[width]
    exponent = int(np.ones((), dtype).view(uint))
    return FloatFormat(
        drawn, uint, scalar(drawn - mantissa, uint), scalar(exponent, uint), BitcastConvertType(dtype),
        scalar(1.0, dtype), float(info.tiny), float(info.eps), 1 - float(info.epsneg),
    )


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform floats in [0, 1), multiples of the dtype's epsilon: floats in [1, 2) with a random mantissa, minus 1."""
    form = float_format(dtype)
    words = key_bits(key, form.drawn, shape)
    if words.type.dtype != form.words:
        words = convert(words, form.words)
    return sub(perform(form.cast, bitwise_or(shift_right_logical(words, form.shift), form.exponent)), form.one)


def between(key: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Uniform floats in [low, high); the bounds are numbers, or arrays of ``dtype`` that broadcast to ``shape``."""
    u = unit(key, shape, dtype)
    if not isinstance(low, Array) and not isinstance(high, Array):
        low, span = _interval(low, high, dtype)
        return max(low, add(mul(u, span), low))
    low, high = spread(low, shape), spread(high, shape)
    scale = select(is_finite(high - low), scalar(1.0, dtype), scalar(0.5, dtype))  # the width may overflow
    start = low * scale
    x = (u * (high * scale - start) + start) / scale
    return max(low, min(nextafter(high, low), x))  # the sum may be rounded to ``high``


@cached("random intervals", 64)
def _interval(low: float, high: float, dtype: Any) -> tuple[Any, Any]:
    """The lower bound of an interval and its width, as arrays of ``dtype``, in which the difference is rounded."""
    start, stop = np.asarray(low).astype(dtype), np.asarray(high).astype(dtype)
    return scalar(float(start), dtype), scalar(float(stop - start), dtype)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` broadcast to ``shape``; a scalar is returned itself, since operations broadcast scalars."""
    return broadcast(x, shape) if x.type.shape else x


@cuts_result
def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *, out_sharding: Any = None
) -> Array:
    """Uniform floats in the half-open interval [minval, maxval).

    Shapes: ``minval`` and ``maxval`` broadcast to ``shape``.

    >>> from handlax import random
    >>> random.uniform(random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    one, shape, dtype = checked("uniform", key, shape, dtype)
    if type(minval) in (int, float) and type(maxval) in (int, float) and minval == 0 and maxval == 1:
        return unit(one, shape, dtype)
    low, high = convert(minval, dtype), convert(maxval, dtype)
    fitted("random.uniform", shape, low, high)
    return between(one, shape, dtype, low, high)


@cuts_result
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Standard normal numbers, of mean 0 and variance 1.

    Of a complex dtype, real and imaginary part are independent, of variance 1/2 each.

    >>> from handlax import random
    >>> random.normal(random.key(0), (2, 3)).shape
    (2, 3)
    """
    kind = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    real_kind = dtypes.to_real(kind) if dtypes.is_complex(kind) else kind
    one, shape, dtype = checked("normal", key, shape, real_kind)
    if dtype == kind:
        return standard_normal(one, shape, dtype)
    real, imaginary = [convert(standard_normal(k, shape, dtype), kind) for k in pair(one)]
    return (real + scalar(1j, kind) * imaginary) / scalar(SQRT2, kind)


def standard_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Normal numbers of mean 0 and variance 1: ``sqrt(2) * erf_inv(u)`` for uniform u in (-1, 1)."""
    return mul(erf_inv(open_units(key, shape, dtype)), scalar(SQRT2, dtype))


def open_units(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform floats in the open interval (-1, 1)."""
    return between(key, shape, dtype, -float_format(dtype).below_one, 1.0)


@cuts_result
def randint(
    key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Uniform integers in the half-open interval [minval, maxval); ``minval`` where that is empty.

    Bounds outside the range of the dtype are clipped to it; a ``maxval`` above the largest number of the dtype includes
    that number. As in JAX, more than ``2**(bits/2)`` numbers, for the bits of the dtype, at least 32, are remainders of
    one random word: some are more probable than others, by up to the ratio of their count to ``2**bits``.

    Shapes: ``minval`` and ``maxval`` broadcast to ``shape``.
    Raises: DTypeMismatch: the dtype is not an integer one.

    >>> from handlax import random
    >>> random.randint(random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], dtype=int32)
    """
    dtype = integral("random.randint", dtype)
    one = single("random.randint", key)
    shape = canonical_shape(shape, "random.randint")
    low, high = int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max)
    if dtypes.itemsize_bits(dtype) < 32:  # computed in 32 bits, and narrowed
        start, _ = _clipped(minval, dtypes.int32, low, high)
        stop, _ = _clipped(maxval, dtypes.int32, low, high + 1)
        return convert(_integers(one, shape, start, stop, None), dtype)
    start, _ = _clipped(minval, dtype, low, high)
    stop, beyond = _clipped(maxval, dtype, low, high)
    return _integers(one, shape, start, stop, beyond)


def _clipped(bound: Any, dtype: Any, low: int, high: int) -> tuple[Any, Any]:
    """A bound clipped to [low, high], as ``dtype``; and a mask of where it exceeds ``high``, None for nowhere."""
    if isinstance(bound, (int, np.integer)):
        number = int(bound)
        inside = low if number < low else high if number > high else number
        return scalar(inside, dtype), scalar(True) if number > high else None
    x = as_array(bound)
    if x.type.dtype not in dtypes.ANY_INTEGER:
        x = convert(x, dtypes.default_int())
    source = x.type.dtype
    least, most = int(dtypes.iinfo(source).min), int(dtypes.iinfo(source).max)
    beyond = gt(x, scalar(high, source)) if most > high else None
    if least < low:
        x = max(x, scalar(low, source))
    if most > high:
        x = min(x, scalar(high, source))
    return convert(x, dtype), beyond


def _integers(key: Any, shape: tuple[int, ...], start: Any, stop: Any, beyond: Any) -> Any:
    """Uniform integers in [start, stop): ``start + (2**bits * upper + lower) % (stop - start)`` of two random words.

    The remainders are multiplied in ``bits`` bits, as in JAX, whose numbers these are, so that the upper word has no
    effect on a span of more than ``2**(bits/2)``. Where ``beyond`` is true, ``stop`` itself is included.
    """
    fitted("random.randint", shape, start, stop)
    bound = broadcast_shape("random.randint", start.type.shape, stop.type.shape)
    start, stop = spread(start, bound), spread(stop, bound)
    dtype = start.type.dtype
    width = dtypes.itemsize_bits(dtype)
    uint = UINT[width]
    upper, lower = [key_bits(k, width, shape) for k in pair(key)]
    span = select(le(stop, start), ones(bound, uint), convert(stop - start, uint))
    if beyond is not None:  # one more; the span of all numbers is 0, modulo which nothing changes
        span = select(bitwise_and(spread(beyond, bound), gt(stop, start)), span + scalar(1, uint), span)
    half = rem(scalar(2 ** (width // 2), uint), span)
    multiplier = spread(rem(half * half, span), shape)
    span = spread(span, shape)
    offset = rem(rem(upper, span) * multiplier + rem(lower, span), span)
    return spread(start, shape) + (convert(offset, dtype) if dtypes.is_signed(dtype) else offset)


def ones(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of this shape whose elements are 1."""
    return broadcast(scalar(1, dtype), shape) if shape else scalar(1, dtype)


@cuts_result
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Array:
    """Booleans that are True with probability ``p``.

    Shapes: ``p`` broadcasts to ``shape``, by default its own.
    Args:
        mode: "low" compares one uniform float with ``p``; "high" two, so that probabilities below the dtype's epsilon
            are exact too.
    Raises: DTypeMismatch: ``p`` is not a float.

    >>> from handlax import random
    >>> random.bernoulli(random.key(0), 0.9, (3,))
    Array([False, False,  True], dtype=bool)
    """
    one, probability = single("random.bernoulli", key), as_array(p)
    dtype = probability.type.dtype
    if dtype not in dtypes.FLOATING:
        raise DTypeMismatch(f"random.bernoulli: the probability must be a float, got {probability.type}.")
    need_one_of("random.bernoulli: mode", mode, ("low", "high"))
    shape, (probability,) = parameters("random.bernoulli", shape, dtype, probability)
    probability = spread(probability, shape)
    if mode == "low":
        return lt(unit(one, shape, dtype), probability)
    first, second = two_units(one, shape, dtype)
    return lt(second * float_format(dtype).eps, probability - first)


def two_units(key: Any, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """Two independent arrays of uniform floats in [0, 1)."""
    both = unit(key, (2, *shape), dtype)
    return [index_in_dim(both, i, keepdims=False) for i in range(2)]


@cuts_result
def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """1 or -1 with equal probability, of the default integer dtype unless ``dtype`` is given."""
    heads = bernoulli(single("random.rademacher", key), 0.5, canonical_shape(shape, "random.rademacher"))
    return convert(heads, dtypes.default_int() if dtype is None else dtypes.canonical(dtype)) * 2 - 1


programs(globals())
