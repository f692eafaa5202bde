"""What a clause of a scoped effect may do with its functions, and how its mistakes are explained."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


@hx.effect(scopes=1, vmap="per_lane", diff="bodies")
class Local:
    pass


@hx.effect(vmap="per_lane", diff="stop")
class Fail:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane")
class Tick:
    def result_type(op):
        return None


@hx.effect(vmap="once")
class FailTogether:
    def result_type(op):
        return None


def with_clause(clause):
    return hx.handle(hx.handler({Local: clause}))


def refused(kind, text, f, *args):
    with pytest.raises(kind, match=text):
        f(*args)


def three():
    return hx.perform(Local(), lambda: hnp.float32(3.0))


def square(x):
    return hx.perform(Local(), lambda x: x * x, x)


STATELESS_CALLS = {
    "alone": hx.handler({Local: lambda s, op, body: body()}),
    "in a pair": hx.handler({Local: lambda s, op, body: (s, body())}, returns=lambda s, y: y),
    "beside another clause": hx.handler({Local: lambda s, op, body: body(), Tick: lambda s, op: (s + 1, None)}),
}


@pytest.mark.parametrize("name", STATELESS_CALLS)
def test_under_a_state_a_function_is_called_with_it(name):
    text = "local: under a handler with a state a function is called with the state first"
    refused(errors.BadCall, text, hx.handle(STATELESS_CALLS[name], 0)(three))
    with_state = hx.handler({Local: lambda s, op, body: body(s + 1)})
    assert hx.handle(with_state, 0)(three)() == (1, 3.0)


def test_under_a_state_a_block_loses_nothing():
    with hx.handle(STATELESS_CALLS["alone"], 0) as run:
        refused(errors.BadCall, "called with the state first", three)
    assert run.current == 0


COMPUTED = {
    "times a float": lambda op, body, *xs: 2.0 * body(*xs),
    "repeated": lambda op, body, *xs: 2 * body(*xs),
    "negative": lambda op, body, *xs: -body(*xs),
    "sum": lambda op, body, *xs: body(*xs) + body(*xs),
    "of an array": lambda op, body, *xs: hnp.ones(2) * body(*xs),
    "in a function": lambda op, body, *xs: hnp.sin(body(*xs)),
    "in a method": lambda op, body, *xs: body(*xs).sum(),
    "compared": lambda op, body, *xs: lax.cond(body(*xs) > 0, lambda: 1.0, lambda: 2.0),
    "again": lambda op, body, *xs: body(body(*xs)),
}
FAILING = hx.handle(hx.handler({Fail: hx.final(lambda op: -1.0)}))(
    lambda x: hx.perform(Local(), lambda x: (lax.cond(x > 5, lambda: hx.perform(Fail()), lambda: None), x)[1], x)
)


@pytest.mark.parametrize("f", [hx.grad(square), FAILING], ids=["grad", "final"])
@pytest.mark.parametrize("name", COMPUTED)
def test_a_clause_that_computes_with_parts_is_told_to_be_handled_inside(name, f):
    with pytest.raises(errors.CannotCross, match="local: a clause must pass on what a function returns") as error:
        with_clause(COMPUTED[name])(f)(2.0)
    assert "handle it inside" in error.value.hint and isinstance(error.value, TypeError)


@pytest.mark.parametrize("f", [hx.grad(square), FAILING], ids=["grad", "final"])
def test_an_answer_of_its_own_is_told_to_be_handled_inside(f):
    with pytest.raises(errors.TreeMismatch, match=r"local: the clause must give \d results, got 1") as error:
        with_clause(lambda op, body, x: 0.0)(f)(2.0)
    assert "handle it inside" in error.value.hint
    assert with_clause(lambda op, body, x: body(x))(f)(2.0) in (4.0, 2.0)


def attempted(op, body, other, *xs):
    failed = hx.final(lambda op: other(*xs))
    return hx.handle(hx.handler({Fail: failed, FailTogether: failed}))(body)(*xs)


@hx.effect(scopes=2, vmap="bodies", diff="bodies")
class Attempt:
    pass


@hx.effect(scopes=2, vmap="bodies", diff="bodies", default=attempted)
class Tried:
    pass


def root(x):
    lax.cond(x < 0, lambda: hx.perform(Fail()), lambda: None)
    return hnp.sqrt(x)


def other(x):
    return -hnp.sqrt(abs(x))


attempting = hx.handle(hx.handler({Attempt: attempted}))
XS = hnp.array([4.0, -4.0, 9.0])


@pytest.mark.parametrize("run", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_one_lane_does_not_end_a_function_of_all_lanes(run):
    safe = {kind: hx.vmap(lambda x, kind=kind: hx.perform(kind(), root, other, x)) for kind in (Attempt, Tried)}
    for f in (attempting(safe[Attempt]), safe[Tried]):
        refused(errors.CannotCross, "its function computes all lanes of a vmap, and a final clause inside", run(f), XS)
    inside = hx.vmap(attempting(lambda x: hx.perform(Attempt(), root, other, x)))
    assert run(inside)(XS).tolist() == [2.0, -2.0, 3.0]


def test_what_a_clause_translates_into_a_failure_does_not_end_all_lanes_either():
    def translated(op, body, other, *xs):
        failing = hx.handle(hx.handler({Tick: lambda op: hx.perform(Fail())}))(body)
        return attempted(op, failing, other, *xs)

    f = hx.vmap(lambda x: hx.perform(Attempt(), lambda x: (hx.perform(Tick()), x)[1], other, x))
    refused(errors.CannotCross, "would end it for all", hx.handle(hx.handler({Attempt: translated}))(f), XS)


def test_all_lanes_together_may_end_a_function_of_all_lanes():
    def together(x):
        hx.perform(FailTogether())
        return hnp.sqrt(x)

    safe = hx.vmap(lambda x: hx.perform(Attempt(), together, other, x))
    assert attempting(safe)(XS).tolist() == [-2.0, -2.0, -3.0]
    pure = hx.vmap(lambda x: hx.perform(Attempt(), lambda x: 2.0 * x, other, x))
    assert attempting(pure)(XS).tolist() == [8.0, -8.0, 18.0]


def test_an_exit_outside_of_the_clause_is_that_of_the_lanes():
    calling = hx.handle(hx.handler({Attempt: lambda op, body, other, *xs: body(*xs)}))
    ending = hx.handle(hx.handler({Fail: hx.final(lambda op: hnp.zeros(3))}))
    f = hx.vmap(lambda x: hx.perform(Attempt(), root, other, x))
    assert ending(calling(f))(XS).tolist() == ending(hx.vmap(root))(XS).tolist() == [0.0, 0.0, 0.0]
    assert ending(calling(f))(abs(XS)).tolist() == [2.0, 2.0, 3.0]


def test_a_result_that_is_not_that_of_the_function_is_told_to_be_declared():
    @hx.effect(scopes=1)
    class Plate:
        pass

    stacking = hx.handle(hx.handler({Plate: lambda op, body: hnp.stack([body(), body()])}))
    with pytest.raises(errors.ShapeMismatch, match="plate: the answer of a clause must have the type") as error:
        stacking(lambda: hx.perform(Plate(), lambda: hnp.float32(1.0)))()
    assert "declares result_type" in error.value.hint
