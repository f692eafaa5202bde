"""A handler with a state around a linear solve whose bodies perform: the state is a value that the bodies read.

    x = solve(s, b)   becomes   x, end = solve(s, start, b)   with   matvec(s, start, x) = b

The equation determines the solution, whatever the solver performs: its derivative solves it again from the same start,
and drops the end. The end is the solver's alone; its derivative is that of the solver's operations.
"""

from __future__ import annotations

from typing import Any

from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.higher_order import Call
from .body_transform import BodyTransformer, RequiredSignature, transform_body


def cross_solver(run: BodyTransformer, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Answer a linear solve under a handler with a state whose values are those of the enclosing run."""
    flow = run.flow(op)
    start = flow.inner_types()
    inputs, results = [None] * len(operands), [None] * len(op.bodies[0].outs)
    at = (op.shared, len(results))
    solve = transform_body(run, op.bodies[0], inputs, None, flow, start, at)
    layout = flow.join(run, Call(op.bodies[:1]), [solve], start)
    required = [layout.required(results, 0)]
    required += [RequiredSignature(results, layout.types, ()) for _ in op.bodies[1:]]  # their ends are of no concern
    bodies = [transform_body(run, body, inputs, each, flow, start, at) for body, each in zip(op.bodies, required)]
    closed, captured = close_all([body.program for body in bodies])
    shared, values = operands[: op.shared], operands[op.shared :]
    state = [convert(x, t.dtype, t.weak) for x, t in zip(flow.operands, start)]
    count = len(captured) + len(shared) + len(state)
    new = op.with_bodies(closed, shared=count, states=op.states + len(layout.types))
    ys = run.outer.answer(new, (*captured, *shared, *state, *values))
    flow.after(run, ys[len(results) :], layout.structure)
    return tuple(ys[: len(results)])
