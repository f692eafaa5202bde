"""Handlers as values: clauses, merging, and what is no handler."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.transcendental import Cos, Sin


@hx.effect
class Pulse:
    by: int = 1

    def result_type(op):
        return None


def ticking(x):
    hx.perform(Pulse())
    hx.perform(Pulse(3))
    return hnp.sin(x)


def test_merged_handlers_prefer_the_right_one():
    one = hx.handler({Sin: lambda op, x: x, Cos: lambda op, x: x})
    both = one | hx.handler({Sin: lambda op, x: -x})
    assert float(hx.handle(both)(hnp.sin)(2.0)) == -2.0
    assert float(hx.handle(both)(hnp.cos)(2.0)) == 2.0
    assert float(hx.handle(one | hx.handler({Cos: lambda op, x: x + 1}))(hnp.cos)(2.0)) == 3.0


@pytest.mark.parametrize("clauses", [{"sin": lambda op, x: x}, {Sin(): lambda op, x: x}, {Sin: 3}])
def test_a_handler_of_something_else_is_refused(clauses):
    with pytest.raises(errors.BadArgument):
        hx.handler(clauses)


def test_a_handler_may_have_ctl_and_final_clauses_however_it_is_made():
    resuming = hx.handler({Sin: hx.ctl(lambda resume, op, x: resume(x) + resume(2 * x))})
    ending = hx.handler({Cos: hx.final(lambda op, x: 10 * x)})
    for both in (
        hx.handler({**resuming.clauses, **ending.clauses}),
        resuming | ending,
        ending | resuming,
        resuming | hx.handler({Cos: ending.clauses[Cos]}),
    ):
        assert both.resumes and both.aborts
        assert float(hx.handle(both)(lambda x: hnp.cos(hnp.sin(x)))(1.0)) == 30.0
    assert not (resuming | hx.handler({Sin: hx.final(lambda op, x: x)})).resumes  # the other one was replaced


def test_a_clause_with_state_gives_a_pair():
    with pytest.raises(errors.BadArgument, match="state"):
        hx.handle(hx.handler({Pulse: lambda n, op: None}), 0)(ticking)(1.0)


def test_handlers_are_values():
    h = hx.handler({Sin: abs})
    assert h == hx.handler({Sin: abs}) and hash(h) == hash(hx.handler({Sin: abs}))
    with pytest.raises(AttributeError):
        h.clauses = {}


def test_a_class_of_operations_is_no_predicate():
    with pytest.raises(errors.BadArgument, match="over is a predicate of operations, got the class Sin") as error:
        hx.handler(otherwise=lambda op, x: x, over=Sin)
    assert "isinstance(op, Sin)" in error.value.hint


@pytest.mark.parametrize("state", [(), (0,)], ids=["stateless", "state"])
def test_a_clause_that_takes_resume_is_told_to_be_ctl(state):
    clause = (lambda resume, s, op: resume(s, None)) if state else (lambda resume, op: resume(None))
    with pytest.raises(errors.BadCall, match=r"pulse: the clause takes \(resume") as error:
        hx.handle(hx.handler({Pulse: clause}), *state)(ticking)(1.0)
    assert "hx.ctl(clause)" in error.value.hint
