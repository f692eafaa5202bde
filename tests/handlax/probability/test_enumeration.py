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


rng = np.random.default_rng(1)
MOVES, LEVELS, SEEN = [np.float32(rng.normal(size=shape)) for shape in [(3, 3), (3,), (5,)]]


def markov(moves, seen):
    """A chain whose first state is drawn before the loop, and another value after it."""

    def step(row, y):
        state = hp.sample("state", hp.Categorical(logits=row))
        hp.observe("seen", hp.Normal(hnp.asarray(LEVELS)[state], 0.5), y)
        return moves[state], state

    start = hp.sample("start", hp.Categorical(logits=hnp.zeros(3)))
    row, states = lax.scan(step, moves[start], seen)
    sunny = hp.sample("sunny", hp.Bernoulli(logits=row[0]))
    hp.observe("last", hp.Normal(1.0 * sunny, 1.0), 0.3)
    return states


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: hx.jit(hx.grad(f))])
def test_the_evidence_of_a_chain_in_a_loop_is_that_of_all_its_worlds(wrap):
    worlds = wrap(lambda moves: hp.enumerate_values(markov, unroll=True)(moves, SEEN).log_evidence)
    tables = wrap(lambda moves: hp.log_evidence(markov)(moves, SEEN))
    np.testing.assert_allclose(tables(MOVES), worlds(MOVES), rtol=1e-4)


def test_the_evidence_of_sequences_may_be_asked_in_lanes_and_in_a_branch():
    many = np.float32(rng.normal(size=(3, 5)))
    each = [hp.log_evidence(markov)(hnp.asarray(MOVES), seen) for seen in many]
    np.testing.assert_allclose(hx.vmap(hp.log_evidence(markov), (None, 0))(MOVES, many), each, rtol=1e-5)
    scored = lambda i: (markov(hnp.asarray(MOVES), many[i]), None)[1]
    either = lambda yes: lax.cond(yes, lambda: scored(0), lambda: scored(1))
    for f in (hp.log_evidence(either), hx.jit(hp.log_evidence(either))):
        np.testing.assert_allclose([f(True), f(False)], each[:2], rtol=1e-5)


def test_a_site_of_several_numbers_in_a_loop_takes_all_combinations():
    def flips(seen):
        def step(before, y):
            coins = hp.sample("coins", hp.Bernoulli(0.3 + 0.4 * before.mean()), shape=(2,))
            hp.observe("y", hp.Normal(coins.sum(), 1.0), y)
            return 1.0 * coins, None

        lax.scan(step, hnp.zeros(2), seen)

    def by_hand(seen):
        total = 0.0
        for path in itertools.product(itertools.product((0, 1), repeat=2), repeat=len(seen)):
            p, before = 1.0, (0, 0)
            for coins, y in zip(path, seen):
                heads = 0.3 + 0.4 * np.mean(before)
                p *= np.prod([heads if c else 1 - heads for c in coins])
                p *= np.exp(-((y - sum(coins)) ** 2) / 2) / np.sqrt(2 * np.pi)
                before = coins
            total += p
        return np.log(total)

    assert float(hp.log_evidence(flips)(SEEN[:3])) == pytest.approx(by_hand(SEEN[:3]), rel=1e-4)


def test_a_site_with_infinitely_many_values_has_no_sum():
    with pytest.raises(errors.CannotCross, match="log_evidence: the site 'x' has no finite list"):
        hp.log_evidence(lambda: hp.sample("x", hp.Normal()))()
