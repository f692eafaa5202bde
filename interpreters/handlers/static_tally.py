"""Static tallies: a value such as a FLOP count that is computed from a program without evaluating it.

Loops multiply the tally of their body by the trip count, branches choose; see ``TallyMovement``. A branch that is
executed in a known share of all executions, as in a loop that some lanes leave before others, is repeated as often as
the loops around it say, by trip counts that make the share an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from ...effects.base.deep_calls import on_deep_stack
from ...effects.programs.program import Program
from .handler import Handler, check_arity

Shares = dict[tuple[int, int], Any]  # tallies, by the share of executions that they are of, a reduced fraction
Known = dict[int, Shares]
WHOLE = (1, 1)


def tally_bodies(handler: Handler, op: Any, operands: Sequence[Any]) -> Any:
    """The tally of a higher-order operation on operands, which may be types."""
    return _whole(handler.moves, _tally_bodies(handler, op, operands, {}))


def tally_program(handler: Handler, program: Program) -> Any:
    """The tally of all equations of a program, in order."""
    return _whole(handler.moves, _tally_program(handler, program, {}))


def _tally_bodies(handler: Handler, op: Any, operands: Sequence[Any], known: Known) -> Shares:
    moves: Any = handler.moves
    shares, *others = [_tally_program(handler, body, known) for body in op.typical[len(op.tests) :]]
    for other in others:
        shares = {WHOLE: moves.choose(_whole(moves, shares), _whole(moves, other))}
    if op.runs == "until":
        test = _whole(moves, _tally_program(handler, op.bodies[0], known))
        return {WHOLE: moves.repeat(moves.then(test, _whole(moves, shares)), None)}
    share = getattr(op, "share", None)
    if op.typical is not op.bodies or share == () or op.scopes:
        shares = {WHOLE: moves.repeat(_whole(moves, shares), None)}
    if share:
        return _repeated(moves, shares, *share)
    times = op.times(*[getattr(x, "type", x) for x in operands])
    return shares if times == 1 else _repeated(moves, shares, times)


def _repeated(moves: Any, shares: Shares, times: int, of: int = 1) -> Shares:
    """The shares of a program's tally, multiplied by ``times / of``: it is executed ``times`` times in each ``of``
    executions.
    """
    total: Shares = {}
    for (number, among), value in shares.items():
        factor = gcd(number * times, among * of)
        share = number * times // factor, among * of // factor
        if share[1] == 1:
            share, value = WHOLE, moves.repeat(value, share[0])
        total[share] = moves.then(total[share], value) if share in total else value
    return total


def _whole(moves: Any, shares: Shares) -> Any:
    """The tally of all shares together, each repeated an unknown number of times unless it is the whole."""
    total = shares.get(WHOLE, moves.empty)
    for share, value in shares.items():
        total = total if share == WHOLE else moves.then(total, moves.repeat(value, None))
    return total


def _tally_program(handler: Handler, program: Program, known: Known) -> Shares:
    """The tallies of a program.

    ``known`` has those of programs so far, by identity: a body that is called twice is tallied once, so that nested
    functions, each of which calls the next one twice, cost no more than their equations.
    """
    if id(program) not in known:
        known[id(program)] = on_deep_stack(_tally_equations, handler, program, known)
    return known[id(program)]


def _tally_equations(handler: Handler, program: Program, known: Known) -> Shares:
    moves: Any = handler.moves
    total = {WHOLE: moves.empty}
    for op, args in zip(program.ops, program.args):
        clause: Any = handler.clauses.get(type(op))
        types = [program.type_of(n) for n in args]
        if clause is None and op.bodied:
            for share, value in _tally_bodies(handler, op, types, known).items():
                total[share] = moves.then(total.get(share, moves.empty), value)
            continue
        clause = clause or (handler.otherwise if handler.over(op) else None)
        if clause is not None:
            total[WHOLE] = moves.then(total[WHOLE], weight_of(clause, op, types))
    return total


def weight_of(clause: Any, op: Any, types: Sequence[Any]) -> Any:
    """The value of a clause for one operation. Raises: BadCall: the clause has another signature."""
    try:
        return clause(op, *types)
    except TypeError:
        check_arity(op, clause, types, False)
        raise
