"""Kernel density estimates: mixtures of normal densities centred at the points of a data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ... import numpy as hnp
from ... import random
from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.core.arrays import Array
from ...effects.trees.registration import register_pytree_node_class
from ...lax import linalg
from ...nn import logsumexp
from .. import special

LOG_TAU = math.log(2 * math.pi)


@register_pytree_node_class
@dataclass(frozen=True, init=False, eq=False)
class gaussian_kde:
    """The kernel density estimate of ``n`` points with ``d`` coordinates, with normal kernels.

        kde(x)[j] == sum(weights[i] * normal(x[:, j]; dataset[:, i], covariance) for i)

    An immutable pytree, whose leaves are its arrays.

    Args:
        dataset: ``f[d, n]``, or ``f[n]`` for numbers.
        bw_method: the width relative to the covariance of the data: "scott" (``neff**(-1/(d+4))``, also None),
            "silverman", a number, or a function of the estimate.
        weights: ``f[n]``, normalised to sum 1; by default all points weigh the same.

    Source: SciPy, ``gaussian_kde``.

    >>> kde = gaussian_kde([0.0, 1.0, 2.0])
    >>> kde(1.0).shape, bool(kde(1.0)[0] > kde(3.0)[0])
    ((1,), True)
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        data = hnp.atleast_2d(hnp.asarray(dataset))
        data = data.astype(hnp.result_type(data, float))
        if data.ndim != 2 or data.shape[1] < 2:
            raise ShapeMismatch(f"gaussian_kde: the data must be several points, f[d, n], got {data.type}.")
        count = data.shape[1]
        if weights is None:
            shares = hnp.full((count,), 1 / count, data.dtype)
        else:
            shares = hnp.asarray(weights).astype(data.dtype)
            if shares.shape != (count,):
                raise ShapeMismatch(f"gaussian_kde: each of {count} points must have a weight, got {shares.type}.")
            shares = shares / shares.sum()
        vars(self).update(dataset=data, weights=shares, neff=1 / (shares * shares).sum())
        factor = self._factor(bw_method)
        covariance = hnp.atleast_2d(hnp.cov(data, bias=False, aweights=shares)) * factor**2
        unit = hnp.eye(self.d, dtype=data.dtype)
        root = linalg.triangular_solve(linalg.cholesky(covariance), unit, left_side=True, lower=True)
        vars(self).update(covariance=covariance, inv_cov=root.T @ root)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays, as children of a pytree node."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """The estimate with these arrays, the inverse of ``tree_flatten``."""
        kde = cls.__new__(cls)
        vars(kde).update(zip(cls.__dataclass_fields__, children))
        return kde

    def _factor(self, method: Any) -> Any:
        """The bandwidth factor, relative to the standard deviation of the data."""
        if method is None or method == "scott":
            return self.neff ** (-1.0 / (self.d + 4))
        if method == "silverman":
            return (self.neff * (self.d + 2) / 4.0) ** (-1.0 / (self.d + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str):
            raise BadArgument(
                f'gaussian_kde: bw_method must be "scott", "silverman", a number or a function, got {method!r}.'
            )
        return method

    @property
    def d(self) -> int:
        """The number of coordinates."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.dataset.shape[1])

    def _points(self, points: Any) -> Any:
        """``points`` as the columns of a matrix. Raises: ShapeMismatch: the points have not ``d`` coordinates."""
        columns = hnp.atleast_2d(hnp.asarray(points)).astype(self.dataset.dtype)
        if columns.shape[0] == 1 and columns.shape[1] == self.d != 1:  # one point
            columns = columns.reshape(self.d, 1)
        if columns.shape[0] != self.d:
            raise ShapeMismatch(f"gaussian_kde: points must have {self.d} coordinates, got {columns.type}.")
        return columns

    def _log_sum(self, centres: Any, weights: Any, points: Any, covariance: Any) -> Any:
        """The logarithm of the weighted sum of normal densities around ``centres``, at each of ``points``."""
        factor = linalg.cholesky(covariance)
        norm = self.d * LOG_TAU / 2 + hnp.log(hnp.diagonal(factor)).sum()
        a, b = (linalg.triangular_solve(factor, v, left_side=True, lower=True) for v in (centres, points))
        squares = ((a[:, :, None] - b[:, None, :]) ** 2).sum(0)
        return logsumexp(-squares / 2, 0, weights[:, None]) - norm

    def evaluate(self, points: Any) -> Array:
        """The density at each of ``points: f[d, m]``."""
        return hnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: Any) -> Array:
        """The density at each of ``x: f[d, m]``."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the density at each of ``x: f[d, m]``."""
        return self._log_sum(self.dataset, self.weights, self._points(x), self.covariance)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the density times the normal density of mean ``mean: f[d]`` and covariance ``cov: f[d, d]``.
        """
        mean = hnp.atleast_1d(hnp.squeeze(hnp.asarray(mean))).astype(self.dataset.dtype)
        cov = hnp.atleast_2d(hnp.asarray(cov)).astype(self.dataset.dtype)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ShapeMismatch(f"integrate_gaussian: there are {self.d} coordinates, got {mean.type} and {cov.type}.")
        return hnp.exp(self._log_sum(self.dataset, self.weights, mean[:, None], self.covariance + cov))[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """The integral of the density from ``low`` to ``high``, for data of one coordinate."""
        if self.d != 1:
            raise BadArgument(f"integrate_box_1d: the data must be numbers, got points with {self.d} coordinates.")
        width = hnp.sqrt(self.covariance[0, 0])
        low, high = ((hnp.asarray(end) - self.dataset[0]) / width for end in (low, high))
        return (self.weights * (special.ndtr(high) - special.ndtr(low))).sum()

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two densities."""
        if other.d != self.d:
            raise ShapeMismatch(f"integrate_kde: the points must have as many coordinates, got {self.d} and {other.d}.")
        logs = self._log_sum(self.dataset, self.weights, other.dataset, self.covariance + other.covariance)
        return (hnp.exp(logs) * other.weights).sum()

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Array:
        """Samples ``f[d, *shape]`` of the density."""
        which, noise = random.split(key)
        chosen = random.choice(which, self.n, shape, p=self.weights)
        normal = random.normal(noise, (self.d, *shape), self.dataset.dtype)
        return self.dataset[:, chosen] + hnp.tensordot(linalg.cholesky(self.covariance), normal, 1)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not supported, as in JAX: use ``integrate_box_1d``, or samples. Raises: BadArgument, always."""
        raise BadArgument("integrate_box: there are no integrals over boxes.", hint="see integrate_box_1d.")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not supported: an estimate is immutable. Raises: BadArgument, always."""
        raise BadArgument("set_bandwidth: an estimate is immutable.", hint="make another: gaussian_kde(data, width).")
