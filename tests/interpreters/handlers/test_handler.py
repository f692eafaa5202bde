"""Handlers as values: clauses, merging, and what is no handler."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.core.columns import COLUMNS, Column
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
    assert "hx.ctl(lambda resume, op: ...)" in error.value.hint


class WithoutText:
    def __repr__(self):
        raise ValueError("no text")


class WithoutTruth:
    def __bool__(self):
        raise ValueError("no truth")


WRONG = [3, -1, 2.5, "?", (), [], [1], object(), np.ones(2), Sin(), WithoutText(), WithoutTruth(), ...]
ENTRIES = {
    "clauses": hx.handler,
    "clause": lambda x: hx.handler({Sin: x}),
    "otherwise": lambda x: hx.handler(otherwise=x),
    "over": lambda x: hx.handler(over=x),
    "returns": lambda x: hx.handler(returns=x),
    "moves": lambda x: hx.handler(moves=x),
    "ctl": hx.ctl,
    "final": hx.final,
    "merge": lambda x: hx.merge(x, 0),
    "split": hx.split,
    "tally": lambda x: hx.tally(0, x, x, x),
    "handle": hx.handle,
    "handled": lambda x: hx.handle(hx.handler({}))(x),
    "vmap": lambda x: hx.effect(Pulse, vmap=x),
    "diff": lambda x: hx.effect(Pulse, diff=x),
    "scopes": lambda x: x is WRONG[0] or hx.effect(Pulse, scopes=x),
    "effect": hx.effect,
    "column": Column,
    "rule": COLUMNS["jvp"].rule,
    "a cell": lambda x: COLUMNS["jvp"].rule(Pulse)(x),
    "find": lambda x: isinstance(x, Sin) or COLUMNS["jvp"].find(x),
    "rules": lambda x: hx.rules(jvp=x).__enter__(),
    "a rule": lambda x: hx.rules(jvp={Sin: x}).__enter__(),
    "named_scope": lambda x: isinstance(x, str) or hx.named_scope(x).__enter__(),
    "by_scope": lambda x: isinstance(x, int) or hx.costs(hnp.sin)(1.0).by_scope(x),
    "calls": lambda x: x is WRONG[0] or hx.profiler.scope_times(hnp.sin, x),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_cannot_be_meant_is_refused_in_three_lines(entry):
    for x in WRONG:
        try:
            assert ENTRIES[entry](x) is True  # it can be meant
        except errors.HandlaxError as error:
            what, where, *_ = str(error).split("\n")
            assert what and "test_handler.py" in where


@pytest.mark.parametrize("entry", ["clause", "over", "moves", "ctl"])
def test_none_is_refused_where_it_is_no_default(entry):
    with pytest.raises(errors.BadArgument):
        ENTRIES[entry](None)


def test_a_number_that_counts_is_not_negative():
    with pytest.raises(errors.BadArgument, match="at least 0, got -1"):
        hx.costs(hnp.sin)(1.0).by_scope(-1)
    for calls in (0, -1):
        with pytest.raises(errors.BadArgument, match="at least 1"):
            hx.profiler.scope_times(hnp.sin, calls)


def test_an_object_without_a_text_is_named_by_its_class():
    with pytest.raises(errors.BadArgument, match="an object of WithoutText, whose repr raises ValueError"):
        hx.handler({Sin: WithoutText()})


def test_a_merged_handler_has_the_right_ones_default_clause_with_what_it_is_over_and_its_returns():
    forward = lambda op, *xs: hx.perform(op, *xs)
    sines = hx.handler(otherwise=forward, over=lambda op: op.name == "sin", returns=lambda y: ("left", y))
    cosines = hx.handler(otherwise=lambda op, x: 0 * x + 7.0, over=lambda op: op.name == "cos")
    assert hx.handle(sines | cosines)(hnp.cos)(1.0) == ("left", 7.0)
    assert hx.handle(cosines | hx.handler({Sin: forward}))(hnp.cos)(1.0) == 7.0
    assert hx.handle(sines | hx.handler({}, returns=lambda y: "right"))(hnp.cos)(1.0) == "right"
