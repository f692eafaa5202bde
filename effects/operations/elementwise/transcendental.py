"""Powers, exponentials, logarithms, trigonometric and hyperbolic functions, and the error function."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ...base.stack import perform
from ...core import columns
from ...core.arrays import Array
from ...core.operation import operation
from ...types import dtypes
from ...types.dtypes import FLOATING, INEXACT
from ..foundations.elementwise_factory import Elementwise, Function, elementwise, repeated, surface
from ..foundations.half_precision import lower_wide, scipy_special, wide
from ..foundations.shapes import broadcast
from . import complex_functions, real_functions
from .arithmetic import abs as absolute
from .arithmetic import add, div, like, mul, neg, rsqrt, square, stop_gradient, sub
from .bitwise import bitwise_or
from .comparison import clamp, eq, gt, max, ne, select_n
from .complex_functions import PERFORMED, assembled, by_parts, composed, corrected, evaluated, performed
from .complex_parts import complex, imag, real
from .conversion import convert, performed_wide
from .real_functions import by_formula


def _one_plus(x: Any) -> Any:
    """1 + x; an imaginary part keeps its sign, also where it is 0."""
    return sub(x, like(x, -1)) if dtypes.is_complex(x.type.dtype) else like(x, 1) + x


def _one_minus(x: Any) -> Any:
    """1 - x; an imaginary part changes its sign, also where it is 0."""
    return neg(sub(x, like(x, 1))) if dtypes.is_complex(x.type.dtype) else sub(like(x, 1), x)


def _turned(z: Any) -> Any:
    """The complex number ``i z``."""
    return complex(neg(imag(z)), real(z))


_complex_logistic = by_parts("logistic", complex_functions.logistic)


def _logistic(op, emit, x):
    """1 / (1 + exp(-x))."""
    if dtypes.is_complex(x.type.dtype):
        return _complex_logistic(op, emit, x)
    one = emit.full(1, x.type)
    return emit.binary("divide", one, emit.binary("add", one, emit.unary("exponential", emit.unary("negate", x))))


# y = e^x, 2^x, e^x - 1, log x, log(1 + x), 1 / (1 + e^-x)
Exp = elementwise(
    "exp", INEXACT, wide(np.exp), jvp=lambda x, dx, y: mul(dx, y),
    lower=by_parts("exponential", complex_functions.exp),
    costly=True, doc="``y[i] = e**x[i]``.",
)
Exp2 = elementwise(
    "exp2", INEXACT, evaluated(np.exp2, assembled(complex_functions.exp2)),
    jvp=lambda x, dx, y: mul(dx, mul(like(y, math.log(2)), y)),
    decompose=by_formula(real_functions.exp2, complex_functions.exp2),
    costly=True, doc="``y[i] = 2**x[i]``.",
)
Expm1 = elementwise(
    "expm1", INEXACT, evaluated(np.expm1, assembled(complex_functions.expm1)), jvp=lambda x, dx: mul(dx, exp(x)),
    lower=by_parts("exponential_minus_one", complex_functions.expm1),
    costly=True, doc="``y[i] = e**x[i] - 1``, exact near 0.",
)
Log = elementwise(
    "log", INEXACT, wide(np.log), jvp=lambda x, dx: div(dx, x), lower=corrected("log", complex_functions.log),
    costly=True, doc="The natural logarithm, the inverse of ``exp``; its imaginary part lies in (-pi, pi].",
)
Log1p = elementwise(
    "log1p", INEXACT, evaluated(np.log1p, assembled(complex_functions.log1p)), jvp=lambda x, dx: div(dx, _one_plus(x)),
    lower=by_parts("log_plus_one", complex_functions.log1p),
    costly=True, doc="``y[i] = log(1 + x[i])``, exact near 0.",
)
Logistic = elementwise(
    "logistic", INEXACT, evaluated(lambda x: 1 / (1 + np.exp(-x)), assembled(complex_functions.logistic)),
    jvp=lambda x, dx, y: mul(dx, _logistic_slope(x, y)), lower=lower_wide(_logistic),
    costly=True, doc="``y[i] = 1 / (1 + e**-x[i])``.",
)


def divided_log(y: Any, base: float) -> Any:
    """``y`` over the logarithm of ``base``; of complex numbers each part is divided, since one may be infinite."""
    parts = (real(y), imag(y)) if dtypes.is_complex(y.type.dtype) else (y,)
    quotients = [div(part, like(part, math.log(base))) for part in parts]
    return complex(*quotients) if len(parts) == 2 else quotients[0]


exp: Function = surface(Exp, accuracy=3)
exp2: Function = surface(Exp2, accuracy=2)
expm1: Function = surface(Expm1, accuracy=4)
log: Function = surface(Log, accuracy=2)
log1p: Function = surface(Log1p, accuracy=3)
logistic: Function = surface(Logistic, accuracy=3)


_complex_asin = corrected("chlo.asin", complex_functions.asin)


def _asin(op, emit, x):
    """atan2(x, sqrt((1 - x)(1 + x))) for real x: exact near 1 and -1."""
    if dtypes.is_complex(x.type.dtype):
        return _complex_asin(op, emit, x)
    one = emit.full(1, x.type)
    inner = emit.binary("multiply", emit.binary("subtract", one, x), emit.binary("add", one, x))
    return emit.binary("atan2", x, emit.unary("sqrt", inner))


def _inverse_slope(x: Any, sign: int) -> Any:
    """1 / sqrt(1 + sign x^2), of complex numbers by the factors of 1 + sign x^2, which have the cuts of the inverse."""
    if dtypes.is_complex(x.type.dtype):
        z = _turned(x) if sign > 0 else x
        return mul(rsqrt(_one_minus(z)), rsqrt(_one_plus(z)))
    if sign < 0:
        return rsqrt(_one_minus_square(x))
    p, q = _fraction(x)
    return mul(absolute(q), rsqrt(add(square(p), square(q))))


def _one_minus_square(x: Any) -> Any:
    """1 - x^2 for real x, by its factors where abs(x) is near 1.

    The derivative is that of the square, one term: of the two of the product one may be 0 times infinity.
    """
    direct, factors = sub(like(x, 1), square(x)), mul(_one_minus(x), _one_plus(x))
    rest = select_n(gt(absolute(x), like(x, 0.5)), like(x, 0), sub(factors, direct))
    return add(direct, stop_gradient(rest))


def _atanh_divisor(x: Any) -> Any:
    """1 - x^2."""
    return mul(_one_plus(x), _one_minus(x)) if dtypes.is_complex(x.type.dtype) else _one_minus_square(x)


def _fraction(x: Any) -> tuple[Any, Any]:
    """p and q with ``x = p / q`` for real x, neither above 1 in size: their squares do not overflow."""
    one = like(x, 1)
    large = gt(absolute(x), one)
    return select_n(large, x, one), select_n(large, one, div(one, select_n(large, one, x)))


def _tangent_slope(x: Any, y: Any, sign: int) -> Any:
    """1 + sign y^2 for y = tan x (sign 1) or tanh x (sign -1), of complex numbers as 1 / cosh^2 of ix or x."""
    if dtypes.is_complex(x.type.dtype):
        return _squared_secant(_turned(x) if sign > 0 else x)
    return _one_plus(square(y)) if sign > 0 else mul(_one_plus(y), sub(like(y, 1), y))


def _squared_secant(z: Any) -> Any:
    """1 / cosh^2 z, far from the imaginary axis 4t / (1 + t)^2 for the lesser t of e^(2z) and e^(-2z)."""
    x = real(z)
    far = gt(absolute(x), like(x, 1))
    near, outer = select_n(far, z, like(z, 0)), select_n(far, like(z, 2), select_n(gt(x, like(x, 0)), z, neg(z)))
    t = exp(mul(outer, like(z, 2)))
    quotient = div(mul(t, like(z, 4)), square(_one_plus(t)))
    return select_n(far, square(div(like(z, 1), cosh(near))), quotient)


def _logistic_slope(x: Any, y: Any) -> Any:
    """y (1 - y), of complex numbers with 1 - y = logistic(-x)."""
    return mul(y, logistic(neg(x)) if dtypes.is_complex(x.type.dtype) else sub(like(y, 1), y))


def _atan_slope(x: Any, dx: Any) -> Any:
    """dx / (1 + x^2), of complex numbers with (1 - ix)(1 + ix)."""
    if dtypes.is_complex(x.type.dtype):
        return div(dx, mul(_one_minus(_turned(x)), _one_plus(_turned(x))))
    p, q = _fraction(x)
    return mul(dx, div(square(q), add(square(p), square(q))))


def _atan2_slope(x: Any, y: Any) -> Any:
    """y / (x^2 + y^2), the derivative of atan2 by x; of real operands by quotients not above 1 in size."""
    if dtypes.is_complex(x.type.dtype):
        return div(y, square(x) + square(y))
    first = gt(absolute(x), absolute(y))
    large, small = select_n(first, y, x), select_n(first, x, y)
    ratio = div(small, large)
    slope = div(div(like(large, 1), large), _one_plus(square(ratio)))
    return select_n(first, slope, mul(ratio, slope))


# y = sin x, cos x, tan x and their inverses; z = the angle of y + ix
Sin = elementwise(
    "sin", INEXACT, wide(np.sin), jvp=lambda x, dx: dx * cos(x),
    lower=by_parts("sine", complex_functions.sin), doc="The sine.",
)
Cos = elementwise(
    "cos", INEXACT, wide(np.cos), jvp=lambda x, dx: dx * -sin(x),
    lower=by_parts("cosine", complex_functions.cos),
    doc="The cosine.",
)
Tan = elementwise(
    "tan", INEXACT, wide(np.tan), jvp=lambda x, dx, y: dx * _tangent_slope(x, y, 1),
    lower=by_parts("tan", complex_functions.tan),
    doc="The tangent: ``tan(x) == sin(x) / cos(x)``.",
)
Asin = elementwise(
    "asin", INEXACT, wide(np.arcsin), jvp=lambda x, dx: dx * _inverse_slope(x, -1), lower=lower_wide(_asin),
    costly=True, doc="The inverse of ``sin``, with real part in [-pi/2, pi/2].",
)
Acos = elementwise(
    "acos", INEXACT, wide(np.arccos), jvp=lambda x, dx: dx * -_inverse_slope(x, -1),
    lower=lower_wide(corrected("chlo.acos", complex_functions.acos)),
    costly=True, doc="The inverse of ``cos``, with real part in [0, pi].",
)
Atan = elementwise(
    "atan", INEXACT, wide(np.arctan), jvp=lambda x, dx: _atan_slope(x, dx),
    lower=by_parts("chlo.atan", complex_functions.atan),
    costly=True, doc="The inverse of ``tan``, with real part in [-pi/2, pi/2].",
)
Atan2 = elementwise(
    "atan2", INEXACT, evaluated(np.arctan2, partial(complex_functions.atan2, np)), arity=2,
    jvp=(lambda x, y, dx: dx * _atan2_slope(x, y), lambda x, y, dy: dy * neg(_atan2_slope(y, x))),
    lower=composed("atan2", complex_functions.atan2),
    costly=True, doc="The angle of ``y[i] + i x[i]`` in [-pi, pi]: ``tan(atan2(x, y)) == x / y``, right by quadrant.",
)
sin: Function = surface(Sin, accuracy=2)
cos: Function = surface(Cos, accuracy=2)
tan: Function = surface(Tan, accuracy=2)
asin: Function = surface(Asin)
acos: Function = surface(Acos)
atan: Function = surface(Atan)
atan2: Function = surface(Atan2)

# y = sinh x, cosh x, tanh x and their inverses
Sinh = elementwise(
    "sinh", INEXACT, wide(np.sinh), jvp=lambda x, dx: dx * cosh(x),
    decompose=by_formula(real_functions.sinh, complex_functions.sinh),
    costly=True, doc="``y[i] = (e**x[i] - e**-x[i]) / 2``.",
)
Cosh = elementwise(
    "cosh", INEXACT, wide(np.cosh), jvp=lambda x, dx: dx * sinh(x),
    decompose=by_formula(real_functions.cosh, complex_functions.cosh),
    costly=True, doc="``y[i] = (e**x[i] + e**-x[i]) / 2``.",
)
Tanh = elementwise(
    "tanh", INEXACT, wide(np.tanh), jvp=lambda x, dx, y: dx * _tangent_slope(x, y, -1),
    lower=by_parts("tanh", complex_functions.tanh),
    costly=True, doc="The hyperbolic tangent: ``tanh(x) == sinh(x) / cosh(x)``.",
)
Asinh = elementwise(
    "asinh", INEXACT, wide(np.arcsinh), jvp=lambda x, dx: dx * _inverse_slope(x, 1),
    lower=lower_wide(corrected("chlo.asinh", complex_functions.asinh)),
    costly=True, doc="The inverse of ``sinh``.",
)
Acosh = elementwise(
    "acosh", INEXACT, wide(np.arccosh), jvp=lambda x, dx: dx * mul(rsqrt(sub(x, like(x, 1))), rsqrt(_one_plus(x))),
    lower=lower_wide(corrected("chlo.acosh", complex_functions.acosh)),
    costly=True, doc="The inverse of ``cosh``, with real part not below 0.",
)
Atanh = elementwise(
    "atanh", INEXACT, wide(np.arctanh), jvp=lambda x, dx: div(dx, _atanh_divisor(x)),
    lower=lower_wide(by_parts("chlo.atanh", complex_functions.atanh)), costly=True, doc="The inverse of ``tanh``.",
)
sinh: Function = surface(Sinh)
cosh: Function = surface(Cosh)
tanh: Function = surface(Tanh, accuracy=10)
asinh: Function = surface(Asinh)
acosh: Function = surface(Acosh)
atanh: Function = surface(Atanh)


# z = x^y; y may be an integer where x is not
@operation
class Pow(Elementwise):
    name = "pow"
    arity = 2
    costly = True
    dtypes = INEXACT

    def result_type(op, x, y):  # type: ignore[override]
        if dtypes.is_integer(y.dtype) and x.dtype in INEXACT:
            return Elementwise.result_type(op, x, y.update(dtype=x.dtype, weak=x.weak))
        return Elementwise.result_type(op, x, y)

    def evaluate(op, x, y):
        return _power(x, y if y.dtype == x.dtype else y.astype(x.dtype))


    def jvp(op, primals, tangents):
        (x, y), (dx, dy), z = primals, tangents, perform(op, *primals)
        by_base = None if dx is None else broadcast(mul(dx, _slope(x, y)), z.type.shape)
        by_exponent = None if dy is None else broadcast(mul(dy, _slope_by_exponent(x, z)), z.type.shape)
        return z, columns.add_tangents(by_base, by_exponent)

    def lower(op, emit, x, y):
        return _lower_power(op, emit, x, emit.convert(y, x.type.dtype))


_FEW_POWERS = 256  # up to here powers, element by element, take no longer than square roots and a look at their signs


def _power_of_real(x, y):
    """C's power: infinity at -inf and 0 at -0 for an exponent 1/2, for which NumPy takes roots where it is repeated."""
    if y.item() != 0.5 if not y.ndim else y.shape == x.shape and 0 not in y.strides:
        return np.power(x, y)
    if x.size < _FEW_POWERS:
        z = np.power(x, y + np.zeros(x.shape or 1, y.dtype))  # nothing is repeated
        return z if x.ndim or y.ndim else z[0]
    z = np.power(x, y)
    if x.min() > 0:
        return z
    root = y == 0.5
    return np.where(root, np.where(x == -np.inf, np.inf, z + 0), z)


def _power_of_complex(x, y):
    """The power as NumPy's, by products for small integer exponents, where all is finite."""
    z = np.power(x, y)
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    return z if finite.all() else np.where(finite, z, _power_by_parts(x, y))


_power_by_parts = assembled(complex_functions.power)
_power = evaluated(_power_of_real, _power_of_complex)
_lower_power = by_parts("power", complex_functions.power)
_pow = Pow()


def _slope(x: Any, y: Any) -> Any:
    """y x^(y-1), which is 0 for y = 0 even where x is 0 or NaN."""
    size = absolute(x)
    known = bitwise_or(gt(size, like(size, 0)), ne(y, like(y, 0)))
    base = select_n(known, like(x, 1), broadcast(x, known.type.shape))
    return mul(convert(y, x.type.dtype, y.type.weak and x.type.weak), pow(base, sub(y, like(y, 1))))


def _slope_by_exponent(x: Any, z: Any) -> Any:
    """z log(x), which is 0 where z is 0."""
    return mul(log(select_n(eq(z, like(z, 0)), broadcast(x, z.type.shape), like(x, 1))), z)


def pow(x: Any, y: Any) -> Array:
    """``z[i] = x[i]**y[i]``; NaN where a negative real base has a fractional exponent.

    Shapes: equal but for sizes 1, or rank 0. The exponent has the dtype of the base, or is an integer.

    >>> pow(np.array([2.0, 3.0]), np.array([2, 3]))
    Array([ 4., 27.], dtype=float64)
    """
    return perform(_pow, *repeated(x, y))


def _erf_inv(x):
    """SciPy's erfinv, but -0 at -0."""
    return np.copysign(scipy_special("erfinv")(x), x)


def _lower_erf_inv(op, emit, x):
    """CHLO's, which in 64 bits has a relative error of 1e-12 and is improved."""
    y = emit.elementwise("chlo.erf_inv", x)
    if x.type.dtype != dtypes.float64:
        return y
    return emit.decompose(lambda x, y: real_functions.improved_erf_inv(PERFORMED, x, y), x, y)


# y = the error function, 1 minus it, its inverse
Erf = elementwise(
    "erf", FLOATING, scipy_special("erf"), jvp=lambda x, dx: dx * _bell(x, 2 / math.sqrt(math.pi)), lower="chlo.erf",
    costly=True, doc="``2 / sqrt(pi)`` times the integral of ``e**-t**2`` from 0 to ``x[i]``.",
)
Erfc = elementwise(
    "erfc", FLOATING, scipy_special("erfc"), jvp=lambda x, dx: dx * _bell(x, -2 / math.sqrt(math.pi)),
    lower="chlo.erfc", costly=True, doc="``y[i] = 1 - erf(x[i])``, exact for large ``x[i]``.",
)
ErfInv = elementwise(
    "erf_inv", FLOATING, _erf_inv,
    jvp=lambda x, dx, y: dx * mul(like(y, math.sqrt(math.pi) / 2), exp(square(y))), lower=_lower_erf_inv,
    costly=True, doc="The inverse of ``erf`` on (-1, 1).",
)
erf: Function = surface(Erf)
erfc: Function = surface(Erfc, accuracy=200)
erf_inv: Function = surface(ErfInv)


def _bell(x: Any, height: float) -> Any:
    """height e^(-x^2). Beyond 40 it is 0 in every dtype: clamped there, its derivatives are no 0 times infinity."""
    return mul(like(x, height), exp(neg(square(clamp(like(x, -40), x, like(x, 40))))))


_complex_logaddexp = performed(complex_functions.logaddexp)


def stable_logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y) as max(x, y) + log(1 + e^-|x - y|), and as x + y where x - y is NaN, as for equal infinities."""
    if dtypes.is_complex(x.type.dtype):
        return _complex_logaddexp(x, y)
    distance = sub(x, y)
    correction = log1p(exp(neg(absolute(distance))))
    return select_n(ne(distance, distance), add(max(x, y), correction), add(x, y))


def _performed_logaddexp(x: Any, y: Any) -> Any:
    """``stable_logaddexp``, after an operand of rank 0 is broadcast, once for all that reads it."""
    shape = x.type.shape or y.type.shape
    return stable_logaddexp(broadcast(x, shape), broadcast(y, shape))


def logaddexp_share(x: Any, y: Any, out: Any) -> Any:
    """e^(x - out), the derivative of ``out = log(e^x + e^y)`` by ``x``; also of infinities, one half for equal ones."""
    return exp(select_n(eq(x, out), sub(x, out), select_n(eq(x, y), like(out, 0), like(out, -math.log(2)))))


# z = log(e^x + e^y)
Logaddexp = elementwise(
    "logaddexp", INEXACT, evaluated(np.logaddexp, assembled(complex_functions.logaddexp)), arity=2,
    jvp=(lambda x, y, dx, z: mul(dx, logaddexp_share(x, y, z)),
         lambda x, y, dy, z: mul(dy, logaddexp_share(y, x, z))),
    decompose=performed_wide(_performed_logaddexp),
    costly=True,
    doc="``z[i] = log(e**x[i] + e**y[i])``, without overflow; derivatives of all orders are right for equal operands.",
)
logaddexp: Function = surface(Logaddexp)
