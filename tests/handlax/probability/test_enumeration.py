"""Exact enumeration: worlds, their probabilities, and what is asked of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax import probability as hp


def alarm():
    """Who calls because of what? Pearl's example, with numbers of our own."""
    burglary = hp.sample("burglary", hp.Bernoulli(0.1))
    quake = hp.sample("quake", hp.Bernoulli(0.2))
    rings = hp.sample("rings", hp.Bernoulli(hnp.array([[0.01, 0.3], [0.9, 0.95]])[burglary, quake]))
    hp.observe("call", hp.Bernoulli(hnp.where(rings == 1, 0.7, 0.05)), 1)
    return {"burglary": burglary, "quake": quake}


def worlds_by_hand():
    table = np.array([[0.01, 0.3], [0.9, 0.95]])
    found = {}
    for b, q, r in itertools.product((0, 1), repeat=3):
        p = (0.1 if b else 0.9) * (0.2 if q else 0.8) * (table[b, q] if r else 1 - table[b, q])
        found[b, q, r] = p * (0.7 if r else 0.05)
    return found


def test_all_worlds_are_there_with_their_probabilities():
    worlds = hp.enumerate_values(alarm)()
    expected = worlds_by_hand()
    assert worlds.log_prob.shape == (8,)
    np.testing.assert_allclose(np.exp(np.asarray(worlds.log_prob)), list(expected.values()), rtol=1e-5)
    assert np.asarray(worlds.values["burglary"]).tolist() == [b for b, _, _ in expected]
    assert float(worlds.log_evidence) == pytest.approx(np.log(sum(expected.values())), rel=1e-5)


def test_a_posterior_mean_is_the_one_by_hand():
    found = hp.enumerate_values(alarm)().expectation()
    expected = worlds_by_hand()
    total = sum(expected.values())
    assert float(found["burglary"]) == pytest.approx(sum(p for (b, _, _), p in expected.items() if b) / total, rel=1e-5)
    both = hp.enumerate_values(alarm)().expectation(lambda y: y["burglary"] * y["quake"])
    assert float(both) == pytest.approx(sum(p for (b, q, _), p in expected.items() if b * q) / total, rel=1e-4)


def test_conditions_and_masks_inside_count():
    given = hp.enumerate_values(hp.condition(alarm, {"quake": 1}))()
    expected = worlds_by_hand()
    some = sum(p for (_, q, _), p in expected.items() if q)
    assert given.log_prob.shape == (4,) and float(given.log_evidence) == pytest.approx(np.log(some), rel=1e-5)


def test_every_number_of_a_site_takes_every_value():
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], np.float32)
    worlds = hp.enumerate_values(lambda: hp.sample("x", hp.Categorical(probabilities)))()
    expected = np.outer(*probabilities).ravel()
    assert worlds.values.shape == (9, 2)
    np.testing.assert_allclose(np.exp(np.asarray(worlds.log_prob)), expected, rtol=1e-5)
    pairs = hp.enumerate_values(lambda: hp.sample("x", hp.Bernoulli(0.5), shape=(2, 2)))()
    assert pairs.values.shape == (16, 2, 2) and len(np.unique(np.asarray(pairs.values), axis=0)) == 16


def test_a_branch_has_sites_of_its_own():
    def model():
        a = hp.sample("a", hp.Bernoulli(0.25))
        return lax.cond(a == 1, lambda: hp.sample("b", hp.Bernoulli(0.5)), lambda: hp.sample("b", hp.Bernoulli(0.1)))

    assert float(hp.enumerate_values(model)().expectation()) == pytest.approx(0.25 * 0.5 + 0.75 * 0.1)


def test_it_compiles_and_has_a_gradient():
    def evidence(p):
        def model():
            a = hp.sample("a", hp.Bernoulli(p))
            hp.observe("y", hp.Normal(a * 2.0, 1.0), 1.5)

        return hp.enumerate_values(model)().log_evidence

    p, step = 0.3, 1e-2
    slope = float(hx.jit(hx.grad(evidence))(p))
    assert slope == pytest.approx((float(evidence(p + step)) - float(evidence(p - step))) / (2 * step), rel=1e-2)


def test_a_site_without_a_finite_list_is_refused():
    with pytest.raises(errors.CannotCross, match=r"'x'[\s\S]*condition"):
        hp.enumerate_values(lambda: hp.sample("x", hp.Normal()))()


def test_a_loop_is_refused_with_the_remedy():
    def model():
        return lax.scan(lambda c, _: (c + hp.sample("x", hp.Bernoulli(0.5)), None), 0, None, 3)[0]

    with pytest.raises(errors.CannotCross, match="unroll"):
        hp.enumerate_values(model)()


def test_a_model_that_is_drawn_already_is_refused():
    with pytest.raises(errors.BadArgument, match="answers its sites itself"):
        hp.enumerate_values(hp.seed(alarm, hx.random.key(0)))
