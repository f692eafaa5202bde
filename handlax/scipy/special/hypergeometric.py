"""The hypergeometric functions 1F1 and 2F1 of real numbers, by their series."""

from __future__ import annotations

from typing import Any

from ... import numpy as hnp
from ...effects.control.loops import while_loop
from ...effects.core.arrays import Array
from ...numpy.dtype_routines import finfo
from .formulas import analytic, by_tangent
from .gamma_functions import gammaln, gammasgn

__all__ = ["hyp1f1", "hyp2f1"]

STEPS = 4  # terms summed for each test of the loop
LIMIT = 10_000  # the maximal number of terms
TOLERANCE = 1e4  # bound of the last term of a truncated sum, relative to epsilon
APART = 0.02  # the two series in 1 - x cancel if c - a - b is closer than this to an integer


def _series(ratio: Any, like: Any) -> Any:
    """1 + t_1 + t_2 + ..., where t_(n+1) = ratio(n) t_n, summed until terms are negligible; NaN if it does not
    converge.
    """
    eps = float(finfo(like.dtype).eps)

    def more(state: Any) -> Any:
        n, term, total = state
        return hnp.any(hnp.abs(term) > eps / 4 * hnp.abs(total)) & (n < LIMIT)

    def step(state: Any) -> Any:
        n, term, total = state
        for _ in range(STEPS):
            term = term * ratio(n)
            n, total = n + 1, total + term
        return n, term, total

    one = hnp.ones_like(like)
    _, term, total = while_loop(more, step, (hnp.zeros((), like.dtype), one, one))
    return hnp.where(hnp.abs(term) <= TOLERANCE * eps * hnp.abs(total), total, hnp.nan)


def _natural(x: Any) -> Any:
    """Whether ``-x`` is a natural number, for which the series is finite."""
    return (x <= 0) & (x == hnp.round(x))


def _ends(a: Any, b: Any) -> Any:
    """Whether a factor a + n of the terms is 0 before, or where, the divisor b + n is."""
    return _natural(a) & (a >= b)


def _divisor(x: Any) -> Any:
    """``x``, and 1 where it is 0: of terms that are 0."""
    return hnp.where(x == 0, 1, x)


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """1F1 by its series, after Kummer's transformation 1F1(a; b; x) = e^x 1F1(b - a; b; -x) for negative x."""
    a, b, x = hnp.broadcast_arrays(a, b, x)
    inside = hnp.isfinite(a) & hnp.isfinite(b) & hnp.isfinite(x) & (~_natural(b) | _ends(a, b))
    a, c, z = hnp.where(inside, a, 1), hnp.where(inside, b, 1), hnp.where(inside, x, 0)
    turned = (z < 0) & ~_natural(a)
    p, v = hnp.where(turned, c - a, a), hnp.where(turned, -z, z)
    y = _series(lambda n: (p + n) * v / (_divisor(c + n) * (n + 1)), v)
    y = hnp.where(turned, hnp.exp(hnp.where(turned, z, 0)) * y, y)
    return hnp.where(inside, y, hnp.where(_natural(b), hnp.inf, hnp.nan))


@analytic(
    by_tangent(_hyp1f1, 0), by_tangent(_hyp1f1, 1), lambda y, a, b, x: a / b * hyp1f1(a + 1, b + 1, x)
)
def hyp1f1(a: Any, b: Any, x: Any) -> Array:
    """Kummer's confluent hypergeometric function: the sum of ``poch(a, n) / poch(b, n) * x**n / n!``.

    >>> hyp1f1(0.0, 1.0, 3.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _hyp1f1(a, b, x)


def _gamma_ratios(rows: Any) -> Any:
    """Gamma(a) Gamma(b) / (Gamma(c) Gamma(d)) for each (a, b, c, d) in ``rows``, where c or d may be poles."""
    values = hnp.stack([hnp.stack(row) for row in rows])
    poles = _natural(values[:, 2]) | _natural(values[:, 3])
    values = hnp.where(poles[:, None], 1, values)
    logs, signs = gammaln(values), gammasgn(values)
    sign = signs[:, 0] * signs[:, 1] * signs[:, 2] * signs[:, 3]
    return hnp.where(poles, 0, sign * hnp.exp(logs[:, 0] + logs[:, 1] - logs[:, 2] - logs[:, 3]))


def _hyp2f1_right(a: Any, b: Any, c: Any, x: Any) -> Any:
    """2F1 for 0 <= x < 1: near 1 by two series in 1 - x, if c - a - b is no integer.

    Source: Abramowitz & Stegun 15.3.6.
    """
    d = c - a - b
    whole = hnp.abs(d - hnp.round(d)) < APART
    near_one = (x > 0.9) & ~whole & ~_natural(a) & ~_natural(b)
    gap, rest = hnp.where(whole, 0.5, d), hnp.where(near_one, 1 - x, 0)
    rows = [(a, b, c, hnp.where(near_one, 0, x)), (a, b, 1 - gap, rest), (c - a, c - b, 1 + gap, rest)]
    p, q, r, z = (hnp.stack(column) for column in zip(*rows))
    y = _series(lambda n: (p + n) * (q + n) * z / (_divisor(r + n) * (n + 1)), z)
    first, second = _gamma_ratios([(c, gap, c - a, c - b), (c, -gap, a, b)])
    power = hnp.power(hnp.where(near_one, rest, 1), gap)
    return hnp.where(near_one, first * y[1] + power * second * y[2], y[0])


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """2F1 by Pfaff's transformation 2F1(a, b; c; x) = (1 - x)^-a 2F1(a, c - b; c; x / (x - 1)) for negative x."""
    a, b, c, x = hnp.broadcast_arrays(a, b, c, x)
    ends = _natural(a) | _natural(b)
    defined = ~_natural(c) | _ends(a, c) | _ends(b, c)
    inside = hnp.isfinite(a + b + c + x) & defined & ((x < 1) | ends)
    p, q, r, z = hnp.where(inside, a, 1), hnp.where(inside, b, 1), hnp.where(inside, c, 1), hnp.where(inside, x, 0)
    turned = (z < 0) & ~ends
    u = hnp.where(turned, r - q, q)
    base = hnp.where(turned, 1 - z, 1)
    y = hnp.power(base, -p) * _hyp2f1_right(p, u, r, hnp.where(turned, -z / base, z))
    d = hnp.where((x == 1) & (c - a - b > 0), c - a - b, 1)
    at_one = hnp.where(c - a - b > 0, _gamma_ratios([(c, d, c - a, c - b)])[0], hnp.inf)
    outside = hnp.where(x == 1, at_one, hnp.where(_natural(c) | (x > 1), hnp.inf, hnp.nan))
    return hnp.where(inside, y, hnp.where(hnp.isnan(a + b + c + x), hnp.nan, outside))


@analytic(
    by_tangent(_hyp2f1, 0), by_tangent(_hyp2f1, 1), by_tangent(_hyp2f1, 2),
    lambda y, a, b, c, x: a * b / c * hyp2f1(a + 1, b + 1, c + 1, x),
)
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Array:
    """Gauss' hypergeometric function: the sum of ``poch(a, n) * poch(b, n) / poch(c, n) * x**n / n!``, for ``x <= 1``.

    >>> hyp2f1(0.0, 1.0, 2.0, 0.5)
    Array(1., dtype=float32, weak_type=True)
    """
    return _hyp2f1(a, b, c, x)
