"""Functions of complex numbers as formulas of real ones, after C99's Annex G: overflow, branch cuts, zeros with a sign.

    u, v = tanh(numpy, x, y)              tanh(x + iy) == u + iv
    lower = by_parts("tanh", tanh)        the same formula in compiled programs, for complex operands

A formula computes with real functions of ``m``, under the names of the array API: NumPy itself, or ``OPERATIONS``.
What compiled code has right but for signs, infinities and NaN is ``corrected``: such a formula takes the parts of the
function's value too. A zero part stands for the side of the cut that its sign says.

Source: ISO/IEC 9899, Annex G.6; W. Kahan, Branch cuts for complex elementary functions (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.stack import perform
from ...core.arrays import Array, as_arrays, scalar
from ...core.columns import ElementwiseLowering
from ...core.operation import OPERATIONS
from ...types import dtypes
from ...types.dtypes import COMPLEX, is_complex
from ..foundations.half_precision import HALF, NumPyFunction, wide, with_narrow
from ..foundations.shapes import full
from .comparison import lt, select_n
from .complex_parts import complex, imag, real
from .conversion import bitcast_convert_type

INF, PI = math.inf, math.pi
Parts = tuple[Any, Any]
FAR = 22.0  # from here on sinh x, cosh x and e^x / 2 are equal in float64


class _Operations:
    """Functions of the array API as operations: ``m.exp(x)`` performs ``exp``; numbers take the arrays' dtype."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kind = OPERATIONS.get({"maximum": "max", "minimum": "min"}.get(name, name))
        if kind is None:
            raise AttributeError(name)
        op = kind()
        return lambda *xs: perform(op, *as_arrays(*xs))

    def where(self, which: Any, x: Any, y: Any) -> Any:
        return select_n(which, y, x)

    def copysign(self, x: Any, y: Any) -> Any:
        size = self.abs(x if isinstance(x, Array) else scalar(x, y.type.dtype, y.type.weak))
        bits = bitcast_convert_type(y, f"int{dtypes.itemsize_bits(y.dtype)}")
        return select_n(lt(bits, 0), size, -size)

    def isfinite(self, x: Any) -> Any:
        return self.is_finite(x)

    def full_like(self, x: Any, value: Any) -> Any:
        return full(x.type, value)

    def any(self, mask: Any) -> Any:
        return perform(OPERATIONS["reduce_or"](tuple(range(mask.ndim))), mask)


PERFORMED = _Operations()


def performed(formula: Callable[..., Parts]) -> Callable[..., Any]:
    """A formula as a function of complex arrays, which performs its operations."""
    return lambda *zs: complex(*formula(PERFORMED, *_parts(*zs)))


def by_parts(word: str, formula: Callable[..., Parts]) -> ElementwiseLowering:
    """The rule of ``lower``: the operation ``word`` of StableHLO or CHLO, and ``formula`` for complex operands."""

    def lower(op: Any, emit: Any, *zs: Any) -> Any:
        return emit.decompose(performed(formula), *emit.spread(*zs))

    return ElementwiseLowering(word, lower)


def composed(word: str, formula: Callable[..., Any]) -> ElementwiseLowering:
    """The rule of ``lower``: the operation ``word``, and for complex operands ``formula``, of complex numbers."""

    def lower(op: Any, emit: Any, *zs: Any) -> Any:
        return emit.decompose(lambda *zs: formula(PERFORMED, *zs), *emit.spread(*zs))

    return ElementwiseLowering(word, lower)


def corrected(word: str, formula: Callable[..., Any]) -> ElementwiseLowering:
    """The rule of ``lower``: the operation ``word``, the value of which ``formula`` corrects for a complex operand."""

    def correct(z: Any, w: Any) -> Any:
        parts = _parts(w) if is_complex(w.dtype) else (w,)
        result = formula(PERFORMED, *_parts(z), *parts)
        return complex(*result) if isinstance(result, tuple) else result

    return ElementwiseLowering(word, lambda op, emit, z: emit.decompose(correct, z, emit.elementwise(word, z)))


def assembled(formula: Callable[..., Parts]) -> Callable[..., Any]:
    """A formula as a function of complex NumPy arrays."""

    def function(*zs: Any) -> Any:
        u, v = formula(np, *[part for z in zs for part in (z.real, z.imag)])
        w = np.empty(np.broadcast_shapes(np.shape(u), np.shape(v)), zs[0].dtype)
        w.real, w.imag = u, v
        return w

    return function


def evaluated(f: NumPyFunction, of_complex: NumPyFunction) -> NumPyFunction:
    """The cell of ``evaluate``: ``wide(f)``, and ``of_complex`` of complex arrays."""
    of_real = wide(f)

    def function(*xs: Any) -> Any:
        return of_complex(*xs) if xs[0].dtype.kind == "c" else of_real(*xs)

    return with_narrow(function, f, HALF | COMPLEX)


def _parts(*zs: Any) -> list[Any]:
    return [part(z) for z in zs for part in (real, imag)]


def _infinite(m: Any, x: Any) -> Any:
    return m.abs(x) == INF


def _size(m: Any, x: Any, y: Any) -> Any:
    """sqrt(x^2 + y^2), without overflow on the way; infinite where a part is, even if the other one is NaN."""
    p, q = m.abs(x), m.abs(y)
    most = m.maximum(p, q)
    ratio = m.minimum(p, q) / m.where(most == 0, 1.0, most)
    return m.where((p == INF) | (q == INF), INF, most * m.sqrt(1 + ratio * ratio))


def _log_size(m: Any, x: Any, y: Any) -> Any:
    """log sqrt(x^2 + y^2), exact unless it is near 0."""
    p, q = m.abs(x), m.abs(y)
    most = m.maximum(p, q)
    ratio = m.minimum(p, q) / m.where(most == 0, 1.0, most)
    return m.where((p == INF) | (q == INF), INF, m.log(most) + 0.5 * m.log1p(ratio * ratio))


def exp(m: Any, x: Any, y: Any) -> Parts:
    """e^x (cos y + i sin y), e^x as the square of e^(x/2), which overflows only where the result does."""
    return _power_of(m.exp, m, x, y)


def exp2(m: Any, x: Any, y: Any) -> Parts:
    """2^x (cos(y log 2) + i sin(y log 2))."""
    return _power_of(m.exp2, m, x, y * math.log(2))


def _power_of(f: Callable[..., Any], m: Any, x: Any, y: Any) -> Parts:
    """f(x) (cos y + i sin y) for an exponential function f."""
    no_angle = _infinite(m, x) & ~m.isfinite(y)
    y = m.where(no_angle & (x < 0), m.copysign(0.0, y), y)
    root = f(0.5 * x)
    return m.where(no_angle, root, root * m.cos(y) * root), m.where(y == 0, y, root * m.sin(y) * root)


def expm1(m: Any, x: Any, y: Any) -> Parts:
    """e^z - 1 = expm1(x) cos y - 2 sin(y/2)^2 + i e^x sin y."""
    u, v = exp(m, x, y)
    half = m.sin(0.5 * y)
    return m.where((x > 8) | (x == -INF), u - 1, m.expm1(x) * m.cos(y) - 2 * half * half), v


def log1p(m: Any, x: Any, y: Any) -> Parts:
    """log(1 + z): near |1 + z| = 1 its real part is log1p(2x + x^2 + y^2) / 2, the sum in twice the precision."""
    a, a_rest = _exact_square(x)
    b, b_rest = _exact_square(y)
    partial, first = _exact_sum(2 * x, a)
    total, second = _exact_sum(partial, b)
    inner = total + (first + second + a_rest + b_rest)
    near = (m.abs(inner) < 0.5) & (m.abs(x) < 3) & (m.abs(y) < 3)
    u = m.where(near, 0.5 * m.log1p(m.where(near, inner, 0.0)), _log_size(m, 1 + x, y))
    return m.where((y == 0) & (x > -1), m.log1p(x), u), m.atan2(y, 1 + x)


def _exact_sum(x: Any, y: Any) -> Parts:
    """x + y rounded, and the rest. Source: D. Knuth, The Art of Computer Programming, volume 2, 4.2.2."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _halves(x: Any) -> Parts:
    """The upper and the lower half of the digits of x, products of which are exact."""
    factor = 2.0 ** ((dtypes.finfo(x.dtype).nmant + 2) // 2) + 1
    high = factor * x
    high = high - (high - x)
    return high, x - high


def _exact_square(x: Any) -> Parts:
    """x^2 rounded, and the rest. Source: T. Dekker, A floating-point technique for extending precision (1971)."""
    high, low = _halves(x)
    y = x * x
    return y, ((high * high - y) + 2 * high * low) + low * low


def exact_product(x: Any, y: Any) -> Parts:
    """x y rounded, and the rest, as for the square."""
    (a, b), (c, d) = _halves(x), _halves(y)
    z = x * y
    return z, (((a * c - z) + a * d) + b * c) + b * d


def logaddexp(m: Any, x: Any, y: Any, a: Any, b: Any) -> Parts:
    """log(e^z + e^w) as w + log(1 + e^(z - w)), w having the larger real part; its imaginary part lies in (-pi, pi]."""
    first = x >= a
    p, q, r, s = m.where(first, x, a), m.where(first, y, b), m.where(first, a, x), m.where(first, b, y)
    a, b = exp(m, m.where(p == r, 0.0, r - p), s - q)
    u, v = log1p(m, a, b)
    v, cosine, sine = q + v, m.cos(q), m.sin(q)
    beyond = m.atan2(sine * (1 + a) + cosine * b, cosine * (1 + a) - sine * b)
    return p + u, m.where(m.abs(v) <= PI, v, beyond)


def logistic(m: Any, x: Any, y: Any) -> Parts:
    """1 / (1 + e^-z) with t = e^-|x|: (1 + t cos y + i t sin y) / |1 + t e^iy|^2; where x < 0 e^z / (1 + e^z)."""
    y = m.where(_infinite(m, x) & ~m.isfinite(y), m.copysign(0.0, y), y)
    size = m.abs(x)
    t, less = m.exp(-size), m.expm1(-size)
    half = m.cos(0.5 * y)
    versine = 2 * half * half  # 1 + cos y
    upper, side = t * versine - less, t * m.sin(y)
    square = upper * upper + side * side
    return m.where(x < 0, t * (versine + less), upper) / square, side / square


def _hyperbolic(m: Any, x: Any) -> tuple[Any, Any, Any]:
    """(s, c, k): sinh x == s k, cosh x == c k, where s and c do not overflow."""
    size = m.abs(x)
    far = size > FAR
    root = m.exp(0.5 * size)
    less = m.expm1(m.minimum(size, FAR))
    s = m.where(far, 0.5 * root, 0.5 * (less + less / (less + 1)))
    c = m.where(far, 0.5 * root, 1 + 0.5 * less * less / (less + 1))
    return m.copysign(s, x), c, m.where(far, root, 1.0)


def sinh(m: Any, x: Any, y: Any) -> Parts:
    """sinh x cos y + i cosh x sin y."""
    s, c, k = _hyperbolic(m, x)
    own = ~m.isfinite(y) & ((x == 0) | _infinite(m, x))
    return m.where(own, x, s * m.cos(y) * k), m.where(y == 0, y, c * m.sin(y) * k)


def cosh(m: Any, x: Any, y: Any) -> Parts:
    """cosh x cos y + i sinh x sin y."""
    s, c, k = _hyperbolic(m, x)
    sine = m.sin(y)
    zero = m.copysign(1.0, x) * m.copysign(0.0, sine)
    u = m.where(_infinite(m, x) & ~m.isfinite(y), INF, c * m.cos(y) * k)
    return u, m.where((x == 0) | (y == 0), zero, s * sine * k)


def tanh(m: Any, x: Any, y: Any) -> Parts:
    """(sinh x cosh x + i sin y cos y) / (cos^2 y + sinh^2 x), and 1 + 4i e^-2x sin y cos y for large x."""
    y = m.where(_infinite(m, x) & ~m.isfinite(y), m.copysign(0.0, y), y)
    size = m.abs(x)
    s, c, _ = _hyperbolic(m, m.minimum(size, FAR))
    sine, cosine, small = m.sin(y), m.cos(y), m.exp(-size)
    square = cosine * cosine + s * s
    u = m.where((size > FAR) & m.isfinite(y), 1.0, s * c / square)
    v = m.where(size > FAR, 4 * sine * cosine * small * small, sine * cosine / square)
    return m.where(x == 0, x, m.copysign(u, x)), m.where(y == 0, y, v)


def _rotated(formula: Callable[..., Parts]) -> Callable[..., Parts]:
    """The circular function of a hyperbolic one: sin z = -i sinh iz, and so tan, atan."""

    def function(m: Any, x: Any, y: Any) -> Parts:
        u, v = formula(m, -y, x)
        return v, -u

    return function


def atanh(m: Any, x: Any, y: Any) -> Parts:
    """log1p(4x / ((1-x)^2 + y^2)) / 4 + i atan2(2y, (1-x)(1+x) - y^2) / 2, in the quadrant of x and y."""
    p, q = m.abs(x), m.abs(y)
    side = 1 - p
    limit = 2.0 / dtypes.finfo(x.dtype).eps
    far, endless = (p > limit) | (q > limit), (p == INF) | (q == INF)
    size = _size(m, p, q)
    pole = 0.5 * (_log_size(m, 1 + p, q) - _log_size(m, side, q))
    near = 0.25 * m.log1p(4 * p / (side * side + q * q))
    u = m.where((m.abs(side) < 0.25) & (q < 0.25), pole, near)
    u = m.where(endless, 0.0, m.where(far, (p / size) * (1 / size), u))
    total = p + q
    right = (q == INF) | (far & (total == total))
    v = m.where(right, 0.5 * PI, 0.5 * m.atan2(2 * q, side * (1 + p) - q * q))
    return m.where(x == 0, x, m.copysign(u, x)), m.copysign(v, y)


sin, tan, atan = _rotated(sinh), _rotated(tanh), _rotated(atanh)


def cos(m: Any, x: Any, y: Any) -> Parts:
    """``cos z = cosh(iz)``."""
    return cosh(m, -y, x)


def log(m: Any, x: Any, y: Any, u: Any, v: Any) -> Parts:
    """``log(x + iy)`` from its computed parts ``u`` and ``v``: the real part is infinite where ``x`` or ``y`` is."""
    return m.where(_infinite(m, x) | _infinite(m, y), INF, u), v


def size(m: Any, x: Any, y: Any, w: Any) -> Any:
    """``|x + iy|``, whose computed value is ``w``; infinite where ``x`` or ``y`` is, even beside a NaN."""
    return m.where(_infinite(m, x) | _infinite(m, y), INF, w)


def sqrt(m: Any, x: Any, y: Any) -> Parts:
    """t + iy / 2t with t = sqrt((|x| + |z|) / 2), and for x < 0 with the parts exchanged; of z times 4 or 1/4, so that
    neither the sum overflows nor a half is subnormal.
    """
    p, q = m.abs(x), m.abs(y)
    large = m.maximum(p, q) > 1
    p, q = (m.where(large, 0.25 * w, 4 * w) for w in (p, q))
    most = m.sqrt(0.5 * p + _size(m, 0.5 * p, 0.5 * q))
    least = 0.5 * q / m.where(most == 0, 1.0, most)
    most, least = (m.where(large, 2 * w, 0.5 * w) for w in (most, least))
    u, v = m.where(x < 0, least, most), m.where(x < 0, most, least)
    endless = _infinite(m, y)
    return m.where(endless, INF, u), m.where(endless, y, m.copysign(v, y))


def rsqrt(m: Any, x: Any, y: Any) -> Parts:
    """conj(w) / |w|^2 for w = sqrt(z); infinite at 0, and 0 at infinity."""
    u, v = sqrt(m, x, y)
    size = _size(m, u, v)
    endless, none = size == INF, size == 0
    size = m.where(none, 1.0, size)
    u, v = (m.where(endless, m.copysign(0.0, w), (w / size) * (1 / size)) for w in (u, v))
    return m.where(none, INF, u), -v


def asin(m: Any, x: Any, y: Any, u: Any, v: Any) -> Parts:
    """``asin(x + iy)`` from its computed parts ``u`` and ``v``, which get the signs of ``x`` and ``y``."""
    v = m.where(m.isfinite(x) & (y != y), y, v)
    return m.where(x == 0, x, m.copysign(u, x)), m.copysign(v, y)


def asinh(m: Any, x: Any, y: Any, u: Any, v: Any) -> Parts:
    """``asinh(x + iy)`` from its computed parts ``u`` and ``v``, which get the signs of ``x`` and ``y``."""
    u = m.where(m.isfinite(y) & (x != x), x, u)
    return m.copysign(u, x), m.where(y == 0, y, m.copysign(v, y))


def acos(m: Any, x: Any, y: Any, u: Any, v: Any) -> Parts:
    """``acos(x + iy)`` from its computed parts ``u`` and ``v``; ``v`` gets the sign of ``-y``."""
    v = m.where(m.isfinite(x) & (y != y), y, v)
    return m.where(x == 0, 0.5 * PI, u), m.copysign(v, -y)


def acosh(m: Any, x: Any, y: Any, u: Any, v: Any) -> Parts:
    """``acosh(x + iy)`` from its computed parts ``u`` and ``v``; ``v`` gets the sign of ``y``."""
    u = m.where(m.isfinite(x) & (y != y), y, u)
    return u, m.copysign(m.where(x == 0, 0.5 * PI, v), y)


def square(m: Any, x: Any, y: Any) -> Parts:
    """(x - y)(x + y) + 2ixy, without cancellation."""
    equal = (m.abs(x) == m.abs(y)) & m.isfinite(x)
    return m.where(equal, 0.0, (x - y) * (x + y)), 2 * (x * y)


def sign(m: Any, x: Any, y: Any) -> Parts:
    """z / |z| = e^(i arg z), z itself where it is 0; at infinity too, whose directions are those of ``atan2``."""
    endless = _infinite(m, x) | _infinite(m, y)
    x, y = (m.where(endless, m.where(_infinite(m, w), m.copysign(1.0, w), 0.0 * w), w) for w in (x, y))
    most = m.maximum(m.abs(x), m.abs(y))
    large = most > 1  # XLA divides by the product of most and size, which must not overflow
    x, y, most = (m.where(large, 0.25 * w, w) for w in (x, y, most))
    most = m.where(most == 0, 1.0, most)
    p, q = x / most, y / most
    size = m.sqrt(p * p + q * q)
    size = m.where(size == 0, 1.0, size)
    return p / size, q / size


def boxed_quotient(m: Any, x: Any, y: Any, a: Any, b: Any) -> Parts:
    """Real and imaginary part of ``(x + iy) / (a + ib)`` where an operand is infinite or the divisor 0.

    As in C99, G.5.1, an infinite number is replaced by its direction, with parts +-1 and +-0. ``m``: NumPy, or
    operations.
    """
    above, below = _infinite(m, x) | _infinite(m, y), _infinite(m, a) | _infinite(m, b)
    scale = m.where(above, INF, 0.0)

    def direction(infinite: Any, w: Any) -> Any:
        return m.where(infinite, m.copysign(m.where(_infinite(m, w), 1.0, 0.0), w), w)

    x, y, a, b = direction(above, x), direction(above, y), direction(below, a), direction(below, b)
    none, pole = (a == 0) & (b == 0), m.copysign(INF, a)
    return m.where(none, pole * x, scale * (x * a + y * b)), m.where(none, pole * y, scale * (y * a - x * b))


def power(m: Any, x: Any, y: Any, a: Any, b: Any) -> Parts:
    """e^((a + ib) log(x + iy)), and 1 for the exponent 0."""
    size, angle = _log_size(m, x, y), m.atan2(y, x)
    u, v = exp(m, a * size - b * angle, b * size + a * angle)
    one, zero = (a == 0) & (b == 0), (x == 0) & (y == 0) & (a > 0)
    return m.where(one, 1.0, m.where(zero, 0.0, u)), m.where(one | zero, 0.0, v)


def atan2(m: Any, x: Any, y: Any) -> Any:
    """-i log((y + ix) / sqrt(x^2 + y^2)) of complex numbers, which are scaled to at most 1."""
    size = m.maximum(m.abs(x), m.abs(y))
    size = m.where((size == 0) | ~m.isfinite(size), 1.0, size)
    x, y = x / size, y / size
    return -1j * m.log((y + 1j * x) / m.sqrt(x * x + y * y))
