"""Division towards minus infinity: the quotient, and the remainder that has the sign of the divisor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types.dtypes import FLOATING, INTEGER, is_floating, is_unsigned
from ..foundations.elementwise_factory import Function, elementwise, surface
from ..foundations.half_precision import wide
from .arithmetic import add, div, like, mul, neg, rem, round, sign, sub
from .bitwise import bitwise_and
from .comparison import eq, lt, ne, select_n
from .conversion import performed_wide


def _floor_divide(x, y):
    """NumPy's quotient; of an integer by 0 what ``FloorDivide`` says."""
    if x.dtype.kind not in "iu":
        return np.floor_divide(x, y)
    by_zero = y == 0
    quotient = np.floor_divide(x, np.where(by_zero, np.ones((), y.dtype), y))
    none = -1 - (x != 0) if x.dtype.kind == "i" else np.asarray(-1)
    return np.where(by_zero, none.astype(x.dtype), quotient)


def _quotient(x: Any, y: Any) -> Any:
    """floor(x / y); of floats ``(x - rem(x, y)) / y`` is an integer up to rounding, and by 0 it is ``x / y``."""
    if not is_floating(x.type.dtype):
        return div(x, y) if is_unsigned(x.type.dtype) else _integer_quotient(x, y)
    zero, rest = like(x, 0), rem(x, y)
    quotient = div(select_n(eq(y, zero), sub(x, rest), x), y)
    below = bitwise_and(ne(rest, zero), ne(sign(y), sign(rest)))
    quotient = round(select_n(below, quotient, sub(quotient, like(x, 1))))
    return select_n(eq(quotient, zero), quotient, mul(zero, mul(sign(x), sign(y))))


def _integer_quotient(x: Any, y: Any) -> Any:
    quotient = div(x, y)
    below = bitwise_and(ne(sign(x), sign(y)), ne(rem(x, y), like(x, 0)))
    return select_n(below, quotient, sub(quotient, like(x, 1)))


def _rest(x: Any, y: Any) -> Any:
    """x - y floor(x / y); of floats a remainder of zero has the sign of y."""
    zero = like(x, 0)
    if is_floating(x.type.dtype):
        rest = rem(x, y)
        rest = select_n(eq(rest, zero), rest, mul(zero, sign(y)))
    else:
        rest = rem(x, select_n(eq(y, zero), y, like(y, 1)))
        if is_unsigned(x.type.dtype):
            return rest
    below = bitwise_and(ne(lt(rest, zero), lt(y, zero)), ne(rest, zero))
    return select_n(below, rest, add(rest, y))


# z = floor(x / y), and x - y floor(x / y)
FloorDivide = elementwise(
    "floor_divide", INTEGER | FLOATING, wide(_floor_divide), arity=2, decompose=performed_wide(_quotient),
    costly=True,
    doc="``z[i] = floor(x[i] / y[i])``; by 0 of signed integers -2, or -1 where ``x[i] == 0``, of others the largest.",
)
Mod = elementwise(
    "mod", INTEGER | FLOATING, wide(np.remainder), arity=2,
    jvp=(lambda x, y, dx: dx, lambda x, y, dy: mul(dy, neg(floor_divide(x, y)))),
    decompose=performed_wide(_rest),
    costly=True,
    doc="``z[i] = x[i] - y[i] floor(x[i] / y[i])``: it has the sign of ``y``; of integers 0 where ``y[i] == 0``.",
)
floor_divide: Function = surface(FloorDivide)
mod: Function = surface(Mod)
