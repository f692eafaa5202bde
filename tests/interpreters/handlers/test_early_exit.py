"""Clauses that end the program: what follows is not performed, in loops, branches and lanes."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.program_sizes import equations_in, is_linear, programs_in

import handlax as hx
from handlax import lax


@hx.effect(vmap="per_lane")
class Halt:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane")
class Tock:
    def result_type(op):
        return None


safely = hx.handler({Halt: hx.final(lambda op, x: (False, x))}, returns=lambda y: (True, y))


def halt_above(limit, x):
    lax.cond(x > limit, lambda: hx.perform(Halt(), x), lambda: None)


def total(xs):
    def body(c, x):
        halt_above(2.0, c)
        return c + x, c

    return lax.scan(body, 0.0, xs)[0]


XS = np.arange(4.0, dtype="float32")


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_a_loop_ends_where_a_clause_ends_the_program(wrap):
    ok, y = wrap(hx.handle(safely)(total))(XS)
    assert (bool(ok), float(y)) == (False, 3.0)
    ok, y = wrap(hx.handle(safely)(total))(XS / 10)
    assert bool(ok) and float(y) == pytest.approx(0.6)


def test_a_while_loop_has_a_real_early_exit():
    def endless(x):
        return lax.while_loop(lambda c: c > 0.0, lambda c: (halt_above(100.0, c), c * 2.0)[1], x)

    ok, y = hx.handle(safely)(endless)(1.0)
    assert (bool(ok), float(y)) == (False, 128.0)


def test_every_lane_ends_by_itself_inside_and_the_first_one_ends_all_outside():
    ok, _ = hx.vmap(hx.handle(safely)(total))(np.stack([XS, XS / 10]))
    assert ok.tolist() == [False, True]

    def outside(xs):
        return hx.vmap(lambda row: (halt_above(2.0, row.sum()), row.sum())[1])(xs).sum()

    ok, y = hx.handle(safely)(outside)(np.stack([XS, XS]))
    assert (bool(ok), float(y)) == (False, 6.0)
    ok, y = hx.handle(safely)(outside)(np.stack([XS, XS]) / 10)
    assert bool(ok) and float(y) == pytest.approx(1.2)


def test_what_follows_the_end_is_not_performed():
    counting = hx.handler({Tock: lambda n, op: (n + 1, None)})

    def f(x):
        hx.perform(Tock())
        halt_above(0.0, x)
        hx.perform(Tock())
        return x

    n, (ok, _) = hx.handle(counting, 0)(hx.handle(safely)(f))(1.0)
    assert (int(n), bool(ok)) == (1, False)
    n, (ok, _) = hx.handle(counting, 0)(hx.handle(safely)(f))(-1.0)
    assert (int(n), bool(ok)) == (2, True)


def test_a_final_clause_sees_the_state_of_its_moment():
    stateful = hx.handler(
        {Tock: lambda n, op: (n + 1, None), Halt: hx.final(lambda n, op, x: (False, n))},
        returns=lambda n, y: (True, n),
    )

    def f(x):
        return lax.fori_loop(0, 10, lambda i, c: (hx.perform(Tock()), halt_above(4.0, c), c + 1.0)[2], x)

    ok, n = hx.handle(stateful, 0)(f)(0.0)
    assert (bool(ok), int(n)) == (False, 6)
    ok, n = hx.handle(stateful, 0)(f)(-100.0)
    assert (bool(ok), int(n)) == (True, 10)


def test_the_gradient_is_that_of_the_path_taken():
    f = lambda x: hx.handle(safely)(lambda x: (halt_above(2.0, x), x * x)[1])(x)[1]
    assert float(hx.grad(f)(1.0)) == 2.0


def test_an_answer_of_another_type_is_refused():
    wrong = hx.handler({Halt: hx.final(lambda op, x: (False, 1, 2))}, returns=lambda y: (True, y))
    with pytest.raises(hx.errors.TreeMismatch, match="final"):
        hx.handle(wrong)(total)(XS)


@hx.effect(vmap="per_lane", diff="stop")
class Click:
    def result_type(op):
        return None


def test_an_early_end_without_results_is_seen_through_grad():
    def only_performs(x):
        lax.cond(x > 0, lambda: hx.perform(Click()), lambda: None)
        return x * x

    ended = hx.handler({Click: hx.final(lambda op: (False, 0.0))}, returns=lambda y: (True, y))
    slope = hx.handle(ended)(hx.grad(only_performs))
    assert [bool(x) for x in (slope(3.0)[0], slope(-3.0)[0])] == [False, True]


def many_failure_points(n):
    def f(x):
        for i in range(n):
            halt_above(100.0 + i, x)
            x = x * 1.5
        return x

    return hx.handle(safely)(f)


def in_one_lane(f):
    return lambda x: [y[0] for y in hx.vmap(f)(hx.numpy.stack([x]))]


@pytest.mark.parametrize("x", [1.0, 20.0, 1e3])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, in_one_lane])
def test_a_row_of_failure_points_ends_at_the_first(x, wrap):
    after = x
    for i in range(8):
        if after > 100.0 + i:
            break
        after *= 1.5
    ok, y = wrap(many_failure_points(8))(x)
    assert (bool(ok), float(y)) == (after == x * 1.5**8, after)
    slope = hx.grad(lambda x: wrap(many_failure_points(8))(x)[1])(x)
    assert float(slope) == pytest.approx(after / x)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: hx.grad(hx.jit(lambda x: f(x)[1]))])
def test_a_row_of_failure_points_is_a_flat_chain_of_guards(wrap):
    assert is_linear(lambda n: equations_in(hx.make_program(wrap(many_failure_points(n)))(1.0)))


def test_a_thousand_failure_points_are_a_flat_chain_of_guards():
    program = hx.make_program(many_failure_points(1000))(1.0)
    assert sum(op.name == "cond" for op in program.ops) == 1001
    assert len(programs_in(program)) < 5000


def test_what_follows_an_unconditional_end_is_left_out():
    def f(x):
        hx.perform(Halt(), x)
        return lax.while_loop(lambda c: c > 0, lambda c: c, x) + 1.0

    ok, y = hx.handle(safely)(f)(2.0)
    assert (bool(ok), float(y)) == (False, 2.0)
