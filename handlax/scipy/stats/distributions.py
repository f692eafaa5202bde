"""Distributions, continuous and then discrete ones, each defined by the functions of its standard variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import numpy as hnp
from ...nn import log1mexp
from .. import special
from ..special import formulas
from .families import COUNTS, POSITIVE, UNIT, StandardRange, distribution

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "expon", "gamma", "gennorm", "geom", "gumbel_l",
    "gumbel_r", "laplace", "logistic", "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform", "vonmises",
    "wrapcauchy",
]

LOG_TAU, LOG_PI = math.log(2 * math.pi), math.log(math.pi)

norm = distribution(
    "norm", "The normal distribution of mean ``loc`` and standard deviation ``scale``.",
    logpdf=lambda z: -(z * z + LOG_TAU) / 2, cdf=special.ndtr, logcdf=special.log_ndtr,
    sf=lambda z: special.ndtr(-z), logsf=lambda z: special.log_ndtr(-z), ppf=special.ndtri,
    isf=lambda q: -special.ndtri(q),
)

uniform = distribution(
    "uniform", "The uniform distribution between ``loc`` and ``loc + scale``.", support=UNIT,
    logpdf=lambda z: z * 0, cdf=lambda z: z, ppf=lambda q: q,
)

expon = distribution(
    "expon", "The exponential distribution from ``loc`` on, of mean ``loc + scale``.", support=POSITIVE,
    logpdf=lambda z: -z, cdf=lambda z: -hnp.expm1(-z), logcdf=log1mexp, sf=lambda z: hnp.exp(-z), logsf=lambda z: -z,
    ppf=lambda q: -hnp.log1p(-q),
)


def _symmetric_cdf(z: Any, tail: Any) -> Any:
    """The distribution function of a variable symmetric about 0, from ``tail``, the probability beyond ``abs(z)``."""
    return hnp.where(z < 0, tail, 1 - tail)


def _symmetric_sf(z: Any, tail: Any) -> Any:
    """One minus ``_symmetric_cdf``."""
    return hnp.where(z < 0, 1 - tail, tail)


laplace = distribution(
    "laplace", "Laplace's distribution: exponential on both sides of ``loc``.",
    logpdf=lambda z: -hnp.abs(z) - math.log(2.0),
    cdf=lambda z: _symmetric_cdf(z, hnp.exp(-hnp.abs(z)) / 2),
)

logistic = distribution(
    "logistic", "The logistic distribution: its distribution function is ``expit``.",
    arguments={"ppf": "x:loc scale", "isf": "x:loc scale"},
    logpdf=lambda z: -hnp.abs(z) - 2 * hnp.log1p(hnp.exp(-hnp.abs(z))),
    cdf=lambda z: _symmetric_cdf(z, special.expit(-hnp.abs(z))),
    sf=lambda z: _symmetric_sf(z, special.expit(-hnp.abs(z))), ppf=special.logit, isf=lambda q: -special.logit(q),
)


@formulas.analytic(lambda y, q: math.pi * (1 + y * y))
def _tangent_turns(q: Any) -> Any:
    """The quantile function of the Cauchy distribution, tan(pi (q - 1/2)), infinite at 0 and 1."""
    tail = hnp.where(q < 0.5, q, 1 - q)
    middle, inner = tail > 0.25, (tail > 0) & (tail <= 0.25)
    size = hnp.where(inner, 1 / hnp.tan(math.pi * hnp.where(inner, tail, 0.25)), hnp.inf)
    outside = hnp.where(q < 0.5, -size, size)
    return hnp.where(middle, hnp.tan(math.pi * hnp.where(middle, q - 0.5, 0)), outside)


def _far(z: Any) -> Any:
    """Where 1 + z^2 is rounded to z^2."""
    return hnp.abs(z) > float(hnp.finfo(z.dtype).eps) ** -0.5


def _log1p_square(z: Any) -> Any:
    """log(1 + z^2), where the square may overflow."""
    far = _far(z)
    return hnp.where(far, 2 * hnp.log(hnp.abs(hnp.where(far, z, 1))), hnp.log1p(hnp.where(far, 0, z) ** 2))


def _log_turns(z: Any) -> Any:
    """log(arctan2(1, z) / pi), whose argument is near 1 for negative ``z``, and 1 / (pi z) for a large one."""
    below, far = z < 0, _far(z)
    near_one = hnp.log1p(-hnp.arctan2(1.0, hnp.where(below, -z, 1)) / math.pi)
    near = hnp.log(hnp.arctan2(1.0, hnp.where(below | far, 1, z)))
    return hnp.where(below, near_one, hnp.where(far, -hnp.log(hnp.where(far, hnp.abs(z), 1)), near) - LOG_PI)


cauchy = distribution(
    "cauchy", "Cauchy's distribution: that of the quotient of two centred normal variables.",
    logpdf=lambda z: -LOG_PI - _log1p_square(z), cdf=lambda z: hnp.arctan2(1.0, -z) / math.pi,
    logcdf=lambda z: _log_turns(-z), sf=lambda z: hnp.arctan2(1.0, z) / math.pi,
    logsf=lambda z: _log_turns(z), ppf=_tangent_turns, isf=lambda q: -_tangent_turns(q),
)

LARGE_RATE, SMALL_RATE = 7.0, -18.0  # of e^z: where e^-(e^z) is 0, and where the square of e^z counts for nothing


def _rate(z: Any) -> Any:
    """e^z, for functions that are constant from exp(-e^z) == 0 on."""
    return hnp.exp(hnp.minimum(z, LARGE_RATE))


def _log1mexp_of_rate(z: Any) -> Any:
    """log(1 - exp(-e^z)), for small e^z as z + log(1 - e^z / 2 + ...)."""
    small = z < SMALL_RATE
    below, above = hnp.where(small, z, SMALL_RATE), hnp.where(small, SMALL_RATE, z)
    return hnp.where(small, below - hnp.exp(below) / 2, log1mexp(_rate(above)))


gumbel_l = distribution(
    "gumbel_l", "Gumbel's distribution of the least of many values.", arguments={"ppf": "p:loc scale"},
    logpdf=lambda z: z - hnp.exp(z), cdf=lambda z: -hnp.expm1(-_rate(z)), logcdf=_log1mexp_of_rate,
    sf=lambda z: hnp.exp(-_rate(z)), logsf=lambda z: -hnp.exp(z), ppf=lambda q: hnp.log(-hnp.log1p(-q)),
)

gumbel_r = distribution(
    "gumbel_r", "Gumbel's distribution of the largest of many values.", arguments={"ppf": "p:loc scale"},
    logpdf=lambda z: -z - hnp.exp(-z), cdf=lambda z: hnp.exp(-_rate(-z)), logcdf=lambda z: -hnp.exp(-z),
    sf=lambda z: -hnp.expm1(-_rate(-z)), logsf=lambda z: _log1mexp_of_rate(-z), ppf=lambda q: -hnp.log(-hnp.log(q)),
)

pareto = distribution(
    "pareto", "Pareto's distribution: the density is proportional to ``z**(-b - 1)`` from 1 on.", shapes="b",
    valid=lambda b: b > 0,
    support=StandardRange(1.0, hnp.inf, 2.0), logpdf=lambda z, b: hnp.log(b) - (b + 1) * hnp.log(z),
    cdf=lambda z, b: -hnp.expm1(-b * hnp.log(z)), logcdf=lambda z, b: log1mexp(b * hnp.log(z)),
    sf=lambda z, b: hnp.exp(-b * hnp.log(z)), logsf=lambda z, b: -b * hnp.log(z),
    ppf=lambda q, b: hnp.exp(-hnp.log1p(-q) / b),
)


def _log_of(p: Any, rest: Any) -> Any:
    """log p from ``p`` and ``rest = 1 - p``, each of which is accurate where it is small."""
    small = p < 0.5
    return hnp.where(small, hnp.log(hnp.where(small, p, 0.5)), hnp.log1p(hnp.where(small, -0.5, -rest)))


def _cumulative(cdf: Callable[..., Any], sf: Callable[..., Any]) -> dict[str, Any]:
    """The cumulative functions of a variable and their logarithms, from two that are each accurate where small."""
    return {
        "cdf": cdf, "sf": sf, "logcdf": lambda *args: _log_of(cdf(*args), sf(*args)),
        "logsf": lambda *args: _log_of(sf(*args), cdf(*args)),
    }


def _gamma_logpdf(z: Any, a: Any) -> Any:
    return special.xlogy(a - 1, z) - z - special.gammaln(a)


def _log_gamma_sf(z: Any, a: Any) -> Any:
    """log(gammaincc(a, z)); by the continued fraction, DLMF 8.9.2, where that is so small that it might underflow."""
    q = special.gammaincc(a, z)
    far, end = q < float(hnp.finfo(z.dtype).tiny) ** 0.5, z == hnp.inf
    x = hnp.where(far & ~end, z, a + 1)
    b = x + (2 * TERMS_OF_TAIL + 1) - a
    for k in range(TERMS_OF_TAIL, 0, -1):
        b = x + (2 * k - 1) - a - k * (k - a) / b
    near = hnp.where(far, 1, z)
    usual = _log_of(special.gammaincc(a, near), special.gammainc(a, near))
    return hnp.where(end, -z, hnp.where(far, _gamma_logpdf(x, a) + hnp.log(x) - hnp.log(b), usual))


TERMS_OF_TAIL = 16  # beyond 9 standard deviations they are exact to 1e-30


gamma = distribution(
    "gamma", "The gamma distribution: the density is proportional to ``z**(a - 1) * exp(-z)``.", shapes="a",
    valid=lambda a: a > 0, support=POSITIVE, weak="sf logsf", logpdf=_gamma_logpdf,
    **_cumulative(lambda z, a: special.gammainc(a, z), lambda z, a: special.gammaincc(a, z)) | {"logsf": _log_gamma_sf},
)

chi2 = distribution(
    "chi2", "The sum of the squares of ``df`` standard normal variables.", shapes="df",
    valid=lambda df: df > 0, support=POSITIVE, logpdf=lambda z, df: _gamma_logpdf(z / 2, df / 2) - math.log(2.0),
    **_cumulative(lambda z, df: special.gammainc(df / 2, z / 2), lambda z, df: special.gammaincc(df / 2, z / 2))
    | {"logsf": lambda z, df: _log_gamma_sf(z / 2, df / 2)},
)

def _beta_sf(z: Any, a: Any, b: Any) -> Any:
    """One minus the cdf, by it unless it is near 1: from 1 - z, a small ``z`` and the slope there would be lost."""
    p = special.betainc(a, b, z)
    usual = p < 0.9
    return hnp.where(usual, 1 - p, special.betainc(b, a, 1 - hnp.where(usual, 0.5, z)))


beta = distribution(
    "beta", "The beta distribution: the density is proportional to ``z**(a - 1) * (1 - z)**(b - 1)``.", shapes="a b",
    valid=lambda a, b: (a > 0) & (b > 0), support=UNIT,
    logpdf=lambda z, a, b: special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b),
    **_cumulative(lambda z, a, b: special.betainc(a, b, z), _beta_sf),
)

t = distribution(
    "t", "Student's distribution with ``df`` degrees of freedom.", shapes="df",
    valid=lambda df: df > 0,
    logpdf=lambda z, df: (
        -(df + 1) / 2 * _log1p_square(z / hnp.sqrt(df))
        - hnp.log(df) / 2 - special.betaln(hnp.full_like(df, 0.5), df / 2)
    ),
)


gennorm = distribution(
    "gennorm", "The distribution whose density is proportional to ``exp(-abs(x)**beta)``.", shapes="beta",
    valid=lambda beta: beta > 0, trailing="",
    logpdf=lambda z, beta: hnp.log(beta / 2) - special.gammaln(1 / beta) - hnp.abs(z) ** beta,
    cdf=lambda z, beta: _symmetric_cdf(z, special.gammaincc(1 / beta, hnp.abs(z) ** beta) / 2),
)


def _log_mass(a: Any, b: Any) -> Any:
    """The log-probability that a standard normal variable is in [a, b], computed in the tail that avoids cancellation.
    """
    right = a > 0
    low, high = hnp.where(right, -b, a), hnp.where(right, -a, b)
    tail = high <= 0
    top = special.log_ndtr(hnp.where(tail, high, 0))
    none = tail & ((low >= high) | (top == -hnp.inf))
    beyond = special.log_ndtr(low)
    whole = beyond == -hnp.inf
    inside = top + hnp.where(whole, 0, log1mexp(hnp.where(tail & ~none & ~whole, top - beyond, 1)))
    inside = hnp.where(none, -hnp.inf, inside)
    rest = special.ndtr(hnp.where(tail, -1, low)) + special.ndtr(-hnp.where(tail, 1, high))
    return hnp.where(tail, inside, hnp.log1p(-rest))


def _log_share(a: Any, x: Any, b: Any, upper: bool) -> Any:
    """The log-probability of [a, x], or of [x, b] if ``upper``, given [a, b], for a truncated standard normal."""
    total = _log_mass(a, b)
    below, above = _log_mass(a, x) - total, _log_mass(x, b) - total
    this, other = (above, below) if upper else (below, above)
    most = other < -math.log(2.0)
    return hnp.where(most, log1mexp(hnp.where(most, -other, 1)), this)


truncnorm = distribution(
    "truncnorm", "The standard normal distribution on the condition that it lies between ``a`` and ``b``.",
    shapes="a b",
    valid=lambda a, b: a < b, support=StandardRange(lambda a, b: a, lambda a, b: b, lambda a, b: hnp.clip(0, a, b)),
    logpdf=lambda z, a, b: -(z * z + LOG_TAU) / 2 - _log_mass(a, b),
    cdf=lambda z, a, b: hnp.exp(_log_mass(a, z) - _log_mass(a, b)),
    logcdf=lambda z, a, b: _log_share(a, z, b, upper=False),
    sf=lambda z, a, b: hnp.exp(_log_mass(z, b) - _log_mass(a, b)),
    logsf=lambda z, a, b: _log_share(a, z, b, upper=True),
)

@formulas.analytic(lambda y, kappa: special.i1e(kappa) / special.i0e(kappa) - 1)
def _log_i0e(kappa: Any) -> Any:
    """log(i0e(kappa)) for kappa >= 0, with the derivative from the right at 0, where ``i0e`` has a kink."""
    return hnp.log(special.i0e(kappa))


vonmises = distribution(
    "vonmises", "Von Mises' distribution of angles: the density is proportional to ``exp(kappa * cos(x))``.",
    shapes="kappa",
    valid=lambda kappa: kappa >= 0, trailing="",
    logpdf=lambda z, kappa: -2 * kappa * hnp.sin(z / 2) ** 2 - LOG_TAU - _log_i0e(kappa),
)

wrapcauchy = distribution(
    "wrapcauchy", "Cauchy's distribution wrapped around the circle, of angles from 0 to 2 pi.", shapes="c",
    valid=lambda c: (c > 0) & (c < 1), trailing="", weak="pdf logpdf",
    support=StandardRange(0.0, 2 * math.pi, 1.0),
    logpdf=lambda z, c: hnp.log1p(-c * c) - LOG_TAU - hnp.log((1 - c) ** 2 + 4 * c * hnp.sin(z / 2) ** 2),
)

bernoulli = distribution(
    "bernoulli", "1 with probability ``p``, else 0.", shapes="p",
    valid=lambda p: (p >= 0) & (p <= 1), trailing="loc",
    support=StandardRange(0.0, 1.0, 0.0, whole=True), arguments={"cdf": "k:", "ppf": "q:"},
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: hnp.where(k >= 1, 1.0, 1 - p + 0 * k), ppf=lambda q, p: hnp.where(q <= 1 - p, 0.0, 1.0),
)

binom = distribution(
    "binom", "The number of successes among ``n`` trials of probability ``p``.", shapes="n p", weak="pmf logpmf",
    valid=lambda n, p: (n >= 0) & (p >= 0) & (p <= 1), trailing="loc",
    support=StandardRange(0.0, lambda n, p: n, 0.0, whole=True),
    logpmf=lambda k, n, p: (
        special.xlogy(k, p) + special.xlog1py(n - k, -p) - special.betaln(1 + n - k, 1 + k) - hnp.log1p(n)
    ),
)

betabinom = distribution(
    "betabinom", "The number of successes among ``n`` trials of a probability with the distribution ``beta(a, b)``.",
    shapes="n a b", valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
    trailing="loc", support=StandardRange(0.0, lambda n, a, b: n, 0.0, whole=True),
    logpmf=lambda k, n, a, b: (
        special.betaln(k + a, n - k + b) - special.betaln(a, b) - special.betaln(1 + n - k, 1 + k) - hnp.log1p(n)
    ),
)

geom = distribution(
    "geom", "The number of trials of probability ``p`` up to the first success, which is counted.", shapes="p",
    valid=lambda p: (p > 0) & (p <= 1),
    trailing="loc", support=StandardRange(1.0, hnp.inf, 1.0, whole=True),
    logpmf=lambda k, p: special.xlog1py(k - 1, -p) + hnp.log(p),
)

nbinom = distribution(
    "nbinom", "The number of failures before the ``n``-th success, in trials of probability ``p``.", shapes="n p",
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    trailing="loc", support=COUNTS,
    logpmf=lambda k, n, p: (
        special.xlogy(n, p) + special.xlog1py(k, -p) - special.betaln(n, k + 1) - hnp.log(n + k)
    ),
)

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
)
