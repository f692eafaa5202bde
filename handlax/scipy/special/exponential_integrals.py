"""The exponential integrals Ei, E_1 and E_n, and Spence's function, the dilogarithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.control.loops import while_loop
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.arithmetic import polynomial
from ...effects.operations.foundations.half_precision import scipy_special
from ...effects.operations.special.chebyshev_series import chebyshev
from ...effects.operations.special.special_functions import digamma, lgamma
from ...numpy.arrays.argument_conversion import strong
from ...numpy.dtype_routines import finfo
from .formulas import analytic

__all__ = ["exp1", "expi", "expn", "spence"]

EULER = float(np.euler_gamma)


def _ein_values(t: Any) -> Any:
    """(Ei(x) - gamma - log x) / x for 0 < x < 6."""
    x = 3 * (1 + t)
    return (scipy_special("expi")(x) - EULER - np.log(x)) / x


def _scaled(x: Any) -> Any:
    """x e^-x Ei(x) by its asymptotic series, for x so large that this is accurate."""
    near = np.minimum(x, 40)
    series = sum(math.factorial(k) / x**k for k in range(40))
    return np.where(x < 40, near * np.exp(-near) * scipy_special("expi")(near), series)


def _ei_6_12(t: Any) -> Any:
    return _scaled(24 / (3 + t))


def _ei_12_24(t: Any) -> Any:
    return _scaled(48 / (3 + t))


def _ei_24(t: Any) -> Any:
    return _scaled(48 / (1 + t))


def _ei_positive(x: Any) -> Any:
    """Ei(x) for x > 0."""
    near, far = hnp.minimum(x, 6), hnp.maximum(x, 24)
    y = EULER + hnp.log(near) + near * chebyshev(near / 3 - 1, _ein_values, 21)
    scaled = chebyshev(48 / far - 1, _ei_24, 24)
    scaled = hnp.where(x < 24, chebyshev(48 / hnp.clip(x, 12, 24) - 3, _ei_12_24, 20), scaled)
    scaled = hnp.where(x < 12, chebyshev(24 / hnp.clip(x, 6, 12) - 3, _ei_6_12, 22), scaled)
    large = hnp.clip(x, 6, 2000)
    half = hnp.exp(large / 2)
    return hnp.where(x < 6, y, half * (scaled / large) * half)


def _e1_near(t: Any) -> Any:
    """(E_1(x) + gamma + log x) / x for 0 < x < 1."""
    x = (1 + t) / 2
    return sum((-1) ** (k + 1) * x ** (k - 1) / (k * math.factorial(k)) for k in range(1, 20))


def _e1_far(t: Any) -> Any:
    """x e^x E_1(x) for x > 1, from Stieltjes' continued fraction x / (x + 1/(1 + 1/(x + 2/(1 + 2/(x + ...)))))."""
    x = 1 + 3 * (1 + t) / (1 - t)
    tail = x
    for k in range(400, 0, -1):
        tail = x + k / (1 + k / tail)
    return x / tail


def _e1_positive(x: Any) -> Any:
    """E_1(x) for x > 0."""
    near, far = hnp.minimum(x, 1), hnp.clip(x, 1, 1e4)
    y = -EULER - hnp.log(near) + near * chebyshev(2 * near - 1, _e1_near, 15)
    return hnp.where(x < 1, y, hnp.exp(-far) / far * chebyshev((far - 4) / (far + 2), _e1_far, 26))


@strong
@analytic(lambda y, x: hnp.exp(x) / hnp.minimum(x, 1e30))  # infinite where e^x is
def expi(x: Any) -> Array:
    """The exponential integral Ei: the principal value of the integral of ``exp(t) / t`` from -inf to ``x``.

    >>> expi(0.0)
    Array(-inf, dtype=float32)
    """
    below = x < 0
    y = hnp.where(below, -_e1_positive(hnp.where(below, -x, 1)), _ei_positive(hnp.where(below, 1, x)))
    return hnp.where(hnp.isnan(x), hnp.nan, y)


@strong
@analytic(lambda y, x: hnp.exp(-x) / -x)
def exp1(x: Any) -> Array:
    """The exponential integral E_1: the integral of ``exp(-t) / t`` from ``x`` to infinity, NaN below 0.

    >>> exp1(0.0)
    Array(inf, dtype=float32)
    """
    return hnp.where(x < 0, hnp.nan, -expi(-x))


def _en_series(n: Any, x: Any) -> Any:
    """E_n(x) for 0 < x <= 1: (-x)^(n-1) (digamma(n) - log x) / (n-1)! less the sum of (-x)^k / ((k-n+1) k!), k != n-1.

    Source: Abramowitz & Stegun 5.1.12.
    """
    total: Any = 0
    term = hnp.ones_like(x)
    for k in range(22):
        below = k - n + 1
        total = total - hnp.where(below == 0, 0, term / hnp.where(below == 0, 1, below))
        term = term * (-x) / (k + 1)
    log_x = hnp.log(x)
    size = hnp.exp((n - 1) * log_x - lgamma(n))
    return total + hnp.where(n % 2 == 0, -1, 1) * size * (digamma(n) - log_x)


def _en_fraction(n: Any, x: Any) -> Any:
    """E_n(x) for x > 1 by the continued fraction e^-x / (x + n - n/(x + n + 2 - 2(n+1)/(x + n + 4 - ...))).

    Steed's method: every term of the sum is the one before it times a factor. Source: Press et al. 6.3.
    """
    eps = float(finfo(x.dtype).eps)

    def more(state: Any) -> Any:
        i, _, _, term, total = state
        return hnp.any(hnp.abs(term) > eps / 4 * hnp.abs(total)) & (i < 200)

    def step(state: Any) -> Any:
        i, b, d, term, total = state
        a, b = -i * (n + i - 1), b + 2
        d_next = 1 / (b + a * d)
        term = term * (b * d_next - 1)
        return i + 1, b, d_next, term, total + term

    first = 1 / (x + n)
    start = (hnp.ones((), x.dtype), x + n, first, first, first)
    return hnp.exp(-x) * while_loop(more, step, start)[-1]


def _en_slope(y: Any, n: Any, x: Any) -> Any:
    """-E_(n-1)(x), where E_(-1)(x) = e^-x (1 + 1/x) / x."""
    return hnp.where(n == 0, -hnp.exp(-x) * (1 + 1 / x) / x, -_expn(hnp.maximum(n - 1, 0), x))


@analytic(None, _en_slope)
def _expn(n: Any, x: Any) -> Any:
    """``expn``: by a series for ``x <= 1``, beyond by a continued fraction."""
    n, x = hnp.broadcast_arrays(n, x)
    small = x <= 1
    near = _en_series(hnp.maximum(n, 1), hnp.where(small & (x > 0), x, 1))
    far = _en_fraction(hnp.maximum(n, 1), hnp.where(small, 2, hnp.minimum(x, 1e4)))
    y = hnp.where(small, near, far)
    y = hnp.where(n == 0, hnp.exp(-x) / x, y)
    y = hnp.where(x == 0, hnp.where(n < 2, hnp.inf, 1 / hnp.where(n < 2, 1, n - 1)), y)
    return hnp.where((x < 0) | (n < 0) | (n != hnp.floor(n)) | hnp.isnan(x), hnp.nan, y)


@strong
def expn(n: Any, x: Any) -> Array:
    """The exponential integral E_n: the integral of ``exp(-x * t) / t**n`` from 1 to infinity; NaN unless ``n`` is a
    natural number.

    Raises: NotDifferentiable: a derivative by ``n``.

    >>> expn(2, 0.0)
    Array(1., dtype=float32)
    """
    return _expn(n, x)


def _spence_values(t: Any) -> Any:
    z = 1 + t / 2
    return scipy_special("spence")(z) / np.where(t == 0, 1, 1 - z) + (t == 0)


_LOG1P = [(-1) ** k / (k + 1) for k in range(18)]


def _spence_slope(y: Any, x: Any) -> Any:
    """log(x) / (1 - x), which is a power series of x - 1 near 1."""
    u = x - 1
    near = hnp.abs(u) < 0.1
    inner, outer = hnp.where(near, u, 0), hnp.where(near | (x == hnp.inf), 2, x)
    far = hnp.where(x == hnp.inf, 0, hnp.log(outer) / (outer - 1))
    return -hnp.where(near, polynomial(inner, _LOG1P), far)


@strong
@analytic(_spence_slope)
def spence(x: Any) -> Array:
    """Spence's function: the integral of ``log(t) / (1 - t)`` from 1 to ``x``, the dilogarithm of ``1 - x``.

    >>> spence(1.0)
    Array(0., dtype=float32)
    """
    large = x > 1.5
    z = hnp.where(large, 1 / hnp.where(large, x, 1), x)
    small = z < 0.5
    v = hnp.clip(hnp.where(small, 1 - z, z), 0.5, 1.5)
    y = (1 - v) * chebyshev(2 * v - 2, _spence_values, 24)
    logs = hnp.log(hnp.where(z > 0, z, 1)) * hnp.log1p(hnp.where(small, -z, 0))
    y = hnp.where(small, math.pi**2 / 6 - logs - y, y)
    y = hnp.where(large, hnp.log(hnp.where(large, x, 1)) ** 2 / -2 - y, y)
    return hnp.where(x >= 0, y, hnp.nan)
