"""Arithmetic with NumPy's promotion and semantics: shared by infix operators and ``numpy``'s functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.caches import cached
from ..base.errors import DTypeMismatch
from ..base.stack import perform
from ..control.loops import while_loop
from ..core.arrays import Array, ConcreteArray, as_array, is_number
from ..operations.elementwise import arithmetic, complex_parts, floor_division
from ..operations.elementwise.arithmetic import IntegerPow, RoundingMethod, div, like, mul
from ..operations.elementwise.bitwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from ..operations.elementwise.comparison import eq, lt, ne, select, select_n
from ..operations.elementwise.conversion import convert
from ..operations.elementwise.transcendental import pow
from ..operations.manipulation.operand_promotion import broadcast_together, together
from ..operations.reductions.reductions import reduce_or
from ..types import dtypes


def numbers(name: str, *xs: Any) -> list[Array]:
    """The operands promoted and broadcast; booleans become integers."""
    arrays = together(name, *xs)
    if arrays[0].type.dtype == dtypes.bool_:
        return [convert(x, dtypes.default_int()) for x in arrays]
    return arrays


def _real_numbers(name: str, *xs: Any) -> list[Array]:
    """``numbers``. Raises: DTypeMismatch: the operands are complex."""
    arrays = numbers(name, *xs)
    if dtypes.is_complex(arrays[0].type.dtype):
        raise DTypeMismatch(f"{name}: complex numbers have no floor, got {arrays[0].type}.")
    return arrays


def inexact(name: str, *xs: Any) -> list[Array]:
    """The operands promoted and broadcast; integers and booleans become floats, numbers from their full value."""
    return together(name, *xs, floats=True)


def true_divide(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i] / y[i]``; quotients of integers are floats.

    >>> import numpy as np
    >>> true_divide(np.array([1, 2]), 4)
    Array([0.25, 0.5 ], dtype=float64)
    """
    return div(*inexact("true_divide", x, y))


def floor_divide(x: Any, y: Any, /) -> Array:
    """``z[i] = floor(x[i] / y[i])``, in the dtype of the operands.

    An integer divided by zero gives StableHLO's quotient -1, less 1 where the signs differ.

    Raises: DTypeMismatch: the operands are complex.

    >>> import numpy as np
    >>> floor_divide(np.array([7, -7, 7]), np.array([2, 2, -2]))
    Array([ 3, -4, -4], dtype=int64)
    """
    return floor_division.floor_divide(*_real_numbers("floor_divide", x, y))


def remainder(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i] - y[i] floor(x[i] / y[i])``, of the sign of ``y[i]``; for integers 0 where ``y[i]`` is 0.

    Raises: DTypeMismatch: the operands are complex.

    >>> import numpy as np
    >>> remainder(np.array([7, -7, 7]), np.array([3, 3, -3]))
    Array([ 1,  2, -2], dtype=int64)
    """
    return floor_division.mod(*_real_numbers("remainder", x, y))


def divmod(x: Any, y: Any, /) -> tuple[Array, Array]:
    """``(floor_divide(x, y), remainder(x, y))``.

    Raises: DTypeMismatch: the operands are complex.

    >>> import numpy as np
    >>> divmod(np.array(-7.0), 2)
    (Array(-4., dtype=float64), Array(1., dtype=float64))
    """
    x, y = numbers("divmod", x, y)
    return floor_divide(x, y), remainder(x, y)


_integer_powers = cached("integer powers")(IntegerPow)
"""The operation of an integer power, by the exponent."""


def power(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i]**y[i]``; an integer number as exponent is computed by products, not by a logarithm.

    Powers of integers are integers, which wrap around; exponents in an integer array must not be negative.

    Raises: DTypeMismatch: integers to a negative integer number.

    >>> import numpy as np
    >>> power(np.array([2, 3]), 2), power(np.array([4.0]), 0.5)
    (Array([4, 9], dtype=int64), Array([2.], dtype=float64))
    """
    if type(y) is int or isinstance(y, np.integer):
        base = as_array(x)
        base = convert(base, dtypes.default_int()) if base.type.dtype == dtypes.bool_ else base
        return perform(_integer_powers(int(y)), base)
    y = y if is_number(y) else as_array(y)
    whole = isinstance(y, Array) and dtypes.is_integer(y.type.dtype)
    x = as_array(x) if whole and not is_number(x) else x
    if whole and isinstance(x, Array) and x.type.dtype in dtypes.INEXACT:
        z = pow(*broadcast_together("power", [x, y]))
    else:
        first, second = numbers("power", x, y)
        z = (_integer_power if dtypes.is_integer(first.type.dtype) else pow)(first, second)
    return convert(z, z.type.dtype) if whole and not y.type.weak else z  # powers of a number by an array are strong


def _integer_power(x: Array, y: Array) -> Array:
    """Powers by squaring: as many steps as the largest exponent has bits."""

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        z, x, y = state
        odd = ne(bitwise_and(y, like(y, 1)), like(y, 0))
        return select_n(odd, z, mul(z, x)), mul(x, x), shift_right_logical(y, like(y, 1))

    z = select_n(bitwise_and(eq(x, like(x, 0)), ne(y, like(y, 0))), like(x, 1), like(x, 0))
    state = (z, x, y)
    known = isinstance(y, ConcreteArray)
    for _ in range(_bits(y) if known else 6):
        state = step(state)
    if not known:  # larger exponents are rare: no step is taken for them unless there are some
        state = while_loop(lambda state: _any(ne(state[2], like(state[2], 0))), step, state)
    return state[0]


def _any(x: Array) -> Any:
    return reduce_or(x, tuple(range(x.ndim)))


def _bits(y: Any) -> int:
    """The number of bits of the largest element, an unsigned integer."""
    return int(y.value.view(f"u{y.itemsize}").max()).bit_length() if y.size else 0


def float_power(x: Any, y: Any, /) -> Array:
    """``z[i] = x[i]**y[i]``; integers are converted to floats.

    >>> import numpy as np
    >>> float_power(np.array([2, 4]), -1)
    Array([0.5 , 0.25], dtype=float64)
    """
    return pow(*inexact("float_power", x, y))


def truth(x: Any) -> Array:
    """``x[i] != 0``."""
    x = as_array(x)
    return x if x.type.dtype == dtypes.bool_ else ne(x, like(x, 0))


def logical_and(x: Any, y: Any, /) -> Array:
    """Whether both ``x[i]`` and ``y[i]`` are nonzero.

    >>> import numpy as np
    >>> logical_and(np.array([0.0, 2.0]), True)
    Array([False,  True], dtype=bool)
    """
    return bitwise_and(*broadcast_together("logical_and", [truth(x), truth(y)]))


def logical_or(x: Any, y: Any, /) -> Array:
    """Whether ``x[i]`` or ``y[i]`` is nonzero."""
    return bitwise_or(*broadcast_together("logical_or", [truth(x), truth(y)]))


def logical_xor(x: Any, y: Any, /) -> Array:
    """Whether exactly one of ``x[i]`` and ``y[i]`` is nonzero."""
    return bitwise_xor(*broadcast_together("logical_xor", [truth(x), truth(y)]))


def logical_not(x: Any, /) -> Array:
    """Whether ``x[i]`` is 0."""
    return bitwise_not(truth(x))


def left_shift(x: Any, y: Any, /) -> Array:
    """``x[i]`` shifted left by ``y[i]`` bits; 0 where ``y[i]`` is at least the width of the dtype."""
    return shift_left(*numbers("left_shift", x, y))


def right_shift(x: Any, y: Any, /) -> Array:
    """``x[i]`` shifted right by ``y[i]`` bits; arithmetically for signed integers.

    >>> import numpy as np
    >>> right_shift(np.array([-8, 8]), 1)
    Array([-4,  4], dtype=int64)
    """
    x, y = numbers("right_shift", x, y)
    return (shift_right_logical if dtypes.is_unsigned(x.type.dtype) else shift_right_arithmetic)(x, y)


def around(x: Any, decimals: int = 0) -> Array:
    """``x[i]`` rounded to a multiple of ``10**-decimals``, ties to even.

    >>> import numpy as np
    >>> around(np.array([0.5, 1.25, 1.35]), 1), around(np.array([15, 25, 26]), -1)
    (Array([0.5, 1.2, 1.4], dtype=float64), Array([20, 20, 30], dtype=int64))
    """
    x = as_array(x)
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        return complex_parts.complex(around(complex_parts.real(x), decimals), around(complex_parts.imag(x), decimals))
    if not dtypes.is_floating(dtype):
        return x if decimals >= 0 or dtypes.is_bool(dtype) else _round_integers(x, 10**-decimals)
    if decimals == 0:
        return arithmetic.round(x, RoundingMethod.TO_NEAREST_EVEN)
    y = convert(x, dtypes.float32, x.type.weak) if dtype.itemsize == 2 else x
    scale = 10.0 ** abs(decimals) if abs(decimals) <= 308 else math.inf
    if scale > 1.0 / float(dtypes.finfo(y.type.dtype).tiny):  # or its reciprocal, by which XLA multiplies, would be 0
        z = y if decimals > 0 else mul(y, like(y, 0.0))
        return convert(select(arithmetic.is_finite(y), z, y), dtype, x.type.weak)
    unit = like(y, scale)
    scaled = mul(y, unit) if decimals > 0 else div(y, unit)
    whole = arithmetic.round(scaled, RoundingMethod.TO_NEAREST_EVEN)
    z = div(whole, unit) if decimals > 0 else mul(whole, unit)
    return convert(select(arithmetic.is_finite(scaled), z, y), dtype, x.type.weak)


def _round_integers(x: Array, unit: int) -> Array:
    """The multiple of ``unit`` nearest to x, ties to even; 0 where ``unit`` exceeds the dtype's largest integer."""
    if unit > int(dtypes.iinfo(x.type.dtype).max):
        return mul(x, like(x, 0))
    quotient, rest = floor_divide(x, like(x, unit)), remainder(x, like(x, unit))
    half = like(x, unit // 2)
    odd = ne(bitwise_and(quotient, like(x, 1)), like(x, 0))
    up = bitwise_or(lt(half, rest), bitwise_and(eq(rest, half), odd))
    return mul(select_n(up, quotient, quotient + like(x, 1)), like(x, unit))


def positive(x: Any, /) -> Array:
    """``x`` itself."""
    return as_array(x)


_WITHOUT_SIGN = dtypes.ANY_UNSIGNED | dtypes.BOOL


def absolute(x: Any, /) -> Array:
    """``y[i] = |x[i]|``; unsigned integers and booleans are returned unchanged.

    >>> import numpy as np
    >>> absolute(np.array([-1, 2]))
    Array([1, 2], dtype=int64)
    """
    x = x if isinstance(x, Array) else as_array(x)
    return x if x.type.dtype in _WITHOUT_SIGN else arithmetic.abs(x)
