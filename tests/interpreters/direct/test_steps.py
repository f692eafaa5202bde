"""The effects of a program as values."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

F32 = hx.ArrayType((), "float32")


@hx.effect(vmap="per_lane")
class Evaluate:
    def result_type(op, x):
        return F32


@hx.effect(vmap="per_lane")
class Other:
    def result_type(op):
        return F32


def evaluate(x):
    return hx.perform(Evaluate(), hnp.float32(x))


def bisect(a, b):
    """The zero of what is evaluated between a and b, by Python's control flow on answers."""
    fa = float(evaluate(a))
    while b - a > 1e-4:
        middle = (a + b) / 2
        fm = float(evaluate(middle))
        if fa * fm <= 0:
            b = middle
        else:
            a, fa = middle, fm
    return a


@pytest.mark.parametrize("replay", [False, True])
def test_what_many_programs_ask_is_answered_by_one_mapped_call(replay):
    targets = np.linspace(0.5, 2.0, 16).astype("float32")
    states = [hx.steps(Evaluate, replay=replay)(bisect)(0.0, 3.0) for _ in targets]
    answer = hx.jit(hx.vmap(lambda x, target: x * x - target))
    calls = 0
    while any([isinstance(state, hx.Step) for state in states]):
        xs = np.array([float(s.operands[0]) if isinstance(s, hx.Step) else 0.0 for s in states], "float32")
        ys = answer(xs, targets)
        states = [s.resume(y) if isinstance(s, hx.Step) else s for s, y in zip(states, ys)]
        calls += 1
    assert calls == 16
    np.testing.assert_allclose([s.value for s in states], np.sqrt(targets), atol=1e-3)


def test_a_step_shows_the_operation_and_its_operands():
    step = hx.steps(Evaluate, Other)(lambda: evaluate(2.0) + hx.perform(Other()))()
    assert (step.op, float(step.operands[0])) == (Evaluate(), 2.0)
    step = step.resume(1.0)
    assert (step.op, step.operands) == (Other(), ())
    done = step.resume(5.0)
    assert isinstance(done, hx.Done)
    assert float(done.value) == 6.0


def test_other_operations_go_to_the_handlers_in_force():
    answering = hx.handle(hx.handler({Other: lambda op: 7.0}))
    step = answering(hx.steps(Evaluate)(lambda: evaluate(2.0) * hx.perform(Other())))()
    assert float(hx.handle(hx.handler({Other: lambda op: 2.0}))(step.resume)(4.0).value) == 8.0
    step = answering(hx.steps(Evaluate)(lambda: evaluate(2.0) * hx.perform(Other())))()
    with pytest.raises(hx.errors.UnhandledEffect, match="other"):
        step.resume(1.0)

    def outside():
        step = hx.steps(Evaluate)(lambda: evaluate(2.0) * hx.perform(Other()))()
        return step.resume(3.0).value

    assert float(answering(outside)()) == 21.0


def test_a_step_is_resumed_once_unless_it_is_asked_for():
    step = hx.steps(Evaluate)(lambda: evaluate(2.0))()
    assert float(step.resume(1.0).value) == 1.0
    with pytest.raises(hx.errors.BadCall, match="at most once"):
        step.resume(2.0)
    step = hx.steps(Evaluate, many=True)(lambda: evaluate(2.0) + 1)()
    assert [float(step.resume(y).value) for y in (1.0, 2.0)] == [2.0, 3.0]
    assert hx.vmap(lambda y: step.resume(y).value)(hnp.arange(3.0)).tolist() == [1, 2, 3]


def test_kinds_are_needed():
    with pytest.raises(hx.errors.BadArgument, match="steps: at least one"):
        hx.steps()
    with pytest.raises(hx.errors.BadArgument, match="steps"):
        hx.steps(3)
    with pytest.raises(hx.errors.BadArgument, match="one by one"):
        hx.steps((Evaluate, Other))
