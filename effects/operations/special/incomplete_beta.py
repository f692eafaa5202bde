"""The regularized incomplete beta function, by its continued fraction.

Sources: Abramowitz & Stegun 26.5.8; Press et al., Numerical Recipes, 5.2 and 6.4 (Steed's method).
"""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any

import numpy as np

from .incomplete_gamma import SHIFT, TEMME, log_excess, stirling_correction
from .special_series import SeriesExpansion, SeriesState, terms_remain


def _mirrored(a: Any, b: Any, x: Any) -> Any:
    """A mask: whether the fraction converges faster for I(1 - x; b, a)."""
    return x > (a + 1.0) / (a + b + 2.0)


def _mirror(m: Any, a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """The operands of I(1 - x; b, a) = 1 - I(x; a, b) where ``_mirrored``, else ``a, b, x``."""
    mirrored = _mirrored(a, b, x)
    return m.where(mirrored, b, a), m.where(mirrored, a, b), m.where(mirrored, 1.0 - x, x)


def _away_from_zero(m: Any, x: Any) -> Any:
    """``x``, or 1e-30 where ``abs(x)`` is smaller, so that it can be a divisor."""
    return m.where(abs(x) < 1e-30, m.full_like(x, 1e-30), x)


def _beta_start(m: Any, a: Any, b: Any, x: Any) -> SeriesState:
    """Steed's method: the fraction 1/(1 + c_1/(1 + c_2/...)) as a sum; d_n = 1/(1 + c_n d_(n-1)) divides a term.

    Each term is the one before it times -c_n d_(n-1) d_n: no difference of near numbers, so the terms vanish.
    """
    a, b, x = _mirror(m, a, b, x)
    inside = (x > 0.0) & (a > 0.0) & (b > 0.0) & (a < np.inf) & (b < np.inf)
    one, half = m.full_like(x, 1.0), m.full_like(x, 0.5)
    a, b, x = m.where(inside, a, one), m.where(inside, b, one), m.where(inside, x, half)
    first = (a + b) * x / (a + 1.0)
    d = 1.0 / _away_from_zero(m, 1.0 - first)
    return m.full_like(x, 0.0), first * d, d, d, a, b, x


def _beta_step(m: Any, n: Any, term: Any, total: Any, d: Any, a: Any, b: Any, x: Any) -> SeriesState:
    """The next state: two further coefficients of the fraction."""
    n = n + 1.0
    twice = n + n
    even = n * (b - n) * x / ((a - 1.0 + twice) * (a + twice))
    odd = -(a + n) * (a + b + n) * x / ((a + twice) * (a + 1.0 + twice))
    for coefficient in (even, odd):
        c = coefficient * d
        d = 1.0 / _away_from_zero(m, 1.0 + c)
        term = -c * d * term
        total = total + term
    return n, term, total, d, a, b, x


FRACTION = SeriesExpansion(_beta_start, terms_remain, _beta_step)


def _excess(m: Any, share: Any, total: Any, z: Any, distance: Any) -> Any:
    """z (u - log(1 + u)) for u = distance / z, where 1 + u = share total / z."""
    log = m.log(share * (total / m.maximum(z, m.full_like(z, 1e-30))))
    near = abs(distance) < z * TEMME[1]
    return m.where(near, z * log_excess(m.where(near, distance / z, m.full_like(z, 0.0))), distance - z * log)


def _over_stirling(m: Any, z: Any) -> Any:
    """Gamma(z) over Stirling's formula, sqrt(2 pi) z^(z - 1/2) e^-z."""
    one = m.full_like(z, 1.0)
    w = m.where(z < SHIFT, z + SHIFT, z)
    risen = reduce(operator.mul, [m.where(z < SHIFT, w / (z + k), one) for k in range(SHIFT)])
    return m.exp((z - 0.5) * m.log(w / z) + (z - w)) * risen * stirling_correction(m, w)


def _power_terms(m: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """x^a y^b / B(a, b) for y = 1 - x, without log Gamma, which is large, and would cancel.

    It is sqrt(a b / (2 pi (a + b))) e^-E G(a + b) / (G(a) G(b)), where G is ``_over_stirling``, and E is the sum of the
    ``_excess`` of x and y, neither of which is negative.
    """
    s, distance = a + b, x * b - y * a
    exponent = _excess(m, x, s, a, distance) + _excess(m, y, s, b, -distance)
    scale = _over_stirling(m, s) / (_over_stirling(m, a) * _over_stirling(m, b))
    return m.exp(-exponent) * m.sqrt(a / s * b * (0.5 / math.pi)) * scale


def beta_integral(m: Any, a: Any, b: Any, x: Any, *fraction: Any) -> Any:
    """The regularized incomplete beta function from its fraction."""
    mirrored = _mirrored(a, b, x)
    zero, one = m.full_like(x, 0.0), m.full_like(x, 1.0)
    below, above = _power_terms(m, a, b, x, 1.0 - x) * fraction[2], m.where(mirrored, b, a)
    inside = m.where(mirrored, 1.0 - below / above, below / above)
    inside = m.minimum(m.maximum(inside, zero), one)
    return at_limits(m, a, b, x, inside)


def at_limits(m: Any, a: Any, b: Any, x: Any, inside: Any) -> Any:
    """The regularized incomplete beta function, whose values are ``inside`` for positive, finite parameters.

    Where one of the parameters is 0 or infinite it has its limit, a step at 0 or at 1; it is NaN outside of its domain.
    Where both parameters are 0, or both infinite, there is no limit.
    """
    zero, one = m.full_like(x, 0.0), m.full_like(x, 1.0)
    low, high = (a == 0.0) | (b == np.inf), (b == 0.0) | (a == np.inf)
    steps = m.where(low, one, m.where(high, zero, inside))
    ends = m.where(x == 0.0, zero, m.where(x == 1.0, one, steps))
    domain = (x >= 0.0) & (x <= 1.0) & (a >= 0.0) & (b >= 0.0) & ~(low & (b == 0.0)) & ~(high & (b == np.inf))
    return m.where(domain, ends, m.full_like(x, np.nan))  # false where an operand is NaN
