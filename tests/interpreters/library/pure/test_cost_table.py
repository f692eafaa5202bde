"""The table of costs: how costs add up, what it shows, and the time that it bounds."""

from __future__ import annotations

import itertools

import pytest
from pyrsistent import pmap

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.interpreters.library.pure.cost_table import either, repeated, then
from handlax.library import Costs, LinkCost, OperationCost, Seconds, cost_counter
from handlax.sharding import AbstractMesh, P

DATA, MODEL = ("data", 8), ("model", 2)


def costs(sines, sent):
    classes = {((), "sin"): OperationCost(1, sines, 8 * sines), ((DATA,), "add"): OperationCost(1, 2, 8)}
    return Costs(pmap(classes), pmap({(axis, "psum"): LinkCost(1, 2, n) for axis, n in sent.items()}))


SOME = [Costs(), costs(3, {DATA: 4}), costs(5, {DATA: 1, MODEL: 9}), repeated(costs(1, {MODEL: 2}), None)]


@pytest.mark.parametrize(("a", "b", "c"), [*itertools.product(SOME, repeat=3)])
def test_costs_add_up_in_any_order_and_a_branch_is_no_cheaper_than_any_case(a, b, c):
    assert then(a, then(b, c)) == then(then(a, b), c) and then(a, b) == then(b, a) and then(a, Costs()) == a
    assert repeated(then(a, b), 3) == then(repeated(a, 3), repeated(b, 3)) == then(then(a, b), repeated(then(a, b), 2))
    most = either(a, b)
    for case in (a, b):
        assert most.flops >= case.flops and most.bytes >= case.bytes
        assert all(most.sent[key] >= cost for key, cost in case.sent.items())
    assert most.exact == (a == b and a.exact)


def test_time_is_bounded_by_the_slowest_part_and_by_all_in_turn():
    cost = then(costs(98, {DATA: 600, MODEL: 20}), costs(0, {DATA: 400}))
    seconds = cost.seconds(flops=51.0, links={"data": 100.0, "model": 10.0}, latency=0.5)
    assert seconds == Seconds(2.0, {"data": 12.0, "model": 3.0})
    assert seconds.overlapped == 12.0 and seconds.in_turn == 17.0
    assert Costs().seconds(flops=1.0, links={}).overlapped == 0.0


def test_an_axis_without_a_rate_is_refused():
    with pytest.raises(errors.BadArgument, match=r"\['data', 'model'\], got none for 'model'"):
        costs(1, {DATA: 1, MODEL: 1}).seconds(flops=1.0, links={"data": 1.0})


def test_a_prompt_shows_the_table():
    cost = costs(3, {DATA: 4})
    assert repr(cost) == str(cost) and "sent along each axis" in repr(cost) and repr(Costs()) == "Costs()"


def test_the_table_has_a_part_for_each_place():
    mesh = AbstractMesh((2, 4), ("data", "model"))
    f = lambda x: lax.psum(hnp.sin(x), "data").sum()
    mapped = hx.shard_map(f, mesh=mesh, in_specs=P("data"), out_specs=P())
    assert str(hx.costs(lambda x: mapped(x) * 1000.0)(hx.ShapeDtypeStruct((16,), "float32"))) == "\n".join([
        "outside of the mesh  number  flops  bytes",
        "mul                       1      1     12",
        "reshape                   1      0    128",
        "all                       2      1    140",
        "",
        "on each device of data 2, model 4  number  flops  bytes",
        "psum                                    1      8     64",
        "sin                                     1      8     64",
        "reduce_sum                              1      8     36",
        "all                                     3     24    164",
        "",
        "sent along each axis  number  messages  bytes",
        "data: psum                 1         2     32",
        "all                        1         2     32",
    ])


def layer(x, w):
    with hx.named_scope("norm"):
        x = x / hnp.sum(x)
    with hx.named_scope("dense"):
        return hnp.tanh(x @ w)


def network(x, w, wrap=lambda f: f):
    """Two layers, and a recurrent one of three steps, each in a scope of its own."""
    for name in ("first", "second"):
        with hx.named_scope(name):
            x = wrap(layer)(x, w)
    with hx.named_scope("recurrent"):
        x = lax.scan(lambda c, _: (layer(c, w), None), x, None, length=3)[0]
    return x.sum()


W = hnp.ones((4, 4))
PRODUCT = 2 * 4 * 4 * 4


WRAPS = [lambda f: f, hx.jit, hx.checkpoint, hx.named_call, lambda f: hx.jit(hx.checkpoint(f))]


@pytest.mark.parametrize("wrap", WRAPS)
def test_costs_add_up_by_scope(wrap):
    cost = hx.costs(lambda x: network(x, W, wrap))(W)
    prefix = "layer/" if wrap is hx.named_call else ""
    scopes = cost.by_scope()
    assert {name: scopes[name].flops - 16 for name in scopes if name.endswith("dense")} == {
        f"first/{prefix}dense": PRODUCT, f"second/{prefix}dense": PRODUCT, "recurrent/dense": 3 * PRODUCT + 32,
    }
    for by in (scopes, cost.by_scope(depth=1), cost.by_scope(depth=0)):
        assert [sum(column) for column in zip(*by.values())] == [
            sum(cost.operations.values()), cost.flops, cost.bytes
        ]
    assert {*cost.by_scope(depth=1)} == {"", "first", "second", "recurrent"}
    assert [*cost.by_scope(depth=0)] == [""]
    assert "recurrent/dense" in str(cost) and "outside of scopes" in str(cost)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
def test_a_gradient_costs_in_the_scopes_of_what_it_differentiates(wrap):
    scopes = hx.costs(hx.grad(lambda w: network(W, w, wrap)))(W).by_scope()
    assert {*scopes} <= {"", *[f"{a}{b}" for a in ("first", "second", "recurrent") for b in ("", "/norm", "/dense")]}
    assert scopes["recurrent/dense"].flops >= 3 * 2 * PRODUCT and scopes["second/dense"].flops >= 3 * PRODUCT


def test_costs_are_the_same_counted_by_a_handler_in_force():
    cost, _ = hx.handle(cost_counter, Costs())(hx.jit(network))(W, W)
    assert cost == hx.costs(network)(W, W)._replace(memory=None)


def test_of_branches_each_scope_has_the_largest_cost_of_any():
    def f(x):
        sine = hx.named_scope("sine")(hnp.sin)
        return lax.cond(x.sum() > 0.0, lambda: sine(x), lambda: sine(sine(x)))

    assert hx.costs(f)(W).by_scope()["sine"] == OperationCost(2, 32, 256)
