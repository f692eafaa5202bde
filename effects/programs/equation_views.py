"""Views of a program's equations: objects with the attributes of a jaxpr's equations, variables and literals.

A program stores operations, numbers and types in flat tuples; these objects are built on demand and never stored in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..base.source_locations import Site
from ..core.operation import Operation
from ..types.array_type import ArrayType
from .printer import constant_text, equation_text, letter


class Variable(NamedTuple):
    """An input of a program or a result of one of its equations, as a number and a type."""

    number: int
    aval: ArrayType

    @property
    def type(self) -> ArrayType:
        return self.aval

    def __str__(self) -> str:
        return letter(self.number)

    def __repr__(self) -> str:
        return str(self)


class Literal(NamedTuple):
    """A constant operand of an equation, as a value and a type."""

    val: Any
    aval: ArrayType

    @property
    def type(self) -> ArrayType:
        return self.aval

    def __str__(self) -> str:
        return constant_text(self.val)

    def __repr__(self) -> str:
        return str(self)


class Equation(NamedTuple):
    """``outvars = op(*invars)``, performed at the source line ``site``."""

    op: Operation
    invars: tuple[Variable | Literal, ...]
    outvars: tuple[Variable, ...]
    site: Site

    @property
    def primitive(self) -> Operation:
        return self.op

    @property
    def params(self) -> dict[str, Any]:
        """The fields of the operation; the program of an operation with one body also as ``jaxpr``."""
        fields = {name: getattr(self.op, name) for name in self.op._names}
        bodies = fields.get("bodies", ())
        return {**fields, "jaxpr": bodies[0]} if len(bodies) == 1 else fields

    @property
    def effects(self) -> frozenset[Any]:
        return self.op.effects

    @property
    def source_info(self) -> Site:
        return self.site

    def __str__(self) -> str:
        return equation_text(self.op, self.invars, self.outvars)

    def __repr__(self) -> str:
        return str(self)
