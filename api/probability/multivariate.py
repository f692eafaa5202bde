"""Distributions of vectors: dirichlet, multivariate normal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import numpy as hnp
from .. import random
from ..effects.operations.linalg.cholesky import cholesky
from ..effects.operations.linalg.triangular import triangular_solve
from ..effects.operations.special.special_functions import lgamma
from ..effects.trees.registration import register_dataclass
from .distribution import UNIT, Distribution
from .univariate import LOG_2PI, xlogy


@register_dataclass
@dataclass(frozen=True, eq=False)
class Dirichlet(Distribution):
    """Vectors of positive numbers of sum 1, with density proportional to ``prod(x**(concentration-1))``."""

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
        a = hnp.asarray(self.concentration, self.float_dtype)
        return xlogy(a - 1, x).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)


@register_dataclass
@dataclass(frozen=True, eq=False)
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
        off = hnp.asarray(x - hnp.asarray(self.loc), self.float_dtype)
        n = off.shape[-1]
        factor = cholesky(hnp.asarray(self.covariance, self.float_dtype))
        shape = hnp.broadcast_shapes(off.shape[:-1], factor.shape[:-2])
        factors = hnp.broadcast_to(factor, (*shape, n, n))
        white = triangular_solve(factors, hnp.broadcast_to(off, (*shape, n))[..., None], left_side=True, lower=True)
        log_volume = hnp.log(hnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
        return -0.5 * (hnp.square(white[..., 0]).sum(-1) + n * LOG_2PI) - log_volume
