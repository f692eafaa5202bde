"""Iterated expansions, and the continued fraction of the incomplete beta function.

An expansion is three functions of a state: ``start``, ``more`` (whether to continue) and ``step``. They use infix
operators and functions of ``m``, as in ``complex_functions``, so that NumPy evaluates the code that programs record.

Sources: Abramowitz & Stegun 26.5.8; Press et al., Numerical Recipes, 5.2 and 6.4 (Steed's method).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...types import dtypes

LIMIT = 2000.0  # the maximal number of iterations
SeriesState = Sequence[Any]


class SeriesExpansion(NamedTuple):
    """The iteration ``state = start(m, *operands)``, then ``state = step(m, *state)`` while ``more(m, *state)``.

    ``m`` has the functions of the array API that the expansion uses: ``IN_NUMPY`` or ``PERFORMED``.
    """

    start: Callable[..., SeriesState]
    more: Callable[..., Any]
    step: Callable[..., SeriesState]

    def last_state(self, m: Any, *operands: Any) -> SeriesState:
        """The final state, computed by NumPy."""
        state = self.start(m, *operands)
        while bool(self.more(m, *state)):
            state = self.step(m, *state)
        return state


def precision(x: Any) -> float:
    """The machine epsilon of the dtype of ``x``."""
    return float(dtypes.finfo(x.dtype).eps)


def terms_remain(m: Any, n: Any, term: Any, total: Any, *rest: Any) -> Any:
    """The test ``more`` of a sum whose state begins with the term's index, the term, and the sum."""
    return m.any((abs(term) > abs(total) * precision(n)) & (n < LIMIT))


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
    inside = (x > 0.0) & (a > 0.0) & (b > 0.0)
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


BETA = SeriesExpansion(_beta_start, terms_remain, _beta_step)


def beta_integral(m: Any, a: Any, b: Any, x: Any, *fraction: Any) -> Any:
    """The regularized incomplete beta function from its fraction; NaN outside its domain."""
    h = fraction[2]
    p, q, y = _mirror(m, a, b, x)
    scale = m.lgamma(p + q) - m.lgamma(p) - m.lgamma(q)
    inside = m.exp(p * m.log(y) + q * m.log1p(-y) + scale) * h / p
    inside = m.where(_mirrored(a, b, x), 1.0 - inside, inside)
    zero, one = m.full_like(x, 0.0), m.full_like(x, 1.0)
    inside = m.where((a == np.inf) & (b < np.inf), zero, m.where((b == np.inf) & (a < np.inf), one, inside))
    ends = m.where(x == 0.0, zero, m.where(x == 1.0, one, inside))
    domain = (x >= 0.0) & (x <= 1.0) & (a > 0.0) & (b > 0.0)  # false where an operand is NaN
    return m.where(domain, ends, m.full_like(x, np.nan))
