"""Lanes that change a merged state keep their changes until it is read: one loop, however many effects they perform."""

from __future__ import annotations

import pytest
from helpers.other_threads import in_thread

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.stack import current
from handlax.effects.control.loops import Scan


@hx.effect(vmap="per_lane", diff="stop")
class Add:
    def result_type(op, x):
        return x


total = hx.handler(
    {Add: lambda s, op, x: (s + x, x + 1.0)}, moves=hx.merge(lambda a, b: a + b, hnp.zeros((), "float32"))
)


def added(count, between=lambda: None):
    def f(x):
        for _ in range(count):
            x = hx.perform(Add(), x)
            between()
        return x

    return f


def loops(f, *args):
    return sum(type(op) is Scan for op in hx.make_program(f)(*args).ops)


@pytest.mark.parametrize("count", [1, 2, 30])
def test_lanes_are_merged_across_once_however_often_they_merge(count):
    f = lambda xs: hx.handle(total, 1.0)(hx.vmap(added(count)))(xs)
    xs = hnp.arange(4.0)
    assert loops(f, xs) == 1
    state, ys = f(xs)
    assert float(state) == 1.0 + sum(x + i for x in range(4) for i in range(count))
    assert ys.tolist() == [x + count for x in range(4)]
    assert hx.jit(f)(xs)[0] == state


def test_a_clause_that_reads_a_merged_state_sees_all_lanes_before_it():
    def f(xs, zs):
        ys = hx.vmap(added(2))(xs)
        one = hx.perform(Add(), ys.sum())
        return hx.vmap(added(3))(hx.vmap(added(2))(zs) + one)

    reading = hx.handler({Add: lambda s, op, x: (s + x, s)}, moves=total.moves)
    _, seen = hx.handle(reading, 1.0)(lambda xs: (hx.vmap(added(1))(xs), hx.perform(Add(), 0.0)))(hnp.ones(3))
    assert seen[0].tolist() == [0.0, 0.0, 0.0] and float(seen[1]) == 4.0
    state, ys = hx.handle(total, 1.0)(f)(hnp.arange(2.0), hnp.arange(3.0))
    assert loops(lambda *a: hx.handle(total, 1.0)(f)(*a), hnp.arange(2.0), hnp.arange(3.0)) == 2
    one = (0 + 2) + (1 + 2)
    last = [z + 2 + one + 1 for z in range(3)]
    first = 1.0 + (0 + 1) + (1 + 2) + one
    assert float(state) == first + sum(z + (z + 1) for z in range(3)) + sum(y + (y + 1) + (y + 2) for y in last)
    assert ys.tolist() == [y + 3 for y in last]


def test_a_block_and_a_loop_merge_their_lanes():
    xs = hnp.arange(3.0)
    with hx.handle(total, 1.0) as run:
        hx.vmap(added(2))(xs)
    assert float(run.current) == 1.0 + (0 + 1) + (1 + 2) + (2 + 3)
    state, _ = hx.handle(total, 1.0)(lambda xs: lax.fori_loop(0, 2, lambda i, c: hx.vmap(added(1))(c), xs))(xs)
    assert float(state) == float(run.current)


def test_the_gradient_of_a_merged_state_reaches_each_lane():
    def f(xs):
        state, _ = hx.handle(adding, 0.0)(hx.vmap(lambda x: [hx.perform(Add(), x * x) for _ in range(3)]))(xs)
        return state

    adding = hx.handler({Add: lambda s, op, x: (s + x, x)}, moves=total.moves)
    assert hx.grad(f)(hnp.arange(4.0)).tolist() == [0.0, 6.0, 12.0, 18.0]


def test_lanes_of_two_sizes_are_merged_one_after_the_other():
    f = lambda: (hx.vmap(added(1))(hnp.ones(3)), hx.vmap(added(1))(hnp.ones(5)))
    assert float(hx.handle(total, 0.0)(f)()[0]) == 8.0


@hx.effect(vmap="per_lane", diff="stop")
class Merged:
    def result_type(op):
        return None


def merging(operation):
    """``total``, whose states are merged by ``operation``; it answers ``Merged`` too, by 100."""
    clauses = {Add: total.clauses[Add], Merged: lambda s, op: (s + 100.0, None)}
    return hx.handler(clauses, moves=hx.merge(operation, hnp.zeros((), "float32")))


def test_what_merging_performs_goes_to_the_handlers_further_out():
    def plus(a, b):
        hx.perform(Merged())
        return a + b

    outer = hx.handler({Merged: lambda n, op: (n + 1, None)})
    count, (state, _) = hx.handle(outer, 0)(hx.handle(merging(plus), 0.0)(hx.vmap(added(1))))(hnp.ones(3))
    assert count == 3 and float(state) == 3.0
    with hx.handle(outer, 0) as counted, hx.handle(merging(plus), 0.0) as merged:
        hx.vmap(added(1))(hnp.ones(3))
    assert counted.current == 3 and float(merged.current) == 3.0


def test_a_state_that_another_thread_merges_and_changes_meanwhile_keeps_the_change():
    first = []

    def plus(a, b):
        if not first:
            first.append(None)
            in_thread(change)
        return a + b

    def change():
        (run,) = installed
        run.current = run.merged_state() + 1000.0

    installed = []

    def f(x):
        installed.append(current())
        return hx.vmap(added(1))(x)

    assert float(hx.handle(merging(plus), 0.0)(f)(hnp.ones(3))[0]) == 1003.0


def test_a_clause_that_ends_the_program_sees_all_lanes_before_it():
    def f(xs):
        hx.vmap(added(2))(xs)
        hx.perform(Merged())
        return end

    end = hnp.zeros((), "float32")
    ending = hx.handler({**total.clauses, Merged: hx.final(lambda s, op: (s, s))}, moves=total.moves)
    ended = hx.handler(ending.clauses, moves=total.moves, returns=lambda s, y: (s, y))
    assert [float(y) for y in hx.handle(ended, 0.0)(f)(hnp.ones(3))] == [9.0, 9.0]
