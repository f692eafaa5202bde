"""What holds of every distribution: parameters that broadcast, batches, trees, dtypes, refusals."""

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
], ids=lambda dist: type(dist).__name__)
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
