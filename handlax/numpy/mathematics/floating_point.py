"""Rounding, and floating-point routines: floor, round, signbit, copysign, frexp, ldexp, nextafter, spacing, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...effects.base.errors import DTypeMismatch
from ...effects.base.stack import perform
from ...effects.core.arrays import Array
from ...effects.operations.elementwise import arithmetic, bitwise, comparison
from ...effects.operations.elementwise.arithmetic import mul
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.elementwise.conversion import BitcastConvertType, convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.half_precision import HALF
from ...effects.operations.manipulation.operand_promotion import together
from ...effects.operators import numpy_arithmetic
from ...effects.types import dtypes
from ...effects.types.dtypes import BOOL, bool_, default_float, finfo
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, choose, inexact, inexact_together, like, no_out, strong

__all__ = [
    "around", "ceil", "copysign", "fix", "floor", "frexp", "ldexp", "modf", "nextafter", "rint", "round", "signbit",
    "spacing", "trunc",
]


def floor(x: Any, /) -> Array:
    """The largest integer that is not above ``x[i]``; integers as they are. Source: NumPy, ``floor``.

    >>> floor(-1.5)
    Array(-2., dtype=float32, weak_type=True)
    """
    x = array_of(x)
    return arithmetic.floor(x) if dtypes.is_inexact(x.type.dtype) else x


def ceil(x: Any, /) -> Array:
    """The least integer that is not below ``x[i]``; integers as they are. Source: NumPy, ``ceil``.

    >>> ceil(-1.5)
    Array(-1., dtype=float32, weak_type=True)
    """
    x = array_of(x)
    return arithmetic.ceil(x) if dtypes.is_inexact(x.type.dtype) else x


def trunc(x: Any) -> Array:
    """``x[i]`` without its fraction; integers as they are. Source: NumPy, ``trunc``.

    >>> trunc(-1.5)
    Array(-1., dtype=float32, weak_type=True)
    """
    x = array_of(x)
    return _towards_zero(x) if dtypes.is_inexact(x.type.dtype) else x


def fix(x: Any, out: None = None) -> Array:
    """``trunc(x)``. Source: NumPy, ``fix``.

    >>> fix(2.5)
    Array(2., dtype=float32, weak_type=True)
    """
    no_out(out, "fix")
    return trunc(x)


def rint(x: Any, /) -> Array:
    """The integer nearest to ``x[i]``, the even one of two, as a float. Source: NumPy, ``rint``.

    >>> rint(2.5)
    Array(2., dtype=float32, weak_type=True)
    """
    x = array_of(x)
    return numpy_arithmetic.around(x) if dtypes.is_inexact(x.type.dtype) else convert(x, default_float())


def round(a: Any, decimals: int = 0, out: None = None) -> Array:
    """``a[i]`` rounded to so many decimals, to even where two are equally near. Source: NumPy, ``round``.

    >>> round(2.346, 2)
    Array(2.35, dtype=float32, weak_type=True)
    """
    no_out(out, "round")
    return numpy_arithmetic.around(a, decimals)


around = round


def signbit(x: Any, /) -> Array:
    """Whether the sign bit of ``x[i]`` is set: that of -0.0 is. Source: NumPy, ``signbit``.

    >>> signbit(-0.0)
    Array(True, dtype=bool)
    """
    x = array_of(x)
    kind = x.type
    if dtypes.is_floating(kind.dtype):
        x = perform(BitcastConvertType(dtypes.canonical(f"int{kind.dtype.itemsize * 8}")), x)
    elif kind.dtype is bool_ or dtypes.is_unsigned(kind.dtype):
        return shapes.full(kind.update(dtype=bool_, weak=False), False)
    elif dtypes.is_complex(kind.dtype):
        raise DTypeMismatch(f"signbit: the operand must be real, got {kind}.")
    return x < 0


def copysign(x1: Any, x2: Any, /) -> Array:
    """``|x1[i]|`` with the sign of ``x2[i]``. Source: NumPy, ``copysign``.

    >>> copysign(3, -0.0)
    Array(-3., dtype=float32, weak_type=True)
    """
    x, y = inexact_together("copysign", x1, x2)
    size = arithmetic.abs(x)
    return choose(signbit(y), -size, size, "copysign")


def nextafter(x: Any, y: Any, /) -> Array:
    """The float next to ``x[i]`` towards ``y[i]``. Source: NumPy, ``nextafter``.

    >>> bool(nextafter(1.0, 2.0) > 1.0)
    True
    """
    return arithmetic.nextafter(*inexact_together("nextafter", x, y))


@strong
def spacing(x: Any, /) -> Array:
    """The distance from ``x[i]`` to the next float away from zero, with its sign. Source: NumPy, ``spacing``.

    >>> float(spacing(1.0)) == 2.0**-23
    True
    """
    x = inexact(x)
    infinite = like(x, float("inf"))
    return arithmetic.nextafter(x, select_n(signbit(x), infinite, -infinite)) - x


def _power_of_two(n: Any, dtype: Any) -> Any:
    """``2**n`` exactly, for integers ``n`` in the range of the exponent, assembled from its bits."""
    info = finfo(dtype)
    bits = dtypes.canonical(f"int{dtype.itemsize * 8}")
    shifted = bitwise.shift_left(convert(n, bits) + int(1 - info.minexp), convert(int(info.nmant), bits))
    return perform(BitcastConvertType(dtype), shifted)


@strong
def ldexp(x1: Any, x2: Any, /) -> Array:
    """``x1[i] * 2**x2[i]`` for integers ``x2``, exact where the result is a normal number. Source: NumPy, ``ldexp``.

    >>> ldexp(0.75, 3)
    Array(6., dtype=float32)
    """
    x, n = inexact(x1), array_of(x2)
    if dtypes.is_complex(x.type.dtype) or not (dtypes.is_integer(n.type.dtype) or n.type.dtype in BOOL):
        raise DTypeMismatch(f"ldexp: a real operand and an integer exponent are needed, got {x.type} and {n.type}.")
    kind = x.type
    y = convert(x, dtypes.float32, kind.weak) if kind.dtype in HALF else x
    dtype = y.type.dtype
    reach = int(finfo(dtype).maxexp - finfo(dtype).minexp + finfo(dtype).nmant + 4)
    if n.type.dtype.itemsize < 4:
        n = convert(n, dtypes.int32)
    n = convert(comparison.clamp(0 if dtypes.is_unsigned(n.type.dtype) else -reach, n, reach), dtypes.int32)
    # three factors: each is a normal number wherever the exponent lies
    third: Any = numpy_arithmetic.floor_divide(n, 3)
    for part in (third, third, n - 2 * third):
        y = mul(*together("ldexp", y, convert(_power_of_two(part, dtype), dtype, kind.weak)))
    return convert(y, kind.dtype, kind.weak)


def frexp(x: Any, /) -> tuple[Array, Array]:
    """``(m, e)`` with ``x == m * 2**e`` and ``0.5 <= |m| < 1``; of 0, infinities and NaN ``(x, 0)``.

    >>> [float(part) for part in frexp(6.0)]
    [0.75, 3.0]
    """
    x = inexact(x)
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        raise DTypeMismatch(f"frexp: the operand must be real, got {x.type}.")
    x = convert(x, dtype)
    info = finfo(dtype)
    bits = dtypes.canonical(f"uint{dtype.itemsize * 8}")
    size = arithmetic.abs(x)
    small = size < like(x, float(info.smallest_normal))
    lifted = select_n(small, x, x * like(x, 2.0 ** int(info.nmant + 1)))
    words = perform(BitcastConvertType(bits), lifted)
    digits, mask = convert(int(info.nmant), bits), convert(int(info.maxexp) * 2 - 1, bits)
    field = bitwise.bitwise_and(bitwise.shift_right_logical(words, digits), mask)
    e = convert(field, dtypes.int32) + int(info.minexp)
    e = e - convert(small, dtypes.int32) * int(info.nmant + 1)
    special_case = bitwise.bitwise_not(bitwise.bitwise_and(arithmetic.is_finite(x), comparison.ne(x, like(x, 0))))
    e = select_n(special_case, e, like(e, 0))
    return ldexp(x, -e), e


def modf(x: Any, /, out: None = None) -> tuple[Array, Array]:
    """``(fraction, whole)`` with ``x == whole + fraction``, both with the sign of ``x[i]``; of infinity ``(0, x)``.

    >>> [float(part) for part in modf(-2.5)]
    [-0.5, -2.0]
    """
    no_out(out, "modf")
    x = inexact(x)
    whole = _towards_zero(x)
    return select_n(arithmetic.abs(x) == np.inf, x - whole, arithmetic.sign(x) * 0), whole


def _towards_zero(x: Any) -> Any:
    """Floats without their fractions."""
    return select_n(x >= 0, arithmetic.ceil(x), arithmetic.floor(x))


programs(globals(), direct=("ceil", "floor"))
