"""Univariate distributions: normal, uniform, Bernoulli, categorical, beta, gamma, Poisson."""

from __future__ import annotations

import math
from typing import Any

from .. import nn, random
from .. import numpy as hnp
from ..effects.base.errors import BadArgument
from ..effects.trees.registration import frozen_node
from ..effects.types.dtypes import default_int
from ..scipy import stats
from .distribution import COUNTS, POSITIVE, UNIT, Distribution, Support, inside, type_of

__all__ = ["Bernoulli", "Beta", "Categorical", "Factor", "Gamma", "Normal", "Poisson", "Uniform"]


def _within(support: Support, x: Any, log_prob: Any) -> Any:
    """``log_prob`` evaluated at values in the support; NaN where these are no numbers, and -inf at all others."""
    good = inside(support, x)
    return hnp.where(good, log_prob(hnp.where(good, x, 0)), hnp.where(hnp.isnan(x), math.nan, -math.inf))


@frozen_node
class Normal(Distribution):
    """The normal distribution of mean ``loc`` and standard deviation ``scale``."""

    loc: Any = 0.0
    scale: Any = 1.0

    @property
    def mean(self) -> Any:
        return hnp.broadcast_to(self.loc, self.batch_shape)

    @property
    def variance(self) -> Any:
        return hnp.broadcast_to(hnp.square(self.scale), self.batch_shape)

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return self.loc + self.scale * random.normal(key, self.value_type(shape).shape, self.dtype)

    def log_prob(self, x: Any) -> Any:
        return stats.norm.logpdf(x, self.loc, self.scale)


@frozen_node
class Uniform(Distribution):
    """The uniform distribution between ``low`` and ``high``."""

    low: Any = 0.0
    high: Any = 1.0

    @property
    def support(self) -> Support:
        return Support("interval", self.low, self.high)

    @property
    def mean(self) -> Any:
        return hnp.broadcast_to(0.5 * (hnp.asarray(self.low) + self.high), self.batch_shape)

    @property
    def variance(self) -> Any:
        return hnp.broadcast_to(hnp.square(hnp.asarray(self.high) - self.low) / 12, self.batch_shape)

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        u = random.uniform(key, self.value_type(shape).shape, self.dtype)
        return self.low + (hnp.asarray(self.high) - self.low) * u

    def log_prob(self, x: Any) -> Any:
        return stats.uniform.logpdf(x, self.low, hnp.asarray(self.high) - self.low)


class _Choice(Distribution):
    """A distribution of integers below ``count``, with the parameter ``probs`` or ``logits``, exactly one of them."""

    probs: Any
    logits: Any
    count: Any = 2
    discrete = True

    def __post_init__(self) -> None:
        if (self.probs is None) == (self.logits is None):
            raise BadArgument(f"{type(self).__name__}: give probs or logits, one of the two.")

    @property
    def values(self) -> Any:
        n = self.count
        return hnp.broadcast_to(hnp.arange(n).reshape(n, *[1] * len(self.batch_shape)), (n, *self.batch_shape))


@frozen_node
class Bernoulli(_Choice):
    """The Bernoulli distribution: 1 with probability ``probs``, which is ``sigmoid(logits)``, else 0."""

    probs: Any = None
    logits: Any = None

    @property
    def support(self) -> Support:
        return Support("booleans", 0, 1, discrete=True)

    @property
    def mean(self) -> Any:
        return hnp.asarray(self.probs) if self.logits is None else nn.sigmoid(self.logits)

    @property
    def variance(self) -> Any:
        return self.mean * (1 - self.mean)

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        p = hnp.asarray(self.mean, self.float_dtype)
        return random.bernoulli(key, p, self.value_type(shape).shape).astype(self.dtype)

    def log_prob(self, x: Any) -> Any:
        if self.logits is None:
            return stats.bernoulli.logpmf(x, self.probs)
        log_prob = lambda x: nn.log_sigmoid(hnp.where(x == 1, self.logits, -hnp.asarray(self.logits)))
        return _within(self.support, x, log_prob)


@frozen_node
class Categorical(_Choice):
    """The categorical distribution: ``i`` with probability ``probs[..., i]``, which sum to 1; or ``softmax(logits)[...,
    i]``.
    """

    probs: Any = None
    logits: Any = None
    event_ranks = {"probs": 1, "logits": 1}

    @property
    def count(self) -> int:
        """The number of values."""
        return int(type_of(self.logits if self.probs is None else self.probs).shape[-1])

    @property
    def support(self) -> Support:
        return Support("numbers", 0, self.count - 1, discrete=True)

    @property
    def log_probs(self) -> Any:
        """The log-probability of each value, along the last axis."""
        return hnp.log(self.probs) if self.logits is None else nn.log_softmax(hnp.asarray(self.logits), -1)

    @property
    def mean(self) -> Any:
        return self._expectation(hnp.arange(self.count))

    @property
    def variance(self) -> Any:
        return self._expectation(hnp.arange(self.count) ** 2) - self.mean**2

    def _expectation(self, of: Any) -> Any:
        """The expectation of what is ``of[i]`` where the value is ``i``."""
        probs = hnp.asarray(self.probs) if self.logits is None else nn.softmax(hnp.asarray(self.logits), -1)
        return (probs * of).sum(-1)

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return random.categorical(key, self.log_probs, -1, self.value_type(shape).shape).astype(self.dtype)

    def log_prob(self, x: Any) -> Any:
        def log_prob(x: Any) -> Any:
            shape = hnp.broadcast_shapes(type_of(x).shape, self.batch_shape)
            table = hnp.broadcast_to(self.log_probs, (*shape, self.count))
            at = hnp.broadcast_to(x, shape).astype(default_int())
            return hnp.take_along_axis(table, at[..., None], -1)[..., 0]

        return _within(self.support, x, log_prob)


@frozen_node
class Beta(Distribution):
    """The beta distribution: density proportional to ``x**(a-1) * (1-x)**(b-1)`` between 0 and 1."""

    a: Any
    b: Any
    support = UNIT

    @property
    def mean(self) -> Any:
        return self.a / (hnp.asarray(self.a) + self.b)

    @property
    def variance(self) -> Any:
        total = hnp.asarray(self.a) + self.b
        return self.a * hnp.asarray(self.b) / (total * total * (total + 1))

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return random.beta(key, self.a, self.b, self.value_type(shape).shape, self.dtype)

    def log_prob(self, x: Any) -> Any:
        return stats.beta.logpdf(x, self.a, self.b)


@frozen_node
class Gamma(Distribution):
    """The gamma distribution: density proportional to ``x**(concentration-1) * exp(-rate * x)``."""

    concentration: Any
    rate: Any = 1.0
    support = POSITIVE

    @property
    def mean(self) -> Any:
        return hnp.asarray(self.concentration) / self.rate

    @property
    def variance(self) -> Any:
        return hnp.asarray(self.concentration) / hnp.square(self.rate)

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return random.gamma(key, self.concentration, self.value_type(shape).shape, self.dtype) / self.rate

    def log_prob(self, x: Any) -> Any:
        return stats.gamma.logpdf(x, self.concentration, scale=1 / hnp.asarray(self.rate))


@frozen_node
class Poisson(Distribution):
    """The Poisson distribution of mean ``rate``."""

    rate: Any
    discrete = True
    support = COUNTS

    @property
    def mean(self) -> Any:
        return hnp.asarray(self.rate)

    variance = mean

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return random.poisson(key, self.rate, self.value_type(shape).shape, self.dtype)

    def log_prob(self, x: Any) -> Any:
        return stats.poisson.logpmf(x, self.rate)


@frozen_node
class Factor(Distribution):
    """The distribution that ``factor`` observes: its log-probability is ``log_weight`` for any value."""

    log_weight: Any
    discrete = True

    def log_prob(self, x: Any) -> Any:
        return hnp.asarray(self.log_weight)
