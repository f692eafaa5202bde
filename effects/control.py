"""Higher-order operations: those that carry sub-programs, with the one declaration by which handlers cross them.

    operands = selects + shared + carry + each
    body     : shared + carry + each -> carry + out
    results  = carry + out
"""

from __future__ import annotations

from typing import Any, ClassVar

from .operations import EMPTY_ROW, Operation, operation
from .programs import Program
from .types import ArrayType


class HigherOrder(Operation):
    """An operation over sub-programs. ``runs`` says how often a body runs, the counts which operand plays which part.

    ``runs``: ``once``, ``one`` of several, ``loop``, ``until`` a test fails, ``lanes``.
    """

    __slots__ = ()
    bodied: ClassVar[bool] = True
    multiple: ClassVar[bool] = True
    runs: ClassVar[str] = "once"
    selects: ClassVar[int] = 0  # leading operands that choose and that no body sees
    prunes: ClassVar[bool] = False  # operands and results that nobody needs may go: no field speaks of single ones
    bodies: tuple[Program, ...]
    shared: int = 0
    carry: int = 0

    @property
    def effects(self) -> frozenset[Any]:
        return EMPTY_ROW.union(*[body.effects for body in self.bodies])

    def with_bodies(self, bodies: tuple[Program, ...]) -> HigherOrder:
        """The same operation over other bodies of the same signature."""
        return type(self)(*[bodies if name == "bodies" else getattr(self, name) for name in self._names])


# (y, ...) = body(x, ...): a function that is traced, transformed and compiled once
@operation
class Call(HigherOrder):
    bodies: tuple[Program, ...]
    label: str = "call"
    inline: bool = False
    prunes = True
    shared = 0
    carry = 0

    def result_type(op, *types: ArrayType) -> tuple[ArrayType, ...]:
        return op.bodies[0].out_types

    def lower(op, emit, *values):
        return emit.call(op.bodies[0], op.label, values)

