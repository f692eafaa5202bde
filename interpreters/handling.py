"""Handling: one installation of a user's handler.

While a clause runs, the stack is the one outside its handler: ``perform`` in it forwards.
"""

from __future__ import annotations

from typing import Any

from ..effects import trees
from ..effects.arrays import Array, lift
from ..effects.control import HigherOrder
from ..effects.conversion import convert
from ..effects.errors import BadArgument, DTypeMismatch
from ..effects.identity import fingerprint
from ..effects.operations import Operation, result_type
from ..effects.programs import Program
from ..effects.promotion import promote
from ..effects.stack import BASE, STACK, Run
from ..effects.types import ArrayType
from .cross import NO_FLOW, Crossing, Flow, cross
from .handler import Handler, Kind, check_arity
from .late import cross_linear
from .rotate import rotated
from .tally import tallied, weighed


class _NoState:
    """The state of a handler without one; ``None`` is a state like any other."""

    def __repr__(self) -> str:
        return "no state"


NO_STATE = _NoState()


class Handling(Crossing):
    """One installation of a user's handler. Answers by clause; crosses higher-order operations by the law."""

    __slots__ = ("handler", "clauses", "current", "reified", "plain")

    def __init__(
        self, outer: Run, handler: Handler, state: Any, site: tuple[Any, int] | None = None, reified: Any = None
    ):
        super().__init__(outer, repr(handler), site)
        self.handler = handler
        self.clauses = dict(handler.clauses)
        self.current = state
        self.reified = reified  # what answers a clause of a kind of its own; None in direct mode
        self.plain = not (handler.tallies or handler.resumes or handler.escapes)  # clauses answer, and that is all

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        clause: Any = self.clauses.get(type(op))
        if clause is None:
            if (op.bodied or (op.late and self.plain)) and self.concerns(op):
                return self.cross(op, operands)
            clause = self.handler.otherwise
            if clause is None or not self.handler.over(op):
                return self.outer.answer(op, operands)
        cell = self.cell
        site = cell.site
        if site is None:
            cell.site = self.place()
        token = STACK.set(self.outer)
        try:
            if not self.plain:
                if self.handler.tallies:
                    weight = weighed(self.handler, clause, op, [x.type for x in operands])
                    self.current = self.handler.moves.then(self.current, weight)  # type: ignore[attr-defined]
                    return self.outer.answer(op, operands)
                if isinstance(clause, Kind):
                    return self.reified(self, op, clause, operands)
            if self.current is NO_STATE:
                y = clause(op, *operands)
            else:
                self.current, y = pair(op, clause(self.current, op, *operands))
            return fitted(op, operands, y)
        except (TypeError, AttributeError):
            stateful = self.current is not NO_STATE and not self.handler.tallies
            check_arity(op, clause, [x.type for x in operands], stateful)
            raise
        finally:
            STACK.reset(token)
            cell.site = site

    def concerns(self, op: Any) -> bool:
        """Whether a body performs something that has a clause here."""
        if self.handler.otherwise is not None or op.late:  # nobody knows yet what a late rule will perform
            return True
        return any(kind in self.clauses for body in op.bodies for kind in body.operations)

    def cross(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if self.handler.tallies:
            moves: Any = self.handler.moves
            self.current = moves.then(self.current, tallied(self.handler, op, operands))
            return self.outer.answer(op, operands)
        token = STACK.set(self.outer)
        try:
            if not op.bodied:
                return cross_linear(self, op, operands)
            if op.tests and self.answers_in(op.tests[0]):
                return rotated(self, op, operands)
            return cross(self, op, operands)
        finally:
            STACK.reset(token)

    def answers_in(self, test: Program) -> bool:
        """Whether the test of a loop has to hand on our state, or performs what we have a clause for."""
        if any([kind in self.clauses for kind in test.operations]):
            return True
        handler = self.handler
        if handler.otherwise is None or self.current is NO_STATE:
            return False
        return any([op.bodied or handler.over(op) for op in test.ops])

    def fresh(self, outer: Run) -> Handling:
        return Handling(outer, self.handler, self.current, None, self.reified)

    def key(self) -> Any:
        if self.outer is not BASE:
            return None
        handler = self.handler
        parts: list[Any] = [*self.clauses.values(), handler.otherwise, handler.over]
        marks = tuple([fingerprint(part.f if isinstance(part, Kind) else part) for part in parts])
        try:
            hash(handler)
        except TypeError:  # a unit to merge from may be an array
            return None
        # a clause that reads what may change is not remembered
        return None if None in marks else (handler, marks, self.reified)

    def flow(self, op: HigherOrder) -> Flow:
        return NO_FLOW if self.current is NO_STATE else self.handler.moves.flow(self, op)


def pair(op: Operation, answer: Any) -> tuple[Any, Any]:
    """The state and the answer that a clause with a state gives."""
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    raise BadArgument(
        f"{op.name}: the clause of a handler with a state gives (state, answer), got {type(answer).__name__}.",
        hint="a handler without state is installed by hx.handle(h), without a second argument.",
    )


def fitted(op: Operation, operands: tuple[Any, ...], y: Any) -> Any:
    """The answer with exactly the type that the operation's result has; a weak number takes its dtype."""
    types = (operands[0].type,) if len(operands) == 1 else tuple([x.type for x in operands])
    memo = op.memo
    made = (memo.get(types) or result_type(op, types)) if memo is not None else op.result_type(*types)
    if not op.multiple:
        return y if getattr(y, "type", None) is made and isinstance(y, Array) else _fitting(op, y, made)
    if not made and y is None:
        return ()
    if len(made) == 1 and isinstance(y, Array):
        return (y,) if y.type is made[0] else (_fitting(op, y, made[0]),)
    parts = list(y) if isinstance(y, tuple) and not op.effectful else trees.leaves(y)
    if len(parts) != len(made):
        raise DTypeMismatch(f"{op.name}: the clause must give {len(made)} results, got {len(parts)}.")
    return tuple([_fitting(op, part, t) for part, t in zip(parts, made)])


def _fitting(op: Operation, y: Any, made: ArrayType) -> Any:
    x = y if isinstance(y, Array) else lift(y)
    if x.type is made:
        return x
    weak = x.type.weak and promote(made.dtype, False, x.type.dtype, True)[0] == made.dtype
    if x.type.shape == made.shape and (weak or x.type.dtype == made.dtype):
        return convert(x, made.dtype, made.weak)
    raise DTypeMismatch(
        f"{op.name}: the answer of a clause must have the type of the operation's result, {made}, got {x.type}.",
        hint=f"convert with astype, or broadcast, in the clause; a state is started with the type {x.type}.",
    )


def finished(handler: Handler, state: Any, y: Any) -> Any:
    """What a handled function gives at its end."""
    if state is NO_STATE:
        return y if handler.returns is None else handler.returns(y)
    return (state, y) if handler.returns is None else handler.returns(state, y)
