"""Rotation of a loop whose test performs: the test is evaluated before the loop and at the end of the body, and its
result is carried.
"""

from __future__ import annotations

from typing import Any

from ...effects.base.stack import BASE, Run, inside
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.program import interpret
from ..core.record import Record


def rotate(run: Run, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Answer a ``while`` by ``run``, as ``more = test(c); while more: c = body(c); more = test(c)``.

    The test of the rotated loop reads ``more`` alone, so it performs nothing.
    """
    test, body = op.bodies
    shared, carried = op.shared, op.carry
    with inside(run):
        (more,) = interpret(test, operands)
    recorders = [Record(BASE, ""), Record(BASE, "")]
    inputs = [[recorder.input(t) for t in (*body.in_types, more.type)] for recorder in recorders]
    with inside(recorders[1]):
        ends = interpret(body, inputs[1][:-1])
        (again,) = interpret(test, [*inputs[1][:shared], *ends])
    programs = [recorders[0].freeze([inputs[0][-1]], test.name), recorders[1].freeze([*ends, again], body.name)]
    bodies, captured = close_all(programs)
    new = op.with_bodies(bodies, shared=shared + len(captured), carry=carried + 1)
    return run.answer(new, (*captured, *operands, more))[:-1]
