"""Arithmetic: the elementwise operations of algebra, each with its derivative."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, whole_numbers
from ...base.stack import current, perform
from ...base.wrapping import ignoring_errors
from ...core import columns
from ...core.arrays import Array, as_array, scalar
from ...core.columns import linear, multilinear
from ...core.operation import operation
from ...trees.pytrees import tree_map
from ...types import dtypes
from ...types.dtypes import ANY, EVERY, FLOATING, FOUR_BITS, INEXACT, INTEGER, NUMERIC, SIGNED
from ...types.extent import SYMBOLIC
from ..foundations.elementwise_factory import Elementwise, Function, elementwise, repeated, surface, unbroadcast
from ..foundations.half_precision import silent, wide, with_narrow
from ..foundations.shapes import broadcast
from . import complex_functions
from .bitwise import shift_right_logical
from .comparison import eq, ge, select_n
from .complex_functions import assembled, by_parts, corrected, evaluated
from .complex_parts import complex, conj, real
from .conversion import convert


def _jvp_sum(op, primals, tangents):
    """x + y and x - y: a symbolic zero is not added."""
    z = perform(op, *primals)
    dx, dy = tangents
    if dx is not None and dy is not None:
        return z, perform(op, dx, dy)
    dz = dx if dy is None else dy if type(op) is Add else neg(dy)
    return z, broadcast(dz, z.type.shape) if dz.type.shape != z.type.shape else dz


def _jvp_quotient(op, primals, tangents):
    """z = x / y: dz = (dx - dy z) / y. y**2, which may under- or overflow, is not formed; residuals are y and z."""
    x, y = primals
    dx, dy = tangents
    z = perform(op, x, y)
    if dy is None:
        return z, div(dx, y)
    return z, div(neg(mul(dy, z)) if dx is None else sub(dx, mul(dy, z)), y)


def _divide(x, y):
    """x / y; of integers as StableHLO defines it: towards zero, -1 for x / 0, and the least integer by -1 is itself."""
    if x.dtype.kind == "c":
        return _divide_complex(x, y)
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    by_zero = y == 0
    divisor = np.where(by_zero, np.ones((), y.dtype), y)
    below = np.floor_divide(x, divisor)
    if x.dtype.kind == "i":
        below = below + ((x != below * divisor) & ((x < 0) != (divisor < 0)))
    return np.where(by_zero, np.asarray(-1).astype(x.dtype), below)


def _divide_complex(x, y):
    """x / y; infinite or 0, not NaN, where one of them is infinite or y is 0, as C99's Annex G recommends."""
    z = np.divide(x, y)
    if np.isfinite(z).all():
        return z
    lost, by_zero = np.isnan(z.real) & np.isnan(z.imag), (y == 0) & ~np.isnan(x)
    directed = (np.isinf(x) & np.isfinite(y)) | (np.isinf(y) & np.isfinite(x))
    return np.where(by_zero | (lost & directed), _boxed_quotient(*np.broadcast_arrays(x, y)), z)


_boxed_quotient = assembled(complex_functions.boxed_quotient)


def _remainder(x, y):
    """x - y trunc(x / y); of integers as StableHLO defines it: x for y = 0."""
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    trivial = (y == 0) | (y == (-1 if x.dtype.kind == "i" else 1))
    rest = np.fmod(x, np.where(trivial, np.ones((), y.dtype), y))
    return np.where(y == 0, x, rest)


# y = -x; z = x + y, x - y, x y, x / y, x - y trunc(x / y)
Neg = elementwise(
    "neg", NUMERIC, np.negative, jvp=linear, transpose=lambda op, ct, x: neg(ct), lower="negate",
    rounding="correct", doc="``y[i] = -x[i]``; unsigned integers wrap around.",
)
Add = elementwise(
    "add", ANY, np.add, arity=2, jvp=_jvp_sum, linear_in=slice(None),
    transpose=lambda op, ct, x, y, *, wrt: unbroadcast(ct, (x, y)[wrt]), lower="add",
    rounding="sum",
    doc="``z[i] = x[i] + y[i]``; of booleans ``or``.\n\n    Shapes: equal but for sizes 1, or rank 0; one dtype. "
    "Integers wrap around.",
)
Sub = elementwise(
    "sub", NUMERIC, np.subtract, arity=2, jvp=_jvp_sum, linear_in=slice(None),
    transpose=lambda op, ct, x, y, *, wrt: unbroadcast(ct, x) if wrt == 0 else unbroadcast(neg(ct), y),
    lower="subtract", rounding="sum",
    doc="``z[i] = x[i] - y[i]``.\n\n    Shapes: equal but for sizes 1, or rank 0; one dtype. "
    "Integers wrap around.",
)
Mul = elementwise(
    "mul", ANY, np.multiply, arity=2, jvp=multilinear,
    transpose=lambda op, ct, x, y, *, wrt: unbroadcast(mul(ct, y), x) if wrt == 0 else unbroadcast(mul(x, ct), y),
    lower="multiply", rounding="product",
    doc="``z[i] = x[i] y[i]``; of booleans ``and``.",
)
_mul, _product = Mul(), surface(Mul)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Array:
    """``z[i] = x[i] y[i]``; of booleans ``and``.

    Shapes: equal but for sizes 1, or rank 0. One dtype, and the result has it: integers wrap
    around. With ``out_dtype`` both factors are converted to it first.

    >>> mul(np.array([100], "int8"), np.array([2], "int8")), mul(np.int8(100), np.int8(2), out_dtype="int32")
    (Array([-56], dtype=int8), Array(200, dtype=int32))
    """
    if out_dtype is not None:
        dtype = dtypes.canonical(out_dtype)
        x, y = convert(x, dtype), convert(y, dtype)
    if isinstance(x, Array) and isinstance(y, Array) and x.type is y.type:
        return current().answer(_mul, (x, y))
    return _product(x, y)


def _jet_quotient(op, series, count):
    """z y = x: each term of z from those before it."""
    x, y = series
    z: list[Any] = []
    for k in range(count):
        rest = x[k] if k < len(x) else None
        for j in range(1, min(k + 1, len(y))):
            product = mul(y[j], z[k - j])
            rest = neg(product) if rest is None else sub(rest, product)
        z.append(perform(op, rest, y[0]))
    return tuple(z)


Div = elementwise(
    "div", NUMERIC, with_narrow(_divide, np.divide, NUMERIC - FLOATING), arity=2,
    jvp=_jvp_quotient, jet=_jet_quotient, linear_in=slice(1),
    transpose=lambda op, ct, x, y: unbroadcast(div(ct, y), x), lower="divide",
    costly=True, doc="``z[i] = x[i] / y[i]``; of integers towards zero, and -1 where ``y[i] == 0``.",
)
Rem = elementwise(
    "rem", INTEGER | FLOATING, wide(_remainder), arity=2,
    jvp=(lambda x, y, dx: dx, lambda x, y, dy: mul(dy, neg(_towards_zero(div(x, y))))), lower="remainder",
    costly=True,
    doc="``z[i] = x[i] - y[i] trunc(x[i] / y[i])``: it has the sign of ``x``; of integers ``x`` where ``y[i] == 0``.",
)
neg: Function = surface(Neg)
add: Function = surface(Add)
sub: Function = surface(Sub)
div: Function = surface(Div)
rem: Function = surface(Rem)
columns.TangentArithmetic.add = add


@silent
def _float_sign(x):
    """x / |x|; of a zero that zero, of NaN NaN."""
    return np.copysign(np.sign(x), x)


def _sign(x):
    if dtypes.is_floating(x.dtype):
        return _float_sign(x)
    return np.sign(x) if x.dtype.kind != "c" else _complex_sign(x)


def _jvp_sign(op, primals, tangents):
    """0; of complex numbers the part of dx orthogonal to x, over |x|: (dx - y Re(conj(y) dx)) / |x|."""
    (x,), (dx,) = primals, tangents
    y = perform(op, x)
    if not dtypes.is_complex(x.type.dtype):
        return y, None
    size = abs(x)
    none = eq(size, like(size, 0))
    along = real(mul(conj(y), dx))
    over = div(like(size, 1), select_n(none, size, like(size, 1)))
    return y, mul(sub(dx, mul(y, complex(along, like(along, 0)))), complex(over, like(over, 0)))


def _jvp_abs(op, primals, tangents):
    """dx or -dx, dx at 0; of complex numbers Re(dx conj(x) / |x|), 0 at 0."""
    (x,), (dx,) = primals, tangents
    y = perform(op, x)
    if not dtypes.is_complex(x.type.dtype):
        return y, select_n(ge(x, like(x, 0)), neg(dx), dx)
    over = div(like(y, 1), select_n(eq(y, like(y, 0)), y, like(y, 1)))
    return y, real(mul(dx, mul(conj(x), complex(over, like(over, 0)))))


_complex_sign = assembled(complex_functions.sign)
_sign_rule = by_parts("sign", complex_functions.sign)


def _lower_sign(op, emit, x):
    """The sign by StableHLO, which has none for unsigned integers: these are compared with 0."""
    if not dtypes.is_unsigned(x.type.dtype):
        return _sign_rule(op, emit, x)
    zero = emit.full(0, x.type)
    return emit.select(emit.compare("EQ", x, zero), zero, emit.full(1, x.type))


def like(x: Any, number: Any) -> Array:
    """``number`` as a scalar with the dtype and weakness of ``x``; an elementwise operation broadcasts it to ``x``."""
    if isinstance(number, SYMBOLIC):
        return convert(number, x.type.dtype, x.type.weak)
    return scalar(number, x.type.dtype, x.type.weak)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule."""
    y = like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        y = add(mul(y, x), like(x, c))
    return y


def _round_away(x):
    """The nearest integer; of two equally near the one further from zero."""
    truncated = np.trunc(x)
    return np.where(np.abs(x - truncated) >= 0.5, truncated + np.sign(x), np.copysign(truncated, x))


def _towards_zero(x: Any) -> Any:
    """trunc(x): the integer part of x."""
    return mul(sign(x), floor(abs(x)))


# y = x / |x|; |x|; the integer below, above; whether x is neither infinite nor NaN
Sign = elementwise(
    "sign", NUMERIC, with_narrow(_sign, _float_sign, NUMERIC - FLOATING), jvp=_jvp_sign, lower=_lower_sign,
    doc="``y[i] = x[i] / |x[i]|``, and 0 where ``x[i]`` is 0; complex numbers keep their direction.",
)
Abs = elementwise(
    "abs", SIGNED | INEXACT, np.abs, result=dtypes.to_real, jvp=_jvp_abs,
    lower=corrected("abs", complex_functions.size), rounding="correct",
    doc="``y[i] = |x[i]|``, real. The derivative at 0 is that from above, of complex numbers 0.",
)
Floor = elementwise("floor", FLOATING, wide(np.floor), lower="floor", doc="The largest integer not above ``x[i]``.")
Ceil = elementwise("ceil", FLOATING, wide(np.ceil), lower="ceil", doc="The least integer not below ``x[i]``.")
IsFinite = elementwise(
    "is_finite", FLOATING, np.isfinite, result=lambda dtype: dtypes.bool_, lower="is_finite",
    doc="Whether ``x[i]`` is neither infinite nor NaN.",
)
sign: Function = surface(Sign)
abs: Function = surface(Abs)
floor: Function = surface(Floor)
ceil: Function = surface(Ceil)
is_finite: Function = surface(IsFinite)


class RoundingMethod(enum.IntEnum):
    """Which of two equally near integers ``round`` returns."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# y = the integer nearest to x
@operation
class Round(Elementwise):
    method: RoundingMethod
    param_names = {"method": "rounding_method"}
    name = "round"
    dtypes = FLOATING

    def evaluate(op, x):
        return (_rint if op.method == RoundingMethod.TO_NEAREST_EVEN else _round_afz)(x)

    jvp = columns.zero

    def lower(op, emit, x):
        even = op.method == RoundingMethod.TO_NEAREST_EVEN
        return emit.elementwise("round_nearest_even" if even else "round_nearest_afz", x)


_rint, _round_afz = wide(np.rint), wide(_round_away)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The integer nearest to ``x[i]``, as a float; of two equally near ones the one that the method names.

    >>> round(np.array([0.5, 1.5, -2.5])), round(np.array([0.5, 1.5]), RoundingMethod.TO_NEAREST_EVEN)
    (Array([ 1.,  2., -3.], dtype=float64), Array([0., 2.], dtype=float64))
    """
    return perform(Round(RoundingMethod(rounding_method)), as_array(x))


_square = evaluated(np.square, assembled(complex_functions.square))
_complex_square = by_parts("multiply", complex_functions.square)


def _lower_square(op, emit, x):
    return _complex_square(op, emit, x) if dtypes.is_complex(x.type.dtype) else emit.binary("multiply", x, x)


# y = sqrt(x), 1 / sqrt(x), cbrt(x), x^2
Sqrt = elementwise(
    "sqrt", INEXACT, wide(np.sqrt), jvp=lambda x, dx, y: mul(dx, div(like(y, 0.5), y)),
    lower=by_parts("sqrt", complex_functions.sqrt),
    costly=True, doc="The square root: ``y[i]**2 == x[i]``, ``Re y[i] >= 0``; NaN where ``x[i] < 0``.",
)
Rsqrt = elementwise(
    "rsqrt", INEXACT, evaluated(lambda x: 1 / np.sqrt(x), assembled(complex_functions.rsqrt)),
    jvp=lambda x, dx, y: mul(dx, mul(like(y, -0.5), div(y, x))),
    lower=by_parts("rsqrt", complex_functions.rsqrt), costly=True, doc="``y[i] = 1 / sqrt(x[i])``.",
)
Cbrt = elementwise(
    "cbrt", FLOATING, wide(np.cbrt),
    jvp=lambda x, dx, y: mul(dx, mul(like(y, 1 / 3), integer_pow(y, -2))), lower="cbrt",
    costly=True, doc="The real cube root: ``y[i]**3 == x[i]``.",
)
Square = elementwise(
    "square", NUMERIC, _square, jvp=lambda x, dx: mul(dx, mul(like(x, 2), x)),
    lower=_lower_square, doc="``y[i] = x[i] x[i]``.",
)
sqrt: Function = surface(Sqrt, accuracy=1)
rsqrt: Function = surface(Rsqrt, accuracy=2)
cbrt: Function = surface(Cbrt, accuracy=3)
square: Function = surface(Square)


# y = x^n for a constant integer n
@operation
class IntegerPow(Elementwise):
    y: int
    name = "integer_pow"
    dtypes = NUMERIC | FOUR_BITS
    computed_in_bytes = True

    def result_type(op, x):  # type: ignore[override]
        if op.y < 0 and dtypes.is_integer(x.dtype):
            raise DTypeMismatch(
                f"integer_pow: integers have no negative powers, got {x} to the power {op.y}.",
                hint="convert to a float first.",
            )
        return Elementwise.result_type(op, x)

    def evaluate(op, x):
        return _integer_pow(op.y)(x)

    def jvp(op, primals, tangents):
        (x,), (dx,), n = primals, tangents, op.y
        y = perform(op, x)
        return y, None if n == 0 else dx if n == 1 else mul(dx, mul(like(x, n), integer_pow(x, n - 1)))

    def lower(op, emit, x):
        if op.y == 0:
            return emit.full(1, x.type)
        times, squared = partial(emit.binary, "multiply"), partial(_lower_square, op, emit)
        one, n = emit.full(1, x.type), -op.y if op.y < 0 else op.y
        if op.y < 0 and dtypes.is_complex(x.type.dtype):  # the power of an overflow is NaN, of an underflow 0
            return power_by_squaring(emit.binary("divide", one, x), n, times, squared)
        y = power_by_squaring(x, n, times, squared)
        return emit.binary("divide", one, y) if op.y < 0 else y


def power_by_squaring(x: Any, n: int, times: Any, squared: Any) -> Any:
    """``x**n`` for n > 0 in about log n products, by ``times``, and squares, by ``squared``."""
    result = None
    while True:
        if n & 1:
            result = x if result is None else times(result, x)
        n >>= 1
        if not n:
            return result
        x = squared(x)


def _integer_pow(n):
    """The NumPy function of x that gives x**n."""

    def power(x):
        if n == 0:
            return np.ones_like(x)
        if n < 0 and x.dtype.kind == "c":
            return power_by_squaring(_divide(np.ones((), x.dtype), x), -n, np.multiply, _square)
        y = power_by_squaring(x, -n if n < 0 else n, np.multiply, _square)
        return np.divide(np.ones((), x.dtype), y) if n < 0 else y

    return wide(power)


def integer_pow(x: Any, y: int) -> Array:
    """``x[i]`` to the power of the constant integer ``y``: ``integer_pow(x, 3) == x * x * x``.

    Raises: DTypeMismatch: a negative power of integers. BadArgument: ``y`` is no integer.

    >>> integer_pow(np.array([2, 3]), 3), integer_pow(np.array([2.0]), -1)
    (Array([ 8, 27], dtype=int64), Array([0.5], dtype=float64))
    """
    try:
        n = y.__index__()
    except (AttributeError, TypeError):
        raise BadArgument(
            f"integer_pow: the power must be a Python integer, got {y!r}.", hint="lax.pow takes arrays."
        ) from None
    return perform(IntegerPow(n), as_array(x))


def reciprocal(x: Any) -> Array:
    """``y[i] = 1 / x[i]``.

    >>> reciprocal(np.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float64)
    """
    return integer_pow(x, -1)


def _nextafter(x, y):
    """The float next to x towards y, from the bits of x: NumPy has no such function for bfloat16."""
    signed = np.dtype(f"int{x.dtype.itemsize * 8}")
    x, y = (np.ascontiguousarray(v).reshape(v.shape) for v in np.broadcast_arrays(x, y))
    bits = x.view(signed)
    one = np.ones((), signed)
    tiny = np.copysign(one.view(x.dtype).astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    away = (y > x) == (x > 0)
    z = np.where(x == 0, tiny, np.where(away, bits + one, bits - one).view(x.dtype))
    return np.where(np.isnan(x) | np.isnan(y), np.asarray(np.nan, x.dtype), np.where(x == y, y, z))


# z = the float next to x towards y
Nextafter = elementwise(
    "nextafter", FLOATING, _nextafter, arity=2, jvp=(lambda x, y, dx: dx, None), lower="chlo.next_after",
    exempt={"finite_differences": "the next float is a step of one unit in the last place"},
)
_nextafter_op = Nextafter()


def nextafter(x1: Any, x2: Any) -> Array:
    """The float next to ``x1[i]`` in the direction of ``x2[i]``, and ``x2[i]`` where they are equal.

    Shapes: equal but for sizes 1, or rank 0. The derivative by ``x1`` is 1: the step is one unit in the last place.

    >>> nextafter(np.float16(1.0), np.float16(2.0))
    Array(1.001, dtype=float16)
    """
    return perform(_nextafter_op, *repeated(x1, x2))


# y = x rounded to a format of fewer bits
@operation
class ReducePrecision(Elementwise):
    exponent_bits: int
    mantissa_bits: int
    name = "reduce_precision"
    dtypes = FLOATING
    exempt = {
        "finite_differences": "it rounds: its derivative is the identity, rounded too",
        "transpose": "the derivative is linear up to rounding only",
    }

    def __post_init__(self):
        if self.exponent_bits < 1 or self.mantissa_bits < 0:
            raise BadArgument(
                "reduce_precision: at least 1 exponent bit and 0 mantissa bits are needed,"
                f" got {self.exponent_bits} and {self.mantissa_bits}."
            )

    def evaluate(op, x):
        return _reduce(x, op.exponent_bits, op.mantissa_bits)

    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    def lower(op, emit, x):
        return emit.inline("reduce_precision", f"{x.name}, format = e{op.exponent_bits}m{op.mantissa_bits}")


@ignoring_errors
def _reduce(x, exponent_bits, mantissa_bits):
    """Round the mantissa to even; then exponents that are too large give infinity, and those too small give 0."""
    wide_x = x.astype(np.float64)
    mantissa, exponent = np.frexp(wide_x)
    scale = 2.0 ** (mantissa_bits + 1)
    y = np.ldexp(np.rint(mantissa * scale) / scale, exponent) if mantissa_bits < 52 else wide_x
    bias = 2 ** (exponent_bits - 1) - 1
    info = dtypes.finfo(x.dtype)
    if bias < info.maxexp - 1:
        _, exponent = np.frexp(y)
        y = np.where(exponent - 1 > bias, np.copysign(np.inf, x), y)
        y = np.where(exponent - 1 < 1 - bias, np.copysign(0.0, y), y)
    return np.where(np.isfinite(wide_x), y, wide_x).astype(x.dtype)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """``operand[i]`` rounded to a float of so many bits: ties to even, overflow to infinity, subnormals to 0.

    Raises: BadArgument: fewer than one exponent bit, or a negative number of mantissa bits.

    >>> reduce_precision(np.float32(1.2345), 5, 3)
    Array(1.25, dtype=float32)
    """
    bits = whole_numbers("reduce_precision: bits", (exponent_bits, mantissa_bits))
    return perform(ReducePrecision(*bits), as_array(operand))


def _lower_mulhi(op, emit, x, y):  # XLA cannot read its own operation where it divides a program over devices
    return emit.elementwise("chlo.mulhi", x, y) if emit.mesh_of_all is None else emit.decompose(_by_halves, x, y)


def _by_halves(x, y):
    """The upper half of the product by products of halves, none of which overflows (Knuth, TAOCP 2, 4.3.1, M)."""
    half = dtypes.itemsize_bits(x.type.dtype) // 2
    low = 2**half - 1
    (a, b), (c, d) = [(v >> half, v & low) for v in (x, y)]
    t = a * d + shift_right_logical(b * d, half)
    u = b * c + (t & low)
    return a * c + (t >> half) + (u >> half)


# z = the upper half of the bits of x y
Mulhi = elementwise(
    "mulhi", INTEGER, lambda x, y: _mulhi(x, y), arity=2, lower=_lower_mulhi,
    doc="The upper half of the bits of the product ``x[i] y[i]`` of integers.",
)
mulhi: Function = surface(Mulhi)


def _mulhi(x, y):
    """The product in Python integers, without its lower half."""
    width = x.dtype.itemsize * 8
    return np.asarray((x.astype(object) * y.astype(object)) >> width).astype(x.dtype)


# y = x, with derivative zero
StopGradient = elementwise(
    "stop_gradient", EVERY, lambda x: x, lower=lambda op, emit, x: x,
    flops=columns.data_movement, exempt={"finite_differences": "its derivative is zero by definition"},
)
_stop_gradient = StopGradient()

# y = x where nothing is read of y, such as padding: no derivative goes in, no cotangent comes out
Unread = elementwise(
    "unread", EVERY, lambda x: x, transpose=lambda op, ct, x: None, lower=lambda op, emit, x: x,
    flops=columns.data_movement, exempt={"finite_differences": "nothing is read of its result"},
)


def stop_gradient(x: Any) -> Any:
    """``x``, whose derivative is zero.

    Shapes: ``x`` may be a pytree; leaves of dtypes without derivatives are returned unchanged.

    >>> stop_gradient({"a": 1.0})
    {'a': Array(1., dtype=float32, weak_type=True)}
    """
    return tree_map(_stop_leaf, x)


def _stop_leaf(x: Any) -> Any:
    y = as_array(x)
    return perform(_stop_gradient, y) if y.type.dtype in dtypes.ANY_INEXACT else x
