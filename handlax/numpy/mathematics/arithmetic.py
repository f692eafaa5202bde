"""Arithmetic, complex numbers, common divisors, and elementwise extremes: add, power, conj, gcd, maximum, clip, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...effects.base.errors import BadArgument, DTypeMismatch
from ...effects.base.lazy_module import LazyModule
from ...effects.core.arrays import Array
from ...effects.operations.elementwise import arithmetic, bitwise, comparison, complex_parts, transcendental
from ...effects.operations.elementwise.arithmetic import div, rem
from ...effects.operations.elementwise.comparison import gt, lt, select_n
from ...effects.operations.elementwise.comparison import max as _max
from ...effects.operations.elementwise.comparison import min as _min
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.manipulation.operand_promotion import together
from ...effects.operators import numpy_arithmetic
from ...effects.types import dtypes
from ...effects.types.dtypes import bool_, finfo
from ...interpreters.core.eager_programs import eager_program, programs
from ..arrays.argument_conversion import (
    array_of,
    choose,
    in_32_bits,
    inexact,
    inexact_together,
    like,
    numeric_together,
    strong,
    strong_beside_strong,
)
from ..arrays.creation import array_beside
from . import reductions
from .universal_functions import binary, either, named, ufunc

if TYPE_CHECKING:
    from ...effects.operations.special import common_divisors
else:
    common_divisors = LazyModule("handlax.effects.operations.special.common_divisors")

__all__ = [
    "abs", "absolute", "add", "arctan2", "atan2", "clip", "conj", "conjugate", "divide", "divmod", "fabs",
    "float_power", "floor_divide", "fmax", "fmin", "fmod", "gcd", "heaviside", "hypot", "imag", "lcm", "logaddexp",
    "logaddexp2", "maximum", "minimum", "mod", "multiply", "nan_to_num", "negative", "positive", "pow", "power", "real",
    "remainder", "sign", "square", "subtract", "true_divide",
]


# z = x + y, x - y, x y
add = ufunc(
    either("add", arithmetic.Add, bitwise.Or, "``z[i] = x[i] + y[i]``; of booleans, or. Source: NumPy, ``add``."),
    2, 1, identity=0, reduce=reductions.sum, accumulate=reductions.cumsum, scatter="add",
)
subtract = ufunc(
    binary("subtract", arithmetic.Sub, "``z[i] = x[i] - y[i]``; not of booleans. Source: NumPy, ``subtract``."),
    2, 1, scatter="subtract",
)
multiply = ufunc(
    either("multiply", arithmetic.Mul, bitwise.And, "``z[i] = x[i] y[i]``; of booleans, and. Source: NumPy."),
    2, 1, identity=1, reduce=reductions.prod, accumulate=reductions.cumprod, scatter="multiply",
)
divide = binary("divide", arithmetic.Div, """``z[i] = x[i] / y[i]``; quotients of integers are floats.

>>> divide(1, 2)
Array(0.5, dtype=float32, weak_type=True)
""", floats=True)
true_divide = divide
maximum = ufunc(
    binary("maximum", comparison.Max, "The larger of ``x[i]`` and ``y[i]``, NaN where one is. Source: NumPy."),
    2, 1, reduce=reductions.max, accumulate=reductions.cummax, scatter="max",
)
minimum = ufunc(
    binary("minimum", comparison.Min, "The smaller of ``x[i]`` and ``y[i]``, NaN where one is. Source: NumPy."),
    2, 1, reduce=reductions.min, accumulate=reductions.cummin, scatter="min",
)
floor_divide, remainder = eager_program(numpy_arithmetic.floor_divide), eager_program(numpy_arithmetic.remainder)
divmod, mod = eager_program(numpy_arithmetic.divmod), remainder
power, float_power = eager_program(numpy_arithmetic.power), eager_program(numpy_arithmetic.float_power)
pow = power

# y = |x|, -x, x, x^2, the sign of x
absolute, positive = numpy_arithmetic.absolute, numpy_arithmetic.positive
abs = absolute


negative = ufunc(
    named(lambda x, /: arithmetic.neg(array_of(x)), "negative", "``y[i] = -x[i]``; not of booleans. Source: NumPy."),
    1, 1,
)


def fabs(x: Any, /) -> Array:
    """``y[i] = |x[i]|`` as a float. Source: NumPy, ``fabs``.

    >>> fabs(-2)
    Array(2., dtype=float32, weak_type=True)
    """
    x = inexact(x)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"fabs: the operand must be real, got {x.type}.", hint="abs takes complex numbers.")
    return arithmetic.abs(x)


def square(x: Any, /) -> Array:
    """``y[i] = x[i] x[i]``. Source: NumPy, ``square``.

    >>> square(-3)
    Array(9, dtype=int32, weak_type=True)
    """
    x = array_of(x)
    return arithmetic.square(convert(x, dtypes.default_int()) if x.type.dtype is bool_ else x)


def sign(x: Any, /) -> Array:
    """-1, 0 or 1, as ``x[i]`` is below, at or above 0; of complex numbers ``x[i] / |x[i]|``. Source: NumPy, ``sign``.

    >>> sign(-2.5)
    Array(-1., dtype=float32, weak_type=True)
    """
    return arithmetic.sign(array_of(x))


def real(val: Any, /) -> Array:
    """The real part. Source: NumPy, ``real``.

    >>> real(1 + 2j)
    Array(1., dtype=float32, weak_type=True)
    """
    x = val if isinstance(val, Array) else array_of(val)
    return complex_parts.real(x) if dtypes.is_complex(x.type.dtype) else x


def imag(val: Any, /) -> Array:
    """The imaginary part, 0 of real numbers. Source: NumPy, ``imag``.

    >>> imag(1 + 2j)
    Array(2., dtype=float32, weak_type=True)
    """
    x = val if isinstance(val, Array) else array_of(val)
    return complex_parts.imag(x) if dtypes.is_complex(x.type.dtype) else shapes.zeros(x.type)


def conjugate(x: Any, /) -> Array:
    """``real(x) - i imag(x)``; real numbers as they are. Source: NumPy, ``conjugate``.

    >>> conjugate(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    x = array_of(x)
    return complex_parts.conj(x) if dtypes.is_complex(x.type.dtype) else x


conj = conjugate


def fmod(x1: Any, x2: Any, /) -> Array:
    """The remainder with the sign of ``x1[i]``: ``x1 - x2 trunc(x1 / x2)``; of integers 0 where ``x2[i]`` is 0.

    >>> fmod(-7, 3)
    Array(-1, dtype=int32, weak_type=True)
    """
    x, y = numeric_together("fmod", x1, x2)
    if dtypes.is_integer(x.type.dtype):
        y = select_n(y == 0, y, like(y, 1))
    return rem(x, y)


def _nanless(name: str, better: Any, x: Any, y: Any) -> Any:
    """``x`` where ``better(x, y)`` or ``y`` is NaN, else ``y``."""
    x, y = together(name, x, y)
    first = better(x, y)
    if dtypes.is_inexact(x.type.dtype):
        first = bitwise.bitwise_or(first, comparison.ne(y, y))
    return choose(first, x, y, name)


def fmax(x1: Any, x2: Any) -> Array:
    """The larger of ``x1[i]`` and ``x2[i]``; where one is NaN, the other. Source: NumPy, ``fmax``.

    >>> fmax(float("nan"), 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _nanless("fmax", gt, x1, x2)


def fmin(x1: Any, x2: Any) -> Array:
    """The smaller of ``x1[i]`` and ``x2[i]``; where one is NaN, the other. Source: NumPy, ``fmin``.

    >>> fmin(float("nan"), 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _nanless("fmin", lt, x1, x2)


arctan2 = binary("arctan2", transcendental.Atan2, """The angle of ``x2[i] + i x1[i]`` in [-pi, pi].

Of complex numbers as ``lax.atan2``. Source: NumPy, ``arctan2``.

>>> arctan2(1.0, 0.0)
Array(1.5707964, dtype=float32, weak_type=True)
""", floats=True)
atan2 = arctan2


def hypot(x1: Any, x2: Any, /) -> Array:
    """``sqrt(x1**2 + x2**2)``, without intermediate overflow; infinite where an operand is. Source: NumPy, ``hypot``.

    >>> hypot(3.0, 4.0)
    Array(5., dtype=float32, weak_type=True)
    """
    x, y = inexact_together("hypot", x1, x2)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"hypot: operands must be real, got {x.type}.")
    x, y, infinity = arithmetic.abs(x), arithmetic.abs(y), like(x, float("inf"))
    infinite = select_n(x == infinity, y, x)  # infinite if an operand is; the derivative there is that operand's
    either = infinite == infinity
    x, y = select_n(either, x, like(x, 1)), select_n(either, y, like(y, 1))
    long, short = _max(x, y), _min(x, y)
    none = long == 0
    ratio = div(short, select_n(none, long, like(long, 1)))
    size = long * arithmetic.sqrt(arithmetic.square(ratio) + 1)
    return select_n(either, size, infinite)


LN2 = 0.6931471805599453


_logaddexp = binary("logaddexp", transcendental.Logaddexp, """``log(e**x + e**y)``, without overflow.

The derivatives sum to 1.

>>> logaddexp(0.0, 0.0)
Array(0.6931472, dtype=float32, weak_type=True)
""", floats=True)


@strong_beside_strong
def _logaddexp2(x: Any, y: Any, /) -> Any:
    def by_natural_exponent(x: Any, y: Any) -> Any:
        natural = _logaddexp(x * LN2, y * LN2)
        return div(natural, like(natural, LN2))

    return in_32_bits(by_natural_exponent, *inexact_together("logaddexp2", x, y))


logaddexp = ufunc(_logaddexp, 2, 1, identity=float("-inf"), associative=True)
logaddexp2 = ufunc(
    named(_logaddexp2, "logaddexp2", "``log2(2**x + 2**y)``, without overflow. Source: NumPy, ``logaddexp2``."),
    2, 1, identity=float("-inf"), associative=True,
)


@strong_beside_strong
def heaviside(x1: Any, x2: Any, /) -> Array:
    """The step function: 0 where ``x1[i] < 0``, 1 where ``x1[i] > 0``, ``x2[i]`` where it is 0.

    NaN gives NaN. Source: NumPy, ``heaviside``.

    >>> heaviside(0.0, 0.5)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x, y = inexact_together("heaviside", x1, x2)
    at_zero = choose(x == 0, y, x, "heaviside")
    return choose(x < 0, like(x, 0), choose(x > 0, like(x, 1), at_zero), "heaviside")


def _integers(name: str, x: Any, y: Any) -> list[Any]:
    """The operands as integers of one dtype. Raises DTypeMismatch: they are not integers."""
    x, y = numeric_together(name, x, y)
    if not dtypes.is_integer(x.type.dtype):
        raise DTypeMismatch(f"{name}: operands must be integers, got {x.type}.")
    return [x, y]


@strong_beside_strong
def gcd(x1: Any, x2: Any) -> Array:
    """The greatest common divisor, not negative. Source: NumPy, ``gcd``.

    >>> gcd(12, -18)
    Array(6, dtype=int32, weak_type=True)
    """
    return common_divisors.gcd(*_integers("gcd", x1, x2))


@strong_beside_strong
def lcm(x1: Any, x2: Any) -> Array:
    """The least common multiple, not negative; 0 where one is 0. Source: NumPy, ``lcm``.

    >>> lcm(4, 6)
    Array(12, dtype=int32, weak_type=True)
    """
    x, y = (numpy_arithmetic.absolute(v) for v in _integers("lcm", x1, x2))
    divisor = common_divisors.gcd(x, y)
    return x * div(y, select_n(divisor == 0, divisor, like(divisor, 1)))


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """``minimum(maximum(arr, min), max)``; a bound of None is no bound.

    Raises: DTypeMismatch: complex numbers have no order. Source: NumPy, ``clip``.

    >>> clip(5, 0, 3)
    Array(3, dtype=int32, weak_type=True)
    """
    if arr is None:
        raise BadArgument("clip: an array is needed, got None.")
    x = array_of(arr)
    for bound, nearer in ((min, comparison.max), (max, comparison.min)):
        if bound is not None:
            pair = together("clip", bound, x)
            if dtypes.is_complex(pair[0].type.dtype):
                raise DTypeMismatch(f"clip: complex numbers have no order, got {x.type}.")
            x = nearer(*pair)
    return x


@strong
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """``x`` with NaN and infinities replaced; infinities by the dtype's largest and least number unless given.

    >>> nan_to_num(float("nan"))
    Array(0., dtype=float32)
    """
    x = array_of(x)
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        parts = [nan_to_num(part, copy, nan, posinf, neginf) for part in (complex_parts.real(x), complex_parts.imag(x))]
        return complex_parts.complex(*parts)
    if not dtypes.is_floating(dtype):
        return x
    info = finfo(dtype)
    replaced = (
        (x != x, nan),
        (x == float("inf"), float(info.max) if posinf is None else posinf),
        (x == -float("inf"), float(info.min) if neginf is None else neginf),
    )
    y = x
    for mask, value in replaced:
        new = convert(array_beside(x, value), dtype, x.type.weak)
        y = select_n(mask, y, shapes.broadcast(new, x.type.shape) if new.type.shape else new)
    return y


programs(globals(), direct=("conj", "conjugate", "fabs", "imag", "real", "sign", "square"))
