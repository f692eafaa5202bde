"""The multivariate normal distribution with mean ``mean`` and covariance ``cov``."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.core.arrays import Array
from ...interpreters.core.eager_programs import programs
from ...lax import linalg

__all__ = ["logpdf", "pdf"]

LOG_TAU = math.log(2 * math.pi)


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Array:
    """The logarithm of the density of the vectors along the last axis of ``x``.

    Shapes: ``x: f[*s, n], mean: f[*s, n], cov: f[*s, n, n]`` gives ``f[*s]``; arguments broadcast. A ``cov`` of rank 0
    stands for that multiple of the identity; a ``mean`` of rank 0 for the normal distribution of numbers.

    Raises: BadArgument: ``allow_singular`` is given, since the covariance must have an inverse.

    >>> from handlax.numpy import array, eye
    >>> logpdf(array([0.0, 0.0]), array([0.0, 0.0]), eye(2)).round(4)
    Array(-1.8379, dtype=float32)
    """
    if allow_singular is not None:
        raise BadArgument(
            f"multivariate_normal.logpdf: allow_singular must be None, got {allow_singular!r}.",
            hint="the covariance needs an inverse.",
        )
    dtype = hnp.result_type(x, mean, cov, float)
    x, mean, cov = (hnp.asarray(v).astype(dtype) for v in (x, mean, cov))
    if not mean.ndim:
        return (-((x - mean) ** 2) / cov - LOG_TAU - hnp.log(cov)) / 2
    n = mean.shape[-1]
    y = x - mean
    if not cov.ndim:
        return -(y * y).sum(-1) / cov / 2 - n / 2 * (LOG_TAU + hnp.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ShapeMismatch(f"multivariate_normal.logpdf: cov must be {n} by {n} as mean has {n}, got {cov.type}.")
    factor = linalg.cholesky(cov)
    batch = hnp.broadcast_shapes(y.shape[:-1], cov.shape[:-2])
    if cov.ndim == 2:  # one matrix serves all vectors, as columns
        y = linalg.triangular_solve(factor, hnp.reshape(y, (-1, n)).T, left_side=True, lower=True)
        squares = hnp.reshape((y * y).sum(0), batch)
    else:
        y, factor = hnp.broadcast_to(y, (*batch, n)), hnp.broadcast_to(factor, (*batch, n, n))
        squares = (linalg.triangular_solve(factor, y[..., None], left_side=True, lower=True) ** 2).sum((-1, -2))
    return -squares / 2 - n / 2 * LOG_TAU - hnp.log(hnp.diagonal(factor, axis1=-1, axis2=-2)).sum(-1)


def pdf(x: Any, mean: Any, cov: Any) -> Array:
    """``exp(logpdf(x, mean, cov))``.

    >>> from handlax.numpy import array, eye
    >>> pdf(array([0.0, 1.0]), array([0.0, 0.0]), eye(2)).round(4)
    Array(0.0965, dtype=float32)
    """
    return hnp.exp(logpdf(x, mean, cov))


programs(globals())
