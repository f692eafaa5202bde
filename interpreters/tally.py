"""Tally: a static value read off a program, multiplied through loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.programs import Program
from .handler import Handler, check_arity


def tallied(handler: Handler, op: Any, operands: Sequence[Any]) -> Any:
    """What the bodies of one operation come to; of the operands the types are asked."""
    moves: Any = handler.moves
    found = [_program(handler, body) for body in op.main]
    total = found[0]
    for other in found[1:]:
        total = moves.choose(total, other)
    if op.runs == "until":
        return moves.repeat(moves.then(_program(handler, op.bodies[0]), total), None)
    times = op.times(*[getattr(x, "type", x) for x in operands])
    return total if times == 1 else moves.repeat(total, times)


def _program(handler: Handler, program: Program) -> Any:
    moves: Any = handler.moves
    total = moves.empty
    for op, args in zip(program.ops, program.args):
        clause: Any = handler.clauses.get(type(op))
        types = [program.type_of(n) for n in args]
        if clause is None and op.bodied:
            total = moves.then(total, tallied(handler, op, types))
            continue
        clause = clause or (handler.otherwise if handler.over(op) else None)
        if clause is not None:
            total = moves.then(total, weighed(handler, clause, op, types))
    return total


def weighed(handler: Handler, clause: Any, op: Any, types: Sequence[Any]) -> Any:
    """What a clause makes of one operation."""
    try:
        return clause(op, *types)
    except TypeError:
        check_arity(op, clause, types, False)
        raise
