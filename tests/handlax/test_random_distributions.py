"""Every sampler beside SciPy's distribution, of all floating dtypes, at its edges and in its tails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import handlax as hx
from handlax import numpy as hnp
from handlax import random

KEY = random.key(11)
FEW, MANY = 50_000, 1_000_000
UNLIKELY = 1e-4
HALF = {"float16": 2.0**-10, "bfloat16": 2.0**-7}

# name -> the draws, for a key, a shape and a dtype; their distribution
LAWS = {
    "uniform": (random.uniform, stats.uniform()),
    "uniform between": (lambda k, s, d: random.uniform(k, s, d, 2.0, 3.0), stats.uniform(2, 1)),
    "normal": (random.normal, stats.norm()),
    "gumbel": (random.gumbel, stats.gumbel_r()),
    "fine gumbel": (lambda k, s, d: random.gumbel(k, s, d, mode="high"), stats.gumbel_r()),
    "exponential": (random.exponential, stats.expon()),
    "laplace": (random.laplace, stats.laplace()),
    "logistic": (random.logistic, stats.logistic()),
    "cauchy": (random.cauchy, stats.cauchy()),
    "rayleigh": (lambda k, s, d: random.rayleigh(k, 2.0, s, d), stats.rayleigh(0, 2)),
    "maxwell": (random.maxwell, stats.maxwell()),
    "pareto": (lambda k, s, d: random.pareto(k, 2.0, s, d), stats.pareto(2)),
    "weibull": (lambda k, s, d: random.weibull_min(k, 2.0, 1.5, s, d), stats.weibull_min(1.5, 0, 2)),
    "lognormal": (lambda k, s, d: random.lognormal(k, 0.7, s, d), stats.lognorm(0.7)),
    "triangular": (lambda k, s, d: random.triangular(k, 1.0, 1.5, 4.0, s, d), stats.triang(0.5 / 3, 1, 3)),
    "falling triangular": (lambda k, s, d: random.triangular(k, 0.0, 0.0, 1.0, s, d), stats.triang(0)),
    "wald": (lambda k, s, d: random.wald(k, 1.0, s, d), stats.invgauss(1)),
    "wald of small mean": (lambda k, s, d: random.wald(k, 0.01, s, d), stats.invgauss(0.01)),
    "wald of large mean": (lambda k, s, d: random.wald(k, 3e3, s, d), stats.invgauss(3e3)),
    "gamma": (lambda k, s, d: random.gamma(k, 3.0, s, d), stats.gamma(3)),
    "gamma of large a": (lambda k, s, d: random.gamma(k, 1e4, s, d), stats.gamma(1e4)),
    "loggamma of tiny a": (lambda k, s, d: random.loggamma(k, 1e-3, s, d), stats.loggamma(1e-3)),
    "chisquare": (lambda k, s, d: random.chisquare(k, 1.0, s, d), stats.chi2(1)),
    "chisquare of large df": (lambda k, s, d: random.chisquare(k, 1e3, s, d), stats.chi2(1e3)),
    "t": (lambda k, s, d: random.t(k, 3.0, s, d), stats.t(3)),
    "t of small df": (lambda k, s, d: random.t(k, 0.1, s, d), stats.t(0.1)),
    "t of large df": (lambda k, s, d: random.t(k, 1e4, s, d), stats.t(1e4)),
    "f": (lambda k, s, d: random.f(k, 3.0, 7.0, s, d), stats.f(3, 7)),
    "f of large df": (lambda k, s, d: random.f(k, 300.0, 700.0, s, d), stats.f(300, 700)),
    "beta": (lambda k, s, d: random.beta(k, 2.0, 3.0, s, d), stats.beta(2, 3)),
    "generalized_normal": (lambda k, s, d: random.generalized_normal(k, 0.5, s, d), stats.gennorm(0.5)),
    "generalized_normal of large p": (lambda k, s, d: random.generalized_normal(k, 50.0, s, d), stats.gennorm(50)),
    "dirichlet": (lambda k, s, d: random.dirichlet(k, hnp.array([1.0, 2.0, 4.0]), s, d)[:, 1], stats.beta(2, 5)),
}
COUNTS = {
    "binomial": [(n, p) for n in (1, 20, 1000, 10**6, 10**7) for p in (1e-4, 0.02, 0.3, 0.5, 0.7)] + [(10**8, 1e-6)],
    "poisson": [(rate,) for rate in (0.01, 1.0, 9.99, 10.0, 50.0, 1e3, 4e3, 5e3, 6e4, 1e6)],
    "geometric": [(p,) for p in (1e-6, 0.01, 0.5, 0.9)],
}
SCIPY = {"binomial": stats.binom, "poisson": stats.poisson, "geometric": stats.geom}


def distance(drawn, law):
    """The largest difference of distribution functions; that of a rounded draw is the middle of its step."""
    values, counts = np.unique(drawn, return_counts=True)
    upto = np.cumsum(counts) / len(drawn)
    return np.abs((upto + upto - counts / len(drawn)) / 2 - law.cdf(values)).max()


@np.errstate(all="ignore")  # of SciPy at the ends of its distributions
def agrees(name, dtype, many):
    """Within 1e-4 likely deviations, and the steps of the uniform floats of 16 bits and of the rounded numbers."""
    draw, law = LAWS[name]
    drawn = np.asarray(draw(KEY, (many,), dtype)).astype(np.float64)
    step = np.concatenate([[0], np.diff(law.cdf(np.unique(drawn)))]).max() if dtype in HALF else 0
    bound = stats.kstwobign.isf(UNLIKELY) / many**0.5 + HALF.get(dtype, 0) + step / 2
    assert distance(drawn, law) < bound
    low, high = law.support()
    largest = float(hnp.finfo(dtype).max)
    assert (drawn >= low).all() and (drawn <= high).all()
    beyond = np.nan_to_num(law.sf(largest)) + law.cdf(-largest)
    assert np.isinf(drawn).mean() <= 1.1 * beyond + 10 / many


@pytest.mark.parametrize("name", LAWS)
def test_draws_have_the_distribution_of_scipy(name):
    agrees(name, "float32", FEW)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", LAWS)
def test_a_million_draws_have_the_distribution_of_scipy(name, dtype):
    agrees(name, dtype, MANY)


def probability(drawn, law):
    """Of a chi-square at least as large, of the counts in 200 intervals of the distribution."""
    edges = np.unique(law.ppf(np.linspace(0.005, 0.995, 200)))
    expected = np.diff([0.0, *law.cdf(edges), 1.0]) * len(drawn)
    found = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    some = expected > 5
    return stats.chisquare(found[some], expected[some] * found[some].sum() / expected[some].sum()).pvalue


CASES = [(name, arguments) for name, rows in COUNTS.items() for arguments in rows]


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_a_million_counts_are_as_probable_as_they_should_be(name, arguments):
    *numbers, last = map(np.float32, arguments)
    drawn = np.asarray(getattr(random, name)(KEY, *numbers, last, (MANY,)))
    assert probability(drawn, SCIPY[name](*map(float, numbers), float(last))) > UNLIKELY


@pytest.mark.parametrize(("n", "p"), [(10**6, 1e-4), (10**7, 0.3), (10**8, 1e-6)])
def test_counts_of_many_trials_do_not_suffer_from_cancellation(n, p):
    p = np.float32(p)
    drawn = np.asarray(random.binomial(KEY, n, p, (FEW,)))
    assert probability(drawn, stats.binom(n, float(p))) > UNLIKELY


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bounds", [(100.0, 101.0), (2.0, 3.0), (-1.0, 7.0), (5.0, 5.0), (5.0, 4.0)])
def test_uniform_draws_are_rounded_to_numbers_below_their_upper_bound(bounds, dtype):
    low, high = bounds
    drawn = np.asarray(random.uniform(random.key(1), (MANY,), dtype, low, high)).astype(np.float64)
    assert drawn.min() >= low and drawn.max() < max(high, np.nextafter(low, np.inf))


def test_no_rayleigh_number_is_infinite():
    assert np.isfinite(np.asarray(random.rayleigh(KEY, 1.0, (FEW,), "bfloat16")).astype(np.float32)).all()


def test_trials_are_counted_beyond_the_largest_number_of_16_bits():
    counts = np.asarray(random.geometric(KEY, hnp.float16(1e-5), (FEW,)))
    assert counts.mean() == pytest.approx(1e5, rel=0.02) and counts.max() < 2e6


def test_what_has_probability_0_is_not_chosen():
    """Partial sums of many numbers are rounded, each in another way."""
    rng = np.random.default_rng(0)
    weights = rng.random(100_000).astype(np.float32) * (rng.random(100_000) < 0.3)
    assert (weights[np.asarray(random.choice(KEY, len(weights), (MANY,), p=weights))] > 0).all()
    of_lanes = hx.vmap(lambda p: random.choice(KEY, 3, (20,), p=p))(np.float32([[0, 1, 0], [0, 0, 1]]))
    np.testing.assert_array_equal(of_lanes, [[1] * 20, [2] * 20])
