"""Who answers which effect, and what is left, found by recording alone."""

from __future__ import annotations

from functools import partial

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.operations import Sin


@hx.effect(vmap="per_lane")
class Tick:
    by: int = 1

    def result_type(op):
        return None


@hx.effect(vmap="once", diff="stop")
class Ask:
    def result_type(op):
        return hx.ArrayType((), "float32")


@hx.effect(vmap="per_lane", default=lambda op: hx.perform(Tick(7)))
class Note:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane")
class Choose:
    def result_type(op):
        return hx.ArrayType((), "bool")


@hx.effect(scopes=1, vmap="per_lane", diff="bodies")
class Within:
    pass


def answering(n, op):
    never.append(op)
    return n + op.by, None


never = []  # what clauses were called on; the state of a traced handler is of no concern
TICKS = hx.handle(hx.handler({Tick: answering}), 0)
TWICE = hx.handle(hx.handler({Sin: lambda op, x: 2 * hx.perform(op, x)}))
ASKED = hx.handle(hx.handler({Ask: lambda op: 0.5}))
NOTED = hx.handle(hx.handler({Tick: lambda op: hx.perform(Note())}))


def ticking(x):
    hx.perform(Tick())
    return hnp.sin(x) * hx.perform(Ask())


def rows(f, *args):
    answers = hx.explain_handlers(f)(*args).answers
    return [(each.operation, each.recorded, each.within, each.handler) for each in answers]


def test_each_effect_is_listed_with_the_handler_that_answers_it():
    explained = hx.explain_handlers(TICKS(TWICE(ticking)))(1.0)
    assert rows(TICKS(TWICE(ticking)), 1.0) == [
        (Tick(), 1, (), "handler(Tick)"), (Sin(), 1, (), "handler(Sin)"), (Ask(), 1, (), ""),
    ]
    assert explained.unanswered == {Ask()} == hx.effects_of(TICKS(TWICE(ticking)))(1.0)
    first = ticking.__code__.co_firstlineno
    assert [each.site.line - first for each in explained.answers] == [1, 2, 2]
    assert explained.answers[0].clause.line == answering.__code__.co_firstlineno
    assert str(explained.answers[0].installed).startswith("test_explain_handlers.py:")


@pytest.mark.parametrize(("around", "within"), [
    (hx.jit, ("jit(ticking)",)),
    (lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0], ("scan, 3 times",)),
    (lambda f: lambda x: lax.cond(x > 0, lambda x: x, f, x), ("cond, branch 0",)),
    (lambda f: lambda x: lax.while_loop(lambda x: x < 1, f, x), ("while",)),
    (lambda f: lambda x: hx.vmap(f)(hnp.stack([x, x])), None),
    (lambda f: hx.grad(f), ()),
    (lambda f: hx.named_scope("encoder")(f), ("encoder",)),
    (lambda f: hx.checkpoint(f), None),
])
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_handlers_inside_and_outside_of_transformations_are_found(around, within, where):
    stack = TICKS @ ASKED
    inner = lambda f: lambda x: stack(f)(x)[1]
    handled = around(inner(ticking)) if where == "inside" else stack(around(ticking))
    explained = hx.explain_handlers(handled)(0.5)
    found = {(type(each.operation), each.handler) for each in explained.answers}
    assert {(Tick, "handler(Tick)"), (Ask, "handler(Ask)")} == found and explained.unanswered == frozenset()
    if within is not None and where == "outside":
        assert {each.within for each in explained.answers} == {within}


def test_it_counts_equations():
    def f(x):
        for _ in range(3):
            hx.perform(Tick())
        hx.perform(Tick(2)), hx.perform(Tick(2))
        return hx.jit(ticking)(hx.jit(ticking)(x))

    assert rows(f, 1.0) == [
        (Tick(), 3, (), ""), (Tick(2), 2, (), ""),
        (Tick(), 2, ("jit(ticking)",), ""), (Ask(), 2, ("jit(ticking)",), ""),
    ]
    assert rows(TICKS(f), 1.0)[:2] == [(Tick(), 3, (), "handler(Tick)"), (Tick(2), 2, (), "handler(Tick)")]
    assert rows(TICKS(f), 1.0)[2][:3] == (Tick(), 2, ("jit(ticking)",))


def test_what_clauses_perform_is_listed_with_them():
    outer = hx.handle(hx.handler({Note: lambda op: None}))
    for f in (ticking, hx.jit(ticking), lambda x: lax.scan(lambda c, _: (ticking(c), None), x, None, length=2)):
        explained = hx.explain_handlers((outer @ NOTED @ ASKED)(f))(1.0)
        found = [(each.operation, each.performer, each.handler) for each in explained.answers]
        assert found[:2] == [(Tick(), "", "handler(Tick)"), (Note(), "handler(Tick)", "handler(Note)")]
        assert found[2] == (Ask(), "", "handler(Ask)")


def test_an_operation_that_a_clause_forwards_is_answered_further_out():
    forwarding = hx.handle(hx.handler({Tick: lambda op: hx.perform(op)}))
    found = [(x.performer, x.handler) for x in hx.explain_handlers((TICKS @ forwarding)(ticking))(1.0).answers]
    assert found[:2] == [("", "handler(Tick)"), ("handler(Tick)", "handler(Tick)")]


def test_otherwise_answers_what_has_no_clause():
    counting = hx.handle(hx.handler(otherwise=lambda n, op, *xs: (n + 1, hx.perform(op, *xs)), over=hx.is_pure), 0)
    found = rows(counting(TWICE(hx.jit(lambda x: hnp.sin(x)))), 1.0)
    assert [(type(op).__name__, by) for op, _, _, by in found] == [
        ("Sin", "handler(Sin)"), ("Sin", "handler(otherwise), otherwise"), ("Mul", "handler(otherwise), otherwise"),
    ]


def test_default_clauses_are_named_and_what_they_perform_too():
    explained = hx.explain_handlers(lambda x: (hx.perform(Note()), x)[1])(1.0)
    assert [(x.operation, x.performer, x.handler) for x in explained.answers] == [
        (Note(), "", "default clause"), (Tick(7), "default clause", ""),
    ]
    assert explained.unanswered == {Tick(7)}
    explained = hx.explain_handlers(TICKS(lambda x: (hx.perform(Note()), x)[1]))(1.0)
    assert explained.unanswered == {Tick(7)}  # a default clause stands outside of all handlers


def test_clauses_that_take_the_rest_or_end_it_are_listed():
    def f(x):
        y = hnp.where(hx.perform(Choose()), x, -x)
        hx.perform(Tick())
        return y

    both = hx.handle(hx.handler({Choose: hx.ctl(lambda resume, op: resume(True) + resume(False))}))
    assert rows(both(f), 1.0) == [(Choose(), 1, (), "handler(Choose)"), (Tick(), 2, (), "")]
    ended = hx.handle(hx.handler({Choose: hx.final(lambda op: 0.0)}))
    assert rows(ended(f), 1.0) == [(Choose(), 1, (), "handler(Choose)")]
    assert {by for *_, by in rows((TICKS @ both)(f), 1.0)} == {"handler(Choose)", "handler(Tick)"}
    performers = {x.performer for x in hx.explain_handlers((TICKS @ both)(f))(1.0).answers}
    assert performers == {""}  # the rest of the program is not part of the clause


def test_scoped_effects_and_their_functions_are_listed():
    def f(x):
        return hx.perform(Within(), ticking, x)

    assert rows(f, 1.0) == [
        (Within(), 1, (), ""), (Tick(), 1, ("within",), ""), (Ask(), 1, ("within",), ""),
    ]
    calling = hx.handle(hx.handler({Within: lambda op, body, x: body(x)}))
    assert rows((ASKED @ TICKS @ calling)(f), 1.0) == [
        (Within(), 1, (), "handler(Within)"), (Tick(), 1, (), "handler(Tick)"), (Ask(), 1, (), "handler(Ask)"),
    ]


def test_direct_style_is_explained_where_no_value_is_needed():
    def f(x):
        return x if hx.perform(Choose()) else -x

    both = hx.handler({Choose: hx.ctl(lambda resume, op: resume(True) + resume(False))})
    assert rows(hx.direct(both)(f), 1.0) == [(Choose(), 2, (), "handler(Choose)")] or rows(
        hx.direct(both)(f), 1.0
    ) == [(Choose(), 1, (), "handler(Choose)")]

    def g(x):
        return x if x > 0 else -x

    with pytest.raises(errors.ConcretizationTypeError, match="explain_handlers"):
        hx.explain_handlers(hx.direct(both)(g))(1.0)


def test_nothing_is_performed():
    called = []

    def f(x):
        hx.debug.callback(called.append, x)
        return hx.pure_callback(lambda x: called.append(x) or x, x, x) + ticking(x)

    never.clear()
    explained = hx.explain_handlers(TICKS(ASKED(f)))(1.0)
    assert called == [] and [op.by for op in never] == [1]  # the clause is called on types, once
    assert {type(each).__name__ for each in explained.unanswered} >= {"DebugCallback"}


def test_functions_traced_before_are_explained_and_explaining_changes_no_trace():
    g = hx.jit(TICKS(ASKED(ticking)))
    before = g(1.0)
    assert len(hx.explain_handlers(g)(1.0).answers) == 2
    assert len(hx.explain_handlers(g)(1.0).answers) == 2
    assert hx.tree.map(float, g(1.0)) == hx.tree.map(float, before)
    assert hx.make_program(g)(1.0).effects == frozenset()


def test_an_explanation_is_a_value_that_prints_as_a_table():
    explain = partial(hx.explain_handlers(TICKS(ticking)), 1.0)
    one, other = [explain() for _ in range(2)]
    assert one == other and hash(one) == hash(other)
    with pytest.raises(errors.Immutable):
        one.answers = ()
    lines = str(one).splitlines()
    assert lines[0].split("  ")[0] == "operation" and len(lines) == 3
    assert "Tick(by=1)" in lines[1] and "handler(Tick), clause at test_explain_handlers.py" in lines[1]
    assert lines[2].endswith("unanswered")


def test_it_takes_a_function():
    with pytest.raises(errors.NotAFunction):
        hx.explain_handlers(3)
