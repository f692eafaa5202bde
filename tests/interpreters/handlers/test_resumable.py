"""Clauses that take the rest of the program, and clauses that end it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect
class Pick:
    def result_type(op, xs):
        return xs.update(shape=xs.shape[1:])


@hx.effect(vmap="per_lane")
class Halt:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane")
class Tock:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Weigh:
    def result_type(op, n):
        return n


worlds = hx.handler({Pick: hx.ctl(lambda resume, op, xs: hnp.stack([resume(x) for x in xs]))})
at_once = hx.handler({Pick: hx.ctl(lambda resume, op, xs: hx.vmap(resume)(xs))})
never = hx.handler({Pick: hx.ctl(lambda resume, op, xs: xs.sum())})


def pick(*xs):
    return hx.perform(Pick(), hnp.array(xs, "float32"))


def products():
    return pick(1.0, 2.0) * pick(10.0, 20.0, 30.0)


def weigh(n):
    return hx.perform(Weigh(), n)


GRID = [[10, 20, 30], [20, 40, 60]]


def test_resume_may_be_called_many_times():
    assert hx.handle(worlds)(products)().tolist() == GRID


def test_resume_may_be_mapped_so_that_all_choices_are_one_batch():
    assert hx.handle(at_once)(products)().tolist() == GRID
    assert hx.jit(hx.handle(at_once)(products))().tolist() == GRID


def test_resume_may_never_be_called():
    assert float(hx.handle(never)(products)()) == 3.0


def test_resume_may_be_called_once_and_what_it_gives_be_used():
    doubled = hx.handler({Pick: hx.ctl(lambda resume, op, xs: 2 * resume(xs[0]))})
    assert float(hx.handle(doubled)(products)()) == 40.0


def test_every_world_has_a_state_of_its_own_where_the_clause_says_so():
    numbered = hx.handler(
        {Pick: hx.ctl(lambda resume, s, op, xs: [resume(10 * s + i, x) for i, x in enumerate(xs)])}
    )
    answers = hx.handle(numbered, 0)(lambda: pick(1.0, 2.0) + pick(3.0, 4.0))()
    assert [[(s, float(y)) for s, y in row] for row in answers] == [[(0, 4), (1, 5)], [(10, 5), (11, 6)]]


def test_a_continuation_that_was_kept_goes_on_with_the_values_of_its_world():
    kept = []
    keeping = hx.handler({Pick: hx.ctl(lambda resume, op, xs: (kept.append(resume), [resume(x) for x in xs])[1])})
    answers = hx.handle(keeping)(products)()
    assert [[float(y) for y in row] for row in answers] == GRID
    first, world_of_1, world_of_2 = kept
    assert [float(y) for y in first(hnp.float32(3.0))] == [30, 60, 90]
    assert (float(world_of_1(hnp.float32(7.0))), float(world_of_2(hnp.float32(7.0)))) == (7, 14)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_a_thousand_operations_may_resume_one_after_the_other(wrap):
    counted = hx.handler({Pick: hx.ctl(lambda resume, s, op, xs: resume(s + 1, xs[0]))})

    def f():
        return sum([pick(float(i % 7)) for i in range(1000)])

    count, total = wrap(hx.handle(counted, 0)(f))()
    assert (int(count), float(total)) == (1000, sum(i % 7 for i in range(1000)))


def test_fun_clauses_work_beside_and_the_state_is_threaded_through_them():
    both = worlds | hx.handler({Tock: lambda s, op: (s + 1, None)})
    both = both | hx.handler({Pick: hx.ctl(lambda resume, s, op, xs: hnp.stack([resume(s, x)[0] for x in xs]))})

    def f():
        hx.perform(Tock())
        y = pick(1.0, 2.0)
        lax.fori_loop(0, 3, lambda i, c: (hx.perform(Tock()), c)[1], 0.0)
        return y

    assert hx.handle(both, 0)(f)().tolist() == [4, 4]


def test_returns_is_applied_in_every_world():
    listed = hx.handler(
        {Pick: hx.ctl(lambda resume, op, xs: resume(xs[0]) + resume(xs[1]))}, returns=lambda y: [float(y)]
    )
    assert hx.handle(listed)(lambda: pick(1.0, 2.0) + pick(10.0, 20.0))() == [11, 21, 12, 22]


def test_both_branches_of_a_cond_may_ask_for_the_rest():
    def f(x):
        y = lax.cond(x > 0, lambda: pick(1.0, 2.0), lambda: pick(5.0, 6.0))
        return y * x

    handled = hx.handle(worlds)(f)
    for run in (handled, hx.jit(handled)):
        assert run(2.0).tolist() == [2, 4]
        assert run(-1.0).tolist() == [-5, -6]
    assert hx.vmap(handled)(np.float32([2.0, -1.0])).tolist() == [[2, 4], [-5, -6]]


def test_a_jitted_body_is_entered():
    assert hx.handle(worlds)(hx.jit(products))().tolist() == GRID


def test_branches_whose_answers_differ_in_structure_are_refused():
    f = lambda x: lax.cond(x > 0, lambda: pick(1.0, 2.0), lambda: pick(1.0, 2.0, 3.0))
    with pytest.raises(hx.errors.DTypeMismatch, match="one type"):
        hx.jit(hx.handle(worlds)(f))(2.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda: lax.scan(lambda c, _: (c + pick(1.0, 2.0), None), 0.0, None, 3),
        lambda: lax.while_loop(lambda c: c < 3.0, lambda c: c + pick(1.0, 2.0), 0.0),
    ],
)
def test_the_rest_of_a_loop_is_refused_with_the_remedy(f):
    with pytest.raises(hx.errors.CannotCross, match=r"resume(.|\n)*unroll"):
        hx.handle(worlds)(f)()


def test_the_gradient_of_all_worlds_is_the_gradient_in_each():
    slope = hx.jacrev(lambda x: hx.handle(worlds)(lambda: hnp.sin(x) * pick(1.0, 2.0))())(1.0)
    assert slope == pytest.approx(np.cos(1.0) * np.array([1.0, 2.0]), rel=1e-6)


def test_a_handler_that_resumes_records_first_so_python_cannot_ask_for_values():
    with pytest.raises(hx.errors.TracerBoolConversionError):
        hx.handle(worlds)(lambda: 1.0 if pick(1.0, 2.0) > 1 else 2.0)()


# final


@pytest.mark.parametrize("kind", [hx.final, hx.ctl])
def test_arguments_that_are_no_arrays_are_handed_through(kind):
    clause = (lambda op, n: 10.0 * n) if kind is hx.final else lambda resume, op, n: resume(10.0 * n)
    installed = hx.handle(hx.handler({Weigh: kind(clause)}))

    class Model:
        rate = 2.0

        @installed
        def scaled(self, mode, x, *, by):
            assert mode == "scaled"
            return hx.perform(Weigh(), by(self.rate * x))

    assert Model().scaled("scaled", 3.0, by=hnp.negative) == -60.0
    assert hx.jit(lambda x: Model().scaled("scaled", x, by=hnp.negative))(3.0) == -60.0


def in_lanes(f):
    return hx.vmap(f)(hnp.ones(2))


KEPT: list = []


@pytest.mark.parametrize(("clause", "f", "words"), [
    (hx.ctl(lambda op, n: n), weigh, "the clause takes (op, n), it is called with (resume, op, f32[]~)."),
    (hx.final(lambda n: n), weigh, "the clause takes (n), it is called with (op, f32[]~)."),
    (lambda op, n: None, weigh, "must give 1 result, got None"),
    (lambda op, n: n, lambda x: hx.perform(Weigh()), "its result_type takes (op, n), it is performed with (op)"),
    (lambda op, *ns: 1.0, lambda x: hx.perform(Weigh(), x, x), "is performed with (op, f32[]~, f32[]~)"),
    (hx.ctl(lambda resume, op, n: resume(n)), lambda x: in_lanes(weigh), "handle it inside, vmap(hx.handle(h)(f))"),
    (hx.ctl(lambda resume, op, n: resume(n)), lambda x: x if x > 0 else -x, "hx.direct(h)(f), where Python"),
    (hx.ctl(lambda resume, op, n: resume(n)), lambda x: "abc"[hnp.int32(x)], "close over numbers that Python needs"),
    (hx.final(lambda op, n: n), lambda x: (KEPT.append(x), x)[1], "recorded before a clause answers"),
])
def test_what_a_clause_or_a_handled_function_lacks_is_said(clause, f, words):
    handled = hx.handle(hx.handler({Weigh: clause}))(f)
    with pytest.raises(hx.errors.HandlaxError, match=re.escape(words)):
        handled(1.0) + KEPT.pop()


def test_a_clause_that_gives_too_much_is_told_how_much():
    with pytest.raises(hx.errors.BadArgument, match="got a tuple of 3"):
        hx.handle(hx.handler({Weigh: lambda s, op, n: (s, n, n)}), 0.0)(weigh)(1.0)


def test_kinds_are_values():
    f = lambda resume, op, xs: resume(xs[0])
    assert hx.ctl(f) == hx.ctl(f) and hash(hx.ctl(f)) == hash(hx.ctl(f)) and hx.ctl(f) != hx.final(f)
    with pytest.raises(hx.errors.BadArgument, match="callable"):
        hx.ctl(3)


@pytest.mark.parametrize(
    ("state", "arguments"),
    [((), (1, 2.0)), ((), ()), ((), (1, 2, 3)), ((0,), (2.0,)), ((0,), ()), ((0,), (1, 2, 3))],
)
def test_resume_with_other_arguments_is_refused_and_shown(state, arguments):
    clause = (lambda resume, s, op, xs: resume(*arguments)) if state else (lambda resume, op, xs: resume(*arguments))
    shown = "resume(s, y)" if state else "resume(y)"
    with pytest.raises(hx.errors.BadCall) as caught:
        hx.handle(hx.handler({Pick: hx.ctl(clause)}), *state)(products)()
    assert shown in str(caught.value) and f"got resume({', '.join(map(repr, arguments))})" in str(caught.value)


def test_resume_takes_its_arguments_by_name_and_none_where_there_is_no_result():
    named = hx.handler({Pick: hx.ctl(lambda resume, s, op, xs: resume(y=xs[0], s=s + 1))})
    assert [float(x) for x in hx.handle(named, 0)(products)()] == [2, 10]
    going_on = hx.handler({Tock: hx.ctl(lambda resume, op: resume())})
    assert float(hx.handle(going_on)(lambda x: (hx.perform(Tock()), x)[1])(3.0)) == 3.0
    counting = hx.handler({Tock: hx.ctl(lambda resume, s, op: resume(s + 1))})
    assert [float(x) for x in hx.handle(counting, 0)(lambda x: (hx.perform(Tock()), x)[1])(3.0)] == [1, 3]


def test_a_clause_that_resumes_in_a_rule_alone_is_refused():
    g = hx.custom_jvp(lambda x: x)
    g.defjvp(lambda xs, ts: (hx.perform(Pick(), hnp.stack([xs[0], xs[0]])), ts[0]))
    handled = hx.handle(hx.handler({Pick: hx.ctl(lambda resume, op, xs: resume(xs[1]))}))(hx.jit(g))
    with pytest.raises(hx.errors.CannotCross, match=r"custom_jvp of .*pick.*the rest of the program") as error:
        hx.grad(handled)(1.0)
    assert error.value.hint is not None


def test_a_clause_once_that_resumes_within_its_own_resumption_is_refused():
    kept = []

    def clause(resume, op, xs):
        if kept:
            return kept[0](xs[0])
        kept.append(resume)
        return resume(xs[0])

    with pytest.raises(hx.errors.BadCall, match="resumes at most once"):
        hx.handle(hx.handler({Pick: hx.once(clause)}))(products)()
