"""What a program costs."""

from __future__ import annotations

import functools
import math

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.operations.collectives.traffic import Sent
from handlax.interpreters.analysis.flops import program_flops
from handlax.library import Costs, LinkCost, OperationCost, cost_counter, cost_of, measure
from handlax.operations import Psum
from handlax.sharding import AbstractMesh, P

W = hnp.ones((4, 4))
PRODUCT = 2 * 4 * 4 * 4


def step(c, _):
    return c @ W, None


def scan(w, n=5):
    return lax.scan(step, w, None, n)[0]


def nested(w):
    return lax.scan(lambda c, _: (scan(c, 3), None), w, None, 7)[0]


def double(x):
    return lax.while_loop(lambda c: c < 100.0, lambda c: c * 2.0, x)


def branch(x):
    return lax.cond(x > 0, lambda: hnp.sin(x) * 2 + 1, lambda: x)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
@pytest.mark.parametrize(("f", "runs"), [(lambda w: w @ w, 1), (scan, 5), (nested, 21)])
def test_loops_of_known_length_count_every_run(wrap, f, runs):
    cost = hx.costs(wrap(f))(W)
    assert cost.flops == runs * PRODUCT and cost.operations["dot_general"] == runs and cost.exact
    assert cost.bytes == runs * 3 * 64
    assert {name: int(n) for name, n in measure(wrap(f))(W)[0].items()} == {"flops": cost.flops, "bytes": cost.bytes}


def test_nothing_is_run_to_count():
    big = hx.ShapeDtypeStruct((10**6, 10**6), "float32")
    assert hx.costs(lambda x: (x @ x).sum())(big).flops == 2 * 10**18 + 10**12


def test_a_gradient_costs_what_it_performs():
    assert hx.costs(hx.grad(lambda w: scan(w).sum()))(W).operations["dot_general"] >= 5
    assert hx.costs(hx.vmap(lambda w: w @ W))(hnp.ones((3, 4, 4))).flops == 3 * PRODUCT


def test_of_branches_the_dearest_counts_and_measuring_is_exact():
    cost = hx.costs(branch)(1.0)
    assert not cost.exact and cost.flops == 4 and "the largest of any" in str(cost)
    assert [int(measure(branch)(hnp.float32(x))[0]["flops"]) for x in (1.0, -1.0)] == [4, 1]
    equal = lambda x: lax.cond(x > 0, lambda: x + 1, lambda: x + 2)
    assert hx.costs(equal)(1.0).exact


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_a_loop_of_unknown_length_counts_once_and_measuring_is_exact(wrap):
    cost = hx.costs(wrap(double))(1.0)
    assert cost.flops == 2 and not cost.exact
    total, y = measure(wrap(double))(1.0)
    assert int(total["flops"]) == 7 + 8 and float(y) == 128.0
    assert total["flops"].dtype == "int64"


def test_lanes_of_a_mapped_measurement_count_for_themselves():
    total, _ = hx.vmap(measure(double))(hnp.array([1.0, 50.0]))
    assert total["flops"].tolist() == [15, 3]


def test_the_counter_is_a_handler_that_leaves_the_result_alone():
    cost, y = hx.handle(cost_counter, Costs())(hx.jit(scan))(W)
    assert cost == hx.costs(scan)(W)._replace(memory=cost.memory) and y.tolist() == scan(W).tolist()  # not tallied
    assert hx.make_program(lambda w: hx.handle(cost_counter, Costs())(scan)(w)[1])(W) == hx.make_program(scan)(W)


def test_the_cost_of_one_operation_is_of_types():
    op = hx.make_program(lambda w: w @ w)(W).ops[0]
    assert cost_of(op, W.type, W.type).flops == PRODUCT


def horner(flops=None):
    """A polynomial as an operation of a user, with or without a cell of costs."""
    block = {"result_type": lambda op, x: x, **({} if flops is None else {"flops": flops})}
    return hx.operation(type("Horner", (), block))


def test_the_cost_of_a_users_operation_stands_in_its_block():
    x = hnp.ones(5)
    assert hx.costs(lambda x: hx.perform(horner()(), x))(x).flops == 5
    priced = horner(lambda op, operands, results: 8 * operands[0].size + results[0].size)
    assert hx.costs(lambda x: hx.perform(priced(), x))(x).flops == 45


def test_the_cost_of_a_users_operation_may_be_added_from_outside():
    kind = horner()
    program = hx.make_program(lambda x: hx.perform(kind(), x))(hnp.ones(5))
    assert program_flops(program) == 5

    @hx.columns.flops.rule(kind)
    def _(op, operands, results):
        return 7

    assert program_flops(program) == 7
    with hx.rules(flops={kind: lambda op, operands, results: 100}):
        assert program_flops(program) == 100
    assert program_flops(program) == 7


@pytest.mark.parametrize(("f", "flops"), [
    (hnp.cumsum, 6), (lambda x: x.reshape(2, 3), 0), (lambda x: lax.sort(x), 6 * 3), (lax.neg, 6),
    (lambda x: lax.linalg.cholesky(x[:4].reshape(2, 2)), 2 * 4 + 2 * 4),
])
def test_what_operations_cost(f, flops):
    assert program_flops(hx.make_program(f)(hnp.ones(6))) == flops


def test_a_reduction_by_a_function_runs_it_for_each_element():
    f = lambda x: lax.reduce(x, 0.0, lambda a, b: hnp.sin(a) + b, (0,))
    assert program_flops(hx.make_program(f)(hnp.ones(6))) == hx.costs(f)(hnp.ones(6)).flops == 6 * 2


MESH = AbstractMesh((2, 4), ("a", "b"))
ROW = 8 * 4  # bytes of a device's piece of 8 numbers


WHOLE = P()


def on_mesh(f, in_specs, out_specs=WHOLE, mesh=MESH):
    return hx.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


def squares(w, x):
    return lax.psum(hnp.sin(w * x), ("a", "b")).sum()


MAPPED = on_mesh(squares, (P(), P(("a", "b"))))
ARGS = (hx.ShapeDtypeStruct((8,), "float32"), hx.ShapeDtypeStruct((64,), "float32"))


def test_within_a_mesh_the_costs_are_those_of_one_device():
    cost = hx.costs(MAPPED)(*ARGS)
    axes = (("a", 2), ("b", 4))
    assert cost.classes[axes, "sin"] == OperationCost(1, 8, 2 * ROW) and cost.exact
    assert cost.classes[axes, "psum"].flops == 8
    assert cost.links == {"a": LinkCost(1, 2, ROW // 4), "b": LinkCost(1, 6, 2 * 3 * ROW // 4)}
    assert sum(link.bytes for link in cost.links.values()) == 2 * 7 * ROW // 8


@pytest.mark.parametrize("size", [4, 64, 1024])
def test_the_cost_of_one_device_depends_on_its_piece_alone(size):
    mesh = AbstractMesh((size, 4), ("a", "b"))
    mapped = on_mesh(squares, (P(), P(("a", "b"))), mesh=mesh)
    cost, few = hx.costs(mapped)(ARGS[0], hx.ShapeDtypeStruct((size * 4 * 8,), "float32")), hx.costs(MAPPED)(*ARGS)
    assert cost.links["b"] == few.links["b"] and cost.flops == few.flops
    assert cost.links["a"].bytes == math.ceil(2 * (size - 1) * (ROW // 4) / size)


def test_a_gradient_sends_what_it_sums():
    """The weights are shared, so that their gradient is a sum over all devices; that of pieces stays where it is."""
    shared, own = [hx.costs(hx.grad(MAPPED, i))(*ARGS).sent for i in (0, 1)]
    psum = ("b", 4), "psum"
    assert shared[psum].number == own[psum].number + 1
    assert shared[psum].bytes == own[psum].bytes + 2 * 3 * ROW // 4


def test_loops_multiply_what_is_sent_and_branches_take_the_largest_entry():
    ring = [(i, (i + 1) % 4) for i in range(4)]

    def looped(x):
        return lax.scan(lambda c, _: (lax.ppermute(c, "b", ring), None), x, None, 5)[0]

    def chosen(x):
        return lax.cond(lax.psum(x, "b")[0] > 0, lambda: lax.psum(x, "b"), lambda: lax.psum(x[:2], "b").sum() + 0 * x)

    def until(x):
        return lax.while_loop(lambda c: lax.psum(c[0], "b") < 9, lambda c: lax.ppermute(c, "b", ring), x)

    specs = P("b"), P("b")
    x = hx.ShapeDtypeStruct((32,), "float32")
    assert hx.costs(on_mesh(looped, *specs))(x).sent == {(("b", 4), "ppermute"): LinkCost(5, 5, 5 * ROW)}
    branch = hx.costs(on_mesh(chosen, *specs))(x)
    assert branch.links["b"] == LinkCost(2, 12, 2 * 2 * 3 * ROW // 4)
    assert not branch.exact and "of branches" in str(branch)
    once = hx.costs(on_mesh(until, *specs))(x)
    assert once.links["b"] == LinkCost(2, 7, ROW + 6) and "one iteration" in str(once)


def test_nested_meshes_send_along_their_own_axes():
    def inner(x):
        return hx.shard_map(
            lambda x: lax.psum(x, ("a", "b")), mesh=MESH, in_specs=P("b"), out_specs=P(), axis_names={"b"}
        )(x)

    outer = hx.shard_map(inner, mesh=MESH, in_specs=P("a"), out_specs=P(), axis_names={"a"}, check_vma=False)
    cost = hx.costs(outer)(hx.ShapeDtypeStruct((64,), "float32"))
    assert cost.links == {"a": LinkCost(1, 2, ROW // 4), "b": LinkCost(1, 6, 2 * 3 * ROW // 4)}
    assert (("a", 2), ("b", 4)) in {axes for axes, _ in cost.classes}


def test_lanes_of_vmap_send_as_one_value():
    """Along an axis of ``vmap`` nothing is sent."""
    mapped = hx.vmap(MAPPED, in_axes=(None, 0))
    cost = hx.costs(mapped)(ARGS[0], hx.ShapeDtypeStruct((3, 64), "float32"))
    assert cost.links["b"] == LinkCost(1, 6, 3 * 2 * 3 * ROW // 4)
    assert not hx.costs(hx.vmap(lambda x: lax.psum(x, "i"), axis_name="i"))(hnp.ones(4)).links


def test_the_memory_budget_knows_what_devices_compute():
    assert program_flops(hx.make_program(MAPPED)(*ARGS)) == 8 * hx.costs(MAPPED)(*ARGS).flops


def test_what_a_users_collective_sends_stands_in_its_cell():
    with hx.rules(traffic={Psum: lambda op, mesh, operands, results: {("b", 4): Sent(1, operands[0].nbytes)}}):
        assert hx.costs(MAPPED)(*ARGS).links == {"b": LinkCost(1, 1, ROW)}


def nested_calls(depth, calls):
    """Jitted functions each of which calls the next one several times."""
    f = hnp.sin
    for _ in range(depth):
        f = hx.jit(lambda x, g=f: functools.reduce(lambda y, _: g(y), range(calls), x))
    return f


@pytest.mark.parametrize(("depth", "calls"), [(40, 2), (1200, 1)])
def test_what_is_called_many_times_is_counted_once_at_any_depth(depth, calls):
    assert hx.costs(nested_calls(depth, calls))(1.0).flops == calls**depth


def test_what_each_device_of_a_mesh_executes_is_measured_there():
    mesh = hx.make_mesh((8,), ("i",))

    def f(x):
        return lax.psum(lax.fori_loop(0, 3, lambda _, x: hnp.sin(x) * x, x), "i")

    def measured(x):
        cost, y = measure(f)(x)
        return cost["flops"][None], cost["bytes"][None], y

    x = hnp.ones((16,))
    flops, moved, _ = hx.shard_map(measured, mesh=mesh, in_specs=P("i"), out_specs=(P("i"), P("i"), P()))(x)
    cost = hx.costs(hx.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P()))(x)
    inside = [each for (axes, _), each in cost.classes.items() if axes]
    assert flops.tolist() == [sum(each.flops for each in inside)] * 8
    assert moved.tolist() == [sum(each.bytes for each in inside)] * 8


def test_an_effect_costs_what_its_default_clause_does():
    clause = lambda op, x: hnp.sin(x) * x

    @hx.effect(default=clause, vmap="per_lane", diff="stop")
    class Damped:
        def result_type(op, x):
            return x

    def scoped(step):
        def f(x):
            with hx.named_scope("layer"):
                return step(x)

        return f

    nests = (scoped, hx.jit, lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=5)[0], hx.vmap)
    for nest in nests:
        performed, written = (hx.costs(nest(f))(hnp.ones((2, 3))) for f in (
            lambda x: hx.perform(Damped(), x), lambda x: clause(Damped(), x)
        ))
        assert (performed.flops, performed.bytes, performed.exact) == (written.flops, written.bytes, True)
        assert performed.by_scope() == written.by_scope() and written.flops > 0
