"""The multinomial distribution: the counts of each outcome in ``n`` trials with outcome probabilities ``p``."""

from __future__ import annotations

from typing import Any

from ... import numpy as hnp
from ...effects.core.arrays import Array
from ...interpreters.core.eager_programs import programs
from ...numpy.arrays.argument_conversion import inexact_together
from .. import special
from ..special import formulas

__all__ = ["logpmf", "pmf"]


@formulas.free_promotion
def logpmf(x: Any, n: Any, p: Any) -> Array:
    """The log-probability of the counts along the last axis of ``x``; -inf if the counts do not sum to ``n``.

    >>> from handlax.numpy import array
    >>> logpmf(array([2, 0]), 2, array([1.0, 0.0])).round(4)
    Array(0., dtype=float32)
    """
    x, n = hnp.asarray(x), hnp.asarray(n)
    right = hnp.all(x >= 0, axis=-1) & (x.sum(-1) == n)
    counts, p = inexact_together("multinomial.logpmf", x, p)
    terms = special.xlogy(counts, p) - special.gammaln(counts + 1)
    return hnp.where(right, special.gammaln(n.astype(counts.dtype) + 1) + terms.sum(-1), -hnp.inf)


def pmf(x: Any, n: Any, p: Any) -> Array:
    """``exp(logpmf(x, n, p))``.

    >>> from handlax.numpy import array
    >>> pmf(array([1, 1]), 2, array([0.5, 0.5])).round(4)
    Array(0.5, dtype=float32)
    """
    return hnp.exp(logpmf(x, n, p))


programs(globals())
