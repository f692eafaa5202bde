"""Tallies: states that are counted before the program runs."""

from __future__ import annotations

import handlax as hx
from handlax import lax


@hx.effect(vmap="per_lane")
class Step:
    by: int = 1

    def result_type(op):
        return None


def step(by=1):
    hx.perform(Step(by))


def test_a_tally_is_static_and_exact():
    tally = hx.tally(0, lambda a, b: a + b, max, lambda n, times: n * times)
    counting = hx.handler({Step: lambda op: op.by}, moves=tally)

    def f(x):
        lax.scan(lambda c, _: (step(3), (c, None))[1], x, None, 5)
        lax.cond(x > 0, lambda: step(1), lambda: step(100))
        return x

    total, _ = hx.handle(counting, 0)(hx.handle(hx.handler({}))(lambda x: hx.make_program(f)(x)))(1.0)
    outer = hx.handler({Step: lambda op: None})
    total, _ = hx.handle(outer)(lambda x: hx.handle(counting, 0)(f)(x))(1.0)
    assert total == 115


def test_the_clause_of_a_tally_is_told_the_site_of_each_operation():
    tally = hx.tally(frozenset(), frozenset.union, frozenset.union, lambda seen, times: seen)
    where = hx.handler({Step: lambda op: frozenset([(hx.site().function, *hx.site().scopes)])}, moves=tally)

    def f(x):
        for name in ("a", "b"):
            with hx.named_scope(name):
                lax.scan(lambda c, _: (step(), (c, None))[1], x, None, 5)
                hx.jit(step)()
        return x

    expected = {("step", "a"), ("step", "b")}
    answered = hx.handle(hx.handler({Step: lambda op: None}))
    for g in (f, hx.jit(f), lambda x: hx.handle(hx.handler({}))(hx.jit(f))(x)):
        assert answered(lambda x: hx.handle(where, frozenset())(g)(x))(1.0) == (expected, 1.0)


def test_one_function_in_two_scopes_is_tallied_in_both():
    tally = hx.tally(frozenset(), frozenset.union, frozenset.union, lambda seen, times: seen)
    where = hx.handler({Step: lambda op: frozenset(hx.site().scopes)}, moves=tally)
    inner = hx.jit(step)

    @hx.jit
    def f():
        for name in ("a", "b"):
            with hx.named_scope(name):
                inner()
        return 0.0

    seen, _ = hx.handle(hx.handler({Step: lambda op: None}))(hx.handle(where, frozenset())(f))()
    assert seen == {"a", "b"}


def test_a_tally_tells_sequence_branches_and_repetition_apart():
    words = hx.tally("", str.__add__, lambda a, b: f"({a}|{b})", lambda a, n: f"{n}*[{a}]")
    spelling = hx.handler({Step: lambda op: str(op.by)}, moves=words)

    def f(i):
        step(1)
        lax.switch(i, [lambda: step(2), lambda: step(3), lambda: step(4)])
        lax.while_loop(lambda c: (step(5), c < 3)[1], lambda c: (step(6), c + 1)[1], i)
        lax.fori_loop(0, 7, lambda n, c: (step(8), c)[1], i)
        return i

    answered = hx.handle(hx.handler({Step: lambda op: None}))
    for g in (f, hx.jit(f)):
        assert answered(lambda i: hx.handle(spelling, "")(g)(i))(0)[0] == "1((2|3)|4)None*[56]7*[8]"
