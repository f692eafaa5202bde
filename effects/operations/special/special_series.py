"""Series and continued fractions of the incomplete gamma and beta functions, iterated until they converge.

Each is three functions of a state: ``start``, ``more`` (whether to continue) and ``step``. They use infix operators and
the functions of a ``SeriesArithmetic``, so that NumPy evaluates the same code that programs record.

Sources: Abramowitz & Stegun 6.5.29, 6.5.31, 26.5.8; Press et al., Numerical Recipes, 5.2, 6.2 and 6.4 (Lentz's method).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...types import dtypes

LIMIT = 2000.0  # iterations
SeriesState = Sequence[Any]


class SeriesArithmetic(NamedTuple):
    """The functions, beyond infix operators, that expansions use: NumPy's, or those that perform operations."""

    where: Callable[[Any, Any, Any], Any]
    full: Callable[[Any, float], Any]
    any: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    log1p: Callable[[Any], Any]
    lgamma: Callable[[Any], Any]
    digamma: Callable[[Any], Any]


class SeriesExpansion(NamedTuple):
    """The iteration ``state = start(w, *operands)``, then ``state = step(w, *state)`` while ``more(w, *state)``.

    ``w`` is a ``SeriesArithmetic``.
    """

    start: Callable[..., SeriesState]
    more: Callable[..., Any]
    step: Callable[..., SeriesState]

    def last_state(self, w: SeriesArithmetic, *operands: Any) -> SeriesState:
        """The last state, for operands and functions of NumPy."""
        state = self.start(w, *operands)
        while bool(self.more(w, *state)):
            state = self.step(w, *state)
        return state


def precision(x: Any) -> float:
    """The machine epsilon of the dtype of ``x``."""
    return float(dtypes.finfo(x.dtype).eps)


def by_fraction(a: Any, x: Any) -> Any:
    """Where the continued fraction of Q(a, x) converges faster than the series of P(a, x)."""
    return (x > 1.0) & (x > a) & (x < np.inf)


def _series_start(w: SeriesArithmetic, a: Any, x: Any) -> SeriesState:
    """P = x^a e^-x S / Gamma(a+1) for S = 1 + x/(a+1) + x^2/((a+1)(a+2)) + ...: S, its last term, their derivatives."""
    one, none = w.full(x, 1.0), w.full(x, 0.0)
    return none, one, one, none, none, a, w.where(by_fraction(a, x) | (x == np.inf), none, x)


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
    chosen = by_fraction(a, x)
    one, none = w.full(x, 1.0), w.full(x, 0.0)
    a, x = w.where(chosen, a, one), w.where(chosen, x, one + one)
    p, q, dq = x + 1.0, (x + 2.0 - a) * x, -x
    value = p / q
    return none, one, x, none, none, p, q, none, dq, value, -value * dq / q, one, a, x


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
    small = w.where(abs(p) > 1.0 / precision(p), w.full(p, precision(p)), w.full(p, 1.0))  # rescale, against overflow
    pairs = [value * small for value in (p1, q1, dp1, dq1, p, q, dp, dq)]
    return n, *pairs, new, new_slope, change, a, x


GAMMA = (
    SeriesExpansion(_series_start, _series_more, _series_step),
    SeriesExpansion(_fraction_start, _fraction_more, _fraction_step),
)


class GammaParts(NamedTuple):
    """P(a, x), Q(a, x) = 1 - P(a, x), dP/da, and -(dP/da) / (dP/dx)."""

    lower: Any
    upper: Any
    slope: Any
    sample_slope: Any


def gamma_parts(w: SeriesArithmetic, a: Any, x: Any, series: SeriesState, fraction: SeriesState) -> GammaParts:
    """The incomplete gamma functions from the final states of both expansions, each where it converges faster."""
    chosen = by_fraction(a, x)
    _, _, total, _, slopes, *_ = series
    value, value_slope = fraction[9], fraction[10]
    log_x = w.log(x)
    weight = w.exp(a * log_x - x - w.lgamma(a))
    small, large = weight * total / a, weight * value
    by_series = (total * (log_x - w.digamma(a + 1.0)) + slopes) / a
    slope = w.where(chosen, -(value_slope + value * (log_x - w.digamma(a))), by_series)
    lower, upper = w.where(chosen, 1.0 - large, small), w.where(chosen, large, 1.0 - small)
    none, one = w.full(x, 0.0), w.full(x, 1.0)
    low, high = (x == 0.0) & (a > 0.0), ((x == np.inf) & (a > 0.0)) | ((a == 0.0) & (x > 0.0))
    outside = (x < 0.0) | (a < 0.0) | ((x == 0.0) & (a == 0.0))

    def bounded(inside: Any, at_zero: Any, beyond: Any) -> Any:
        return w.where(outside, w.full(x, np.nan), w.where(low, at_zero, w.where(high, beyond, inside)))

    slopes = [bounded(factor * slope, none, none) for factor in (weight, -x)]
    return GammaParts(bounded(lower, none, one), bounded(upper, one, none), *slopes)


def _mirrored(a: Any, b: Any, x: Any) -> Any:
    """Where the fraction converges faster for I(1 - x; b, a)."""
    return x > (a + 1.0) / (a + b + 2.0)


def _mirror(w: SeriesArithmetic, a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """The operands of I(1 - x; b, a) = 1 - I(x; a, b) where ``_mirrored``, else ``a, b, x``."""
    mirrored = _mirrored(a, b, x)
    return w.where(mirrored, b, a), w.where(mirrored, a, b), w.where(mirrored, 1.0 - x, x)


def _away_from_zero(w: SeriesArithmetic, x: Any) -> Any:
    """``x``, or 1e-30 where ``abs(x)`` is less, so that it is a divisor."""
    return w.where(abs(x) < 1e-30, w.full(x, 1e-30), x)


def _beta_start(w: SeriesArithmetic, a: Any, b: Any, x: Any) -> SeriesState:
    """Lentz's method: the ratios c and d of successive numerators and denominators, and the fraction h so far."""
    a, b, x = _mirror(w, a, b, x)
    inside = (x > 0.0) & (a > 0.0) & (b > 0.0)
    one, half = w.full(x, 1.0), w.full(x, 0.5)
    a, b, x = w.where(inside, a, one), w.where(inside, b, one), w.where(inside, x, half)
    d = 1.0 / _away_from_zero(w, 1.0 - (a + b) * x / (a + 1.0))
    return w.full(x, 0.0), one, d, d, one, a, b, x


def _beta_more(w: SeriesArithmetic, m: Any, c: Any, d: Any, h: Any, change: Any, a: Any, b: Any, x: Any) -> Any:
    return w.any((abs(change) > precision(x)) & (m < LIMIT))


def _beta_step(w: SeriesArithmetic, m: Any, c: Any, d: Any, h: Any, change: Any, a: Any, b: Any, x: Any) -> SeriesState:
    m = m + 1.0
    twice = m + m
    even = m * (b - m) * x / ((a - 1.0 + twice) * (a + twice))
    odd = -(a + m) * (a + b + m) * x / ((a + twice) * (a + 1.0 + twice))
    for coefficient in (even, odd):
        d = 1.0 / _away_from_zero(w, 1.0 + coefficient * d)
        c = _away_from_zero(w, 1.0 + coefficient / c)
        h = h * (c * d)
    return m, c, d, h, c * d - 1.0, a, b, x


BETA = (SeriesExpansion(_beta_start, _beta_more, _beta_step),)


def beta_integral(w: SeriesArithmetic, a: Any, b: Any, x: Any, fraction: SeriesState) -> Any:
    """The regularized incomplete beta function from its fraction; NaN outside its domain."""
    h = fraction[3]
    p, q, y = _mirror(w, a, b, x)
    scale = w.lgamma(p + q) - w.lgamma(p) - w.lgamma(q)
    inside = w.exp(p * w.log(y) + q * w.log1p(-y) + scale) * h / p
    inside = w.where(_mirrored(a, b, x), 1.0 - inside, inside)
    outside = (x < 0.0) | (x > 1.0) | (a <= 0.0) | (b <= 0.0)
    ends = w.where(x == 0.0, w.full(x, 0.0), w.where(x == 1.0, w.full(x, 1.0), inside))
    return w.where(outside, w.full(x, np.nan), ends)
