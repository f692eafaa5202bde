"""Lanes that go different ways: the two ways of running that a mapped choice needs a rule of its own for."""

from __future__ import annotations

from typing import Any

from ..effects.caches import Cache
from ..effects.comparison import clamp, gt, select_n
from ..effects.control import HigherOrder
from ..effects.programs import Program, interpret
from ..effects.reductions import ReduceOr
from ..effects.stack import inside, perform
from .cross import Crossing, Wanted, lift
from .record import record

_STEPS = Cache("while_any")


def all_branches(op: HigherOrder, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Every branch, and of each result the one that was chosen."""
    index, *xs = operands
    answers = [interpret(body, xs) for body in op.bodies]
    count = len(answers)
    if count == 1:
        return answers[0]
    which = gt(index, 0) if count == 2 else clamp(0, index, count - 1)
    return tuple([select_n(which, *cases) for cases in zip(*answers)])


def while_any(run: Crossing, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """As long as one lane goes on; the carry of a lane whose test has failed stays as it is."""
    test, body = op.bodies
    _, shared, carry, _ = op.groups(operands)
    step = _STEPS.get((test, body), lambda: _step(test, body, op.shared))
    fixed = [run.split(x) for x in shared]
    marks = [mark for mark, _ in fixed] + [0] * op.carry
    going, moving = (
        lift(run, test, marks, Wanted([0])).program,
        lift(run, step, marks, Wanted([0] * op.carry)).program,
    )
    any_going = record(lambda *xs: [perform(ReduceOr((0,)), interpret(going, xs)[0])], going.in_types, going.name)
    parts = [part for _, parts in fixed for part in parts]
    with inside(run.outer):
        carried = [part for x in carry for part in run.force(x, 0)]
        results = perform(op.with_bodies((any_going, moving), shared=len(parts)), *parts, *carried)
    return tuple([run.box(0, [y]) for y in results])


def _step(test: Program, body: Program, shared: int) -> Program:
    """The body for a carry that goes on, else the carry."""

    def stepped(*xs: Any) -> list[Any]:
        (more,) = interpret(test, xs)
        return [select_n(more, old, new) for old, new in zip(xs[shared:], interpret(body, xs))]

    return record(stepped, body.in_types, body.name)
