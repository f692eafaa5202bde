"""The regularized incomplete gamma functions P and Q = 1 - P, and their derivatives by the shape parameter.

By the series of P or the continued fraction of Q, iterated until they converge; for large a and x next to it, where
both take about sqrt(a) steps, by Temme's expansion, which takes none.

Sources: Abramowitz & Stegun 6.1.40, 6.3.18, 6.5.29, 6.5.31; Temme, The asymptotic expansion of the incomplete gamma
functions (1979); NIST Handbook 8.12.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ...base.caches import cached
from .special_series import LIMIT, SeriesArithmetic, SeriesExpansion, SeriesState, precision

SHIFT = 10  # Stirling's series is used from here: smaller parameters are shifted by this
TEMME = (100.0, 0.3)  # the least a, and the largest abs(x/a - 1), of Temme's expansion
ROWS = (16, 14, 12, 10, 8, 6, 4)  # the terms in eta of its coefficients of 1, 1/a, 1/a^2, ...: 1e-17 at those limits
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


@cached("Temme's coefficients", 1)
def _temme_coefficients() -> list[list[float]]:
    """Those of eta^n in c_k(eta), for c_0 = 1/mu - 1/eta and c_k = c_(k-1)' / eta - c_(k-1)'(0) / mu.

    mu is the power series in eta with eta^2 / 2 = mu - log(1 + mu), so that mu mu' = eta (1 + mu).
    """
    size = ROWS[0] + 2 * len(ROWS)
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, size + 2):
        products = sum((mu[i] * mu[n + 1 - i] for i in range(2, n)), Fraction(0))
        mu.append((mu[n - 1] - products * Fraction(n + 1, 2)) / (n + 1))
    inverse = [Fraction(1)]  # eta / mu
    for n in range(1, size + 1):
        inverse.append(-sum((mu[i + 1] * inverse[n - i] for i in range(1, n + 1)), Fraction(0)))
    first = row = inverse[1:]
    rows = [first]
    for _ in ROWS[1:]:
        row = [(n + 2) * row[n + 2] - row[1] * first[n] for n in range(len(row) - 2)]
        rows.append(row)
    return [[float(c) for c in row[:n]] for row, n in zip(rows, ROWS)]


def _horner(x: Any, coefficients: Any) -> tuple[Any, Any]:
    """A polynomial in ``x`` and its derivative; coefficients are numbers or arrays."""
    y, slope = x * 0.0 + coefficients[-1], x * 0.0
    for c in reversed(coefficients[:-1]):
        slope = slope * x + y
        y = y * x + c
    return y, slope


def _by_temme(a: Any, x: Any) -> Any:
    """Where Temme's expansion is used."""
    return (a >= TEMME[0]) & (abs(x - a) < a * TEMME[1])


def _by_fraction(a: Any, x: Any) -> Any:
    """Where the continued fraction of Q(a, x) is better than the series of P(a, x): Q is small, the steps are few."""
    beyond = x - a - 1.0
    return (beyond > 3.0) & (beyond * (beyond / 4.0) > a) & (x < np.inf)


def _series_start(w: SeriesArithmetic, a: Any, x: Any) -> SeriesState:
    """P = x^a e^-x S / Gamma(a+1) for S = 1 + x/(a+1) + x^2/((a+1)(a+2)) + ...: S, its last term, their derivatives."""
    one, none = w.full(x, 1.0), w.full(x, 0.0)
    return none, one, one, none, none, a, w.where(_by_fraction(a, x) | (x == np.inf) | _by_temme(a, x), none, x)


def _series_more(w: SeriesArithmetic, n: Any, term: Any, total: Any, slope: Any, slopes: Any, a: Any, x: Any) -> Any:
    eps = precision(x)
    return w.any(((abs(term) > abs(total) * eps) | (abs(slope) > abs(slopes) * eps)) & (n < LIMIT))


def _series_step(
    w: SeriesArithmetic, n: Any, term: Any, total: Any, slope: Any, slopes: Any, a: Any, x: Any
) -> SeriesState:
    n = n + 1.0
    ratio = x / (a + n)
    slope = ratio * (slope - term / (a + n))
    term = term * ratio
    return n, term, total + term, slope, slopes + slope, a, x


def _fraction_start(w: SeriesArithmetic, a: Any, x: Any) -> SeriesState:
    """Q = x^a e^-x p/q / Gamma(a): two convergents p/q of the fraction, and the derivatives of each by a."""
    chosen = _by_fraction(a, x) & ((a < TEMME[0]) | (abs(x - a) >= a * TEMME[1]))
    one, none = w.full(x, 1.0), w.full(x, 0.0)
    a, x = w.where(chosen, a, one), w.where(chosen, x, one + one)
    p, q = 1.0 + 1.0 / x, x + 2.0 - a
    value = p / q
    return none, 1.0 / x, one, none, none, p, q, none, -one, value, value / q, one, a, x


def _fraction_more(w: SeriesArithmetic, *state: Any) -> Any:
    change, n = state[11], state[0]
    return w.any((change > precision(n)) & (n < LIMIT))


def _fraction_step(w: SeriesArithmetic, *state: Any) -> SeriesState:
    n, p2, q2, dp2, dq2, p1, q1, dp1, dq1, value, slope, _, a, x = state
    n = n + 1.0
    y = n + 1.0 - a
    z = x + n + y + 1.0
    p, q = p1 * z - p2 * (y * n), q1 * z - q2 * (y * n)
    dp = dp1 * z - p1 - dp2 * (y * n) + p2 * n
    dq = dq1 * z - q1 - dq2 * (y * n) + q2 * n
    safe = w.where(q == 0.0, w.full(q, 1.0), q)
    new = w.where(q == 0.0, value, p / safe)
    new_slope = w.where(q == 0.0, slope, (dp - new * dq) / safe)
    change = abs(new - value) / abs(new) + abs(new_slope - slope) / (abs(new_slope) + abs(new))
    one = w.full(p, 1.0)
    small = 1.0 / w.where(abs(p) > 1.0 / precision(p), abs(p), one)  # rescale, against overflow
    pairs = [value * small for value in (p1, q1, dp1, dq1, p, q, dp, dq)]
    return n, *pairs, new, new_slope, change, a, x


GAMMA = (
    SeriesExpansion(_series_start, _series_more, _series_step),
    SeriesExpansion(_fraction_start, _fraction_more, _fraction_step),
)


class _Stirling(NamedTuple):
    """What the expansions share: u = x/b - 1 and phi = u - log(1 + u) for b = a, or a + SHIFT where a is less;
    Gamma*(b) of Stirling's formula, x^a e^-x / Gamma(a), and log(x) - digamma(a + 1).
    """

    u: Any
    phi: Any
    correction: Any
    weight: Any
    log_ratio: Any


def _stirling(w: SeriesArithmetic, a: Any, x: Any) -> _Stirling:
    """No difference of large terms is formed: neither a log(x) - x, nor log Gamma(a), which exceed the result's log."""
    small = a < SHIFT
    b = w.where(small, a + SHIFT, a)
    u = (x - b) / b
    t = u / (u + 2.0)  # log(1 + u) = 2 (t + t^3/3 + t^5/5 + ...), and u - 2 t = u t
    tail, _ = _horner(t * t, [2 / (2 * k + 3) for k in range(12)])
    near = abs(u) < TEMME[1]
    log_x = w.where(u < -0.5, w.log(x / b), w.log1p(u))
    phi = w.where(near, u * t - t * t * t * tail, u - log_x)
    squares = 1.0 / (b * b)
    correction, _ = _horner(squares, [c / ((2 * k + 2) * (2 * k + 1)) for k, c in enumerate(BERNOULLI)])
    correction = w.exp(correction / b)
    shifted = w.where(small, a, w.full(a, 1.0))
    product, slope = _horner(shifted, _rising_factorial())
    slope = w.where(small, slope / product, -1.0 / b)
    product = w.where(small, a * product, w.full(a, 1.0))
    exponent = w.where(small, a * log_x + (b - x), -a * phi)
    power = w.where(small, b, w.full(a, 1.0))
    for factor in (2, 5):  # to the tenth
        power = _power(power, factor)
    weight = w.exp(exponent) * w.sqrt(b * (0.5 / math.pi)) * (product / power) / correction
    digamma, _ = _horner(squares, [c / (2 * k + 2) for k, c in enumerate(BERNOULLI)])
    return _Stirling(u, phi, correction, weight, log_x + 0.5 / b + digamma * squares + slope)


def _power(x: Any, n: int) -> Any:
    y = x
    for _ in range(n - 1):
        y = y * x
    return y


def _rising_factorial() -> list[float]:
    """The coefficients of (a + 1) ... (a + SHIFT - 1)."""
    return [float(c) for c in np.polynomial.polynomial.polyfromroots(-np.arange(1.0, SHIFT)).round()]


class GammaParts(NamedTuple):
    """P(a, x), Q(a, x) = 1 - P(a, x), dP/da, and -(dP/da) / (dP/dx)."""

    lower: Any
    upper: Any
    slope: Any
    sample_slope: Any


def _temme(w: SeriesArithmetic, a: Any, s: _Stirling) -> tuple[Any, Any, Any]:
    """P, Q, and dP/da over the weight, by Q = erfc(eta sqrt(a/2)) / 2 + e^(-a eta^2 / 2) S / sqrt(2 pi a).

    eta^2 / 2 = phi, and S is the sum of c_k(eta) / a^k; d(eta)/da = -u / (a eta) at constant x.
    """
    one, none = w.full(a, 1.0), w.full(a, 0.0)
    eta = w.sqrt(2.0 * s.phi) * w.where(s.u < 0.0, -one, one)
    ratio = w.where(eta == 0.0, one, s.u / w.where(eta == 0.0, one, eta))
    polynomials = [_horner(eta, row) for row in _temme_coefficients()]
    total, by_inverse = _horner(1.0 / a, [y for y, _ in polynomials])
    by_eta, _ = _horner(1.0 / a, [slope for _, slope in polynomials])
    scale = s.correction / a  # e^(-a eta^2 / 2) / sqrt(2 pi a), over the weight
    rest = s.weight * scale * total
    argument = eta * w.sqrt(0.5 * a)
    upper = w.erfc(w.where(s.u < 0.0, -argument, argument)) * 0.5  # of the side that is small
    low, high = w.where(s.u < 0.0, upper - rest, none), w.where(s.u < 0.0, none, upper + rest)
    low, high = w.where(s.u < 0.0, low, 1.0 - high), w.where(s.u < 0.0, 1.0 - low, high)
    slope = ratio - 0.5 * eta + total * (s.u - s.phi - 0.5 / a) - (by_inverse / a + by_eta * ratio) / a
    return low, high, -slope * scale


def gamma_parts(w: SeriesArithmetic, a: Any, x: Any, series: SeriesState, fraction: SeriesState) -> GammaParts:
    """The incomplete gamma functions from the final states of both expansions, or Temme's, each where it is best."""
    none, one = w.full(x, 0.0), w.full(x, 1.0)
    low, high = (x == 0.0) & (a > 0.0), ((x == np.inf) & (a > 0.0)) | ((a == 0.0) & (x > 0.0))
    outside = (x < 0.0) | (a < 0.0) | ((x == 0.0) & (a == 0.0)) | (x != x) | (a != a) | ((a == np.inf) & (x == np.inf))
    low = low | ((a == np.inf) & (x < np.inf))
    regular = w.where(outside | low | high, none, one) == 1.0
    a, x = w.where(regular, a, one), w.where(regular, x, one)
    s = _stirling(w, a, x)
    chosen, close = _by_fraction(a, x), _by_temme(a, x)
    _, _, total, _, slopes, *_ = series
    value, value_slope = fraction[9], fraction[10]
    small, large = s.weight * total / a, s.weight * value
    by_series = (total * s.log_ratio + slopes) / a
    slope = w.where(chosen, -(value_slope + value * (s.log_ratio + 1.0 / a)), by_series)
    lower, upper = w.where(chosen, 1.0 - large, small), w.where(chosen, large, 1.0 - small)
    lower, upper, slope = (w.where(close, y, z) for y, z in zip(_temme(w, a, s), (lower, upper, slope)))

    def bounded(inside: Any, at_zero: Any, beyond: Any) -> Any:
        return w.where(outside, w.full(x, np.nan), w.where(low, at_zero, w.where(high, beyond, inside)))

    slopes = [bounded(factor * slope, none, none) for factor in (s.weight, -x)]
    return GammaParts(bounded(lower, none, one), bounded(upper, one, none), *slopes)
