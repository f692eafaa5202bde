"""Arithmetic with promotion and NumPy's meaning: what operators and the array functions of the same names share."""

from __future__ import annotations

from functools import cache
from typing import Any

from . import arithmetic, complexes, dtypes
from .arithmetic import IntegerPow, RoundingMethod, div, like, mul, rem, sign, sub
from .arrays import Array, lift
from .bitwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from .broadcasting import broadcast_together, together
from .comparison import eq, lt, ne, select_n
from .conversion import convert
from .errors import DTypeMismatch
from .special import pow
from .stack import perform


def numbers(name: str, *xs: Any) -> list[Array]:
    """The operands promoted and broadcast; booleans become integers."""
    arrays = together(name, *xs)
    if arrays[0].type.dtype == dtypes.bool_:
        return [convert(x, dtypes.default_int()) for x in arrays]
    return arrays


def inexact(name: str, *xs: Any) -> list[Array]:
    """The operands promoted and broadcast; integers and booleans become floats."""
    arrays = together(name, *xs)
    kind = arrays[0].type
    if kind.dtype in dtypes.ANY_INEXACT:
        return arrays
    dtype = dtypes.default_float() if kind.weak else dtypes.to_inexact(kind.dtype)
    return [convert(x, dtype, x.type.weak) for x in arrays]


def true_divide(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i] / y[i]``; quotients of integers are floats.

    >>> import numpy as np
    >>> true_divide(np.array([1, 2]), 4)
    Array([0.25, 0.5 ], dtype=float64)
    """
    return div(*inexact("true_divide", x, y))


def floor_divide(x: Any, y: Any, /) -> Array:
    """``z[i] = floor(x[i] / y[i])``, in the dtype of the operands.

    An integer by zero is -1, by StableHLO's division, less 1 where the signs differ.
    Raises: DTypeMismatch: complex numbers have no floor.

    >>> import numpy as np
    >>> floor_divide(np.array([7, -7, 7]), np.array([2, 2, -2]))
    Array([ 3, -4, -4], dtype=int64)
    """
    x, y = numbers("floor_divide", x, y)
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        raise DTypeMismatch(f"floor_divide: complex numbers have no floor, got {x.type}.")
    if dtypes.is_floating(dtype):
        return _floor_and_rest(x, y)[0]
    whole = div(x, y)
    if dtypes.is_unsigned(dtype):
        return whole
    below = bitwise_and(ne(sign(x), sign(y)), ne(rem(x, y), like(x, 0)))
    return select_n(below, whole, sub(whole, like(whole, 1)))


def _floor_and_rest(x: Array, y: Array) -> tuple[Array, Array]:
    """floor(x / y) and the rest, of floats: the quotient of what the rest leaves over is whole up to rounding."""
    rest = rem(x, y)
    whole = div(select_n(eq(y, like(y, 0)), sub(x, rest), x), y)
    below = bitwise_and(ne(rest, like(rest, 0)), ne(sign(y), sign(rest)))
    whole = select_n(below, whole, sub(whole, like(whole, 1)))
    return arithmetic.round(whole), select_n(below, rest, rest + y)


def remainder(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i] - y[i] floor(x[i] / y[i])``: it has the sign of ``y[i]``; of integers 0 where ``y[i]`` is 0.

    >>> import numpy as np
    >>> remainder(np.array([7, -7, 7]), np.array([3, 3, -3]))
    Array([ 1,  2, -2], dtype=int64)
    """
    x, y = numbers("remainder", x, y)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"remainder: complex numbers have no floor, got {x.type}.")
    if dtypes.is_integer(x.type.dtype):
        y = select_n(eq(y, like(y, 0)), y, like(y, 1))
    rest = rem(x, y)
    if dtypes.is_unsigned(x.type.dtype):
        return rest
    nothing = like(rest, 0)
    below = bitwise_and(ne(lt(rest, nothing), lt(y, like(y, 0))), ne(rest, nothing))
    return select_n(below, rest, rest + y)


def divmod(x: Any, y: Any, /) -> tuple[Array, Array]:
    """``(floor_divide(x, y), remainder(x, y))``.

    >>> import numpy as np
    >>> divmod(np.array(-7.0), 2)
    (Array(-4., dtype=float64), Array(1., dtype=float64))
    """
    x, y = numbers("divmod", x, y)
    return _floor_and_rest(x, y) if dtypes.is_floating(x.type.dtype) else (floor_divide(x, y), remainder(x, y))


_integer_powers = cache(IntegerPow)


def power(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i]**y[i]``; a Python integer as exponent is a product, not a logarithm.

    Integers to the power of integers are integers and wrap around; an array of negative exponents is for floats.
    Raises: DTypeMismatch: integers to a negative Python integer.

    >>> import numpy as np
    >>> power(np.array([2, 3]), 2), power(np.array([4.0]), 0.5)
    (Array([4, 9], dtype=int64), Array([2.], dtype=float64))
    """
    if type(y) is int:
        base = lift(x)
        base = convert(base, dtypes.default_int()) if base.type.dtype == dtypes.bool_ else base
        return perform(_integer_powers(y), base)
    if not isinstance(y, (bool, int, float, complex)):
        x, y = lift(x), lift(y)
        if dtypes.is_integer(y.type.dtype) and x.type.dtype in dtypes.INEXACT:
            return pow(*broadcast_together("power", [x, y]))
    x, y = numbers("power", x, y)
    return _integer_power(x, y) if dtypes.is_integer(x.type.dtype) else pow(x, y)


def _integer_power(x: Array, y: Array) -> Array:
    """By squaring, for the six lowest bits of the exponent: any more overflow, unless x is 0, 1 or -1."""
    zero, one = like(y, 0), like(y, 1)
    found = select_n(bitwise_and(eq(x, like(x, 0)), ne(y, zero)), like(x, 1), like(x, 0))
    for step in range(6):
        found = select_n(ne(bitwise_and(y, one), zero), found, mul(found, x))
        if step < 5:
            x, y = mul(x, x), shift_right_logical(y, one)
    return found


def float_power(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i]**y[i]`` in floats, also of integers.

    >>> import numpy as np
    >>> float_power(np.array([2, 4]), -1)
    Array([0.5 , 0.25], dtype=float64)
    """
    return pow(*inexact("float_power", x, y))


def truth(x: Any) -> Array:
    """``x[i] != 0``."""
    x = lift(x)
    return x if x.type.dtype == dtypes.bool_ else ne(x, like(x, 0))


def logical_and(x: Any, y: Any, /) -> Array:
    """Whether both ``x[i]`` and ``y[i]`` are not 0.

    >>> import numpy as np
    >>> logical_and(np.array([0.0, 2.0]), True)
    Array([False,  True], dtype=bool)
    """
    return bitwise_and(*broadcast_together("logical_and", [truth(x), truth(y)]))


def logical_or(x: Any, y: Any, /) -> Array:
    """Whether ``x[i]`` or ``y[i]`` is not 0."""
    return bitwise_or(*broadcast_together("logical_or", [truth(x), truth(y)]))


def logical_xor(x: Any, y: Any, /) -> Array:
    """Whether one of ``x[i]`` and ``y[i]`` is not 0, and not the other."""
    return bitwise_xor(*broadcast_together("logical_xor", [truth(x), truth(y)]))


def logical_not(x: Any, /) -> Array:
    """Whether ``x[i]`` is 0."""
    return bitwise_not(truth(x))


def left_shift(x: Any, y: Any, /) -> Array:
    """``x[i]`` shifted by ``y[i]`` bits to the left; 0 where that reaches its width."""
    return shift_left(*numbers("left_shift", x, y))


def right_shift(x: Any, y: Any, /) -> Array:
    """``x[i]`` shifted by ``y[i]`` bits to the right, signed integers with their sign from the left.

    >>> import numpy as np
    >>> right_shift(np.array([-8, 8]), 1)
    Array([-4,  4], dtype=int64)
    """
    x, y = numbers("right_shift", x, y)
    return (shift_right_logical if dtypes.is_unsigned(x.type.dtype) else shift_right_arithmetic)(x, y)


def around(x: Any, decimals: int = 0) -> Array:
    """``x[i]`` rounded to so many decimals, to even where two are equally near; negative ones lie before the point.

    >>> import numpy as np
    >>> around(np.array([0.5, 1.25, 1.35]), 1), around(np.array([15, 25, 26]), -1)
    (Array([0.5, 1.2, 1.4], dtype=float64), Array([20, 20, 30], dtype=int64))
    """
    x = lift(x)
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        return complexes.complex(around(complexes.real(x), decimals), around(complexes.imag(x), decimals))
    if not dtypes.is_floating(dtype):
        return x if decimals >= 0 or dtypes.is_bool(dtype) else _round_integers(x, 10**-decimals)
    if decimals == 0:
        return arithmetic.round(x, RoundingMethod.TO_NEAREST_EVEN)
    y = convert(x, dtypes.float32, x.type.weak) if dtype.itemsize == 2 else x
    scale = like(y, 10.0 ** abs(decimals))
    if decimals > 0:
        y = div(arithmetic.round(mul(y, scale), RoundingMethod.TO_NEAREST_EVEN), scale)
    else:
        y = mul(arithmetic.round(div(y, scale), RoundingMethod.TO_NEAREST_EVEN), scale)
    return convert(y, dtype, x.type.weak)


def _round_integers(x: Array, unit: int) -> Array:
    """The multiple of ``unit`` nearest to x, the even one of two; 0 where the unit is beyond the dtype."""
    if unit > int(dtypes.iinfo(x.type.dtype).max):
        return mul(x, like(x, 0))
    whole, rest = floor_divide(x, like(x, unit)), remainder(x, like(x, unit))
    half = like(x, unit // 2)
    odd = ne(bitwise_and(whole, like(x, 1)), like(x, 0))
    up = bitwise_or(lt(half, rest), bitwise_and(eq(rest, half), odd))
    return mul(select_n(up, whole, whole + like(x, 1)), like(x, unit))


def positive(x: Any, /) -> Array:
    """``x`` itself."""
    return lift(x)


def absolute(x: Any, /) -> Array:
    """``y[i] = |x[i]|``; unsigned integers and booleans are what they are.

    >>> import numpy as np
    >>> absolute(np.array([-1, 2]))
    Array([1, 2], dtype=int64)
    """
    x = lift(x)
    dtype = x.type.dtype
    return x if dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype) else arithmetic.abs(x)
