"""memory_budget: what is kept fits, and what is repeated is cheap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.ad_checkpoint import checkpoint_name, memory_budget, memory_plan, saved_residuals
from handlax.effects.base.stack import perform
from handlax.effects.core.columns import FLOPS, linear
from handlax.effects.core.operation import operation
from handlax.interpreters.differentiation.jvp import jvp_program
from handlax.interpreters.differentiation.memory_budget import SavingChoices
from handlax.testing.generator.unrolled import evaluated

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 8))
W = RNG.normal(size=(8, 8)) / 3


def deep(x, w):
    for _ in range(6):
        x = hnp.tanh(checkpoint_name(hnp.sin(x @ w), "product") * x)
    return hnp.sum(x)


def least(f, *args):
    return memory_plan(f, 10**9)(*args).minimum


@pytest.mark.parametrize("budget", [1536, 1600, 3000, 5000, 9999, 20000, 10**6])
def test_the_bytes_kept_are_at_most_the_budget(budget):
    f = hx.checkpoint(deep, policy=memory_budget(budget))
    assert saved_residuals(f, X, W).bytes <= budget
    with evaluated():
        want = hx.grad(deep, (0, 1))(X, W)
        for a, b in zip(hx.grad(f, (0, 1))(X, W), want):
            np.testing.assert_array_equal(a, b)


def test_the_minimum_can_be_had_and_a_byte_less_cannot():
    minimum = least(deep, X, W)
    assert minimum == X.nbytes + W.nbytes
    assert saved_residuals(hx.checkpoint(deep, policy=memory_budget(minimum)), X, W).bytes == minimum
    with pytest.raises(errors.BadArgument, match=f"must keep at least {minimum} bytes, got {minimum - 1}") as found:
        hx.grad(hx.checkpoint(deep, policy=memory_budget(minimum - 1)))(X, W)
    assert f"memory_budget({minimum})" in str(found.value)


def test_the_minimum_may_lie_below_the_arguments():
    f = lambda x: hnp.sin(hnp.sin(hnp.sum(x)))
    assert least(f, X) == 8
    assert [r.name for r in saved_residuals(hx.checkpoint(f, policy=memory_budget(8)), X)] == ["reduce_sum"]


def test_a_larger_budget_repeats_no_more():
    plans = [memory_plan(deep, n)(X, W) for n in (1536, 4000, 8000, 16000, 10**6)]
    repeated = [plan.recomputed for plan in plans]
    assert repeated == sorted(repeated, reverse=True)
    assert repeated[-1] == 0 < repeated[0]
    assert len({plan.flops for plan in plans}) == 1


def test_what_is_dear_is_kept_first():
    plan = memory_plan(deep, X.nbytes * 4 + W.nbytes)(X, W)
    assert {r.name for r in plan.residuals if r.source == "operation"} <= {"dot_general", "sin", "name", "mul", "tanh"}
    whole = memory_plan(deep, plan.minimum)(X, W).recomputed
    product = 2 * X.size * W.shape[0]
    assert whole - plan.recomputed >= 3 * product


def test_temporary_bytes_do_not_rise_as_the_budget_falls():
    x, w = np.ones((256, 64), "float32"), np.ones((64, 64), "float32")
    sizes = [memory_plan(deep, n)(x, w).temporary_bytes for n in (10**7, 10**6, 500_000, 300_000, 100_000)]
    assert sizes == sorted(sizes, reverse=True)


def test_a_plan_says_it_in_words():
    text = str(memory_plan(deep, 4000)(X, W))
    assert str(memory_plan(deep, memory_budget(4000))(X, W)) == text
    with pytest.raises(errors.BadArgument, match="reverse mode of deep must keep at least 1536 bytes, got 1000"):
        memory_plan(deep, 1000)(X, W)
    assert "of 4000 bytes saved (at least 1536)" in text
    assert "the argument x" in text


def test_what_an_integer_argument_gives_is_repeated_too():
    def f(n, x):
        factor = hnp.sin(hnp.astype(n, x.dtype))
        return hnp.sum(hnp.sin(hnp.sin(x * factor) * factor))

    n = np.full(X.shape, 2, "int32")
    least = memory_plan(f, 10**6)(n, X).minimum
    assert least == n.nbytes + X.nbytes and memory_plan(f, least)(n, X).recomputed > 0


def test_in_a_loop_the_budget_is_that_of_every_run():
    ws = np.stack([W] * 5)
    block = hx.checkpoint(lambda c, w: deep(c, w) * c, policy=memory_budget(6000))
    f = lambda x, ws: hnp.sum(lax.scan(lambda c, w: (block(c, w), None), x, ws)[0])
    assert saved_residuals(f, X, ws).bytes <= 5 * 6000
    np.testing.assert_allclose(hx.grad(f)(X, ws).shape, X.shape)


@hx.effect(diff="stop")
class Draw:
    def result_type(op):
        return hnp.zeros((16, 8), "float64").type


def test_what_an_effect_gave_counts_and_cannot_be_repeated():
    f = lambda x: hnp.sum(hnp.sin(x) * hx.perform(Draw()))
    run = hx.handle(hx.handler({Draw: lambda op: hnp.ones((16, 8), "float64")}))
    with pytest.raises(errors.BadArgument, match=f"at least {2 * X.nbytes} bytes"):
        run(hx.grad(hx.checkpoint(f, policy=memory_budget(X.nbytes))))(X)


@pytest.mark.parametrize(("wrong", "match"), [("4k", "be an integer"), (1.5, "be an integer"), (-1, "negative")])
def test_a_budget_is_a_number_of_bytes(wrong, match):
    with pytest.raises(errors.BadArgument, match=match):
        memory_budget(wrong)


def test_budgets_are_values():
    assert memory_budget(4) == memory_budget(4)
    assert repr(memory_budget(4)) == "memory_budget(4)"


# the plan is on the edge of what can be had


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    others=st.lists(st.frozensets(st.integers(0, 60)), min_size=1, max_size=20),
    price=st.sampled_from((1, 7, 50)),
)
def test_at_every_price_of_memory_no_other_choice_is_cheaper(sizes, others, price):
    def f(x):
        for n in sizes:
            x = hnp.tanh(hnp.sum(x) * hnp.arange(1.0, n + 1.0))
        return hnp.sum(x)

    program, _ = jvp_program(hx.make_program(f)(np.ones(3, "float32")), [True])
    choices = SavingChoices(program, (False, True))
    everything = [frozenset(), choices.needed(frozenset())[1], *others]
    paid = lambda chosen: price * choices.bytes(chosen) + choices.recomputed(chosen)
    assert paid(choices.cheapest(price, 1)) <= min(map(paid, everything))
    minimum = choices.bytes(choices.cheapest(1, 0))
    assert minimum <= min(map(choices.bytes, everything))
    assert memory_budget(minimum).plan(program, (False, True)).bytes == minimum


def test_a_cost_that_is_told_later_is_counted():
    @operation
    class Costly:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return x * 1

        jvp = linear

        def transpose(op, ct, x):
            return perform(op, ct)

        def lower(op, emit, x):
            return x

    f = lambda x: hnp.sin(perform(Costly(), hnp.sin(x)))
    before = memory_plan(f, X.nbytes)(X).flops
    FLOPS.rule(Costly)(lambda op, operands, results: 1000 * results[0].size)
    assert memory_plan(f, X.nbytes)(X).flops - before >= 999 * X.size


def test_a_lane_whose_length_differs_has_no_budget_of_its_own_but_all_lanes_together_have():
    x = hx.Ragged(hnp.arange(8.0), (3, 1, 4))
    f = lambda row: hnp.cos(hnp.sin(row) * row).sum()
    within = hx.grad(hx.checkpoint(f, policy=memory_budget(400)))
    with pytest.raises(errors.CannotCross, match="bytes that a lane saves depend on its length"):
        hx.vmap(within, hx.ragged_axis, hx.ragged_axis)(x)
    every = lambda rows: hx.vmap(f, hx.ragged_axis)(hx.Ragged(rows, (3, 1, 4))).sum()
    around = hx.grad(hx.checkpoint(every, policy=memory_budget(400)))(x.data)
    np.testing.assert_allclose(around, hx.grad(every)(x.data), rtol=1e-6)
