"""Distributions against SciPy: densities, moments, draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import handlax as hx
from handlax import errors, random
from handlax import numpy as hnp
from handlax import probability as hp

KEY = random.key(2)
A = np.array
COVARIANCE = A([[2.0, 0.3], [0.3, 0.5]], np.float32)
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
    "beta": (hp.Beta(2.0, 0.5), stats.beta(2, 0.5), A([0.1, 0.9, -0.1, 1.5])),
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


def test_vectors_have_scipys_densities():
    normal = hp.MultivariateNormal(A([1.0, -1.0], np.float32), COVARIANCE)
    x = A([[0.0, 0.0], [1.0, -1.0], [3.0, 1.0]], np.float32)
    expected = stats.multivariate_normal([1, -1], COVARIANCE).logpdf(x)
    np.testing.assert_allclose(np.asarray(normal.log_prob(x)), expected, rtol=1e-5)
    concentration = A([0.5, 2.0, 3.0], np.float32)
    y = A([0.2, 0.3, 0.5])
    expected = stats.dirichlet(concentration).logpdf(y)
    assert float(hp.Dirichlet(concentration).log_prob(y.astype(np.float32))) == pytest.approx(expected, rel=1e-5)


def test_vectors_have_the_moments_that_are_told():
    for dist in (hp.MultivariateNormal(A([1.0, -1.0], np.float32), COVARIANCE), hp.Dirichlet(A([0.5, 2.0, 3.0]))):
        drawn = np.asarray(dist.sample(KEY, (20_000,)))
        assert drawn.shape == (20_000, *dist.event_shape) and dist.batch_shape == ()
        np.testing.assert_allclose(drawn.mean(0), np.asarray(dist.mean), atol=0.05)
        np.testing.assert_allclose(drawn.var(0), np.asarray(dist.variance), rtol=0.1)


def test_parameters_broadcast():
    dist = hp.Normal(hnp.zeros((3, 1)), hnp.ones(2))
    assert dist.batch_shape == (3, 2) and dist.sample(KEY, (4,)).shape == (4, 3, 2)
    many = hp.MultivariateNormal(hnp.zeros((5, 2)), COVARIANCE)
    assert many.batch_shape == (5,) and many.log_prob(hnp.zeros(2)).shape == (5,)
    assert hp.Dirichlet(hnp.ones((4, 3))).sample(KEY, (2,)).shape == (2, 4, 3)
    assert hp.Categorical(logits=hnp.zeros((4, 3))).log_prob(hnp.zeros((2, 4), "int32")).shape == (2, 4)


@pytest.mark.parametrize("dist", [
    hp.Normal(hnp.zeros((4, 1)), hnp.ones(3)), hp.Uniform(hnp.zeros((4, 3)), 2.0), hp.Bernoulli(hnp.full((4, 3), 0.5)),
    hp.Categorical(logits=hnp.zeros((4, 3, 5))), hp.Beta(hnp.ones((4, 1)), hnp.ones(3)), hp.Poisson(hnp.ones((4, 3))),
    hp.Gamma(hnp.ones((4, 1)), hnp.ones(3)), hp.Dirichlet(hnp.ones((4, 3, 2))),
    hp.MultivariateNormal(hnp.zeros((4, 1, 2)), hnp.broadcast_to(hnp.eye(2), (3, 2, 2))),
], ids=lambda dist: type(dist).__name__)  # fmt: skip
def test_a_batch_of_distributions_draws_and_scores_one_value_each(dist):
    drawn = dist.sample(KEY, (2,))
    assert dist.batch_shape == (4, 3) and drawn.shape == (2, 4, 3, *dist.event_shape)
    assert dist.log_prob(drawn).shape == (2, 4, 3)
    assert np.unique(np.asarray(drawn), axis=None).size > 1


def test_a_distribution_is_a_tree():
    batch = hp.Normal(hnp.arange(3.0), 1.0)
    drawn = hx.vmap(lambda d, x: d.log_prob(x), in_axes=(hp.Normal(0, None), 0))(batch, hnp.arange(3.0))
    np.testing.assert_allclose(np.asarray(drawn), stats.norm().logpdf(0), rtol=1e-6)
    slope = hx.grad(lambda d: d.log_prob(1.0))(hp.Normal(0.0, 1.0))
    assert float(slope.loc) == pytest.approx(1.0) and float(slope.scale) == pytest.approx(0.0)


def test_dtypes_follow_the_parameters():
    assert hp.Normal(np.zeros(2, np.float64), 1.0).sample(KEY).dtype == np.float64
    assert hp.Normal(0, 1).sample(KEY).dtype == np.float32
    assert hp.Poisson(3).sample(KEY).dtype == np.int32
    assert hp.Normal(hnp.zeros((), "bfloat16"), 1.0).sample(KEY).dtype == "bfloat16"


@pytest.mark.parametrize("make", [hp.Bernoulli, hp.Categorical])
def test_probabilities_and_logits_together_are_refused(make):
    with pytest.raises(errors.BadArgument, match="one of the two"):
        make(probs=WEIGHTS, logits=LOGITS)
    with pytest.raises(errors.BadArgument, match="one of the two"):
        make()


def test_what_a_distribution_does_not_have_is_told():
    with pytest.raises(errors.MissingRule, match="no sample"):
        hp.Factor(1.0).sample(KEY)
