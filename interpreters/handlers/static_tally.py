"""Static tallies: a value such as a FLOP count that is computed from a program without evaluating it.

Loops multiply the tally of their body by the trip count, branches choose; see ``tally``. A branch that is
executed in a known share of all executions, as in a loop that some lanes leave before others, is repeated as often as
the loops around it say, by trip counts that make the share an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.source_locations import CodeLabeller
from ...effects.base.stack import Run, at_site, current, inside
from ...effects.programs.program import Program
from .handler import Handler, check_arity

Shares = dict[tuple[int, int], Any]  # tallies, by the share of executions that they are of, a reduced fraction
WHOLE = (1, 1)


def tally_bodies(handler: Handler, op: Any, operands: Sequence[Any]) -> Any:
    """The tally of the higher-order operation being answered, on operands, which may be types."""
    tally = _Tally(handler)
    with inside(tally.run):
        return tally.whole(tally.bodies(op, operands))


def tally_program(handler: Handler, program: Program) -> Any:
    """The tally of all equations of a program, in order."""
    tally = _Tally(handler)
    with inside(tally.run):
        return tally.whole(tally.program(program))


class _Tally:
    """The tallies of programs under one handler, whose clauses are told the site of each equation.

    ``known`` has those of programs so far, by identity and the labels around them: a body that is called twice is
    tallied once, so that nested functions, each of which calls the next one twice, cost no more than their equations.
    """

    def __init__(self, handler: Handler):
        self.handler = handler
        self.moves: Any = handler.moves
        self.known: dict[Any, Shares] = {}
        self.run = Run(current(), "")

    def bodies(self, op: Any, operands: Sequence[Any]) -> Shares:
        """The tallies of a higher-order operation."""
        moves = self.moves
        shares, *others = [self.program(body) for body in op.typical[len(op.tests) :]]
        for other in others:
            shares = {WHOLE: moves.choose(self.whole(shares), self.whole(other))}
        if op.runs == "until":
            test = self.whole(self.program(op.bodies[0]))
            return {WHOLE: moves.repeat(moves.then(test, self.whole(shares)), None)}
        if op.typical is not op.bodies or op.share == () or op.scopes:
            shares = {WHOLE: moves.repeat(self.whole(shares), None)}
        if op.share:
            return self.repeated(shares, *op.share)
        times = op.times(*[getattr(x, "type", x) for x in operands])
        return shares if times == 1 else self.repeated(shares, times)

    def repeated(self, shares: Shares, times: int, of: int = 1) -> Shares:
        """The shares of a program's tally, multiplied by ``times / of``: it is executed ``times`` times in each ``of``
        executions.
        """
        moves, total = self.moves, Shares()
        for (number, among), value in shares.items():
            factor = gcd(number * times, among * of)
            share = number * times // factor, among * of // factor
            if share[1] == 1:
                share, value = WHOLE, moves.repeat(value, share[0])
            total[share] = moves.then(total[share], value) if share in total else value
        return total

    def whole(self, shares: Shares) -> Any:
        """The tally of all shares together, each repeated an unknown number of times unless it is the whole."""
        moves = self.moves
        total = shares.get(WHOLE, moves.empty)
        for share, value in shares.items():
            total = total if share == WHOLE else moves.then(total, moves.repeat(value, None))
        return total

    def program(self, program: Program) -> Shares:
        """The tallies of a program that is performed in place of the operation at the current site."""
        labeller = self.run.inlining_labeller
        key = id(program), labeller.labels
        if key not in self.known:
            self.known[key] = on_deep_stack(self.equations, program, labeller)
        return self.known[key]

    def equations(self, program: Program, labeller: CodeLabeller) -> Shares:
        """``program``, uncached."""
        handler, moves, cell = self.handler, self.moves, self.run.cell
        total = {WHOLE: moves.empty}
        with at_site(cell.site, cell):
            for op, args, cell.site in zip(program.ops, program.args, program.sites.labelled_by(labeller)):
                clause: Any = handler.clauses.get(type(op))
                types = [program.type_of(n) for n in args]
                if clause is None and op.bodied:
                    for share, value in self.bodies(op, types).items():
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
