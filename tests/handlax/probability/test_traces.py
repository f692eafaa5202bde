"""Traces and densities: the sums written by hand, in every place where a site may stand; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models_with_densities import MODELS, XS, chain, forked, plated, straight, values_of
from helpers.same_trees import same

import handlax as hx
from handlax import errors, lax, random
from handlax import numpy as hnp
from handlax import probability as hp

KEY = random.key(4)
KEYS = [random.key(i) for i in (0, 1, 3)]


def coin():
    return hp.sample("coin", hp.Bernoulli(0.3))


@pytest.mark.parametrize("name", MODELS)
def test_the_log_density_is_the_sum_written_by_hand(name):
    model, density = MODELS[name]
    for key in KEYS:
        values = values_of(hp.seed(hp.trace(model), key)()[0])
        expected = density({k: np.asarray(v, np.float64) for k, v in values.items()})
        found, _ = hp.log_density(model, values)()
        assert float(found) == pytest.approx(float(expected), rel=1e-4, abs=1e-4)
        staged = hx.jit(lambda v: hp.log_density(hx.jit(model), v)()[0])(values)
        assert float(staged) == pytest.approx(float(expected), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_of_the_log_density_is_that_of_differences(name):
    model, density = MODELS[name]
    values = values_of(hp.seed(hp.trace(model), KEYS[1])()[0])
    slopes = hx.grad(lambda v: hp.log_density(model, v)()[0])(values)
    base = {k: np.asarray(v, np.float64) for k, v in values.items()}
    for label, slope in slopes.items():
        found = np.zeros(base[label].shape)
        for at in np.ndindex(base[label].shape):
            near = []
            for step in (1e-4, -1e-4):
                moved = {k: v.copy() for k, v in base.items()}
                moved[label][at] += step
                near.append(density(moved))
            found[at] = (near[0] - near[1]) / 2e-4
        np.testing.assert_allclose(np.asarray(slope), found, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_replayed_trace_has_the_same_values(name):
    model, _ = MODELS[name]
    sites, y = hp.seed(hp.trace(model), KEY)()
    again, z = hp.seed(hp.trace(hp.replay(model, sites)), random.key(99))()
    assert sites.keys() == again.keys()
    same((values_of(sites), y), (values_of(again), z))
    same([s.log_prob for s in sites.values() if isinstance(s, hp.SampleSite)],
         [s.log_prob for s in again.values() if isinstance(s, hp.SampleSite)])


def test_sites_of_loops_and_plates_are_stacked_and_those_of_branches_tell_whether_they_were_taken():
    sites, _ = hp.seed(hp.trace(chain), KEY)()
    assert sites["z"].value.shape == (3,) and sites["y"].observed and not sites["z"].observed
    sites, _ = hp.seed(hp.trace(plated), KEY)()
    assert sites["slope"].value.shape == (3,)
    for key in KEYS:
        sites, _ = hp.seed(hp.trace(forked), key)()
        assert isinstance(sites["b"], hp.SampleSite)  # both branches come to it
        assert bool(sites["up"].taken) == (float(sites["a"].value) > 0)


def test_a_factor_counts_as_it_is():
    assert float(hp.log_density(lambda: hp.factor("f", hnp.array([1.0, 2.0])))()[0]) == 3.0
    assert float(hx.grad(lambda w: hp.log_density(lambda: hp.factor("f", w * w))()[0])(3.0)) == 6.0


def test_a_batch_of_values_is_scored_at_once():
    values = {"a": hnp.arange(3.0), "b": hnp.ones((3, 2))}
    many = hx.vmap(lambda v: hp.log_density(straight, v)()[0])(values)
    each = [float(hp.log_density(straight, {"a": float(i), "b": hnp.ones(2)})()[0]) for i in range(3)]
    np.testing.assert_allclose(np.asarray(many), each, rtol=1e-5)


def test_a_site_of_a_while_loop_is_drawn_but_not_traced():
    def model():
        return lax.while_loop(lambda c: c < 3.0, lambda c: c + hp.sample("x", hp.Gamma(1.0)), 0.0)

    assert float(hp.seed(model, KEY)()) >= 3.0
    with pytest.raises(errors.CannotCross, match="'x'"):
        hp.seed(hp.trace(model), KEY)()
    with pytest.raises(errors.CannotCross, match="'x'"):
        hp.seed(hp.condition(model, {"x": 1.0}), KEY)()


MISTAKES = {
    "no_handler": (lambda: coin(), errors.UnhandledEffect, "'coin'.*seed"),
    "no_handler_in_jit": (lambda: hx.jit(coin)(), errors.UnhandledEffect, "'coin'"),
    "no_value": (lambda: hp.log_density(coin)(), errors.UnhandledEffect, "value"),
    "order": (lambda: hp.trace(hp.seed(coin, KEY)), errors.BadArgument, "seed\\(trace"),
    "order_of_values": (lambda: hp.do(hp.seed(coin, KEY), {"coin": 1}), errors.BadArgument, "seed\\(do"),
    "typo": (lambda: hp.log_density(coin, {"coin": 1, "coins": 1})(), errors.BadArgument, "'coins'"),
    "twice": (lambda: hp.log_density(lambda: (coin(), coin()), {"coin": 1})(), errors.BadArgument, "must be unique"),
    "observed_already": (lambda: hp.seed(hp.condition(straight, {"y": 1.0}), KEY)(), errors.BadArgument, "already"),
    "shape": (lambda: hp.seed(hp.condition(coin, {"coin": XS > 0}), KEY)(), errors.ShapeMismatch, "shape"),
    "rows": (lambda: hp.seed(hp.condition(chain, {"z": hnp.zeros(2)}), KEY)(), errors.ShapeMismatch, "one row"),
    "integers": (lambda: hp.seed(hp.condition(coin, {"coin": 0.5}), KEY)(), errors.BadArgument, "integers"),
    "no_distribution": (lambda: hp.sample("x", 0.0), errors.BadArgument, "distribution"),
    "no_name": (lambda: hp.sample(hp.Normal(), "x"), errors.BadArgument, "name"),
    "hide": (lambda: hp.block(coin, "coin"), errors.BadArgument, "list"),
    "mask": (lambda: hp.mask(coin, 1.0), errors.BadArgument, "must be a bool"),
    "values": (lambda: hp.condition(coin, [1]), errors.BadArgument, "names"),
    "plate_size": (lambda: hp.plate("p")(coin)(), errors.BadArgument, "size of .p. is not known"),
    "plate_sizes": (lambda: hp.plate("p", 2)(lambda x: x)(XS), errors.ShapeMismatch, "one size"),
    "branches": (lambda: hp.seed(hp.trace(lambda: lax.cond(
        hp.sample("a", hp.Normal()) > 0, lambda: hp.sample("b", hp.Normal(0.0, 1.0)),
        lambda: hp.sample("b", hp.Bernoulli(0.5)) + 0.0)), KEY)(), errors.StateTypeError, "different names"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_remedy(name):
    wrong, error, words = MISTAKES[name]
    with pytest.raises(error, match=words):
        wrong()
