"""What a program costs."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.analysis.flops import program_flops
from handlax.library import Cost, cost_of, costs, count, measure

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
    cost = count(wrap(f))(W)
    assert cost.flops == runs * PRODUCT and cost.operations["dot_general"] == runs and cost.exact
    assert cost.bytes == runs * 3 * 64
    assert {name: int(n) for name, n in measure(wrap(f))(W)[0].items()} == {"flops": cost.flops, "bytes": cost.bytes}


def test_nothing_is_run_to_count():
    big = hx.ShapeDtypeStruct((10**6, 10**6), "float32")
    assert count(lambda x: (x @ x).sum())(big).flops == 2 * 10**18 + 10**12


def test_a_gradient_costs_what_it_performs():
    assert count(hx.grad(lambda w: scan(w).sum()))(W).operations["dot_general"] >= 5
    assert count(hx.vmap(lambda w: w @ W))(hnp.ones((3, 4, 4))).flops == 3 * PRODUCT


def test_of_branches_the_dearest_counts_and_measuring_is_exact():
    cost = count(branch)(1.0)
    assert not cost.exact and str(cost).startswith("about 4 flops")
    assert [int(measure(branch)(hnp.float32(x))[0]["flops"]) for x in (1.0, -1.0)] == [4, 1]
    equal = lambda x: lax.cond(x > 0, lambda: x + 1, lambda: x + 2)
    assert count(equal)(1.0).exact


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_a_loop_of_unknown_length_counts_once_and_measuring_is_exact(wrap):
    cost = count(wrap(double))(1.0)
    assert cost.flops == 2 and not cost.exact
    total, y = measure(wrap(double))(1.0)
    assert int(total["flops"]) == 7 + 8 and float(y) == 128.0
    assert total["flops"].dtype == "int64"


def test_lanes_of_a_mapped_measurement_count_for_themselves():
    total, _ = hx.vmap(measure(double))(hnp.array([1.0, 50.0]))
    assert total["flops"].tolist() == [15, 3]


def test_costs_is_a_handler_that_leaves_the_result_alone():
    cost, y = hx.handle(costs, Cost())(hx.jit(scan))(W)
    assert cost == count(scan)(W) and y.tolist() == scan(W).tolist()
    assert hx.make_program(lambda w: hx.handle(costs, Cost())(scan)(w)[1])(W) == hx.make_program(scan)(W)


def test_a_cost_reads_as_a_line():
    assert str(count(lambda x: hnp.sin(x) * 2.0)(hnp.ones(3))) == "6 flops, 52 bytes; 1 mul, 1 sin"
    op = hx.make_program(lambda w: w @ w)(W).ops[0]
    assert cost_of(op, W.type, W.type).flops == PRODUCT


def horner(flops=None):
    """A polynomial as an operation of a user, with or without a cell of costs."""
    block = {"result_type": lambda op, x: x, **({} if flops is None else {"flops": flops})}
    return hx.operation(type("Horner", (), block))


def test_the_cost_of_a_users_operation_stands_in_its_block():
    x = hnp.ones(5)
    assert count(lambda x: hx.perform(horner()(), x))(x).flops == 5
    priced = horner(lambda op, operands, results: 8 * operands[0].size + results[0].size)
    assert count(lambda x: hx.perform(priced(), x))(x).flops == 45


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
    assert program_flops(hx.make_program(f)(hnp.ones(6))) == count(f)(hnp.ones(6)).flops == 6 * 2
