"""Distributions of vectors: Dirichlet and multivariate normal."""

from __future__ import annotations

from typing import Any

from .. import numpy as hnp
from .. import random
from ..effects.trees.registration import frozen_node
from ..scipy import special, stats
from .distribution import UNIT, Distribution

__all__ = ["Dirichlet", "MultivariateNormal"]


@frozen_node
class Dirichlet(Distribution):
    """The Dirichlet distribution: positive vectors of sum 1, density proportional to ``prod(x**(concentration-1))``."""

    concentration: Any
    event_ranks = {"concentration": 1}
    event_rank = 1
    support = UNIT

    @property
    def mean(self) -> Any:
        a = hnp.asarray(self.concentration)
        return a / a.sum(-1, keepdims=True)

    @property
    def variance(self) -> Any:
        mean = self.mean
        return mean * (1 - mean) / (hnp.asarray(self.concentration).sum(-1, keepdims=True) + 1)

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return random.dirichlet(key, self.concentration, (*shape, *self.batch_shape), self.dtype)

    def log_prob(self, x: Any) -> Any:
        a, x = hnp.asarray(self.concentration, self.float_dtype), hnp.asarray(x)
        y = special.xlogy(a - 1, x).sum(-1) + special.gammaln(a.sum(-1)) - special.gammaln(a).sum(-1)
        rounding = 4 * x.shape[-1] * float(hnp.finfo(y.dtype).eps)  # rounding error of the sum of a normalised vector
        return hnp.where((x < 0).any(-1) | (hnp.abs(x.sum(-1) - 1) > rounding), -hnp.inf, y)


@frozen_node
class MultivariateNormal(Distribution):
    """Normal vectors of mean ``loc`` and ``covariance``, a positive definite matrix."""

    loc: Any
    covariance: Any
    event_ranks = {"loc": 1, "covariance": 2}
    event_rank = 1

    @property
    def mean(self) -> Any:
        return hnp.broadcast_to(self.loc, (*self.batch_shape, *self.event_shape))

    @property
    def variance(self) -> Any:
        diagonal = hnp.diagonal(hnp.asarray(self.covariance), axis1=-2, axis2=-1)
        return hnp.broadcast_to(diagonal, (*self.batch_shape, *self.event_shape))

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return random.multivariate_normal(key, self.loc, self.covariance, (*shape, *self.batch_shape), self.dtype)

    def log_prob(self, x: Any) -> Any:
        return stats.multivariate_normal.logpdf(x, self.loc, self.covariance)
