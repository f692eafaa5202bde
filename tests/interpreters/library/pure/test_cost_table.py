"""The table of costs: how costs add up, what it shows, and the time that it bounds."""

from __future__ import annotations

import itertools

import pytest
from pyrsistent import pmap

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.interpreters.library.pure.cost_table import either, repeated, then
from handlax.library import Costs, LinkCost, OperationCost, Seconds
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
