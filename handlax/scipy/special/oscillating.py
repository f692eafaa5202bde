"""Bessel functions, spherical harmonics, and the integrals of sines and cosines."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.base.errors import BadArgument, NotDifferentiable, whole_number
from ...effects.control.loops import fori_loop
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.arithmetic import polynomial
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.half_precision import scipy_special
from ...effects.operations.special.bessel_functions import bessel_i0e, bessel_i1e
from ...effects.operations.special.chebyshev_series import chebyshev
from ...interpreters.core.eager_programs import programs
from ...interpreters.custom.custom_jvp import custom_jvp
from ...lowering.jit.jit import jit
from ...numpy.arrays.argument_conversion import in_32_bits, strong
from .formulas import analytic, floats, free_promotion

__all__ = ["bessel_jn", "fresnel", "i0", "i0e", "i1", "i1e", "sici", "sph_harm_y"]

EULER = float(np.euler_gamma)


def i0e(x: Any) -> Array:
    """``exp(-abs(x)) * i0(x)``.

    >>> i0e(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return bessel_i0e(*floats("i0e", x))


def i1e(x: Any) -> Array:
    """``exp(-abs(x)) * i1(x)``.

    >>> i1e(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return bessel_i1e(*floats("i1e", x))


def _grown(x: Any, scaled: Any) -> Any:
    """``e^|x| scaled`` by the root of ``e^|x|``, which is finite wherever the product is."""
    root = hnp.exp(hnp.abs(x) / 2)
    return root * scaled * root


@analytic(lambda y, x: i1(x))
def i0(x: Any) -> Array:
    """The modified Bessel function of the first kind of order 0.

    >>> i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _grown(x, bessel_i0e(x))


_I1 = [0.5 * 0.25**k / math.factorial(k) / math.factorial(k + 1) for k in range(11)]


def _i1_slope(y: Any, x: Any) -> Any:
    """The derivative I_1' = I_0 - I_1 / x, whose quotient is computed by its power series near 0, and the difference
    scaled elsewhere.
    """
    near = hnp.abs(x) < 1
    inner, outer = hnp.where(near, x, 0), hnp.where(near, 1, x)
    far = _grown(outer, bessel_i0e(outer) - bessel_i1e(outer) / outer)
    return hnp.where(near, i0(inner) - polynomial(inner * inner, _I1), far)


@analytic(_i1_slope)
def i1(x: Any) -> Array:
    """The modified Bessel function of the first kind of order 1.

    >>> i1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _grown(x, bessel_i1e(x))


LARGE = 1e10
DISTANCE = 4.2  # J_n(z) is exact to 1e-6 if the recurrence begins at an n that exceeds z by 4.2 times its cube root


def _backward(z: Any, v: int, n_iter: int) -> Any:
    """J_0(z) to J_v(z) by Miller's recurrence J_(n-1) = 2n/z J_n - J_(n+1) from far above, and J_0 + 2 J_2 + ... = 1.

    Values that grow large are rescaled, together with all that depend on them linearly.
    """
    safe = hnp.where(z == 0, 1, z)
    first = max(n_iter, v + 10)
    orders = hnp.arange(v + 1).reshape(v + 1, *(1,) * z.ndim)

    def lower(i: Any, state: Any) -> Any:
        above, current, total, values = state
        n = first - i
        above, current = current, 2 * convert(n, z.dtype) / safe * current - above
        scale = hnp.where(hnp.abs(current) > LARGE, 1 / LARGE, 1.0).astype(z.dtype)
        above, current, total = above * scale, current * scale, total * scale
        values = hnp.where(orders == n - 1, current, values * scale)
        weight = hnp.where(n == 1, 1, hnp.where(n % 2 == 1, 2, 0)).astype(z.dtype)
        return above, current, total + weight * current, values

    start = hnp.zeros_like(z), hnp.ones_like(z), hnp.zeros_like(z), hnp.zeros((v + 1, *z.shape), z.dtype)
    _, _, total, values = fori_loop(0, first, lower, start)
    exact = hnp.abs(z) <= first - DISTANCE * first ** (1 / 3)
    return hnp.where(z == 0, hnp.where(orders == 0, 1.0, 0.0), values / hnp.where(exact, total, hnp.nan))


@partial(custom_jvp, nondiff_argnums=(1, 2))
@partial(jit, static_argnums=(1, 2))
@free_promotion
def _bessel_jn(z: Any, v: int, n_iter: int) -> Any:
    return _backward(z, v, n_iter)


@_bessel_jn.defjvp
def _(v: int, n_iter: int, primals: Any, tangents: Any) -> Any:
    """J_n' = (J_(n-1) - J_(n+1)) / 2, where J_(-1) = -J_1."""
    y = _bessel_jn(primals[0], v + 1, n_iter)
    before = hnp.concatenate([-y[1:2], y[:-2]]) if v else -y[1:2]
    return y[:-1], (before - y[1:]) / 2 * tangents[0]


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of the orders 0 to ``v``, stacked along a first axis.

    ``n_iter`` is the order at which the recurrence begins. It must exceed ``abs(z)`` by ``4.2 * n_iter**(1/3)``, for 50
    by 15.5, where the error is 1e-6, and by twice that for 1e-14; NaN where it does not.

    >>> bessel_jn(0.0, v=2).tolist()
    [1.0, 0.0, 0.0]
    """
    (z,), v = floats("bessel_jn", z), whole_number("bessel_jn: v", v)
    if v < 0:
        raise BadArgument(f"bessel_jn: v must not be negative, got {v}.")
    return in_32_bits(lambda z: _bessel_jn(z, v, n_iter), z)


def _legendre(n: Any, m: Any, theta: Any, n_max: int) -> Any:
    """The Legendre functions P_n^m(cos theta), normalised on the sphere, for 0 <= m <= n <= n_max, by recurrence in n.

    P_m^m is a product of sines; a P_(l+1) = cos theta P_l - b P_(l-1). Source: NIST Handbook 14.10.3, normalised.
    """
    x, sine = hnp.cos(theta), hnp.abs(hnp.sin(theta))  # the root of 1 - x^2
    first = hnp.full_like(x, math.sqrt(0.25 / math.pi))

    def raise_order(k: Any, p: Any) -> Any:
        k = hnp.astype(k, x.dtype)
        return hnp.where(k <= m, -hnp.sqrt((2 * k + 1) / (2 * k)) * sine * p, p)

    diagonal = fori_loop(1, n_max + 1, raise_order, first)

    def raise_degree(degree: Any, state: Any) -> Any:
        before, p = state
        k = hnp.astype(degree, x.dtype)
        in_degrees = (k > m) & (k <= n)
        gap = hnp.where(in_degrees, k * k - m * m, 1)
        upper = hnp.sqrt((4 * k * k - 1) / gap)
        lower = hnp.sqrt(hnp.where(in_degrees, hnp.maximum((k - 1) ** 2 - m * m, 0), 0) / (4 * (k - 1) ** 2 - 1))
        return hnp.where(in_degrees, p, before), hnp.where(in_degrees, upper * (x * p - lower * before), p)

    return fori_loop(1, n_max + 1, raise_degree, (hnp.zeros_like(x), diagonal))[1]


@free_promotion
def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None) -> Array:
    """The spherical harmonics of degree ``n`` and order ``m`` at the polar angle ``theta`` and the azimuth ``phi``.

    Args:
        n_max: the largest degree, which must be known when ``n`` is traced; larger degrees are cut to it.

    Raises: NotDifferentiable: ``diff_n`` is given. BadArgument: ``n_max`` is negative.

    >>> abs(sph_harm_y(0, 0, 0.5, 0.25) - 0.28209479) < 1e-6
    Array(True, dtype=bool)
    """
    if diff_n is not None:
        raise NotDifferentiable("sph_harm_y: diff_n must be None.", hint="derivatives by the angles are those of jvp.")
    n_max = int(hnp.max(hnp.asarray(n))) if n_max is None else n_max
    if n_max < 0:
        raise BadArgument(f"sph_harm_y: the degree must not be negative, got {n_max}.")
    theta, phi = floats("sph_harm_y", theta, phi)
    theta, phi, n, m = hnp.broadcast_arrays(theta, phi, n, m)
    n, m = hnp.minimum(n, n_max).astype(theta.dtype), m.astype(theta.dtype)
    order = hnp.abs(m)
    p = _legendre(n, order, theta, n_max)
    p = hnp.where((m < 0) & (order % 2 == 1), -p, p)
    return p * hnp.cos(m * phi) + 1j * (p * hnp.sin(m * phi))


# Integrals of sin t / t and (cos t - 1) / t to x, divided by x and x^2, in x^2; beyond 4 f and g in 4/x, where
# f cos x + g sin x = pi/2 - Si(x), and E_1(i x) e^(i x) = g - i f


def _si_near(t: Any) -> Any:
    x = np.sqrt(8 + 8 * t)
    return scipy_special("sici")(x)[0] / x


def _ci_near(t: Any) -> Any:
    square = 8 + 8 * t
    return sum((-square) ** k / ((2 * k + 2) * math.factorial(2 * k + 2)) for k in range(24)) * -1.0


def _auxiliary(t: Any) -> Any:
    x = np.minimum(8 / (1 + t), 1e6)
    return scipy_special("exp1")(1j * x) * np.exp(1j * x) * x


def _f_values(t: Any) -> Any:
    return -_auxiliary(t).imag


def _g_values(t: Any) -> Any:
    return _auxiliary(t).real


def _near_and_far(x: Any) -> tuple[Any, Any, Any, Any]:
    """``abs(x)`` clipped to at most 4, and to at least 4 with the auxiliary functions f and g there."""
    size = hnp.abs(x)
    far = hnp.clip(size, 4, 1e300 if x.dtype.itemsize > 4 else 1e30)
    t = 8 / far - 1
    return hnp.minimum(size, 4), far, chebyshev(t, _f_values, 32) / far, chebyshev(t, _g_values, 32) / far


@analytic(lambda y, x: hnp.where(x == 0, 1, hnp.sin(x) / hnp.where(x == 0, 1, x)))
def _sine_integral(x: Any) -> Any:
    near, far, f, g = _near_and_far(x)
    y = math.pi / 2 - f * hnp.cos(far) - g * hnp.sin(far)
    return hnp.copysign(hnp.where(hnp.abs(x) <= 4, near * chebyshev(near**2 / 8 - 1, _si_near, 14), y), x)


@analytic(lambda y, x: hnp.cos(x) / x)
def _cosine_integral(x: Any) -> Any:
    near, far, f, g = _near_and_far(x)
    small = EULER + hnp.log(near) + near**2 * chebyshev(near**2 / 8 - 1, _ci_near, 16)
    y = hnp.where(hnp.abs(x) <= 4, small, f * hnp.sin(far) - g * hnp.cos(far))
    return hnp.where(hnp.isinf(x), 0, y)


@strong
def sici(x: Any) -> tuple[Array, Array]:
    """``(Si, Ci)``, the integrals of sine and cosine: of ``sin(t) / t`` from 0, and of ``cos(t) / t`` from infinity.

    Ci is even: below 0 it is the real part.

    >>> sici(0.0)
    (Array(0., dtype=float32), Array(-inf, dtype=float32))
    """
    return _sine_integral(x), _cosine_integral(x)


# Fresnel's integrals divided by x^3 and x, in x^4; beyond 1.6 f and g in 1.6/x, where f and g are the imaginary and
# real parts of (1 + i)/2 w((1 + i) sqrt(pi)/2 x), and w is Faddeeva's function

NEAR = 1.6


def _fs_near(t: Any) -> Any:
    x = NEAR * ((1 + t) / 2) ** 0.25
    return scipy_special("fresnel")(x)[0] / x**3


def _fc_near(t: Any) -> Any:
    x = NEAR * ((1 + t) / 2) ** 0.25
    return scipy_special("fresnel")(x)[1] / x


def _fresnel_auxiliary(t: Any) -> Any:
    x = np.minimum(NEAR * 2 / (1 + t), 1e6)
    return scipy_special("wofz")((1 + 1j) * math.sqrt(math.pi) / 2 * x) * (1 + 1j) / 2 * x


def _ff_values(t: Any) -> Any:
    return _fresnel_auxiliary(t).imag


def _fg_values(t: Any) -> Any:
    return _fresnel_auxiliary(t).real


def _quarter_turns(x: Any) -> tuple[Any, Any]:
    """cos and sin of pi x^2 / 2, by an exact reduction of x^2 modulo 4."""
    whole = hnp.round(x)
    rest = x - whole
    turns = (whole % 4) ** 2 + (2 * whole * rest) % 4 + rest * rest
    return hnp.cos(turns * (math.pi / 2)), hnp.sin(turns * (math.pi / 2))


def _fresnel(x: Any, sine: bool) -> Any:
    """Fresnel's sine or cosine integral."""
    size = hnp.abs(x)
    near, far = hnp.minimum(size, NEAR), hnp.clip(size, NEAR, 1e15)
    t, position = 2 * (near / NEAR) ** 4 - 1, 2 * NEAR / far - 1
    f, g = chebyshev(position, _ff_values, 32) / far, chebyshev(position, _fg_values, 32) / far
    cosine, sine_ = _quarter_turns(far)
    small = near**3 * chebyshev(t, _fs_near, 15) if sine else near * chebyshev(t, _fc_near, 15)
    large = 0.5 - f * cosine - g * sine_ if sine else 0.5 + f * sine_ - g * cosine
    return hnp.copysign(hnp.where(size <= NEAR, small, large), x)


@analytic(lambda y, x: _quarter_turns(x)[1])
def _fresnel_sine(x: Any) -> Any:
    return _fresnel(x, True)


@analytic(lambda y, x: _quarter_turns(x)[0])
def _fresnel_cosine(x: Any) -> Any:
    return _fresnel(x, False)


@strong
def fresnel(x: Any) -> tuple[Array, Array]:
    """``(S, C)``, Fresnel's integrals of ``sin(pi * t**2 / 2)`` and ``cos(pi * t**2 / 2)`` from 0 to ``x``.

    >>> fresnel(float("inf"))
    (Array(0.5, dtype=float32), Array(0.5, dtype=float32))
    """
    return _fresnel_sine(x), _fresnel_cosine(x)


programs(globals(), direct=("bessel_jn", "i0", "i1"))
