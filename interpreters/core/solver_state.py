"""How a handler with a state crosses a linear solve whose bodies perform effects: the state becomes an operand.

    x = solve(s, b)   becomes   x, end = solve(s, start, b)   with   matvec(s, start, x) = b

``start`` is the state before the solve, ``end`` the state that the solver leaves. The linear equation alone determines
x, so that x is differentiated by another solve from the same ``start``, whose end state is dropped; ``end`` is
differentiated through the operations of the solver.
"""

from __future__ import annotations

from typing import Any

from ...effects.programs.closure_conversion import close_all
from ...effects.programs.higher_order import Call
from .body_transform import BodyTransformer, transform_body
from .state_flow import RequiredSignature


def cross_solver(run: BodyTransformer, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Answer the linear solve ``op`` under a handler with a state, none of whose operands is a box of the handler."""
    flow = run.flow_through(op)
    start = flow.inner_types()
    inputs, results = [None] * len(operands), [None] * len(op.bodies[0].outs)
    solve = transform_body(run, op.bodies[0], inputs, None, flow, start)
    layout = flow.join(run, Call(op.bodies[:1]), [solve], start)
    at = (op.shared, len(results))
    required = [layout.required(results, 0)]
    required += [RequiredSignature(results, layout.types, ()) for _ in op.bodies[1:]]  # their ends are of no concern
    bodies = [transform_body(run, body, inputs, each, flow, start, at) for body, each in zip(op.bodies, required)]
    lifted = [const for body in bodies for const in body.brought]
    closed, captured = close_all([body.program for body in bodies], lifted)
    shared, values = operands[: op.shared], operands[op.shared :]
    count = len(captured) + len(shared) + len(start)
    new = op.with_bodies(closed, shared=count, states=op.states + len(layout.types))
    ys = run.outer.answer(new, (*captured, *shared, *flow.operands, *values))
    flow.after(run, ys[len(results) :], layout.structure)
    return tuple(ys[: len(results)])
