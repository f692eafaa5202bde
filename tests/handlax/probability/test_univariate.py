"""Distributions of numbers against SciPy: densities, moments, draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import handlax as hx
from handlax import probability as hp
from handlax import random

KEY = random.key(2)
A = np.array
WEIGHTS = A([0.2, 0.5, 0.3], np.float32)
LOGITS = np.log(WEIGHTS) + 1


class Choice:
    """SciPy's words for a categorical distribution."""

    def __init__(self, p):
        self.law = stats.rv_discrete(values=(range(len(p)), p / p.sum()))

    def __getattr__(self, name):
        return getattr(self.law, name)


CASES = {
    "normal": (hp.Normal(1.0, 2.0), stats.norm(1, 2), A([-3.0, 0.0, 1.0])),
    "uniform": (hp.Uniform(-1.0, 3.0), stats.uniform(-1, 4), A([-1.0, 2.9, 3.1, -2.0])),
    "beta": (hp.Beta(2.0, 1.5), stats.beta(2, 1.5), A([0.1, 0.9, -0.1, 1.5])),
    "gamma": (hp.Gamma(3.0, 2.0), stats.gamma(3, scale=0.5), A([0.1, 4.0, -1.0])),
    "poisson": (hp.Poisson(3.5), stats.poisson(3.5), A([0, 3, 12, -1])),
    "bernoulli": (hp.Bernoulli(0.3), stats.bernoulli(0.3), A([0, 1, 2, -1])),
    "bernoulli_logits": (hp.Bernoulli(logits=-0.7), stats.bernoulli(1 / (1 + np.exp(0.7))), A([0, 1, 2])),
    "categorical": (hp.Categorical(WEIGHTS), Choice(WEIGHTS), A([0, 1, 2, 3, -1])),
    "categorical_logits": (hp.Categorical(logits=LOGITS), Choice(WEIGHTS), A([0, 1, 2])),
}


def log_density(law, x):
    return law.logpdf(x) if hasattr(law, "pdf") else law.logpmf(x)


@pytest.mark.parametrize("name", CASES)
def test_the_log_probability_is_scipys(name):
    dist, law, points = CASES[name]
    x = points.astype(np.float32) if points.dtype.kind == "f" else points.astype(np.int32)
    with np.errstate(divide="ignore"):
        expected = log_density(law, points)
    np.testing.assert_allclose(np.asarray(dist.log_prob(x)), expected, rtol=2e-5)
    np.testing.assert_allclose(np.asarray(hx.jit(lambda d, x: d.log_prob(x))(dist, x)), expected, rtol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_moments_are_scipys_and_those_of_the_draws(name):
    dist, law, _ = CASES[name]
    mean, variance = float(law.mean()), float(law.var())
    assert np.allclose(dist.mean, mean, rtol=1e-5) and np.allclose(dist.variance, variance, rtol=1e-5)
    drawn = np.asarray(dist.sample(KEY, (20_000,)), np.float64)
    assert abs(drawn.mean() - mean) < 5 * (variance / drawn.size) ** 0.5
    assert abs(drawn.var() - variance) < 0.1 * variance


@pytest.mark.parametrize("name", CASES)
def test_draws_lie_in_the_support_and_have_the_type_that_is_told(name):
    dist, _, _ = CASES[name]
    drawn = dist.sample(KEY, (100,))
    assert (drawn.shape, drawn.dtype) == (dist.value_type((100,)).shape, dist.value_type().dtype)
    assert np.isfinite(np.asarray(dist.log_prob(drawn))).all()
    assert (np.asarray(drawn) >= np.asarray(dist.support.low)).all()
    assert (np.asarray(drawn) <= np.asarray(dist.support.high)).all()


def test_the_bounds_of_a_density_without_a_power_are_finite():
    assert float(hp.Beta(1.0, 1.0).log_prob(0.0)) == 0.0
    assert float(hp.Gamma(1.0, 2.0).log_prob(0.0)) == pytest.approx(np.log(2))
    assert np.isfinite(hx.grad(lambda p: hp.Bernoulli(p).log_prob(1))(1.0))


@pytest.mark.parametrize("name", CASES)
def test_the_density_of_no_number_is_none(name):
    assert np.isnan(CASES[name][0].log_prob(np.float32(np.nan)))


def parameters(name):
    """A distribution as a function of its parameters, and these as float64."""
    dist = CASES[name][0]
    given = {word: hx.numpy.asarray(x, "float64") for word, x in dist.parameters.items()}
    return lambda given: type(dist)(**given), given


@pytest.mark.parametrize("name", CASES)
def test_slopes_of_log_probabilities_are_those_of_differences(name):
    make, given = parameters(name)
    x = CASES[name][1].ppf([0.3, 0.9]).astype(np.float64)
    total = lambda given: make(given).log_prob(x).sum()
    slopes = hx.grad(total)(given)
    for word, value in given.items():
        direction = hx.numpy.cos(hx.numpy.arange(value.size, dtype="float64")).reshape(value.shape)
        ahead, behind = [float(total(given | {word: value + h * direction})) for h in (1e-6, -1e-6)]
        np.testing.assert_allclose((slopes[word] * direction).sum(), (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_slopes_outside_of_the_support_are_no_nan(name):
    make, given = parameters(name)
    slopes = hx.grad(lambda given: make(given).log_prob(hx.numpy.asarray([1e3, -1e3])).sum())(given)
    assert all([np.isfinite(x).all() for x in slopes.values()])


def test_values_of_probability_zero_have_slopes_of_moments():
    mean = lambda p: hp.Categorical(p).mean
    np.testing.assert_array_equal(hx.grad(mean)(hx.numpy.array([0.0, 0.5, 0.5])), [0, 1, 2])
    variance = lambda p: hp.Categorical(p).variance
    np.testing.assert_allclose(hx.grad(variance)(hx.numpy.array([0.0, 0.5, 0.5])), [0, -2, -2])
