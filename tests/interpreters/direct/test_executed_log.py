"""Executions after the first: they are answered alike, and differ only in the rest. Each law in all styles."""

from __future__ import annotations

import gc

import pytest
from helpers.other_threads import in_thread

import handlax as hx
from handlax import numpy as hnp
from handlax.interpreters.direct.stacks import _THREAD
from handlax.operations import Sin

F32 = hx.ArrayType((), "float32")


@hx.effect(vmap="per_lane", diff="stop")
class Flip:
    def result_type(op):
        return hx.ArrayType((), "bool")


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op):
        return F32


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op):
        return None


@hx.effect
class Fetch:
    what: str

    def result_type(op):
        return object


def replayed(*given):
    return hx.direct(*given, replay=True)


executed = pytest.mark.parametrize("style", [hx.direct, replayed], ids=["resumed", "replayed"])
styles = pytest.mark.parametrize("style", [hx.handle, hx.direct, replayed], ids=["recorded", "resumed", "replayed"])

flat = hx.handler({Flip: hx.ctl(lambda resume, op: resume(True) + resume(False))}, returns=lambda y: [float(y)])
counting_sines = hx.handler({Sin: lambda n, op, x: (n + 1, hx.perform(op, x))})


@styles
def test_each_execution_has_references_of_its_own(style):
    def f():
        ref = hx.new_ref(0.0)
        ref[...] += 1.0
        hx.perform(Flip())
        ref[...] += 10.0
        return ref[...]

    assert style(flat)(f)() == [11, 11]

    def filled():
        ref = hx.new_ref(hnp.zeros(2))
        for i in range(2):
            ref[i] = hnp.where(hx.perform(Flip()), 1.0, 2.0)
        return 10 * ref[0] + ref[1]

    assert style(flat)(filled)() == [11, 12, 21, 22]


@styles
def test_loops_write_the_references_of_each_execution(style):
    def f():
        ref = hx.new_ref(0.0)

        def add(i, c):
            ref[...] += 1.0
            return c

        hx.lax.fori_loop(0, 3, add, 0)
        return hnp.where(hx.perform(Flip()), 10.0, 20.0) + ref[...]

    assert style(flat)(f)() == [13, 23]


@executed
def test_references_from_outside_are_written_once(style):
    ref = hx.new_ref(0.0)

    def f():
        ref[...] += 1.0
        hx.perform(Flip())
        return ref[...]

    assert style(flat)(f)() == [1, 1]


@styles
@pytest.mark.parametrize("wrap", [hx.jit, hx.grad, lambda f: lambda x: hx.lax.fori_loop(0, 2, lambda i, c: f(c), x)])
def test_a_state_that_clauses_change_in_bodies_is_not_started_again(style, wrap):
    h = hx.handler(
        {
            Sin: lambda n, op, x: (n + 1.0, n * x),
            Flip: hx.ctl(lambda resume, n, op: resume(n, True) + resume(n, False)),
        },
        returns=lambda n, y: [float(n), float(y)],
    )

    def f(x):
        hnp.sin(x)
        y = wrap(hnp.sin)(x)
        hx.perform(Flip())
        return y

    n, y, *again = style(h, hnp.float32(0.0))(f)(3.0)
    assert n >= 2
    assert again == [n, y]


@styles
def test_handlers_around_the_rest_answer_the_rest_alone(style):
    zero = hx.handler({Sin: lambda op, x: 0.0 * x})
    h = hx.handler({Flip: hx.ctl(lambda resume, op: [hx.handle(zero)(resume)(True), resume(True)])})

    def f(x):
        y = hnp.sin(x)
        hx.perform(Flip())
        return y, hnp.sin(x)

    sin = float(hnp.sin(1.0))
    assert [[float(y) for y in pair] for pair in style(h)(f)(1.0)] == [[sin, 0.0], [sin, sin]]


@styles
def test_handlers_further_out_answer_each_operation_once(style):
    def f(x):
        y = hnp.sin(x)
        hx.perform(Flip())
        return y

    assert hx.handle(counting_sines, 0)(style(flat)(f))(1.0)[0] == 1
    assert hx.handle(counting_sines, 0)(style(flat)(lambda x: hx.jit(f)(x)))(1.0)[0] == 1
    choices = hx.handler({Sin: hx.ctl(lambda resume, op, x: resume(0.0) + resume(1.0))}, returns=lambda y: [y])
    pairs = hx.handler({Flip: hx.ctl(lambda resume, op: (resume(True), resume(False)))})
    worlds = style(choices)(style(pairs)(lambda x: hnp.sin(x) + hnp.where(hx.perform(Flip()), 10.0, 20.0)))(1.0)
    assert [[float(y) for y in pair] for pair in worlds] == [[10, 20], [11, 21]]


@styles
@pytest.mark.parametrize("around", [hx.vmap, lambda f: hx.vmap(hx.grad(f)), lambda f: hx.jit(hx.vmap(f))])
def test_each_part_is_executed_again_under_what_it_was_executed_under(style, around):
    h = hx.handler(
        {
            Ask: hx.ctl(lambda resume, op: hnp.sum(around(resume)(hnp.arange(3.0)))),
            Flip: hx.ctl(lambda resume, op: resume(True) + 2 * resume(False)),
        }
    )

    def f():
        x = hx.perform(Ask())
        y = hnp.sin(x) * 2
        y = hnp.where(hx.perform(Flip()), y, -x)
        return hnp.where(hx.perform(Flip()), y * x, 3 * y)

    assert style(h)(f)() == pytest.approx(float(hx.handle(h)(f)()), rel=1e-5)


@styles
def test_settings_around_resume_hold_in_the_rest(style):
    def clause(resume, op):
        answers = []
        for _ in range(2):
            with hx.rules(evaluate={Sin: lambda op, x: 0 * x}):
                answers.append(float(resume(True)))
        return answers

    def f():
        y = hnp.sin(1.0)
        hx.perform(Flip())
        return y + hnp.sin(1.0)

    sin = float(hnp.sin(1.0))
    assert style(hx.handler({Flip: hx.ctl(clause)}))(f)() == [sin, sin]


@executed
def test_widths_around_resume_hold_in_the_rest(style):
    def clause(resume, op):
        with hx.configure(default_float="float64"):
            return [resume(True), resume(False)]

    def f():
        y = hnp.ones(())
        hx.perform(Flip())
        return [str(y.dtype), str(hnp.ones(()).dtype)]

    assert style(hx.handler({Flip: hx.ctl(clause)}))(f)() == [["float32", "float64"]] * 2


@executed
def test_a_final_clause_has_the_settings_of_its_handler(style):
    def f():
        with hx.configure(default_float="float64"):
            return hx.perform(Ask())

    assert style(hx.handler({Ask: hx.final(lambda op: str(hnp.zeros(()).dtype))}))(f)() == "float32"
    passed = hx.handler({Ask: hx.final(lambda op: hx.perform(op) + 1.0)})
    assert float(hx.handle(hx.handler({Ask: lambda op: 2.0}))(style(passed)(f))()) == 3.0


@styles
def test_scopes_of_the_rest_are_its_own(style):
    seen = []

    def note(op):
        seen.append(hx.site().scopes)
        return 1.0

    def f():
        with hx.named_scope("a"):
            hx.perform(Flip())
        with hx.named_scope("b"):
            return hx.perform(Ask())

    hx.handle(hx.handler({Ask: note}))(style(flat)(f))()
    assert seen == [("b",), ("b",)]

    def layer():
        with hx.named_scope("layer"):
            return hnp.sin(hx.perform(Ask()) * 1.0)

    two = hx.handler({Ask: hx.ctl(lambda resume, op: resume(1.0) + resume(2.0))})
    counted = hx.costs(lambda: style(two)(layer)())().by_scope()
    assert {scope: cost.flops for scope, cost in counted.items()} == {"layer": 5}


@executed
def test_a_loop_keeps_the_containers_that_its_iterations_change(style):
    h = hx.handler(
        {Flip: hx.ctl(lambda resume, op: resume(True) + resume(False))}, returns=lambda y: ["".join(y)]
    )

    def step(i, acc):
        acc.append("T" if hx.perform(Flip()) else "F")
        return acc

    assert style(h)(lambda: hx.loop(0, 2, step, []))() == ["TT", "TF", "FT", "FF"]


@executed
def test_an_execution_that_does_something_else_is_refused(style):
    runs = []

    def again(f):
        runs.clear()
        return hx.handle(hx.handler({Tick: lambda n, op: (n + 1, None)}), 0)(style(flat)(f))()

    def ends():
        runs.append(1)
        firsts = 2 if style is replayed else 1
        return hnp.where(hx.perform(Flip()), 1.0, 2.0) if len(runs) <= firsts else 5.0

    with pytest.raises(hx.errors.BadCall, match="the function ended, where it performed flip"):
        again(ends)

    def ticks():
        runs.append(1)
        if len(runs) > 1:
            hx.perform(Tick())
        return hnp.where(hx.perform(Flip()), 1.0, 2.0)

    with pytest.raises(hx.errors.BadCall, match="tick: the function performed it, where it performed flip"):
        again(ticks)


@executed
def test_an_execution_that_performs_something_else_is_refused(style):
    runs = []

    def other():
        runs.append(1)
        return hx.perform(Ask()) if len(runs) == 1 else hnp.where(hx.perform(Flip()), 1.0, 2.0)

    h = flat | hx.handler({Ask: hx.ctl(lambda resume, op: resume(1.0) + resume(2.0))})
    with pytest.raises(hx.errors.BadCall, match="flip: the function performed it, where it performed ask"):
        style(h)(other)()
    runs.clear()

    def fetch():
        runs.append(1)
        hx.perform(Fetch("one" if len(runs) == 1 else "two"))
        return hnp.where(hx.perform(Flip()), 1.0, 2.0)

    with pytest.raises(hx.errors.BadCall, match="fetch"):
        hx.handle(hx.handler({Fetch: lambda op: op.what}))(style(flat)(fetch))()

    def loops():
        runs.append(1)
        if len(runs) == 1:
            return hx.loop(0, 2, lambda i, x: x + hnp.where(hx.perform(Flip()), 1.0, 2.0), 0.0)
        return hnp.where(hx.perform(Flip()), 1.0, 2.0)

    runs.clear()
    with pytest.raises(hx.errors.BadCall, match="was in a loop"):
        style(flat)(loops)()


@executed
def test_otherwise_answers_each_operation_once(style):
    seen = []

    def note(op, x):
        seen.append(op.name)
        return hx.perform(op, x)

    h = hx.handler(
        {Flip: hx.ctl(lambda resume, op: resume(True) + resume(False))}, returns=lambda y: [float(y)],
        otherwise=note, over=lambda op: isinstance(op, Sin),
    )

    def f():
        y = hnp.sin(1.0)
        hx.perform(Flip())
        return y

    style(h)(f)()
    assert seen == ["sin"]


def test_what_tail_gives_is_returned_as_it_is():
    f = lambda: hnp.where(hx.perform(Flip()), 1.0, 2.0)
    for clause in (lambda resume, op: [resume.tail(True)], lambda resume, op: resume.tail(True) + resume.tail(False)):
        for style in (hx.direct, replayed):
            with pytest.raises(hx.errors.BadCall, match=r"used resume\.tail and returned something else"):
                style(hx.handler({Flip: hx.ctl(clause)}))(f)()


@pytest.mark.parametrize("n", [5, 17, 40])
def test_a_later_resumption_may_be_in_another_thread(n):
    kept = []
    h = hx.handler({Ask: hx.ctl(lambda resume, op: (kept.append(resume), resume(1.0) + 1.0)[1])})
    hx.direct(h)(lambda: sum([hx.perform(Ask()) for _ in range(n)]))()
    assert in_thread(lambda: float(kept[0](3.0))) == 2 * n + 1 == float(kept[0](3.0))
    assert _THREAD.nesting is None


def test_a_refused_resumption_is_not_used_up():
    step = hx.steps(Ask)(lambda: hx.perform(Ask()) + 1)()
    with pytest.raises(hx.errors.CannotCross):
        in_thread(step.resume, 1.0)
    assert float(step.resume(3.0).value) == 4.0


@styles
@pytest.mark.parametrize("kind", [hx.ctl, hx.final])
def test_hundreds_of_handlers_may_be_within_each_other(style, kind):
    f = lambda: 1.0
    for _ in range(400):
        f = style(hx.handler({Ask: kind(lambda *given: 1.0)}))(f)
    assert f() == 1.0


@styles
def test_what_follows_the_function_is_part_of_the_rest(style):
    asking = lambda y: hx.handle(hx.handler({Ask: lambda op: hnp.float32(y)}))
    clause = lambda resume, op: 100 * asking(10.0)(resume)(True) + asking(20.0)(resume)(False)
    h = hx.handler({Flip: hx.ctl(clause)}, returns=lambda y: y + hx.perform(Ask()))
    f = lambda: hnp.where(hx.perform(Flip()), 1.0, 2.0)
    assert float(asking(1.0)(style(h)(f))()) == 1122.0
    mapped = hx.handler({Ask: hx.ctl(lambda resume, op: hx.jit(hx.grad(resume))(1.0))}, returns=hnp.sin)
    assert float(style(mapped)(lambda: hx.perform(Ask()))()) == pytest.approx(float(hnp.cos(1.0)))


def test_a_scheduler_of_many_tasks_needs_no_deep_stack():
    @hx.effect
    class Fork:
        f: object

        def result_type(op):
            return object

    def scheduler(main):
        waiting, ended = [], []
        later = lambda resume: waiting.append(lambda: resume(None))

        def run(f):
            clauses = {
                Fork: hx.ctl(lambda resume, op: (later(resume), run(op.f))[1]),
                Fetch: hx.ctl(lambda resume, op: (later(resume), waiting.pop(0)())[1]),
            }
            end = lambda y: (ended.append(y), waiting.pop(0)() if waiting else None)[1]
            return hx.direct(hx.handler(clauses, returns=end))(f)()

        run(main)
        return len(ended)

    task = lambda: [hx.perform(Fetch("turn")) for _ in range(3)]
    assert scheduler(lambda: [hx.perform(Fork(task)) for _ in range(300)]) == 301


def test_hundreds_of_handlers_answer_what_is_within_them():
    def asking(f):
        @hx.effect
        class Own:
            def result_type(op):
                return F32

        return hx.direct(hx.handler({Own: hx.ctl(lambda resume, op: resume(1.0))}))(lambda: f() + hx.perform(Own()))

    f = lambda: hnp.float32(0)
    for _ in range(200):
        f = asking(f)
    assert float(f()) == 200


def test_what_an_outer_clause_drops_is_closed_from_the_inside():
    closed = []
    inner = hx.handler({Fetch: hx.ctl(lambda resume, op: resume(1))})
    outer = hx.handler({Ask: hx.ctl(lambda resume, op: hnp.float32(-1))})

    def f():
        try:
            return hx.perform(Ask())
        finally:
            closed.append("f")

    def g():
        try:
            return hx.direct(inner)(f)()
        finally:
            closed.append("g")

    assert float(hx.direct(outer)(hx.direct(inner)(g))()) == -1
    gc.collect()
    assert closed == ["f", "g"]


@styles
def test_finally_performs_where_the_program_is_ended(style):
    def f():
        try:
            return hx.perform(Ask())
        finally:
            hx.perform(Tick())

    ending = {Ask: hx.final(lambda op: 2.0), Tick: lambda op: None}
    h = hx.handler(ending | {Flip: hx.ctl(lambda resume, op: resume(True))})
    assert float(style(h)(f)()) == 2.0
    resuming = hx.handler({Ask: hx.ctl(lambda resume, op: resume(1.0)), Tick: lambda op: None})
    if style is replayed:
        with pytest.raises(hx.errors.BadCall, match="while it is left"):
            style(resuming)(f)()
    else:
        assert float(style(resuming)(f)()) == 1.0
