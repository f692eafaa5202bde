"""Nests, handlers and stacks: of every kind, printed as Python that means the same, and shrunk to what is needed."""

from __future__ import annotations

import ast

import pytest
from helpers.drawn_kinds import missing
from hypothesis import find, given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import numpy as hnp
from handlax.testing import CONTROL, UNROLLED, Nest
from handlax.testing.closeness import assert_results_equal
from handlax.testing.effect_programs.programs import EffectProgram
from handlax.testing.effect_programs.random_handlers import MOVEMENTS
from handlax.testing.generator.control_flow import NODES
from handlax.testing.generator.random_program import imported
from handlax.testing.generator.reducing import living
from handlax.testing.strategies import handlers, nests, stacks

X = hnp.asarray(0.75, "float64")


def test_nests_of_every_node_are_drawn():
    assert not missing(nests(), {name: lambda nest, name=name: f"hx.{name}(" in nest.source for name in NODES})
    assert not missing(nests(without=["scan"]), {"another": lambda nest: "hx.fori_loop(" in nest.source})
    with pytest.raises(AssertionError):
        assert not missing(nests(without=["scan"]), {"scan": lambda nest: "hx.scan(" in nest.source}, 200)


@pytest.mark.parametrize("name", [
    "vmap", *[pytest.param(name, marks=pytest.mark.sweep) for name in ("while_loop", "custom_vjp")]])
def test_a_nest_shrinks_to_one_node(name):
    small = find(nests(), lambda nest: f"hx.{name}(" in nest.source).source
    assert small.count("hx.") <= 2 and len(small.splitlines()) < 14, small  # a rule calls a transformation, too


@settings(max_examples=10)
@given(nests(), st.integers(0, 9))
def test_a_nest_has_no_dead_code_and_is_its_reference(nest, seed):
    assert living(nest.source, ["tell"]) == nest.source
    inputs = nest.inputs(seed)
    assert_results_equal(nest(*inputs), nest.unrolled(*inputs), what="with Python's loops")


def test_what_performs_is_not_dead():
    """Whose result nothing depends on: in a function that is called, and in one that is called by it."""
    text = """def program(x, v, w, k, p):
    def g1(f2):
        f3 = hx.tell(f2)
        return (f2,)

    def g4(f5):
        f6, = g1(f5)
        f7 = hnp.sin(f5)
        return (f5,)
    f8, = g4(x)
    return (x,)
"""
    living_text = living(text, ["tell"])
    assert living_text == ast.unparse(ast.parse(text.replace("        f7 = hnp.sin(f5)\n", ""))) + "\n"
    assert "g" not in living(text).replace("program", "")
    told = []
    Nest(living_text).by(UNROLLED, tell=lambda x: [told.append(x), x][1])(*Nest("").inputs(0))
    assert told


KINDS = {
    **{movement: lambda drawn, movement=movement: drawn.data.moves == movement for movement in MOVEMENTS},
    **{kind: lambda drawn, kind=kind: f"hx.{kind}(" in repr(drawn) for kind in ("ctl", "once", "final")},
    "returns": lambda drawn: drawn.handler.returns is not None,
    "otherwise": lambda drawn: drawn.handler.otherwise is not None,
    "scoped": lambda drawn: drawn.handler.scopes,
    "two clauses": lambda drawn: len(drawn.handler.clauses) == 2,
    "performs further out": lambda drawn: any(clause.onwards for clause in drawn.data.clauses.values()),
}


def test_handlers_of_every_kind_are_drawn():
    assert not missing(handlers(), KINDS)
    assert missing(handlers(kinds=["fun"], movements=["append"]), KINDS, 200) >= {"ctl", "final", "carry", None, "sum"}


def test_handlers_and_stacks_shrink_to_one_clause_that_answers_once():
    (clause,) = find(handlers(), lambda drawn: True).data.clauses.values()
    assert clause.kind == "fun" and clause.onwards is None
    small = find(stacks(), lambda stack: len(stack.handlers) == 2)
    assert [len(drawn.data.clauses) for drawn in small.handlers] == [1, 1]
    assert not any(drawn.state for drawn in small.handlers)


def printed(value):
    return eval(repr(value), imported(EffectProgram.prelude))


@settings(max_examples=30)
@given(st.one_of(handlers(), stacks()))
def test_what_a_handler_prints_does_what_it_does(drawn):
    found, expected = printed(drawn)(drawn.performs)(X), drawn(drawn.performs)(X)
    assert_results_equal(found, expected, what="the expression that is printed")


@settings(max_examples=30)
@given(handlers())
def test_a_handler_is_handled_from_its_state(drawn):
    found = hx.handle(drawn.handler, *drawn.state)(drawn.performs)(X)
    assert_results_equal(found, drawn(drawn.performs)(X), what="by handle")


@settings(max_examples=30)
@given(stacks(kinds=["fun"]))
def test_a_stack_answers_all_that_is_performed(stack):
    assert hx.make_program(stack.performs)(X).effects
    left = hx.make_program(stack(stack.performs))(X).effects
    assert {type(op).__name__ for op in left} <= {"AskDefaulted"}  # which has a default


@settings(max_examples=10, deadline=None)
@given(stacks(kinds=["fun"], movements=[None, "carry"]), nests(depth=1, size=2, tells=True), st.integers(0, 9))
def test_handlers_that_answer_once_cross_every_nest(stack, nest, seed):
    def total(control):
        f = nest.by(control, tell=stack.performs)
        return lambda *xs: sum([hnp.sum(hnp.asarray(y, "float64")) for y in f(*xs)])

    inputs = nest.inputs(seed)
    with hx.configure(default_float="float64"):
        crossed, plain = [stack(total(control))(*inputs) for control in (CONTROL, UNROLLED)]
        assert_results_equal(crossed, plain, what="through loops, against Python's")


@pytest.mark.parametrize(
    ("strategy", "options", "says"),
    [
        (nests, {"only": ["scan", "loop"]}, "one of scan, fori_loop, .* got 'loop'"),
        (nests, {"without": ["loop"]}, "one of scan, fori_loop, .* got 'loop'"),
        (handlers, {"kinds": ["ctl"], "movements": ["append"]}, r"kinds \['ctl'\] and movements \['append'\]"),
        (stacks, {"kinds": ["most"]}, r"kinds \['most'\]"),
        (stacks, {"min_handlers": 3, "max_handlers": 2}, "got 3 and 2"),
        (stacks, {"min_handlers": 0}, "got 0 and 3"),
    ],
)
def test_options_that_give_nothing_are_refused(strategy, options, says):
    with pytest.raises(hx.errors.BadArgument, match=says):
        strategy(**options)
