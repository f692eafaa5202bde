"""The type of an answer is asked of the handlers in force, once, when the effect is performed."""

from __future__ import annotations

from typing import Any

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.core.arrays import perform
from handlax.effects.core.result_trees import AnswerTyped
from handlax.interpreters.handlers.answer_types import perform_typed, typed
from handlax.testing import counted


@hx.effect(vmap="once", diff="stop")
class Fetch(AnswerTyped):
    what: str
    like: Any = None


def fetch(what="x"):
    return perform_typed(Fetch(what))


def giving(value, what="x"):
    return hx.handler({Fetch: lambda op: value if op.what == what else hx.perform(op)})


def type_under(h, *state, what="x"):
    return hx.handle(h, *state)(lambda: typed(Fetch(what)).like)


def test_the_clause_in_force_says_the_type():
    assert str(type_under(giving(hnp.arange(3)))()) == "i32[3]"
    tree = type_under(giving({"a": 1.0, "b": (hnp.ones(2), 2)}))().thaw()
    assert hx.tree.map(str, tree) == {"a": "f32[]~", "b": ("f32[2]", "i32[]~")}


def test_the_innermost_handler_is_asked():
    f = hx.handle(giving(1))(hx.handle(giving(hnp.ones(2)))(fetch))
    assert f().shape == (2,)


def test_what_a_clause_forwards_is_asked_of_the_handler_outside():
    tree = {"a": hnp.arange(2), "b": 1.5}
    outer = giving(tree)
    assert hx.handle(outer)(hx.handle(giving(1, "other"))(fetch))()["b"] == 1.5
    doubled = hx.handler({Fetch: lambda op: hx.tree.map(lambda x: 2 * x, hx.perform(op))})
    found = hx.handle(outer)(hx.jit(hx.handle(doubled)(hx.handle(doubled)(fetch))))()
    assert found["a"].tolist() == [0, 4] and found["b"] == 6.0


def test_the_present_state_says_the_type():
    def clause(s, op):
        return s, s * 2

    h = hx.handler({Fetch: clause})
    assert str(hx.handle(h, hnp.ones((2, 2)))(lambda: typed(Fetch("x")).like)()[1]) == "f32[2,2]"


def test_asking_performs_nothing():
    said = []
    noisy = hx.handler({Fetch: lambda n, op: (n + 1, 1.0)})
    n, _ = hx.handle(noisy, 0)(lambda: said.append(typed(Fetch("x")).like))()
    assert n == 0 and len(said) == 1


def test_a_resuming_clause_says_the_type_by_what_it_resumes_with():
    both = hx.handler({Fetch: hx.ctl(lambda resume, op: hnp.stack([resume(1.0), resume(2.0)]))})
    assert hx.handle(both)(lambda: fetch() + fetch())().tolist() == [[2.0, 3.0], [3.0, 4.0]]
    stated = hx.handler({Fetch: hx.ctl(lambda resume, s, op: resume(s + 1, hnp.full(2, s)))})
    assert hx.handle(stated, 3)(lambda: fetch() + fetch())()[1].tolist() == [7, 7]


def test_a_clause_that_never_resumes_cannot_say_the_type():
    ends = hx.handler({Fetch: hx.final(lambda op: 1.0)})
    with pytest.raises(errors.CannotCross, match="never resumes"):
        hx.handle(ends)(fetch)()


def test_nobody_to_ask_is_an_unhandled_effect():
    for f in (fetch, hx.jit(fetch), lambda: lax.cond(True, fetch, lambda: 1.0)):
        with pytest.raises(errors.UnhandledEffect, match="fetch: nobody handles"):
            f()
    with pytest.raises(errors.UnhandledEffect, match="nobody handles"):
        hx.handle(giving(1, "other"))(fetch)()


def test_performing_without_asking_says_so():
    with pytest.raises(errors.BadCall, match="its public function"):
        hx.handle(giving(1))(lambda: hx.perform(Fetch("x")))()


def test_a_tally_is_not_asked():
    counts = hx.handler({Fetch: lambda op: 1}, moves=hx.tally(0, lambda a, b: a + b, max, lambda a, n: a))
    assert hx.handle(counts, 0)(lambda: 1)() == (0, 1)
    n, y = hx.handle(giving(2.0))(hx.handle(counts, 0)(fetch))()
    assert (n, float(y)) == (1, 2.0)


def test_otherwise_answers_and_forwards_what_it_is_asked():
    seen = hx.handler(otherwise=lambda op, *xs: hx.perform(op, *xs))
    assert float(hx.handle(giving(2.5))(hx.handle(seen)(fetch))()) == 2.5


def test_a_recorded_program_keeps_the_type_and_a_wider_answer_is_refused():
    h = giving(1)
    program = hx.handle(h)(lambda: hx.make_program(fetch)())()
    assert "like=i32[]~" in str(program)
    assert hx.parse_program(str(program)).unwrap() == program
    assert hx.handle(giving(7))(lambda: program())()[0] == 7
    with pytest.raises(errors.DTypeMismatch, match="the type of the operation's result"):
        hx.handle(giving(2.5))(lambda: program())()


def test_a_weak_answer_takes_a_dtype_that_holds_it():
    program = hx.handle(giving(hnp.float32(1.0)))(lambda: hx.make_program(fetch)())()
    assert hx.handle(giving(3))(lambda: program())()[0].dtype == hnp.float32


@hx.effect(vmap="once")
class Resemble:
    like: int

    def result_type(op):
        return hnp.ones(op.like).type


def test_a_field_like_means_nothing_in_an_effect_that_is_not_typed_by_its_handler():
    f = hx.jit(lambda: perform(Resemble(2)))
    handled = hx.handle(hx.handler({Resemble: lambda op: hnp.ones(op.like)}))(f)
    shapes = []
    assert counted(lambda: shapes.extend([handled().shape for _ in range(2)])).traces == 1
    assert shapes == [(2,), (2,)]


def test_a_log_that_was_asked_for_the_type_is_extended_by_the_answer():
    @hx.custom_jvp
    def f(x):
        return x * fetch()

    @f.defjvp
    def rule(primals, tangents):  # performed where the log of the body is not known yet
        y = fetch()
        return primals[0] * y, tangents[0] * y

    h = hx.handler({Fetch: lambda log, op: ((*log, 3.0), 2.0)}, moves=hx.append)
    g = lambda x: hx.handle(h, ())(lambda: lax.fori_loop(0, 3, lambda i, c: f(c), x))()
    y, derivative = hx.value_and_grad(lambda x: g(x)[1])(1.0)
    assert float(y) == float(derivative) == 8.0 and g(1.0)[0][0].tolist() == [3.0, 3.0, 3.0]
