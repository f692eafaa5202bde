"""Values for sites: observed, substituted, replayed, in loops, plates and branches."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models_with_densities import chain, straight
from scipy import stats

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
