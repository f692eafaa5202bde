"""Bitwise operations on integers; and, or, xor and not are logical on booleans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types.dtypes import BOOL, FOUR_BITS, INTEGER, int4, int8, itemsize_bits, uint8
from ..foundations.elementwise_factory import Function, elementwise, surface

BITS = BOOL | INTEGER
BITWISE = INTEGER | FOUR_BITS  # their bits, not their values, are looked at


def _unsigned(x):
    """The same bits as unsigned integers, 4 bits with zeros before them."""
    if x.dtype in FOUR_BITS:
        return x.astype(np.int8).view(np.uint8) & np.uint8(15)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _signed(x):
    """The same bits as signed integers, 4 bits with copies of the highest before them."""
    return x.astype(np.int8).astype(int4).astype(np.int8) if x.dtype in FOUR_BITS else x.view(f"i{x.dtype.itemsize}")


def _as(bits, dtype):
    """These bits as integers of this dtype."""
    return bits.astype(dtype) if dtype in FOUR_BITS else bits.view(dtype)


def _shift(bits: Callable[[Any], Any], f: np.ufunc, beyond: Callable[[Any], Any]) -> Callable[..., Any]:
    """The NumPy rule of the shift ``f`` of ``bits(x)`` by an unsigned amount.

    It is ``beyond(x)`` where the amount is not less than the width of ``x``; there ``f`` depends on the processor.
    """

    def shift(x, y):
        x, y = np.ascontiguousarray(x).reshape(x.shape), np.ascontiguousarray(y).reshape(y.shape)
        amount, whole = _unsigned(y), bits(x)
        within = amount < itemsize_bits(x.dtype)
        if within.all():
            return _as(f(whole, amount.astype(whole.dtype, copy=False)), x.dtype)
        amount = np.where(within, amount, np.zeros((), amount.dtype)).astype(whole.dtype, copy=False)
        return np.where(within, _as(f(whole, amount), x.dtype), beyond(x))

    return shift


def _bits_of(x):
    return _unsigned(np.ascontiguousarray(x).reshape(x.shape))


def _count_leading_zeros(x):
    """Set all bits below the highest one bit, then count the zeros."""
    bits = _bits_of(x)
    for step in (1, 2, 4, 8, 16, 32):
        if step < bits.dtype.itemsize * 8:
            bits = bits | (bits >> np.asarray(step, bits.dtype))
    return itemsize_bits(x.dtype) - np.bitwise_count(bits).astype(np.int64)


def _signs(x):
    """All bits equal to the highest bit of x."""
    return _as(-(_signed(x) < 0).astype(_signed(x).dtype), x.dtype)


def _zero(x):
    return np.zeros((), x.dtype)


# z = x and y, x or y, x xor y, not x, bit by bit
And = elementwise("and", BITS, np.bitwise_and, arity=2, lower="and", doc="The bits of both ``x[i]`` and ``y[i]``.")
Or = elementwise("or", BITS, np.bitwise_or, arity=2, lower="or", doc="The bits of ``x[i]`` or ``y[i]``.")
Xor = elementwise("xor", BITS, np.bitwise_xor, arity=2, lower="xor", doc="The bits of either ``x[i]`` or ``y[i]``.")
Not = elementwise("not", BITS, np.bitwise_not, lower="not", doc="The bits that ``x[i]`` does not have.")

bitwise_and: Function = surface(And, "bitwise_and")
bitwise_or: Function = surface(Or, "bitwise_or")
bitwise_xor: Function = surface(Xor, "bitwise_xor")
bitwise_not: Function = surface(Not, "bitwise_not")

# z = x shifted by y bits: left; right, with zeros coming in; right, with copies of the highest bit coming in
ShiftLeft = elementwise(
    "shift_left", BITWISE, _shift(_unsigned, np.left_shift, _zero), arity=2, lower="shift_left",
    doc="``x[i]`` shifted by ``y[i]`` bits to the left, with zeros coming in; 0 where ``y[i]`` is its width or more.",
)
ShiftRightLogical = elementwise(
    "shift_right_logical", BITWISE, _shift(_unsigned, np.right_shift, _zero), arity=2, lower="shift_right_logical",
    doc="``x[i]`` shifted by ``y[i]`` bits to the right, with zeros coming in; 0 where ``y[i]`` is its width or more.",
)
ShiftRightArithmetic = elementwise(
    "shift_right_arithmetic", BITWISE, _shift(_signed, np.right_shift, _signs), arity=2,
    lower="shift_right_arithmetic",
    doc="``x[i]`` shifted by ``y[i]`` bits to the right, with copies of the highest bit coming in.",
)
shift_left: Function = surface(ShiftLeft)
shift_right_logical: Function = surface(ShiftRightLogical)
shift_right_arithmetic: Function = surface(ShiftRightArithmetic)


def _lower_count(name: str, beyond: int) -> Callable[..., Any]:
    """The ``lower`` rule of a count of bits; of 4-bit integers, which XLA extends by their sign, in bytes.

    ``beyond`` is what it counts of the 4 bits that are zero there.
    """

    def lower(op: Any, emit: Any, x: Any) -> Any:
        result = emit.made
        if result.dtype not in FOUR_BITS:
            return emit.elementwise(name, x)
        x = emit.convert(emit.convert(x, int8), uint8)
        count = emit.unary(name, emit.binary("and", x, emit.full(15, x.type)))
        return emit.convert(emit.binary("subtract", count, emit.full(beyond, x.type)), result.dtype)

    return lower


# y = the number of one bits; the number of zero bits before the highest one bit
PopulationCount = elementwise(
    "population_count", BITWISE, lambda x: np.bitwise_count(_bits_of(x)),
    lower=_lower_count("popcnt", 0), doc="The number of one bits of ``x[i]``.",
)
Clz = elementwise(
    "clz", BITWISE, _count_leading_zeros, lower=_lower_count("count_leading_zeros", 4),
    doc="The number of zero bits of ``x[i]`` before the highest one bit.",
)

population_count: Function = surface(PopulationCount)
clz: Function = surface(Clz)
