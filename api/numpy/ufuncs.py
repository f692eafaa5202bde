"""Elementwise functions of two numbers, and arithmetic of one: they promote, broadcast and perform."""

from __future__ import annotations

from typing import Any

from ..effects import arithmetic, bitwise, comparison, complexes, divisors, dtypes, numeric, shapes, special
from ..effects.arithmetic import add as _add
from ..effects.arithmetic import div, mul, neg, rem, sub
from ..effects.comparison import eq, gt, lt, select_n
from ..effects.comparison import max as _max
from ..effects.comparison import min as _min
from ..effects.conversion import BitcastConvertType, convert
from ..effects.dtypes import bool_
from ..effects.errors import DTypeMismatch
from ..effects.special import exp
from ..effects.stack import perform
from . import reductions
from .operands import array_of, choose, inexact, inexact_together, like, numeric_together, together
from .universal import binary, either, named, ufunc

# z = x + y, x - y, x y
add = ufunc(
    either("add", arithmetic.Add, bitwise.Or, "``z[i] = x[i] + y[i]``; of booleans, or. Source: NumPy, ``add``."),
    2, 1, identity=0, reduce=reductions.sum, accumulate=reductions.cumsum, scatter="add",
)  # fmt: skip
subtract = ufunc(
    binary("subtract", arithmetic.Sub, "``z[i] = x[i] - y[i]``; not of booleans. Source: NumPy, ``subtract``."),
    2, 1, scatter="subtract",
)  # fmt: skip
multiply = ufunc(
    either("multiply", arithmetic.Mul, bitwise.And, "``z[i] = x[i] y[i]``; of booleans, and. Source: NumPy."),
    2, 1, identity=1, reduce=reductions.prod, accumulate=reductions.cumprod, scatter="multiply",
)  # fmt: skip
divide = binary("divide", arithmetic.Div, """``z[i] = x[i] / y[i]``; quotients of integers are floats.

>>> divide(1, 2)
Array(0.5, dtype=float32, weak_type=True)
""", floats=True)  # fmt: skip
true_divide = divide
maximum = ufunc(
    binary("maximum", comparison.Max, "The larger of ``x[i]`` and ``y[i]``, NaN where one is. Source: NumPy."),
    2, 1, reduce=reductions.max, associative=True, scatter="max",
)  # fmt: skip
minimum = ufunc(
    binary("minimum", comparison.Min, "The smaller of ``x[i]`` and ``y[i]``, NaN where one is. Source: NumPy."),
    2, 1, reduce=reductions.min, associative=True, scatter="min",
)  # fmt: skip
floor_divide, remainder, divmod = numeric.floor_divide, numeric.remainder, numeric.divmod
mod = remainder
power, float_power = numeric.power, numeric.float_power
pow = power

# z = x == y, x != y, x < y, x <= y, x > y, x >= y
equal = binary("equal", comparison.Eq, "Whether ``x[i] == y[i]``. Source: NumPy, ``equal``.")
not_equal = binary("not_equal", comparison.Ne, "Whether ``x[i] != y[i]``. Source: NumPy, ``not_equal``.")
less = binary("less", comparison.Lt, "Whether ``x[i] < y[i]``. Source: NumPy, ``less``.")
less_equal = binary("less_equal", comparison.Le, "Whether ``x[i] <= y[i]``. Source: NumPy, ``less_equal``.")
greater = binary("greater", comparison.Gt, "Whether ``x[i] > y[i]``. Source: NumPy, ``greater``.")
greater_equal = binary("greater_equal", comparison.Ge, "Whether ``x[i] >= y[i]``. Source: NumPy, ``greater_equal``.")

# bits, and truth
_AND, _OR, _XOR = (f"The bits that {what}. Source: NumPy, ``bitwise_{name}``." for name, what in (
    ("and", "both ``x[i]`` and ``y[i]`` have"), ("or", "``x[i]`` or ``y[i]`` has"),
    ("xor", "one of ``x[i]`` and ``y[i]`` has"),
))  # fmt: skip
bitwise_and = ufunc(binary("bitwise_and", bitwise.And, _AND), 2, 1, identity=-1, associative=True)
bitwise_or = ufunc(binary("bitwise_or", bitwise.Or, _OR), 2, 1, identity=0, associative=True)
bitwise_xor = ufunc(binary("bitwise_xor", bitwise.Xor, _XOR), 2, 1, identity=0, associative=True)
logical_and = ufunc(numeric.logical_and, 2, 1, identity=True, associative=True)
logical_or = ufunc(numeric.logical_or, 2, 1, identity=False, associative=True)
logical_xor = ufunc(numeric.logical_xor, 2, 1, identity=False, associative=True)
left_shift, right_shift = numeric.left_shift, numeric.right_shift
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def invert(x: Any, /) -> Any:
    """The bits that ``x[i]`` does not have; of booleans, not. Source: NumPy, ``invert``.

    >>> invert(True), invert(5)
    (Array(False, dtype=bool), Array(-6, dtype=int32, weak_type=True))
    """
    return bitwise.bitwise_not(array_of(x))


bitwise_not = bitwise_invert = invert


def logical_not(x: Any, /) -> Any:
    """Whether ``x[i]`` is 0. Source: NumPy, ``logical_not``.

    >>> logical_not(2.0)
    Array(False, dtype=bool)
    """
    x = array_of(x)
    return bitwise.bitwise_not(x) if x.type.dtype is bool_ else eq(x, like(x, 0))


def bitwise_count(x: Any, /) -> Any:
    """How many bits of ``|x[i]|`` are ones, as uint8. Source: NumPy, ``bitwise_count``.

    >>> bitwise_count(-7)
    Array(3, dtype=uint8)
    """
    x = array_of(x)
    if x.type.dtype is bool_:
        return convert(x, dtypes.uint8)
    return convert(bitwise.population_count(numeric.absolute(x)), dtypes.uint8)


# y = |x|, -x, x, x^2, the sign of x
absolute, positive = numeric.absolute, numeric.positive
abs = absolute


def _negative(x: Any, /) -> Any:
    return neg(array_of(x))


negative = ufunc(named(_negative, "negative", "``y[i] = -x[i]``; not of booleans. Source: NumPy, ``negative``."), 1, 1)


def fabs(x: Any, /) -> Any:
    """``y[i] = |x[i]|`` as a float. Source: NumPy, ``fabs``.

    >>> fabs(-2)
    Array(2., dtype=float32, weak_type=True)
    """
    x = inexact(x)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"fabs: the operand must be real, got {x.type}.", hint="abs takes complex numbers.")
    return arithmetic.abs(x)


def square(x: Any, /) -> Any:
    """``y[i] = x[i] x[i]``. Source: NumPy, ``square``.

    >>> square(-3)
    Array(9, dtype=int32, weak_type=True)
    """
    x = array_of(x)
    return arithmetic.square(convert(x, dtypes.default_int()) if x.type.dtype is bool_ else x)


def sign(x: Any, /) -> Any:
    """-1, 0 or 1, as ``x[i]`` is below, at or above 0; of complex numbers ``x[i] / |x[i]|``. Source: NumPy, ``sign``.

    >>> sign(-2.5)
    Array(-1., dtype=float32, weak_type=True)
    """
    return arithmetic.sign(array_of(x))


def signbit(x: Any, /) -> Any:
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
    return lt(x, like(x, 0))


def real(val: Any, /) -> Any:
    """The real part. Source: NumPy, ``real``.

    >>> real(1 + 2j)
    Array(1., dtype=float32, weak_type=True)
    """
    x = array_of(val)
    return complexes.real(x) if dtypes.is_complex(x.type.dtype) else x


def imag(val: Any, /) -> Any:
    """The imaginary part, 0 of real numbers. Source: NumPy, ``imag``.

    >>> imag(1 + 2j)
    Array(2., dtype=float32, weak_type=True)
    """
    x = array_of(val)
    return complexes.imag(x) if dtypes.is_complex(x.type.dtype) else shapes.zeros(x.type)


def conjugate(x: Any, /) -> Any:
    """``real(x) - i imag(x)``; real numbers as they are. Source: NumPy, ``conjugate``.

    >>> conjugate(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    x = array_of(x)
    return complexes.conj(x) if dtypes.is_complex(x.type.dtype) else x


conj = conjugate


def fmod(x1: Any, x2: Any, /) -> Any:
    """The remainder with the sign of ``x1[i]``: ``x1 - x2 trunc(x1 / x2)``; of integers 0 where ``x2[i]`` is 0.

    >>> fmod(-7, 3)
    Array(-1, dtype=int32, weak_type=True)
    """
    x, y = numeric_together("fmod", x1, x2)
    if dtypes.is_integer(x.type.dtype):
        y = select_n(eq(y, like(y, 0)), y, like(y, 1))
    return rem(x, y)


def _nanless(name: str, better: Any, x: Any, y: Any) -> Any:
    x, y = together(name, x, y)
    first = better(x, y)
    if dtypes.is_inexact(x.type.dtype):
        first = bitwise.bitwise_or(first, comparison.ne(y, y))
    return choose(first, x, y, name)


def fmax(x1: Any, x2: Any) -> Any:
    """The larger of ``x1[i]`` and ``x2[i]``; where one is NaN, the other. Source: NumPy, ``fmax``.

    >>> fmax(float("nan"), 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _nanless("fmax", gt, x1, x2)


def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of ``x1[i]`` and ``x2[i]``; where one is NaN, the other. Source: NumPy, ``fmin``.

    >>> fmin(float("nan"), 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _nanless("fmin", lt, x1, x2)


def arctan2(x1: Any, x2: Any, /) -> Any:
    """The angle of ``x2[i] + i x1[i]`` in [-pi, pi]. Source: NumPy, ``arctan2``.

    >>> arctan2(1.0, 0.0)
    Array(1.5707964, dtype=float32, weak_type=True)
    """
    x, y = inexact_together("arctan2", x1, x2)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"arctan2: operands must be real, got {x.type}.")
    return special.atan2(x, y)


atan2 = arctan2


def hypot(x1: Any, x2: Any, /) -> Any:
    """``sqrt(x1**2 + x2**2)``, without overflow on the way; infinite where one is. Source: NumPy, ``hypot``.

    >>> hypot(3.0, 4.0)
    Array(5., dtype=float32, weak_type=True)
    """
    x, y = inexact_together("hypot", x1, x2)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"hypot: operands must be real, got {x.type}.")
    x, y = arithmetic.abs(x), arithmetic.abs(y)
    long, short = _max(x, y), _min(x, y)
    none = eq(long, like(long, 0))
    ratio = div(short, select_n(none, long, like(long, 1)))
    size = mul(long, arithmetic.sqrt(_add(arithmetic.square(ratio), like(ratio, 1))))
    infinite = like(x, float("inf"))
    return select_n(bitwise.bitwise_or(eq(x, infinite), eq(y, infinite)), size, infinite)


LN2 = 0.6931471805599453


def _logaddexp(x: Any, y: Any, /) -> Any:
    x, y = inexact_together("logaddexp", x, y)
    if dtypes.is_complex(x.type.dtype):
        top = arithmetic.stop_gradient(_max(complexes.real(x), complexes.real(y)))
        top = complexes.complex(top, like(top, 0))
        return _add(special.log(_add(exp(sub(x, top)), exp(sub(y, top)))), top)
    return special.logaddexp(x, y)


def _logaddexp2(x: Any, y: Any, /) -> Any:
    x, y = inexact_together("logaddexp2", x, y)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"logaddexp2: operands must be real, got {x.type}.")
    natural = special.logaddexp(mul(x, like(x, LN2)), mul(y, like(y, LN2)))
    return div(natural, like(natural, LN2))


logaddexp = ufunc(named(_logaddexp, "logaddexp", """``log(e**x + e**y)``, without overflow; the derivatives sum to 1.

>>> logaddexp(0.0, 0.0)
Array(0.6931472, dtype=float32, weak_type=True)
"""), 2, 1, identity=float("-inf"), associative=True)  # fmt: skip
logaddexp2 = ufunc(
    named(_logaddexp2, "logaddexp2", "``log2(2**x + 2**y)``, without overflow. Source: NumPy, ``logaddexp2``."),
    2, 1, identity=float("-inf"), associative=True,
)  # fmt: skip


def copysign(x1: Any, x2: Any, /) -> Any:
    """``|x1[i]|`` with the sign of ``x2[i]``. Source: NumPy, ``copysign``.

    >>> copysign(3, -0.0)
    Array(-3., dtype=float32, weak_type=True)
    """
    x, y = inexact_together("copysign", x1, x2)
    size = arithmetic.abs(x)
    return choose(signbit(y), neg(size), size, "copysign")


def heaviside(x1: Any, x2: Any, /) -> Any:
    """The step: 0 where ``x1[i] < 0``, 1 where it is above, ``x2[i]`` where it is 0.

    NaN gives NaN. Source: NumPy, ``heaviside``.

    >>> heaviside(0.0, 0.5)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x, y = inexact_together("heaviside", x1, x2)
    at_zero = choose(eq(x, like(x, 0)), y, x, "heaviside")
    return choose(lt(x, like(x, 0)), like(x, 0), choose(gt(x, like(x, 0)), like(x, 1), at_zero), "heaviside")


def nextafter(x: Any, y: Any, /) -> Any:
    """The float next to ``x[i]`` on the way to ``y[i]``. Source: NumPy, ``nextafter``.

    >>> bool(nextafter(1.0, 2.0) > 1.0)
    True
    """
    return arithmetic.nextafter(*inexact_together("nextafter", x, y))


def _integers(name: str, x: Any, y: Any) -> list[Any]:
    x, y = numeric_together(name, x, y)
    if not dtypes.is_integer(x.type.dtype):
        raise DTypeMismatch(f"{name}: operands must be integers, got {x.type}.")
    return [x, y]


def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor, not negative. Source: NumPy, ``gcd``.

    >>> gcd(12, -18)
    Array(6, dtype=int32, weak_type=True)
    """
    return divisors.gcd(*_integers("gcd", x1, x2))


def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple, not negative; 0 where one is 0. Source: NumPy, ``lcm``.

    >>> lcm(4, 6)
    Array(12, dtype=int32, weak_type=True)
    """
    x, y = (numeric.absolute(v) for v in _integers("lcm", x1, x2))
    divisor = divisors.gcd(x, y)
    return mul(x, div(y, select_n(eq(divisor, like(divisor, 0)), divisor, like(divisor, 1))))
