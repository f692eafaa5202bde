"""Static tallies: a value such as a FLOP count that is computed from a program without evaluating it.

Loops multiply the tally of their body by the trip count, branches choose; see ``TallyMovement``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.deep_calls import on_deep_stack
from ...effects.programs.program import Program
from .handler import Handler, check_arity

Known = dict[int, Any]


def tally_bodies(handler: Handler, op: Any, operands: Sequence[Any], known: Known | None = None) -> Any:
    """The tally of a higher-order operation on operands, which may be types. ``known`` as in ``tally_program``."""
    moves: Any = handler.moves
    known = {} if known is None else known
    first, *others = [tally_program(handler, body, known) for body in op.typical[len(op.tests) :]]
    total = first
    for other in others:
        total = moves.choose(total, other)
    if op.runs == "until":
        return moves.repeat(moves.then(tally_program(handler, op.bodies[0], known), total), None)
    if op.typical is not op.bodies:
        total = moves.repeat(total, None)
    times = op.times(*[getattr(x, "type", x) for x in operands])
    return total if times == 1 else moves.repeat(total, times)


def tally_program(handler: Handler, program: Program, known: Known | None = None) -> Any:
    """The tally of all equations of a program, in order.

    ``known`` has the tallies of programs so far, by identity: a body that is called twice is tallied once, so that
    nested functions, each of which calls the next one twice, cost no more than their equations.
    """
    known = {} if known is None else known
    if id(program) not in known:
        known[id(program)] = on_deep_stack(_tally_equations, handler, program, known)
    return known[id(program)]


def _tally_equations(handler: Handler, program: Program, known: Known) -> Any:
    moves: Any = handler.moves
    total = moves.empty
    for op, args in zip(program.ops, program.args):
        clause: Any = handler.clauses.get(type(op))
        types = [program.type_of(n) for n in args]
        if clause is None and op.bodied:
            total = moves.then(total, tally_bodies(handler, op, types, known))
            continue
        clause = clause or (handler.otherwise if handler.over(op) else None)
        if clause is not None:
            total = moves.then(total, weight_of(handler, clause, op, types))
    return total


def weight_of(handler: Handler, clause: Any, op: Any, types: Sequence[Any]) -> Any:
    """The value of a clause for one operation. Raises: BadCall: the clause has another signature."""
    try:
        return clause(op, *types)
    except TypeError:
        check_arity(op, clause, types, False)
        raise
