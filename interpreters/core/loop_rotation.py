"""Rotation of a while loop whose test performs effects: the loop carries the result of the test.

The test is evaluated before the loop and at the end of the body, so that the test of the rotated loop is pure.
"""

from __future__ import annotations

from typing import Any

from ...effects.base.stack import BASE, Run, current, inside
from ...effects.control.branches import Cond
from ...effects.core.arrays import as_array
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.program import Program, interpret
from ...effects.types.dtypes import int32
from .record import Record, record


def rotate(run: Run, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Answer a while loop by ``run`` as ``more = test(c); while more: c = body(c); more = test(c)``.

    The test of the rotated loop reads ``more`` alone, so that it performs no effect.
    """
    with inside(run):
        (more,) = interpret(op.bodies[0], operands)
    return _loop(run, op, op.bodies[1], operands, (more,))


def rotate_within(run: Run, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """``rotate`` with the first test inside the loop too: the first iteration evaluates the test alone.

    Then all effects of the test are performed inside the loop, as in the original one, which matters under ``vmap``:
    lanes that leave the loop at different times perform them lane by lane.
    """
    body = op.bodies[1]
    keep = record(lambda *xs: xs[op.shared :], body.in_types, body.name, "")

    def step(*xs: Any) -> Any:
        *values, begun = xs
        return [*current().answer(Cond((keep, body), op.shared), (convert(begun, int32), *values)), as_array(True)]

    stepped = record(step, [*body.in_types, as_array(False).type], body.name, "")
    return _loop(run, op, stepped, (*operands, as_array(False)), (as_array(True),))[:-1]


def _loop(run: Run, op: Any, body: Program, operands: tuple[Any, ...], more: tuple[Any]) -> tuple[Any, ...]:
    """The results of the loop ``while more: c = body(c); more = test(c)``; ``body`` may have carries the test lacks."""
    test = op.bodies[0]
    recorders = [Record(BASE, ""), Record(BASE, "")]
    inputs = [[recorder.input(t) for t in (*body.in_types, more[0].type)] for recorder in recorders]
    with inside(recorders[1]):
        ends = interpret(body, inputs[1][:-1])
        (again,) = interpret(test, [*inputs[1][: op.shared], *ends[: op.carry]])
    programs = [recorders[0].freeze([inputs[0][-1]], test.name), recorders[1].freeze([*ends, again], body.name)]
    bodies, captured = close_all(programs)
    new = op.with_bodies(bodies, shared=op.shared + len(captured), carry=len(ends) + 1)
    return tuple(run.answer(new, (*captured, *operands, *more))[:-1])
