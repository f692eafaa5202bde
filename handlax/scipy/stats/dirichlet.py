"""The Dirichlet distribution: probabilities that sum to 1, with density proportional to ``prod(x**(alpha - 1))``."""

from __future__ import annotations

from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import ShapeMismatch
from ...effects.core.arrays import Array
from ...interpreters.core.eager_programs import programs
from ...numpy.arrays.argument_conversion import inexact_together
from .. import special

__all__ = ["logpdf", "pdf"]

TOLERANCE = 1e-6  # within which the probabilities must sum to 1


def logpdf(x: Any, alpha: Any) -> Array:
    """The logarithm of the density of the probabilities along the first axis of ``x``; -inf if they do not sum to 1.

    Shapes: ``alpha: f[k]``, ``x: f[k, *s]``, or ``f[k-1, *s]`` without the last one, gives ``f[*s]``.

    >>> from handlax.numpy import array
    >>> logpdf(array([0.25, 0.75]), array([1.0, 1.0])).round(4)
    Array(0., dtype=float32)
    """
    alpha = hnp.asarray(alpha)
    if alpha.ndim != 1:
        raise ShapeMismatch(f"dirichlet.logpdf: alpha must be a vector, got {alpha.type}.")
    x = hnp.asarray(x)
    if not x.ndim or x.shape[0] not in (len(alpha), len(alpha) - 1):
        raise ShapeMismatch(f"dirichlet.logpdf: x must have {len(alpha)} rows as alpha, or one less, got {x.type}.")
    if x.shape[0] != len(alpha):
        x = hnp.concatenate([x, 1 - x.sum(0, keepdims=True)])
    x, alpha = inexact_together("dirichlet.logpdf", x, hnp.reshape(alpha, (-1,) + (1,) * (x.ndim - 1)))
    inside = hnp.all(x >= 0, axis=0) & (hnp.abs(x.sum(0) - 1) < TOLERANCE)
    scale = special.gammaln(alpha).sum(0) - special.gammaln(alpha.sum(0))
    return hnp.where(inside, special.xlogy(alpha - 1, hnp.where(inside, x, 0.5)).sum(0) - scale, -hnp.inf)


def pdf(x: Any, alpha: Any) -> Array:
    """``exp(logpdf(x, alpha))``.

    >>> from handlax.numpy import array
    >>> pdf(array([0.25, 0.75]), array([1.0, 1.0])).round(4)
    Array(1., dtype=float32)
    """
    return hnp.exp(logpdf(x, alpha))


programs(globals())
