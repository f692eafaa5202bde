"""Integrals of Gaussians: the error functions, the normal distribution, Faddeeva's and Owen's functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.base.caches import per_process
from ...effects.base.errors import BadArgument, BadCall
from ...effects.core.arrays import Array
from ...effects.operations.elementwise import transcendental
from ...effects.operations.foundations.half_precision import scipy_special
from ...effects.operations.special.chebyshev_series import chebyshev
from ...effects.types.dtypes import is_complex, to_complex
from ...interpreters.core.eager_programs import programs
from ...numpy.arrays.argument_conversion import inexact, strong
from .formulas import analytic, floats

__all__ = [
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri", "owens_t", "wofz",
]

ROOT_HALF, ROOT_PI, ROOT_TAU = math.sqrt(0.5), math.sqrt(math.pi), math.sqrt(2 * math.pi)


def erf(x: Any) -> Array:
    """``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.

    >>> from handlax.numpy import array
    >>> erf(array([-np.inf, 0.0, np.inf]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return transcendental.erf(*floats("erf", x))


def erfc(x: Any) -> Array:
    """``1 - erf(x)``, exact where that is small.

    >>> from handlax.numpy import array
    >>> erfc(array([-np.inf, 0.0, np.inf]))
    Array([2., 1., 0.], dtype=float32)
    """
    return transcendental.erfc(*floats("erfc", x))


def erfinv(x: Any) -> Array:
    """The inverse of ``erf``: ``erfinv(erf(x)) == x``; infinite at -1 and 1, NaN beyond.

    >>> from handlax.numpy import array
    >>> erfinv(array([-1.0, 0.0, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    return transcendental.erf_inv(*floats("erfinv", x))


@analytic(lambda y, x, factor: hnp.where(y == 0, 0, 2 * factor * x * y), None)
def exp_of_square(x: Any, factor: Any) -> Any:
    """``exp(factor * x**2)``, corrected for the rounding error of the square, which the exponential would amplify.

    ``x`` is split into a number of few bits, whose square is exact, and a remainder.
    """
    few = hnp.round(x * 16) / 16
    rest = hnp.where(hnp.isinf(x), 0, x - few)
    return hnp.exp(factor * few * few) * hnp.exp(factor * rest * hnp.where(hnp.isinf(x), 0, x + few))


def _erfcx_values(t: Any) -> Any:
    x = 3.75 * (1 + t) / (1 - t)
    return (1 + 2 * x) * scipy_special("erfcx")(x)


@analytic(lambda y, x: y * _hazard_excess(x / -ROOT_HALF) / -ROOT_HALF)  # 2 x y - 2 / sqrt(pi), without cancellation
def _erfcx(x: Any) -> Any:
    """``erfcx`` of real numbers."""
    size = hnp.abs(x)
    far = size > 1e8
    near = hnp.where(far, 1, size)
    y = chebyshev((near - 3.75) / (near + 3.75), _erfcx_values, 24) / (1 + 2 * near)
    y = hnp.where(far, 1 / (ROOT_PI * size), y)
    return hnp.where(x < 0, 2 * exp_of_square(hnp.minimum(size, 30), 1.0) - y, y)


@strong
def erfcx(x: Any) -> Array:
    """``exp(x**2) * erfc(x)`` of real and complex numbers.

    Source: Shepherd & Laframboise 1981, the series in (x - k) / (x + k).

    >>> erfcx(0.0)
    Array(1., dtype=float32)
    """
    x = inexact(x)
    return wofz(1j * x) if is_complex(x.type.dtype) else _erfcx(x)


def _dawsn_values(x: Any) -> Any:
    return scipy_special("dawsn")(x) * (1 + 2 * x * x) / x


def _dawsn_near(t: Any) -> Any:
    return _dawsn_values(np.sqrt(2 + 2 * t))


def _dawsn_between(t: Any) -> Any:
    return _dawsn_values(3 + t)


def _dawsn_beyond(t: Any) -> Any:
    return _dawsn_values(4 * np.sqrt(2 / (1 + t)))


def _dawsn_slope(y: Any, x: Any) -> Any:
    """1 - 2 x y, for large x by its asymptotic series -u (1 + 3 u (1 + 5 u (1 + ...))), u = 1 / (2 x^2)."""
    far = hnp.abs(x) > 7
    size = hnp.where(far, x, 7)
    u, series = 0.5 / size / size, hnp.ones_like(x)
    for k in range(30, 0, -1):
        series = 1 + (2 * k + 1) * u * series
    return hnp.where(far, -u * series, 1 - 2 * hnp.where(far, 0, x) * y)


@strong
@analytic(_dawsn_slope)
def dawsn(x: Any) -> Array:
    """``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    >>> from handlax.numpy import array
    >>> dawsn(array([0.0, 1.0])).round(4)
    Array([0.    , 0.5381], dtype=float32)
    """
    size = hnp.minimum(hnp.abs(x), 1e15)
    near, between, beyond = hnp.minimum(size, 2), hnp.clip(size, 2, 4), hnp.maximum(size, 4)
    y = chebyshev(32 / beyond**2 - 1, _dawsn_beyond, 25)
    y = hnp.where(size < 4, chebyshev(between - 3, _dawsn_between, 25), y)
    y = hnp.where(size < 2, chebyshev(near**2 / 2 - 1, _dawsn_near, 21), y)
    y = y * hnp.where(size < 1, size / (1 + 2 * size**2), 1 / (1 / hnp.maximum(size, 1) + 2 * size))
    return hnp.where(hnp.abs(x) > 1e15, 0.5 / x, hnp.copysign(y, x))


@strong
@analytic(lambda y, x: exp_of_square(x, -0.5) / ROOT_TAU)
def ndtr(x: Any) -> Array:
    """The probability that a standard normal variable is at most ``x``.

    >>> ndtr(0.0)
    Array(0.5, dtype=float32)
    """
    return transcendental.erfc(x * -ROOT_HALF) / 2


FRACTION_FROM, FRACTIONS = 3, 24  # below -FRACTION_FROM by a continued fraction of FRACTIONS levels


def _hazard_excess(x: Any) -> Any:
    """h(x) + x, where h is ``_hazard``; far below 0 by the continued fraction 1/(z + 2/(z + 3/(z + ...))), z = -x,
    without cancellation.

    Source: Abramowitz & Stegun 26.2.14.
    """
    far = x < -FRACTION_FROM
    z = hnp.where(far, -x, FRACTION_FROM)
    rest = z
    for k in range(FRACTIONS, 1, -1):
        rest = z + k / rest
    near = hnp.where(far, 0, x)
    return hnp.where(far, 1 / rest, near + _hazard(near))


@analytic(lambda y, x: -y * hnp.where(y > 0, _hazard_excess(x), 0))
def _hazard(x: Any) -> Any:
    """exp(-x^2/2) / sqrt(2 pi) / ndtr(x), the derivative of ``log_ndtr``."""
    return 2 / ROOT_TAU / erfcx(x * -ROOT_HALF)


@analytic(lambda y, x: _hazard(x))
def _log_ndtr(x: Any) -> Any:
    """``log_ndtr``: below -1 by ``erfcx``, above by ``erfc``."""
    low = x < -1
    below, above = hnp.where(low, x, -1), hnp.where(low, -1, x)
    tail = hnp.log(erfcx(below * -ROOT_HALF) / 2) - below * (below / 2)
    return hnp.where(low, tail, hnp.log1p(transcendental.erfc(above * ROOT_HALF) / -2))


@strong
def log_ndtr(x: Any, series_order: int = 3) -> Array:
    """``log(ndtr(x))``, without underflow.

    Args:
        series_order: not used, as the tail is not computed by an asymptotic series.

    Raises: BadCall: ``series_order`` is no integer. BadArgument: it is not from 0 to 30.

    >>> log_ndtr(-1000.0).round(1)
    Array(-500007.8, dtype=float32)
    """
    if not isinstance(series_order, int):
        raise BadCall(f"log_ndtr: series_order must be an integer, got {series_order!r}.")
    if not 0 <= series_order <= 30:
        raise BadArgument(f"log_ndtr: series_order must lie between 0 and 30, got {series_order}.")
    return _log_ndtr(x)


TAIL = (1.5, 39.0)  # of sqrt(-2 log p): p = 0.32 and the least positive number of float64


def _ndtri_values(t: Any) -> Any:
    low, high = np.log(TAIL)
    r = np.exp((low + high) / 2 + (high - low) / 2 * t)
    return -scipy_special("ndtri_exp")(-r * r / 2) / r


@strong
@analytic(lambda y, p: ROOT_TAU * exp_of_square(y, 0.5))
def ndtri(p: Any) -> Array:
    """The inverse of ``ndtr``; NaN outside of [0, 1].

    >>> ndtri(0.5)
    Array(0., dtype=float32)
    """
    low, high = np.log(TAIL)
    central = (p > 0.3) & (p < 0.7)
    middle = transcendental.erf_inv(hnp.where(central, 2 * p - 1, 0)) / ROOT_HALF
    upper = p > 0.5
    tail = hnp.where(central | ~(p > 0) | ~(p < 1), 0.25, hnp.where(upper, 1 - p, p))
    r = hnp.sqrt(-2 * hnp.log(tail))
    y = -r * chebyshev((2 * hnp.log(r) - (low + high)) / (high - low), _ndtri_values, 29)
    y = hnp.where(central, middle, hnp.where(upper, -y, y))
    ends = hnp.where(p == 0, -hnp.inf, hnp.where(p == 1, hnp.inf, hnp.nan))
    return hnp.where((p > 0) & (p < 1), y, ends)


@strong
@analytic(lambda x, y: -ROOT_PI / 2 * exp_of_square(x, 1.0))
def erfcinv(y: Any) -> Array:
    """The inverse of ``erfc``, exact for small ``y``: ``erfcinv(erfc(x)) == x``.

    >>> erfcinv(0.0)
    Array(inf, dtype=float32)
    """
    return ndtri(y / 2) * -ROOT_HALF


# N + 1 nodes at distance h: their truncation and discretisation errors are equal, 4e-17.
NODES = 12
STEP = math.sqrt(math.pi / NODES)


def _sum_of_poles(z: Any, shift: Any) -> Any:
    """2iz h/pi times the sum of exp(-t^2) / (z^2 - t^2) over t = (k + shift) h, the term t = 0 halved."""
    square = z * z
    total = 0
    for k in range(NODES):
        t = (k + shift) * STEP
        weight = hnp.exp(-t * t) * hnp.where(t == 0, 0.5, 1.0)
        total = total + weight / (square - t * t)
    return 2j * STEP / math.pi * z * total


def _wofz_first_quadrant(z: Any) -> Any:
    """w(z) in the first quadrant by the midpoint or trapezoidal rule, whichever has no pole near z, plus the residue.

    Source: Al Azah & Chandler-Wilde 2021, Computation of the complex error function using modified trapezoidal rules.
    """
    x, y = z.real, z.imag
    place = x / STEP - hnp.floor(x / STEP)
    modified = y < hnp.maximum(x, math.pi / STEP)
    middle = ~modified | (y >= x) | (place < 0.25) | (place > 0.75)
    shift = hnp.where(middle, 0.5, 0.0).astype(x.dtype)
    phase = hnp.exp(-2j * math.pi / STEP * hnp.where(modified, z, 1j))
    residue = 2 * hnp.exp(-z * z) / (1 + hnp.where(middle, phase, -phase))
    return _sum_of_poles(z, shift) + hnp.where(modified, residue, 0)


@analytic(lambda w, z: 2j / ROOT_PI - 2 * z * w, complex=True)
def _wofz(z: Any) -> Any:
    """w(z) from the first quadrant: w(-conj(z)) = conj(w(z)) and w(-z) = 2 exp(-z^2) - w(z)."""
    x, y = hnp.abs(z.real), hnp.abs(z.imag)
    far = hnp.maximum(x, y) > 1e7
    first = hnp.where(far, 1, x + 1j * y)
    w = _wofz_first_quadrant(first)
    w = hnp.where(far, 1j / ROOT_PI / hnp.where(far, x + 1j * y, 1), w)
    w = hnp.where((z.real < 0) != (z.imag < 0), w.conj(), w)
    bell = hnp.exp(-z * z)
    return hnp.where(z.imag < 0, bell - w + bell, w)  # a product with 2 + 0i would be NaN where it is infinite


def wofz(z: Any) -> Array:
    """Faddeeva's function ``exp(-z**2) * erfc(-1j * z)`` of complex numbers.

    >>> wofz(0.0)
    Array(1.+0.j, dtype=complex64)
    """
    z = inexact(z)
    return _wofz(hnp.asarray(z, to_complex(z.type.dtype)))


@per_process
def _legendre() -> tuple[Any, Any]:
    """The nodes and weights of Gauss-Legendre quadrature on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES_OF_OWEN)
    return (1 + nodes) / 2, weights / 2


NODES_OF_OWEN = 30
WIDTH, FAR = 9.0, 100.0  # exp(-WIDTH^2 / 2) is below the precision, exp(-FAR^2 / 2) below all numbers


def _owens_t_near(h: Any, a: Any) -> Any:
    """T(h, a) for 0 <= a <= 1, the integral of exp(-h^2 (1 + t^2) / 2) / (1 + t^2) / 2 pi from 0 to a."""
    end = hnp.minimum(a, WIDTH / hnp.maximum(h, WIDTH))
    total = 0
    for node, weight in zip(*_legendre()):
        t = end * float(node)
        total = total + float(weight) * exp_of_square(h * t, -0.5) / (1 + t * t)
    return exp_of_square(h, -0.5) * end * total / (2 * math.pi)


def _product(h: Any, a: Any) -> Any:
    """``h * a``, and 0 where one is 0 and the other one infinite."""
    return hnp.where((h == 0) | (a == 0), 0, h * a)


@strong
@analytic(
    lambda y, h, a: exp_of_square(h, -0.5) * transcendental.erf(_product(h, a) * ROOT_HALF) / (-2 * ROOT_TAU),
    lambda y, h, a: exp_of_square(h, -0.5) * exp_of_square(_product(h, a), -0.5) / (2 * math.pi * (1 + a * a)),
)
def owens_t(h: Any, a: Any) -> Array:
    """Owen's T function: the probability that X > h and 0 < Y < a X, for independent standard normal X and Y.

    >>> owens_t(0.0, 1.0).round(4), owens_t(1.0, 0.0)
    (Array(0.125, dtype=float32), Array(0., dtype=float32))
    """
    size, slope = hnp.minimum(hnp.abs(h), FAR), hnp.abs(a)
    steep = slope > 1
    product = hnp.minimum(_product(size, slope), FAR)
    near = _owens_t_near(hnp.where(steep, product, size), hnp.where(steep, 1 / hnp.where(steep, slope, 1), slope))
    p, q = (transcendental.erfc(hnp.where(steep, x, 0) * ROOT_HALF) / 2 for x in (size, product))
    y = hnp.where(steep, (p + q) / 2 - p * q - near, near)
    return hnp.where(a < 0, -y, y)


programs(globals(), direct=("dawsn", "erfcinv", "ndtr", "ndtri", "owens_t"))
