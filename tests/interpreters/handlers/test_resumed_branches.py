"""Clauses that take the rest of the program, in branches chosen by a traced value: the program stays linear in them."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.program_sizes import equations_in, is_linear, programs_in

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.handlers import resumed_branches


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op, x):
        return x


@hx.effect(vmap="per_lane")
class Tock:
    def result_type(op):
        return None


one = hx.handler({Ask: hx.ctl(lambda resume, op, x: resume(x + 1.0))})
doubled = hx.handler({Ask: hx.ctl(lambda resume, op, x: 2 * resume(x + 1.0))})
both = hx.handler({Ask: hx.ctl(lambda resume, op, x: resume(x + 1.0) - resume(3 * x))})
counting = hx.handler({Ask: hx.ctl(lambda resume, n, op, x: resume(n + x, x + 1.0))})
shifted = hx.handler({Ask: hx.ctl(lambda resume, op, x: hnp.where(x > 1, 1.0, 2.0) * resume(x + 1.0) + hnp.sin(x))})
never = hx.handler({Ask: hx.ctl(lambda resume, op, x: 7 * x)})


def choices(n):
    def f(x):
        for i in range(n):
            x = lax.cond(x > i, lambda y: hx.perform(Ask(), y), lambda y: y * 2.0, x)
        return x

    return f


def expected(n, x, clause, i=0):
    """The answer by plain Python: ``clause(resume, x)``."""
    if i == n:
        return x
    rest = lambda y: expected(n, y, clause, i + 1)
    return clause(rest, x) if x > i else rest(x * 2.0)


CLAUSES = {
    "once": (one, lambda rest, x: rest(x + 1.0)),
    "once, and the answer is used": (doubled, lambda rest, x: 2 * rest(x + 1.0)),
    "once, beside values from before": (shifted, lambda rest, x: (1.0 if x > 1 else 2.0) * rest(x + 1.0) + np.sin(x)),
    "twice": (both, lambda rest, x: rest(x + 1.0) - rest(3 * x)),
    "never": (never, lambda rest, x: 7 * x),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("which", CLAUSES)
@pytest.mark.parametrize("x", [0.5, 1.25, -3.0])
def test_the_answer_is_that_of_the_path_taken(which, x):
    h, clause = CLAUSES[which]
    handled = hx.handle(h)(choices(4))
    assert [hx.jit(handled)(x), handled(x)] == pytest.approx([expected(4, x, clause)] * 2)
    lanes = [expected(4, x, clause), expected(4, 2.0, clause)]
    assert hx.vmap(handled)(np.float32([x, 2.0])).tolist() == pytest.approx(lanes)
    slope = (expected(4, x + 2**-10, clause) - expected(4, x - 2**-10, clause)) * 2**9
    assert hx.jit(hx.grad(handled))(x) == pytest.approx(slope, 1e-4)


@pytest.mark.parametrize("which", CLAUSES)
def test_the_program_is_linear_in_the_choices(which):
    h = CLAUSES[which][0]
    assert is_linear(lambda n: equations_in(hx.make_program(hx.handle(h)(choices(n)))(1.0)))


def inlined(program, sizes):
    """The number of equations once every call is inlined, as XLA does."""
    if id(program) not in sizes:
        inner = [body for op in program.ops if op.bodied for body in op.bodies]
        sizes[id(program)] = len(program.ops) + sum(inlined(body, sizes) for body in inner)
    return sizes[id(program)]


@pytest.mark.parametrize("which", [name for name in CLAUSES if name != "twice"])
def test_the_compiled_program_is_linear_in_the_choices_where_each_resumes_once(which):
    h = CLAUSES[which][0]
    assert is_linear(lambda n: inlined(hx.make_program(hx.handle(h)(choices(n)))(1.0), {}))


def test_a_thousand_choices_are_one_flat_program():
    program = hx.make_program(hx.handle(one)(choices(1000)))(1.0)
    assert len(programs_in(program)) <= 2001 and sum(op.name == "cond" for op in program.ops) == 1000


def test_the_answer_is_used_beside_a_state_and_other_effects():
    using = hx.handler({Ask: hx.ctl(lambda resume, n, op, x: (resume(n + x, x + 1.0), hx.perform(Tock()))[0] * 2)},
                       returns=lambda n, y: n + y)
    ticks = hx.handler({Tock: lambda n, op: (n + 1, None)})
    f = hx.handle(ticks, 0)(lambda x: hx.handle(using, 0.0)(choices(4))(x))
    count, y = hx.jit(f)(1.5)
    assert (int(count), float(y)) == (4, 2**4 * (1.5 + 2.5 + 3.5 + 4.5 + 5.5))
    count, y = hx.jit(f)(-1.0)
    assert (int(count), float(y)) == (0, -(2.0**4))
    lanes = hx.vmap(lambda x: hx.handle(using, 0.0)(choices(4))(x))
    count, ys = hx.jit(hx.handle(ticks, 0)(lanes))(np.float32([1.5, -1]))
    assert (int(count), ys.tolist()) == (4, [2**4 * 17.5, -(2.0**4)])


def test_the_state_goes_on_from_the_branch():
    total, y = hx.jit(hx.handle(counting, 0.0)(choices(3)))(1.5)
    assert (float(total), float(y)) == (1.5 + 2.5 + 3.5, 4.5)


@pytest.mark.parametrize("start", [0.0, 0])
def test_a_state_that_is_weak_after_some_bodies_is_strong_after_the_branch(start):
    handled = hx.handle(counting, start)(choices(8))
    program = hx.make_program(handled)(np.float32(1.5))
    assert sum(op.name == "cond" for op in program.ops) == 8  # all joined: none stands in the rest after another
    for x in np.float32([1.5, -1.5]):
        total, y = hx.jit(handled)(x)
        assert (float(total), float(y)) == tuple(map(float, handled(x)))
        assert (total.dtype, total.weak_type) == (np.float32, False)


def test_lanes_of_branches_whose_states_differ_in_weakness_are_linear_in_them():
    lanes = lambda n: hx.vmap(hx.handle(counting, 0.0)(choices(n)))
    assert is_linear(lambda n: inlined(hx.make_program(lanes(n))(hnp.ones(2)), {}), 4)


def test_what_a_clause_performs_after_it_resumed_comes_after_the_rest():
    late = hx.handler({Ask: hx.ctl(lambda resume, op, x: [resume(x), hx.perform(Tock())][0])})

    @hx.effect(vmap="per_lane")
    class Rest:
        def result_type(op):
            return None

    order = hx.handler({Tock: lambda s, op: (s * 10 + 1, None), Rest: lambda s, op: (s * 10 + 2, None)})

    def f(x):
        y = lax.cond(x > 0, lambda y: hx.perform(Ask(), y), lambda y: y, x)
        hx.perform(Rest())
        return y

    assert int(hx.jit(hx.handle(order, 0)(hx.handle(late)(f)))(1.0)[0]) == 21
    assert int(hx.jit(hx.handle(order, 0)(hx.handle(late)(f)))(-1.0)[0]) == 2


def test_a_clause_may_resume_under_another_handler():
    @hx.effect(vmap="per_lane")
    class Scale:
        def result_type(op, x):
            return x

    inner = hx.handler({Scale: lambda op, x: 10 * x})
    outer = hx.handler({Scale: lambda op, x: 2 * x})
    under = hx.handler({Ask: hx.ctl(lambda resume, op, x: hx.handle(inner)(resume)(x))})

    def f(x):
        return hx.perform(Scale(), lax.cond(x > 0, lambda y: hx.perform(Ask(), y), lambda y: y, x))

    handled = hx.jit(hx.handle(outer)(hx.handle(under)(f)))
    assert (float(handled(1.0)), float(handled(-1.0))) == (10.0, -2.0)


def test_an_error_of_a_clause_is_raised():
    def wrong(resume, op, x):
        raise ValueError("the clause is wrong")

    with pytest.raises(ValueError, match="the clause is wrong"):
        hx.jit(hx.handle(hx.handler({Ask: hx.ctl(wrong)}))(choices(2)))(1.0)


@pytest.mark.parametrize("fails", [0, 1], ids=["before it resumes", "after it resumed"])
def test_an_error_of_a_clause_is_raised_by_its_first_call(fails):
    calls = []

    def clause(resume, op, x):
        calls.append(x)
        y = resume(x) if fails else x
        if len(calls) == 1:
            raise ValueError("only once")
        return y

    with pytest.raises(ValueError, match="only once"):
        hx.jit(hx.handle(hx.handler({Ask: hx.ctl(clause)}))(choices(1)))(1.0)
    assert len(calls) == 1


def test_a_fault_while_a_branch_is_joined_is_raised(monkeypatch):
    recorded, calls = resumed_branches._recorded, []

    def broken(*args):
        calls.append(args)
        assert len(calls) > 1, "planted"
        return recorded(*args)

    monkeypatch.setattr(resumed_branches, "_recorded", broken)
    with pytest.raises(AssertionError, match="planted"):
        hx.jit(hx.handle(one)(choices(1)))(1.0)


USES = {
    "an operator": lambda y: 2 * y,
    "one of NumPy": lambda y: np.float32(2) * y,
    "a function": lambda y: hnp.add(y, y),
    "a list of values": lambda y: hnp.stack([y, y]).sum(),
    "a method": lambda y: y.astype("float32") * 2,
    "a jitted function": lambda y: hx.jit(lambda y: y + y)(y),
    "a branch": lambda y: lax.cond(True, lambda y: 2 * y, lambda y: y, y),
    "a tree": lambda y: hx.tree.map(lambda y: 2 * y, {"y": y})["y"],
    "a test of its type": lambda y: 2 * y if isinstance(y, hx.Array) else y,
    "an error that is caught": lambda y: caught(lambda: y + y),
}


def caught(f):
    try:
        return f()
    except Exception:
        return 0.0


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_use_of_the_answer_is_that_of_a_value(use):
    handled = hx.jit(hx.handle(hx.handler({Ask: hx.ctl(lambda resume, op, x: use(resume(x + 1.0)))}))(choices(2)))
    assert [float(handled(x)) for x in (1.5, -1.0)] == [14.0, -4.0]


def swapped(y):
    match y:
        case (a, b):
            return b, a
        case {"y": a}:
            return {"y": 2 * a}
    return y


LOOKS = {
    "type": lambda y: y[::-1] if type(y) is tuple else y,
    "is None": lambda y: None if y is None else y,
    "match": swapped,
    "leaves": lambda y: 2 * y if len(hx.tree.leaves(y)) == 1 and type(y) is not dict else y,
    "structure": lambda y: y if hx.tree.structure(y) == hx.tree.structure(0) else hx.tree.map(lambda x: 2 * x, y),
    "issubclass": lambda y: 2 * y if issubclass(type(y), hx.Array) else y,
    "static facts": lambda y: hx.tree.map(lambda x: 2 * x if x.ndim == 0 else x, y),
}
ANSWERS = {
    "a value": lambda y: y,
    "a tuple": lambda y: (y, 2 * y),
    "a dict": lambda y: {"y": y},
    "None": lambda y: None,
    "a list": lambda y: [y, y + 1],
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_clause_sees_the_structure_of_the_answer(look, answer):
    looking = hx.handler({Ask: hx.ctl(lambda resume, op, x: look(resume(x + 1.0)))}, returns=answer)
    handled = lambda x: hx.tree.leaves([hx.handle(looking)(f)(x) for f in (choices(1), nested(1))])
    for x in (1.5, -1.0):
        try:
            found = hx.jit(handled)(x)
        except hx.errors.TreeMismatch:
            assert answer is ANSWERS["a list"] and look is swapped  # one branch gives a tuple, another one a list
        else:
            assert [float(y) for y in found] == [float(y) for y in handled(x)]


def test_an_effect_is_performed_once_where_a_branch_is_joined_and_then_is_not():
    swapping = hx.ctl(lambda resume, op, x: LOOKS["type"](resume(x + 1.0)))
    looking = hx.handler({Ask: swapping}, returns=ANSWERS["a tuple"])
    ticks = hx.handler({Tock: lambda n, op: (n + 1, None)})
    f = lambda x: (hx.perform(Tock()), choices(1)(x), hx.perform(Tock()))[1]
    (count, y), lanes = hx.handle(ticks, 0)(hx.jit(hx.handle(looking)(f)))(0.5), np.float32([0.5, 2.0])
    assert (int(count), [float(v) for v in y]) == (2, [3.0, 1.5])
    assert int(hx.handle(ticks, 0)(hx.vmap(hx.handle(looking)(f)))(lanes)[0]) == 4


def test_an_answer_may_hold_a_function_of_values():
    curried = hx.handler({Ask: hx.ctl(lambda resume, op, x: resume(x + 1.0))}, returns=lambda y: lambda z: y * z)
    assert float(hx.jit(lambda x: hx.handle(curried)(choices(2))(x)(10.0))(0.5)) == 25.0


def nested(n):
    def f(x):
        return hx.perform(Ask(), x)

    for i in range(n):
        f = (lambda f, i: lambda x: lax.cond(x > i, lambda x: f(hx.perform(Ask(), x)), lambda x: x, x) - 1.0)(f, i)
    return f


def expected_nested(n, x, clause, rest):
    if n == 0:
        return clause(rest, x)
    end = lambda y: rest(y - 1.0)
    return clause(lambda y: expected_nested(n - 1, y, clause, end), x) if x > n - 1 else end(x)


@pytest.mark.parametrize("which", CLAUSES)
def test_the_answer_is_that_of_the_path_taken_in_nested_branches(which):
    h, clause = CLAUSES[which]
    handled = hx.jit(hx.handle(h)(nested(3)))
    for x in (-0.5, 0.75, 1.5, 2.25):
        assert float(handled(x)) == pytest.approx(expected_nested(3, x, clause, lambda y: y), 1e-4)


def asks(x):
    return 2 * hx.perform(Ask(), x)


def asks_in_a_branch(x):
    return lax.cond(x > 0, asks, lambda x: x, x)


KEEPERS = {"ends by resuming": lambda y: y, "goes on": lambda y: 3 * y}
AFTER = {  # a function, and what a resumption by 5 gives where the clause does not go on
    "no branch": (asks, 10.0),
    "a branch": (asks_in_a_branch, 10.0),
    "a branch before the end": (lambda x: hnp.minimum(asks_in_a_branch(x), 7.0), 7.0),
    "a branch in a branch": (lambda x: lax.cond(x > 1, asks_in_a_branch, lambda x: x, x) + 1.0, 11.0),
}


@pytest.mark.parametrize("keeper", KEEPERS.values(), ids=KEEPERS)
@pytest.mark.parametrize("after", AFTER)
def test_a_resumption_that_a_clause_kept_goes_on_to_the_end(after, keeper):
    f, expected_answer = AFTER[after]
    kept = []
    handled = hx.handle(hx.handler({Ask: hx.ctl(lambda resume, op, x: (kept.append(resume), keeper(resume(x)))[1])}))
    hx.jit(handled(f))(3.0)
    assert kept and {float(resume(np.float32(5))) for resume in [*kept]} == {expected_answer}


def test_a_kept_resumption_that_needs_a_value_of_an_ended_trace_is_refused():
    kept = []
    keeping = hx.handler({Ask: hx.ctl(lambda resume, op, x: (kept.append(resume), resume(x))[1])})
    hx.jit(hx.handle(keeping)(lambda x: asks_in_a_branch(x) + x))(3.0)
    for resume in kept:
        with pytest.raises(hx.errors.EscapedBox, match=r"of jit, .* which has ended(.|\n)*hint: "):
            resume(np.float32(5))


def test_a_clause_is_called_twice_at_most_for_each_nested_branch_that_uses_the_answer():
    def called(n):
        calls = []
        clause = lambda resume, op, x: calls.append(x) or 2.0 * resume(x + 1.0)
        hx.make_program(hx.handle(hx.handler({Ask: hx.ctl(clause)}))(nested(n)))(1.0)
        return len(calls)

    assert is_linear(called, 4) and called(8) <= 2 * 9


def test_what_follows_a_branch_has_the_settings_under_which_the_clause_resumes():
    def clause(resume, op, x):
        with hx.configure(default_float="float64"):
            return resume(x)

    seen = []
    h = hx.handler({Ask: hx.ctl(clause), Tock: lambda op: seen.append(hnp.zeros(2).dtype.name)})

    def f(x):
        y = lax.cond(x > 0, lambda: hx.perform(Ask(), x), lambda: x)
        hx.perform(Tock())
        return y

    hx.jit(lambda x: hx.handle(h)(f)(x))(np.float32(1.0))
    assert {*seen} == {"float32", "float64"}
