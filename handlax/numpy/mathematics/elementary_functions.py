"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions, sinc and i0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...effects.base.lazy_module import LazyModule
from ...effects.core.arrays import Array
from ...effects.operations.elementwise import arithmetic, complex_parts, transcendental
from ...effects.operations.elementwise.comparison import lt, select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.types import dtypes
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import inexact, like, strong
from .universal_functions import unary

if TYPE_CHECKING:
    from ...effects.operations.special import bessel_functions
else:
    bessel_functions = LazyModule("handlax.effects.operations.special.bessel_functions")

__all__ = [
    "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh", "atan",
    "atanh", "cbrt", "cos", "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1", "i0", "log", "log1p", "log2", "log10",
    "rad2deg", "radians", "reciprocal", "sin", "sinc", "sinh", "sqrt", "tan", "tanh",
]


# y = e^x, 2^x, e^x - 1; log x, log(1 + x); roots
exp = unary("exp", transcendental.Exp, """The exponential: ``y[i] = e**x[i]``. Integers become floats.

>>> exp(0.0)
Array(1., dtype=float32, weak_type=True)
""")
exp2 = unary("exp2", transcendental.Exp2, "``y[i] = 2**x[i]``. Integers become floats. Source: NumPy, ``exp2``.")
expm1 = unary("expm1", transcendental.Expm1, "``y[i] = e**x[i] - 1``, exact near 0. Source: NumPy, ``expm1``.")
log = unary(
    "log", transcendental.Log,
    "The natural logarithm: ``exp(log(x)) == x``; NaN where ``x[i] < 0``. Source: NumPy, ``log``."
)
log1p = unary("log1p", transcendental.Log1p, "``y[i] = log(1 + x[i])``, exact near 0. Source: NumPy, ``log1p``.")
sqrt = unary("sqrt", arithmetic.Sqrt, """The square root: ``y[i]**2 == x[i]``, ``y[i] >= 0``; NaN where ``x[i] < 0``.

>>> sqrt(4)
Array(2., dtype=float32, weak_type=True)
""")
cbrt = unary("cbrt", arithmetic.Cbrt, "The real cube root: ``y[i]**3 == x[i]``. Source: NumPy, ``cbrt``.")

# trigonometric and hyperbolic functions and their inverses, by both of their names
sin = unary("sin", transcendental.Sin, "The sine. Integers become floats. Source: NumPy, ``sin``.")
cos = unary("cos", transcendental.Cos, "The cosine. Integers become floats. Source: NumPy, ``cos``.")
tan = unary("tan", transcendental.Tan, "The tangent: ``sin(x) / cos(x)``. Source: NumPy, ``tan``.")
arcsin = unary("arcsin", transcendental.Asin, "The inverse of ``sin``, in [-pi/2, pi/2]. Source: NumPy, ``arcsin``.")
arccos = unary("arccos", transcendental.Acos, "The inverse of ``cos``, in [0, pi]. Source: NumPy, ``arccos``.")
arctan = unary("arctan", transcendental.Atan, "The inverse of ``tan``, in [-pi/2, pi/2]. Source: NumPy, ``arctan``.")
sinh = unary("sinh", transcendental.Sinh, "The hyperbolic sine: ``(e**x - e**-x) / 2``. Source: NumPy, ``sinh``.")
cosh = unary("cosh", transcendental.Cosh, "The hyperbolic cosine: ``(e**x + e**-x) / 2``. Source: NumPy, ``cosh``.")
tanh = unary("tanh", transcendental.Tanh, "The hyperbolic tangent: ``sinh(x) / cosh(x)``. Source: NumPy, ``tanh``.")
arcsinh = unary("arcsinh", transcendental.Asinh, "The inverse of ``sinh``. Source: NumPy, ``arcsinh``.")
arccosh = unary("arccosh", transcendental.Acosh, "The inverse of ``cosh``, not below 0. Source: NumPy, ``arccosh``.")
arctanh = unary("arctanh", transcendental.Atanh, "The inverse of ``tanh``. Source: NumPy, ``arctanh``.")
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh


def log2(x: Any, /) -> Array:
    """The logarithm to base 2: ``2**log2(x) == x``. Source: NumPy, ``log2``.

    >>> log2(8)
    Array(3., dtype=float32, weak_type=True)
    """
    return transcendental.divided_log(transcendental.log(inexact(x)), 2.0)


def log10(x: Any, /) -> Array:
    """The logarithm to base 10: ``10**log10(x) == x``. Source: NumPy, ``log10``.

    >>> log10(100.0)
    Array(2., dtype=float32)
    """
    y = transcendental.divided_log(transcendental.log(inexact(x)), 10.0)
    return convert(y, y.type.dtype)


def reciprocal(x: Any, /) -> Array:
    """``y[i] = 1 / x[i]``; integers become floats.

    >>> reciprocal(4)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return arithmetic.integer_pow(inexact(x), -1)


def deg2rad(x: Any, /) -> Array:
    """Degrees as radians: ``y[i] = x[i] pi / 180``. Source: NumPy, ``deg2rad``.

    >>> deg2rad(180.0)
    Array(3.1415927, dtype=float32, weak_type=True)
    """
    return inexact(x) * (math.pi / 180)


def rad2deg(x: Any, /) -> Array:
    """Radians as degrees: ``y[i] = x[i] 180 / pi``. Source: NumPy, ``rad2deg``.

    >>> rad2deg(3.1415927)
    Array(180., dtype=float32, weak_type=True)
    """
    return inexact(x) * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


@strong
def angle(z: Any, deg: bool = False) -> Array:
    """The angle of a complex number in [-pi, pi]: ``z == abs(z) * exp(1j * angle(z))``; of a real one 0 or pi.

    >>> angle(1j)
    Array(1.5707964, dtype=float32)
    """
    z = inexact(z)
    y, x = (complex_parts.imag(z), complex_parts.real(z)) if dtypes.is_complex(z.type.dtype) else (like(z, 0), z)
    y = transcendental.atan2(y, x)
    return rad2deg(y) if deg else y


def sinc(x: Any, /) -> Array:
    """``y[i] = sin(pi x[i]) / (pi x[i])``, and 1 at 0, differentiable there too. Source: NumPy, ``sinc``.

    >>> sinc(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = inexact(x)
    size = arithmetic.abs(x)
    near, far = size < (1 / math.pi if dtypes.is_complex(x.type.dtype) else 0.5), size == math.inf
    outer = select_n(near | far, x, like(x, 1))
    y = select_n(near, like(x, 0), x) * math.pi
    series = arithmetic.polynomial(y * y, _SINC)
    return select_n(near, select_n(far, sin_pi(outer) / (outer * math.pi), like(y, 0)), series)


def sin_pi(x: Any) -> Any:
    """``sin(pi * x)``, exactly 0 for integers: computed from the distance of ``x`` to the nearest integer."""
    of_complex = dtypes.is_complex(x.type.dtype)
    nearest = arithmetic.round(complex_parts.real(x) if of_complex else x, arithmetic.RoundingMethod.TO_NEAREST_EVEN)
    half = nearest * 0.5
    y = (x - convert(nearest, x.type.dtype, x.type.weak)) * math.pi
    y = transcendental.sin(y) if of_complex else y * arithmetic.polynomial(y * y, _SINC)  # a third of the time of sin
    return select_n(half == arithmetic.floor(half), -y, y)


# the series about 0 of sinc(x) in (pi x)^2 and of i0(x) in x^2, exact to 1 in 64 bits: all derivatives come from them
_SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(11)]
_I0 = [0.25**k / math.factorial(k) ** 2 for k in range(11)]


def i0(x: Any) -> Array:
    """The modified Bessel function of the first kind of order 0: even, and at least 1. Source: NumPy, ``i0``.

    >>> i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = inexact(x)
    near = lt(arithmetic.abs(x), like(x, 1))  # strict in dtype: refuses complex numbers
    inner, outer = select_n(near, like(x, 0), x), select_n(near, x, like(x, 1))
    finite = _i0_far(x) < math.inf  # beyond, i0 is e^|x|: infinite, with its derivatives
    outer, beyond = select_n(finite, like(x, 1), outer), select_n(finite, x, like(x, 0))
    outer = select_n(finite, transcendental.exp(arithmetic.abs(beyond)), _i0_far(outer))
    return select_n(near, outer, arithmetic.polynomial(inner * inner, _I0))


def _i0_far(x: Any) -> Any:
    """e^|x| i0e(x), by the root of e^|x|, which is finite wherever the product is."""
    root = transcendental.exp(arithmetic.abs(x) / 2)
    return root * bessel_functions.bessel_i0e(x) * root


programs(globals())
