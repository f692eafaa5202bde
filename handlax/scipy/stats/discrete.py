"""Discrete distributions, each defined by the functions of its standard variable."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as hnp
from .. import special
from .families import COUNTS, StandardRange, distribution

__all__ = ["bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson"]

bernoulli = distribution(
    "bernoulli", "1 with probability ``p``, else 0.", shapes="p",
    valid=lambda p: (p >= 0) & (p <= 1), trailing="loc",
    support=StandardRange(0.0, 1.0, 0.0, whole=True), arguments={"cdf": "k:", "ppf": "q:"},
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: hnp.where(k >= 1, 1.0, 1 - p + 0 * k), ppf=lambda q, p: hnp.where(q <= 1 - p, 0.0, 1.0),
)  # fmt: skip

binom = distribution(
    "binom", "The number of successes among ``n`` trials of probability ``p``.", shapes="n p", weak="pmf logpmf",
    valid=lambda n, p: (n >= 0) & (p >= 0) & (p <= 1), trailing="loc",
    support=StandardRange(0.0, lambda n, p: n, 0.0, whole=True),
    logpmf=lambda k, n, p: (
        special.xlogy(k, p) + special.xlog1py(n - k, -p) - special.betaln(1 + n - k, 1 + k) - hnp.log1p(n)
    ),
)  # fmt: skip

betabinom = distribution(
    "betabinom", "The number of successes among ``n`` trials of a probability with the distribution ``beta(a, b)``.",
    shapes="n a b", valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
    trailing="loc", support=StandardRange(0.0, lambda n, a, b: n, 0.0, whole=True),
    logpmf=lambda k, n, a, b: (
        special.betaln(k + a, n - k + b) - special.betaln(a, b) - special.betaln(1 + n - k, 1 + k) - hnp.log1p(n)
    ),
)  # fmt: skip

geom = distribution(
    "geom", "The number of trials of probability ``p`` up to the first success, which is counted.", shapes="p",
    valid=lambda p: (p > 0) & (p <= 1),
    trailing="loc", support=StandardRange(1.0, hnp.inf, 1.0, whole=True),
    logpmf=lambda k, p: special.xlog1py(k - 1, -p) + hnp.log(p),
)  # fmt: skip

nbinom = distribution(
    "nbinom", "The number of failures before the ``n``-th success, in trials of probability ``p``.", shapes="n p",
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    trailing="loc", support=COUNTS,
    logpmf=lambda k, n, p: (
        special.xlogy(n, p) + special.xlog1py(k, -p) - special.betaln(n, k + 1) - hnp.log(n + k)
    ),
)  # fmt: skip

SUMMED = 100.0  # the greatest mean for which the Poisson entropy is a sum
TERMS = 260  # of that sum: all that count for means up to SUMMED


def _poisson_entropy(mu: Any, loc: Any) -> Any:
    """The entropy of a Poisson distribution: the sum of -p log p, or for large mu an expansion in 1/mu, exact to 1e-9.
    """
    small = hnp.where((mu > 0) & (mu <= SUMMED), mu, 1)[..., None]
    k = hnp.arange(TERMS).astype(mu.dtype)
    logs = k * hnp.log(small) - small - special.gammaln(k + 1)
    inverse = 1 / hnp.maximum(mu, SUMMED)
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * (19 / 360)))
    large = (math.log(2 * math.pi * math.e) - hnp.log(inverse)) / 2 - series
    y = hnp.where(mu <= SUMMED, -hnp.sum(hnp.exp(logs) * logs, -1), large)
    return hnp.where(mu > 0, y, hnp.where(mu == 0, 0, hnp.nan)) + 0 * loc


poisson = distribution(
    "poisson", "Poisson's distribution of mean ``mu``.", shapes="mu",
    valid=lambda mu: mu >= 0, trailing="loc", support=COUNTS, weak="pmf logpmf",
    arguments={"entropy": "mu"}, logpmf=lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1) - mu,
    cdf=lambda k, mu: special.gammaincc(k + 1, mu), entropy=_poisson_entropy,
)  # fmt: skip
