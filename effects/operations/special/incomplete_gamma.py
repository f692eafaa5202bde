"""The regularized incomplete gamma functions P and Q = 1 - P, and their derivatives by the shape parameter.

They are computed by the series of P or the continued fraction of Q, iterated until they converge; for large a and x
near a, where both take about sqrt(a) iterations, by Temme's expansion, which takes none.

Sources: Abramowitz & Stegun 6.1.40, 6.3.18, 6.5.29, 6.5.31; Temme, The asymptotic expansion of the incomplete gamma
functions (1979); NIST Handbook 8.12.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ...base.caches import per_process
from . import zeta_by_exponent
from .special_series import LIMIT, SeriesExpansion, SeriesState, lgamma_coefficients, precision, terms_remain

SHIFT = 10  # Stirling's series is used from here: smaller parameters are shifted by this
TEMME = (100.0, 0.3)  # the least a, and the largest abs(x/a - 1), of Temme's expansion
ROWS = (16, 14, 12, 10, 8, 6, 4)  # the terms in eta of its coefficients of 1, 1/a, 1/a^2, ...: 1e-17 at those limits
BERNOULLI = zeta_by_exponent.BERNOULLI[:8]


@per_process
def _temme_coefficients() -> list[list[float]]:
    """The Taylor coefficients in eta of Temme's c_k(eta): c_0 = 1/mu - 1/eta, c_k = c_(k-1)' / eta - c_(k-1)'(0) / mu.

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


def _horner(x: Any, coefficients: Any) -> Any:
    """The polynomial at ``x``, by Horner's rule; coefficients are numbers or arrays."""
    y = x * 0.0 + coefficients[-1]
    for c in reversed(coefficients[:-1]):
        y = y * x + c
    return y


def _horner_slope(x: Any, coefficients: Any) -> tuple[Any, Any]:
    """The polynomial and its derivative at ``x``, by Horner's rule."""
    y, slope = x * 0.0 + coefficients[-1], x * 0.0
    for c in reversed(coefficients[:-1]):
        slope = slope * x + y
        y = y * x + c
    return y, slope


def _by_temme(a: Any, x: Any) -> Any:
    """A mask: whether Temme's expansion is used."""
    return (a >= TEMME[0]) & (abs(x - a) < a * TEMME[1])


def _by_fraction(a: Any, x: Any) -> Any:
    """A mask: whether the continued fraction of Q(a, x) is used rather than the series of P(a, x): Q is small,
    convergence fast.
    """
    beyond = x - a - 1.0
    return (((beyond > 3.0) & (beyond * (beyond / 4.0) > a)) | ((a < 1.0) & (x > 1.0))) & (x < np.inf)


def _invariants(m: Any, a: Any, x: Any) -> tuple[Any, ...]:
    """The loop invariants: a, by_fraction as 1 or 0, the denominator's start, and x where the series is used, else 0.

    Where Temme's expansion or a limit is used x is 0: a series of one term.
    """
    one, none = m.full_like(x, 1.0), m.full_like(x, 0.0)
    iterated = (a > 0.0) & (x > 0.0) & (a < np.inf) & (x < np.inf)
    a, x = m.where(iterated, a, one), m.where(iterated, x, none)
    close = _by_temme(a, x)
    fraction = m.where(close, none, m.where(_by_fraction(a, x), one, none))
    return a, fraction, a + fraction * ((x - a) + (1.0 - a)), m.where(close, none, (1.0 - fraction) * x)


def _start(m: Any, a: Any, x: Any) -> SeriesState:
    """The first state of ``VALUES``: one sum S for both expansions.

    P = x^a e^-x S / Gamma(a+1) for S = 1 + x/(a+1) + x^2/((a+1)(a+2)) + ..., or

    Q = x^a e^-x S / Gamma(a) for S = 1/(b_0 + c_1/(b_1 + c_2/(b_2 + ...))), where b_n = x + 1 - a + 2n and
    c_n = n (a - n). In both the next term is the term before it times d_n = 1/(b_n + c_n d_(n-1)) and a numerator, x or
    -c_n d_(n-1); for the series b_n = a + n and c_n = 0. No difference of near numbers is formed: the terms vanish.
    """
    a, fraction, base, factor = _invariants(m, a, x)
    d = fraction / base
    first = d + (1.0 - fraction)
    return m.full_like(x, 0.0), first, first, d, a, fraction, base, factor


def _step(
    m: Any, n: Any, term: Any, total: Any, d: Any, a: Any, fraction: Any, base: Any, factor: Any
) -> SeriesState:
    """The next state of ``VALUES``: a further term, and the sum with it."""
    n = n + 1.0
    c = (n * fraction) * (a - n) * d
    d = 1.0 / (base + n * (1.0 + fraction) + c)
    term = term * ((factor - c) * d)
    return n, term, total + term, d, a, fraction, base, factor


def _start_slopes(m: Any, a: Any, x: Any) -> SeriesState:
    """``_start`` with further state: the derivatives by a of the term, of the sum, and of d."""
    values = _start(m, a, x)
    slope = values[3] * values[3]
    return *values, slope, slope, slope


def _step_slopes(m: Any, *state: Any) -> SeriesState:
    """The next state of ``SLOPES``: ``_step``, and the derivatives by a of its term, sum and d."""
    _, old, _, before, a, fraction, _, factor, slope, slopes, by_a = state
    n, term, total, d, *fixed = _step(m, *state[:8])
    multiple = n * fraction
    c, dc = multiple * (a - n) * before, multiple * (before + (a - n) * by_a)
    by_a = -d * d * ((1.0 - 2.0 * fraction) + dc)
    slope = slope * ((factor - c) * d) + old * ((factor - c) * by_a - dc * d)
    return n, term, total, d, *fixed, slope, slopes + slope, by_a


def _more_slopes(m: Any, *state: Any) -> Any:
    """The test ``more`` of ``SLOPES``: whether a term, or its derivative, counts in its sum."""
    n, term, total, slope, slopes = *state[:3], *state[8:10]
    eps = precision(n)
    return m.any(((abs(term) > abs(total) * eps) | (abs(slope) > abs(slopes) * eps)) & (n < LIMIT))


VALUES = SeriesExpansion(_start, terms_remain, _step)
SLOPES = SeriesExpansion(_start_slopes, _more_slopes, _step_slopes)


class _Stirling(NamedTuple):
    """Quantities that the expansions of P and Q share, by Stirling's series at b = a, or a + SHIFT if a < SHIFT."""

    u: Any  # x/b - 1
    phi: Any  # u - log(1 + u)
    correction: Any  # Gamma(b) over Stirling's formula
    weight: Any  # x^a e^-x / Gamma(a)
    log_ratio: Any  # log(x) - digamma(a)


def log_excess(u: Any) -> Any:
    """u - log(1 + u) for abs(u) < TEMME[1]: log(1 + u) = 2 (t + t^3/3 + t^5/5 + ...), and u - 2 t = u t."""
    t = u / (u + 2.0)
    return u * t - t * t * t * _horner(t * t, [2 / (2 * k + 3) for k in range(12)])


def stirling_correction(m: Any, b: Any) -> Any:
    """Gamma(b) over Stirling's formula, for b >= SHIFT."""
    squares = 1.0 / (b * b)
    return m.exp(_horner(squares, [c / ((2 * k + 2) * (2 * k + 1)) for k, c in enumerate(BERNOULLI)]) / b)


def digamma_excess(squares: Any) -> Any:
    """log(b) - 1 / (2 b) - digamma(b), for b >= SHIFT, by 1 / b^2."""
    return _horner(squares, [c / (2 * k + 2) for k, c in enumerate(BERNOULLI)]) * squares


def _stirling(m: Any, a: Any, x: Any) -> _Stirling:
    """The shared quantities, computed without a log(x) - x and log Gamma(a), which are large and would cancel."""
    small = a < SHIFT
    b = m.where(small, a + SHIFT, a)
    u = (x - b) / b
    log_x = m.where(u < -0.5, m.log(x / b), m.log1p(u))
    phi = m.where(abs(u) < TEMME[1], log_excess(u), u - log_x)
    squares = 1.0 / (b * b)
    correction = stirling_correction(m, b)
    shifted = m.where(small, a, m.full_like(a, 1.0))
    product, slope = _horner_slope(shifted, _rising_factorial())
    slope = m.where(small, slope / product, -1.0 / b)
    product = m.where(small, a * product, m.full_like(a, 1.0))
    exponent = m.where(small, a * log_x + (b - x), -a * phi)
    power = m.where(small, b, m.full_like(a, 1.0))
    for factor in (2, 5):  # to the tenth
        power = reduce(operator.mul, [power] * factor)
    weight = m.exp(exponent) * m.sqrt(b * (0.5 / math.pi)) * (product / power) / correction
    return _Stirling(u, phi, correction, weight, log_x + 0.5 / b + digamma_excess(squares) + slope)


def _rising_factorial() -> list[float]:
    """The coefficients of the polynomial (a + 1) ... (a + SHIFT - 1)."""
    return [float(c) for c in np.polynomial.polynomial.polyfromroots(-np.arange(1.0, SHIFT)).round()]


def _eta(m: Any, s: _Stirling) -> Any:
    """Temme's variable: eta^2 / 2 = phi, with the sign of x - a."""
    one = m.full_like(s.u, 1.0)
    return m.sqrt(2.0 * s.phi) * m.where(s.u < 0.0, -one, one)


def _temme_values(m: Any, a: Any, s: _Stirling) -> tuple[Any, Any]:
    """P and Q by Q = erfc(eta sqrt(a/2)) / 2 + e^(-a eta^2 / 2) S / sqrt(2 pi a), S the sum of c_k(eta) / a^k."""
    none = m.full_like(a, 0.0)
    eta = _eta(m, s)
    total = _horner(1.0 / a, [_horner(eta, row) for row in _temme_coefficients()])
    rest = s.weight * (s.correction / a) * total
    argument = eta * m.sqrt(0.5 * a)
    upper = m.erfc(m.where(s.u < 0.0, -argument, argument)) * 0.5  # erfc of the tail, which is small
    low, high = m.where(s.u < 0.0, upper - rest, none), m.where(s.u < 0.0, none, upper + rest)
    return m.where(s.u < 0.0, low, 1.0 - high), m.where(s.u < 0.0, 1.0 - low, high)


def _temme_slope(m: Any, a: Any, s: _Stirling) -> Any:
    """dP/da divided by the weight x^a e^-x / Gamma(a), by Temme's expansion; d(eta)/da = -u / (a eta) at constant x."""
    one = m.full_like(a, 1.0)
    eta = _eta(m, s)
    ratio = m.where(eta == 0.0, one, s.u / m.where(eta == 0.0, one, eta))
    polynomials = [_horner_slope(eta, row) for row in _temme_coefficients()]
    total, by_inverse = _horner_slope(1.0 / a, [y for y, _ in polynomials])
    by_eta = _horner(1.0 / a, [slope for _, slope in polynomials])
    slope = ratio - 0.5 * eta + total * (s.u - s.phi - 0.5 / a) - (by_inverse / a + by_eta * ratio) / a
    return -slope * (s.correction / a)  # the factor: e^(-a eta^2 / 2) / sqrt(2 pi a), over the weight


class _Limits(NamedTuple):
    """Masks where the functions are NaN, where P = 0, and where P = 1; and a and x, replaced by 1 there."""

    outside: Any
    low: Any
    high: Any
    a: Any
    x: Any

    @classmethod
    def of(cls, m: Any, a: Any, x: Any) -> _Limits:
        """The masks of these operands."""
        none, one = m.full_like(x, 0.0), m.full_like(x, 1.0)
        low = ((x == 0.0) & (a > 0.0)) | ((a == np.inf) & (x < np.inf))
        high = ((x == np.inf) & (a > 0.0)) | ((a == 0.0) & (x > 0.0))
        nan = (x != x) | (a != a) | ((a == np.inf) & (x == np.inf))
        outside = (x < 0.0) | (a < 0.0) | ((x == 0.0) & (a == 0.0)) | nan
        regular = m.where(outside | low | high, none, one) == 1.0
        return cls(outside, low, high, m.where(regular, a, one), m.where(regular, x, one))

    def applied(self, m: Any, inside: Any, low: float, high: float) -> Any:
        """``inside``, with ``low`` where P = 0, ``high`` where P = 1, and NaN outside of the domain."""
        y = m.where(self.low, m.full_like(inside, low), m.where(self.high, m.full_like(inside, high), inside))
        return m.where(self.outside, m.full_like(inside, np.nan), y)


def _values(m: Any, a: Any, x: Any, state: SeriesState) -> tuple[Any, Any, _Limits]:
    """P(a, x) and Q(a, x) from the last state of ``VALUES``, or by Temme's expansion, with the masks of limits."""
    limits = _Limits.of(m, a, x)
    a, x = limits.a, limits.x
    s = _stirling(m, a, x)
    chosen, close = _by_fraction(a, x), _by_temme(a, x)
    part = s.weight * m.where(chosen, state[2], state[2] / a)
    low, high = _temme_values(m, a, s)
    lower = m.where(close, low, m.where(chosen, 1.0 - part, part))
    return lower, m.where(close, high, m.where(chosen, part, 1.0 - part)), limits


def lower_part(m: Any, a: Any, x: Any, *state: Any) -> Any:
    """P(a, x) from the last state of ``VALUES``, or by Temme's expansion, each where it is best."""
    lower, _, limits = _values(m, a, x, state)
    return limits.applied(m, lower, 0.0, 1.0)


def upper_part(m: Any, a: Any, x: Any, *state: Any) -> Any:
    """Q(a, x) = 1 - P(a, x), without that difference where a is small."""
    _, upper, limits = _values(m, a, x, state)
    small, half = (limits.a < 0.5) & (limits.x <= 1.0), m.full_like(x, 0.5)
    upper = m.where(small, _small_upper(m, m.where(small, limits.a, half), m.where(small, limits.x, half)), upper)
    return limits.applied(m, upper, 1.0, 0.0)


def _small_upper(m: Any, a: Any, x: Any) -> Any:
    """Q(a, x) for a <= 1/2 and x <= 1, by 1 - x^a / Gamma(1 + a) (1 + a sum over n > 0 of (-x)^n / (n! (a + n)))."""
    exponent = a * m.log(x) - a * _horner(a, lgamma_coefficients()) + m.log1p(a)
    rest = _horner(-x, [1.0 / (math.factorial(n) * (a + n)) for n in range(1, 19)])
    return m.exp(exponent) * (a * x * rest) - m.expm1(exponent)


def _slopes(m: Any, a: Any, x: Any, state: SeriesState) -> tuple[Any, _Stirling, _Limits]:
    """dP/da divided by the weight x^a e^-x / Gamma(a), with the shared quantities and masks."""
    limits = _Limits.of(m, a, x)
    a, x = limits.a, limits.x
    s = _stirling(m, a, x)
    total, slopes = state[2], state[9]
    by_fraction = -(slopes + total * (s.log_ratio + 1.0 / a))
    slope = m.where(_by_fraction(a, x), by_fraction, (total * s.log_ratio + slopes) / a)
    return m.where(_by_temme(a, x), _temme_slope(m, a, s), slope), s, limits


def slope_by_shape(m: Any, a: Any, x: Any, *state: Any) -> Any:
    """dP/da from the last state of ``SLOPES``, or by Temme's expansion."""
    slope, s, limits = _slopes(m, a, x, state)
    return limits.applied(m, s.weight * slope, 0.0, 0.0)


def sample_slope(m: Any, a: Any, x: Any, *state: Any) -> Any:
    """-(dP/da) / (dP/dx): dx/da at constant P."""
    slope, _, limits = _slopes(m, a, x, state)
    return limits.applied(m, -limits.x * slope, 0.0, 0.0)
