"""Default clauses: the outermost handler, which answers the effects that no other one does.

    @effect(default=clause)        a program performs the effect, and its user need not handle it

Outside of traced functions the clause is called where the effect reaches the base of the stack. In a program that is to
be compiled, ``with_defaults`` puts what the clause performs in the place of the effect, as a handler around the program
would. What a clause performs is answered by defaults too, so that it may perform effects, its own among them. Rules
that an effect has in ``evaluate`` and ``lower`` come before its default.
"""

from __future__ import annotations

from typing import Any

from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import EndlessCalls, HandlaxError
from ...effects.base.stack import BASE, inside
from ...effects.core.columns import DEFAULT, LOWER
from ...effects.core.operation import Operation
from ...effects.programs.program import Program
from ..core.body_transform import BodyTransformer, cross, transform_body
from .answer_conversion import fit_answer
from .handler import check_arity
from .installation import clause_arguments


def answer_by_default(op: Operation, operands: tuple[Any, ...]) -> Any:
    """The results of an effect by its default clause, called outside of all handlers."""
    with inside(BASE):
        return answer_of_default(op, operands)


def answer_of_default(op: Any, operands: tuple[Any, ...]) -> Any:
    """The results of an effect by its default clause, called under the handlers in force.

    Raises: EndlessCalls: the clause performs effects by whose defaults it is called again, without end.
    """
    clause = DEFAULT.find(type(op))
    arguments = clause_arguments(op, operands) if op.scopes else operands
    try:
        y = on_deep_stack(clause, op, *arguments)
    except RecursionError as error:
        if isinstance(error, HandlaxError):
            raise
        raise EndlessCalls(
            f"{op.name}: default clauses that perform effects must end, got thousands within each other.",
            hint="a default clause is answered by defaults too: it decides by fields of its effect, which differ from "
            "one to the next, or by lax.cond and lax.while_loop.",
        ) from None
    except TypeError:
        check_arity(op, clause, [getattr(x, "type", "body") for x in arguments], False)
        raise
    return fit_answer(op, operands, y)


def needs_default(effect: Any) -> bool:
    """Whether an element of an effect row is an effect that a device cannot perform, and that has a default clause."""
    return isinstance(effect, Operation) and DEFAULT.has(type(effect)) and not LOWER.has(type(effect))


class DefaultClauses(BodyTransformer):
    """The handler of all effects with a default clause and without a lowering."""

    __slots__ = ()
    owns_boxes = False

    @property
    def described(self) -> str:
        return "a default clause"

    def key(self) -> str:
        return "default clauses"

    def takes_bodies(self, op: Any) -> bool:
        return True  # it has neither values nor a state

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if not (op.has_row and any(map(needs_default, op.effects))):
            return self.outer.answer(op, operands)
        if needs_default(op):
            with inside(self):
                return answer_of_default(op, operands)
        with inside(self.outer):
            return cross(self, op, operands)


def with_defaults(program: Program, clauses: type[DefaultClauses] = DefaultClauses) -> Program:
    """The program with the default clauses of its effects in their places.

    with_defaults(p)(*xs) == p(*xs)
    """
    if not any(map(needs_default, program.effects)):
        return program
    return transform_body(clauses(BASE, ""), program, [None] * len(program.in_types)).program
