"""Operations on the bits of integers; on booleans they are the logical ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import BOOL, INTEGER
from .elementwise import Function, elementwise, surface

BITS = BOOL | INTEGER


def _unsigned(x):
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _shift(f: Callable[..., Any], beyond: Callable[[Any], Any]) -> Callable[..., Any]:
    """A shift whose amount is unsigned and may reach beyond the width of ``x``; NumPy leaves that to the machine."""

    def shift(x, y):
        width = x.dtype.itemsize * 8
        x, y = np.ascontiguousarray(x).reshape(x.shape), np.ascontiguousarray(y).reshape(y.shape)
        amount = _unsigned(y)
        within = amount < width
        amount = np.where(within, amount, np.zeros((), amount.dtype))
        return np.where(within, f(x, amount.astype(x.dtype)), beyond(x))

    return shift


def _count_leading_zeros(x):
    """Smear the highest one to the right, then count the zeros that are left."""
    x = _unsigned(np.ascontiguousarray(x).reshape(x.shape))
    width = x.dtype.itemsize * 8
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            x = x | (x >> np.asarray(step, x.dtype))
    return width - np.bitwise_count(x).astype(np.int64)


def _logical_right(x, y):
    return (_unsigned(x) >> _unsigned(y)).view(x.dtype)


def _arithmetic_right(x, y):
    """The highest bit is a sign, of unsigned integers too."""
    return (_signed(x) >> _signed(y)).view(x.dtype)


def _signed(x):
    return x.view(f"i{x.dtype.itemsize}")


def _signs(x):
    return (-(_signed(x) < 0).astype(f"i{x.dtype.itemsize}")).view(x.dtype)


def _nothing(x):
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

# z = x 2^y; the same to the right with zeros, and with the sign, from the left
ShiftLeft = elementwise(
    "shift_left", INTEGER, _shift(np.left_shift, _nothing), arity=2, lower="shift_left",
    doc="``x[i]`` shifted by ``y[i]`` bits to the left, with zeros from the right; 0 where ``y[i]`` reaches its width.",
)  # fmt: skip
ShiftRightLogical = elementwise(
    "shift_right_logical", INTEGER, _shift(_logical_right, _nothing), arity=2, lower="shift_right_logical",
    doc="``x[i]`` shifted by ``y[i]`` bits to the right, with zeros from the left; 0 where ``y[i]`` reaches its width.",
)  # fmt: skip
ShiftRightArithmetic = elementwise(
    "shift_right_arithmetic", INTEGER, _shift(_arithmetic_right, _signs), arity=2,
    lower="shift_right_arithmetic",
    doc="``x[i]`` shifted by ``y[i]`` bits to the right, with its sign from the left.",
)  # fmt: skip
shift_left: Function = surface(ShiftLeft)
shift_right_logical: Function = surface(ShiftRightLogical)
shift_right_arithmetic: Function = surface(ShiftRightArithmetic)

# y = the number of ones, the number of zeros before the first one
PopulationCount = elementwise(
    "population_count", INTEGER, lambda x: np.bitwise_count(_unsigned(np.ascontiguousarray(x).reshape(x.shape))),
    lower="popcnt", doc="How many bits of ``x[i]`` are ones.",
)  # fmt: skip
Clz = elementwise(
    "clz", INTEGER, _count_leading_zeros, lower="count_leading_zeros", doc="How many zeros stand before the first one.",
)  # fmt: skip

population_count: Function = surface(PopulationCount)
clz: Function = surface(Clz)
