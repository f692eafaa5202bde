"""Values for sites: observed, substituted, replayed, in loops, plates and branches."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.log_nests import BRANCHES, STACKING, Results, jit, random_nest
from helpers.models_with_densities import chain, straight
from scipy import stats

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax import probability as hp

KEY = random.key(4)
KEYS = [random.key(i) for i in (0, 1, 3)]


def test_a_conditioned_site_is_observed_and_a_substituted_one_is_not():
    sites, y = hp.seed(hp.trace(hp.condition(straight, {"a": 1.5})), KEY)()
    assert float(sites["a"].value) == 1.5 and sites["a"].observed
    assert float(y) == pytest.approx(1.5 + float(sites["b"].value.sum()))
    sites, _ = hp.seed(hp.trace(hp.substitute(straight, {"a": 1.5})), KEY)()
    assert float(sites["a"].value) == 1.5 and not sites["a"].observed


def test_conditioning_a_loop_gives_each_run_its_value():
    zs = hnp.array([1.0, 2.0, 3.0])
    _, y = hp.seed(hp.trace(hp.condition(chain, {"z": zs})), KEY)()
    assert np.array_equal(y, zs)


def test_intervening_hides_the_site():
    sites, _ = hp.seed(hp.trace(hp.do(straight, {"a": 2.0})), KEY)()
    assert set(sites) == {"b", "y"}
    density, _ = hp.log_density(hp.do(straight, {"a": 2.0}), {"b": hnp.array([1.0, 2.0])})()
    expected = stats.norm.logpdf([1, 2], 2, 2).sum() + stats.norm.logpdf(0.3, 3, 0.5)
    assert float(density) == pytest.approx(expected, rel=1e-5)


def test_a_value_for_a_site_outside_passes_a_while_loop():
    def model():
        start = hp.sample("start", hp.Normal())
        return lax.while_loop(lambda c: c < 3.0, lambda c: c + hp.sample("x", hp.Gamma(1.0)), start)

    assert float(hp.seed(hp.condition(model, {"start": 7.0}), KEY)()) == 7.0


def test_a_value_for_a_branch_that_was_not_taken_is_drawn_anew():
    def model():
        a = hp.sample("a", hp.Normal())
        return lax.cond(a > 0, lambda: hp.sample("up", hp.Normal(5.0, 1.0)), lambda: 0.0)

    untaken = next(s for s in (hp.seed(hp.trace(model), k)()[0] for k in KEYS) if float(s["a"].value) <= 0)
    _, y = hp.seed(hp.replay(hp.trace(hp.condition(model, {"a": 1.0})), {"up": untaken["up"]}), KEY)()
    assert float(y) > 1.0


ARGUMENTS = np.float32(1.25), np.float32(1.0)


def values_in_a_nest(seed, depth):
    """They go in as they come out, stacked as results are."""
    site = lambda name, x: hp.sample(name, hp.Normal(x, 1.0))
    plain, f = random_nest(seed, Results(), site, depth, (STACKING, STACKING, BRANCHES, (jit,)))
    expected = plain(*ARGUMENTS)
    values = {name: 2 * y + 1 for name, y in expected.items()}
    args = [*map(hnp.asarray, ARGUMENTS)]
    for given in (hp.condition, hp.substitute):
        sites, y = hp.trace(given(hx.jit(f), values))(*args)
        for name, mean in expected.items():
            taken = mean != 0  # no mean is 0 but in a branch that is not taken
            np.testing.assert_allclose(np.asarray(y[name]), np.where(taken, values[name], 0), rtol=1e-5, err_msg=name)
            found = sites[name].masked() if isinstance(sites[name], hx.When) else sites[name]
            log_prob = -0.5 * (values[name] - mean) ** 2 - 0.5 * np.log(2 * np.pi)
            np.testing.assert_allclose(
                np.asarray(found.log_prob), np.where(taken, log_prob, 0), rtol=1e-4, atol=1e-5, err_msg=name
            )


@pytest.mark.parametrize("seed", range(8))
def test_values_of_sites_stand_as_results(seed):
    values_in_a_nest(seed, 3)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(100, 200, 10))
def test_values_of_sites_in_deep_nests_stand_as_results(first):
    for seed in range(first, first + 10):
        values_in_a_nest(seed, 4)
