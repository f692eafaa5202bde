"""Bitwise operations on integers; and, or, xor and not are logical on booleans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types.dtypes import BOOL, INTEGER
from ..foundations.elementwise_factory import Function, elementwise, surface

BITS = BOOL | INTEGER


def _unsigned(x):
    """The same bits as unsigned integers."""
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _shift(f: Callable[..., Any], beyond: Callable[[Any], Any]) -> Callable[..., Any]:
    """The NumPy rule of a shift by an unsigned amount; ``beyond(x)`` where that is not less than the width of ``x``.

    Without this the result for such amounts would depend on the processor.
    """

    def shift(x, y):
        width = x.dtype.itemsize * 8
        x, y = np.ascontiguousarray(x).reshape(x.shape), np.ascontiguousarray(y).reshape(y.shape)
        amount = _unsigned(y)
        within = amount < width
        amount = np.where(within, amount, np.zeros((), amount.dtype))
        return np.where(within, f(x, amount.astype(x.dtype)), beyond(x))

    return shift


def _count_leading_zeros(x):
    """Set all bits below the highest one bit, then count the zeros."""
    x = _unsigned(np.ascontiguousarray(x).reshape(x.shape))
    width = x.dtype.itemsize * 8
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            x = x | (x >> np.asarray(step, x.dtype))
    return width - np.bitwise_count(x).astype(np.int64)


def _logical_right(x, y):
    return (_unsigned(x) >> _unsigned(y)).view(x.dtype)


def _arithmetic_right(x, y):
    """Copies of the highest bit come in, for unsigned integers too."""
    return (_signed(x) >> _signed(y)).view(x.dtype)


def _signed(x):
    """The same bits as signed integers."""
    return x.view(f"i{x.dtype.itemsize}")


def _signs(x):
    """All bits equal to the highest bit of x."""
    return (-(_signed(x) < 0).astype(f"i{x.dtype.itemsize}")).view(x.dtype)


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
    "shift_left", INTEGER, _shift(np.left_shift, _zero), arity=2, lower="shift_left",
    doc="``x[i]`` shifted by ``y[i]`` bits to the left, with zeros coming in; 0 where ``y[i]`` is its width or more.",
)  # fmt: skip
ShiftRightLogical = elementwise(
    "shift_right_logical", INTEGER, _shift(_logical_right, _zero), arity=2, lower="shift_right_logical",
    doc="``x[i]`` shifted by ``y[i]`` bits to the right, with zeros coming in; 0 where ``y[i]`` is its width or more.",
)  # fmt: skip
ShiftRightArithmetic = elementwise(
    "shift_right_arithmetic", INTEGER, _shift(_arithmetic_right, _signs), arity=2,
    lower="shift_right_arithmetic",
    doc="``x[i]`` shifted by ``y[i]`` bits to the right, with copies of the highest bit coming in.",
)  # fmt: skip
shift_left: Function = surface(ShiftLeft)
shift_right_logical: Function = surface(ShiftRightLogical)
shift_right_arithmetic: Function = surface(ShiftRightArithmetic)

# y = the number of one bits; the number of zero bits before the highest one bit
PopulationCount = elementwise(
    "population_count", INTEGER, lambda x: np.bitwise_count(_unsigned(np.ascontiguousarray(x).reshape(x.shape))),
    lower="popcnt", doc="The number of one bits of ``x[i]``.",
)  # fmt: skip
Clz = elementwise(
    "clz", INTEGER, _count_leading_zeros, lower="count_leading_zeros",
    doc="The number of zero bits of ``x[i]`` before the highest one bit.",
)  # fmt: skip

population_count: Function = surface(PopulationCount)
clz: Function = surface(Clz)
