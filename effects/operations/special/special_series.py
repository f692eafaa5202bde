"""Iterated expansions, and the continued fraction of the incomplete beta function.

An expansion is three functions of a state: ``start``, ``more`` (whether to continue) and ``step``. They use infix
operators and the functions of a ``SeriesArithmetic``, so that NumPy evaluates the same code that programs record.

Sources: Abramowitz & Stegun 26.5.8; Press et al., Numerical Recipes, 5.2 and 6.4 (Steed's method).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...types import dtypes

LIMIT = 2000.0  # the maximal number of iterations
SeriesState = Sequence[Any]


class SeriesArithmetic(NamedTuple):
    """The functions, besides infix operators, that expansions use: NumPy's, or functions that perform operations."""

    where: Callable[[Any, Any, Any], Any]
    full: Callable[[Any, float], Any]
    any: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    log1p: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    lgamma: Callable[[Any], Any]
    erfc: Callable[[Any], Any]


class SeriesExpansion(NamedTuple):
    """The iteration ``state = start(w, *operands)``, then ``state = step(w, *state)`` while ``more(w, *state)``.

    ``w`` is a ``SeriesArithmetic``.
    """

    start: Callable[..., SeriesState]
    more: Callable[..., Any]
    step: Callable[..., SeriesState]

    def last_state(self, w: SeriesArithmetic, *operands: Any) -> SeriesState:
        """The final state, computed by NumPy."""
        state = self.start(w, *operands)
        while bool(self.more(w, *state)):
            state = self.step(w, *state)
        return state


def precision(x: Any) -> float:
    """The machine epsilon of the dtype of ``x``."""
    return float(dtypes.finfo(x.dtype).eps)


def terms_remain(w: SeriesArithmetic, n: Any, term: Any, total: Any, *rest: Any) -> Any:
    """The test ``more`` of a sum whose state begins with the term's index, the term, and the sum."""
    return w.any((abs(term) > abs(total) * precision(n)) & (n < LIMIT))


def _mirrored(a: Any, b: Any, x: Any) -> Any:
    """A mask: whether the fraction converges faster for I(1 - x; b, a)."""
    return x > (a + 1.0) / (a + b + 2.0)


def _mirror(w: SeriesArithmetic, a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """The operands of I(1 - x; b, a) = 1 - I(x; a, b) where ``_mirrored``, else ``a, b, x``."""
    mirrored = _mirrored(a, b, x)
    return w.where(mirrored, b, a), w.where(mirrored, a, b), w.where(mirrored, 1.0 - x, x)


def _away_from_zero(w: SeriesArithmetic, x: Any) -> Any:
    """``x``, or 1e-30 where ``abs(x)`` is smaller, so that it can be a divisor."""
    return w.where(abs(x) < 1e-30, w.full(x, 1e-30), x)


def _beta_start(w: SeriesArithmetic, a: Any, b: Any, x: Any) -> SeriesState:
    """Steed's method: the fraction 1/(1 + c_1/(1 + c_2/...)) as a sum; d_n = 1/(1 + c_n d_(n-1)) divides a term.

    Each term is the one before it times -c_n d_(n-1) d_n: no difference of near numbers, so the terms vanish.
    """
    a, b, x = _mirror(w, a, b, x)
    inside = (x > 0.0) & (a > 0.0) & (b > 0.0)
    one, half = w.full(x, 1.0), w.full(x, 0.5)
    a, b, x = w.where(inside, a, one), w.where(inside, b, one), w.where(inside, x, half)
    first = (a + b) * x / (a + 1.0)
    d = 1.0 / _away_from_zero(w, 1.0 - first)
    return w.full(x, 0.0), first * d, d, d, a, b, x


def _beta_step(w: SeriesArithmetic, m: Any, term: Any, total: Any, d: Any, a: Any, b: Any, x: Any) -> SeriesState:
    m = m + 1.0
    twice = m + m
    even = m * (b - m) * x / ((a - 1.0 + twice) * (a + twice))
    odd = -(a + m) * (a + b + m) * x / ((a + twice) * (a + 1.0 + twice))
    for coefficient in (even, odd):
        c = coefficient * d
        d = 1.0 / _away_from_zero(w, 1.0 + c)
        term = -c * d * term
        total = total + term
    return m, term, total, d, a, b, x


BETA = SeriesExpansion(_beta_start, terms_remain, _beta_step)


def beta_integral(w: SeriesArithmetic, a: Any, b: Any, x: Any, *fraction: Any) -> Any:
    """The regularized incomplete beta function from its fraction; NaN outside its domain."""
    h = fraction[2]
    p, q, y = _mirror(w, a, b, x)
    scale = w.lgamma(p + q) - w.lgamma(p) - w.lgamma(q)
    inside = w.exp(p * w.log(y) + q * w.log1p(-y) + scale) * h / p
    inside = w.where(_mirrored(a, b, x), 1.0 - inside, inside)
    zero, one = w.full(x, 0.0), w.full(x, 1.0)
    inside = w.where((a == np.inf) & (b < np.inf), zero, w.where((b == np.inf) & (a < np.inf), one, inside))
    ends = w.where(x == 0.0, zero, w.where(x == 1.0, one, inside))
    domain = (x >= 0.0) & (x <= 1.0) & (a > 0.0) & (b > 0.0)  # in which a NaN is not
    return w.where(domain, ends, w.full(x, np.nan))
