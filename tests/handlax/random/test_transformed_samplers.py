"""Draws by rejection: their distributions, their limits and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import handlax as hx
from handlax import errors, random
from handlax import numpy as hnp

KEY = random.key(6)
MANY = 50_000
UNLIKELY = 1e-3

CONTINUOUS = {
    "gamma_small": (lambda k: random.gamma(k, 0.4, (MANY,)), stats.gamma(0.4)),
    "gamma": (lambda k: random.gamma(k, 3.0, (MANY,)), stats.gamma(3)),
    "gamma_large": (lambda k: random.gamma(k, 1000.0, (MANY,)), stats.gamma(1000)),
    "loggamma_tiny": (lambda k: random.loggamma(k, 0.01, (MANY,)), stats.loggamma(0.01)),
    "chisquare": (lambda k: random.chisquare(k, 5.0, (MANY,)), stats.chi2(5)),
    "beta": (lambda k: random.beta(k, 0.5, 2.0, (MANY,)), stats.beta(0.5, 2)),
    "t": (lambda k: random.t(k, 3.0, (MANY,)), stats.t(3)),
    "f": (lambda k: random.f(k, 3.0, 7.0, (MANY,)), stats.f(3, 7)),
    "generalized_normal": (lambda k: random.generalized_normal(k, 3.0, (MANY,)), stats.gennorm(3)),
    "ball": (lambda k: (random.ball(k, 3, 1.5, (MANY,)) ** 2)[:, 0] ** 0.75, stats.beta(2 / 3, 7 / 3)),
    "dirichlet": (lambda k: random.dirichlet(k, hnp.array([1.0, 2.0, 4.0]), (MANY,))[:, 1], stats.beta(2, 5)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_distribution_is_the_one_that_is_named(name):
    draw, law = CONTINUOUS[name]
    assert stats.kstest(np.asarray(draw(KEY), np.float64), law.cdf).pvalue > UNLIKELY


@pytest.mark.parametrize("lam", [0.3, 4.0, 9.9, 10.0, 35.0, 2000.0])
def test_poisson_counts_are_as_probable_as_they_should_be(lam):
    drawn = np.asarray(random.poisson(KEY, hnp.asarray(lam), (MANY,)))
    law = stats.poisson(lam)
    edges = np.unique(law.ppf(np.linspace(0.02, 0.98, 30)))
    expected = np.diff([0, *law.cdf(edges), 1]) * MANY
    observed = np.histogram(drawn, [-1, *(edges + 0.5), np.inf])[0]
    some = expected > 5
    assert drawn.dtype == np.int32
    expected = expected[some] * observed[some].sum() / expected[some].sum()
    assert stats.chisquare(observed[some], expected).pvalue > UNLIKELY
    assert abs(drawn.mean() - lam) < 5 * (lam / MANY) ** 0.5


def test_parameters_that_mean_nothing_are_marked():
    a = hnp.array([0.0, -1.0, np.nan, np.inf, 2.0])
    np.testing.assert_array_equal(np.asarray(random.gamma(KEY, a))[:4], [0, np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(np.asarray(random.loggamma(KEY, a))[:4], [-np.inf, np.nan, np.nan, np.inf])
    lam = hnp.array([0.0, -1.0, np.nan, np.inf])
    np.testing.assert_array_equal(random.poisson(KEY, lam), [0, -1, -1, 2**31 - 1])


def test_the_logarithm_is_finite_where_the_number_is_nothing():
    drawn, logs = (np.asarray(f(KEY, 1e-3, (100,))) for f in (random.gamma, random.loggamma))
    assert (drawn == 0).any() and np.isfinite(logs).all()


def test_dirichlet_vectors_sum_to_one():
    drawn = np.asarray(random.dirichlet(KEY, hnp.full((4, 3), 0.01)))
    assert drawn.shape == (4, 3)
    np.testing.assert_allclose(drawn.sum(-1), 1, rtol=1e-5)
    assert random.dirichlet(KEY, hnp.ones(3), (2, 4)).shape == (2, 4, 3)


@pytest.mark.parametrize("a", [0.3, 2.0, 50.0])
def test_a_gamma_draw_moves_with_its_quantile(a):
    """The implicit derivative against differences of SciPy's quantile function."""
    x, slope = hx.jvp(lambda a: random.gamma(KEY, a, (5,)), (a,), (1.0,))
    quantile, step = stats.gamma.cdf(np.asarray(x, np.float64), a), 1e-4 * a
    expected = (stats.gamma.ppf(quantile, a + step) - stats.gamma.ppf(quantile, a - step)) / (2 * step)
    np.testing.assert_allclose(np.asarray(slope), expected, rtol=2e-3)


def test_derivatives_of_expectations():
    assert abs(float(hx.grad(lambda a: random.gamma(KEY, a, (MANY,)).mean())(2.0)) - 1) < 0.03
    logs = float(hx.grad(lambda a: random.loggamma(KEY, a, (MANY,)).mean())(0.02))
    assert abs(logs / special.polygamma(1, 0.02) - 1) < 0.05
    beta = float(hx.grad(lambda a: random.beta(KEY, a, 2.0, (MANY,)).mean())(1.0))
    assert abs(beta - 2 / 9) < 0.02


@pytest.mark.parametrize("draw", [
    lambda k: random.gamma(k, 0.7), lambda k: random.poisson(k, 3.0), lambda k: random.poisson(k, 30.0),
    lambda k: random.t(k, 3.0), lambda k: random.dirichlet(k, np.ones(2, np.float32)),
])
def test_lanes_and_compiled_programs_draw_the_same(draw):
    keys = random.split(KEY, 6)
    alone = np.stack([np.asarray(draw(k)) for k in keys])
    np.testing.assert_allclose(np.asarray(hx.vmap(draw)(keys)), alone, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(hx.jit(hx.vmap(draw))(keys)), alone, rtol=1e-5)


def test_shapes_and_dtypes():
    assert random.gamma(KEY, hnp.ones(3)).shape == (3,)
    assert random.gamma(KEY, hnp.ones(3), (2, 3), "float64").dtype == np.float64
    assert random.gamma(KEY, 2.0, (2,), "bfloat16").dtype == "bfloat16"
    assert random.poisson(KEY, 3, (2,), "int64").dtype == np.int64
    with pytest.raises(errors.ShapeMismatch, match="broadcast"):
        random.gamma(KEY, hnp.ones(3), (2,))
    with pytest.raises(errors.DTypeMismatch, match="integer"):
        random.poisson(KEY, 3.0, (2,), "float32")
    with pytest.raises(errors.ShapeMismatch, match="dimension"):
        random.dirichlet(KEY, 1.0)
