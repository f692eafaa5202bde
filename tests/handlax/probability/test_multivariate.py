"""Distributions of vectors against SciPy: densities and moments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from handlax import probability as hp
from handlax import random

KEY = random.key(2)
A = np.array
COVARIANCE = A([[2.0, 0.3], [0.3, 0.5]], np.float32)


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


def test_vectors_that_are_no_shares_have_probability_zero():
    dist = hp.Dirichlet(A([0.5, 2.0, 3.0], np.float32))
    found = dist.log_prob(A([[0.5, 0.25, 0.5], [0.5, 0.6, -0.1], [0.25, 0.25, 0.25], [0.5, np.nan, 0.5]], np.float32))
    assert [str(float(y)) for y in found] == ["-inf", "-inf", "-inf", "nan"]
    many = hp.Dirichlet(np.full(10_000, 0.3, np.float32))
    assert np.isfinite(np.asarray(many.log_prob(many.sample(random.key(0), (20,)) + np.float32(1e-12)))).all()
