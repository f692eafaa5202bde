"""Views of a program's equations: objects with the attributes of a jaxpr's equations, variables and literals.

A program stores operations, numbers and types in flat tuples; these objects are built on demand and never stored in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.lazy_module import LazyModule
from ..base.source_locations import Site
from ..core.operation import Operation
from ..types.array_type import ArrayType
from .printer import constant_text, equation_text, letter

if TYPE_CHECKING:
    from . import primitives
else:
    primitives = LazyModule("handlax.effects.programs.primitives")


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
    """``outvars = op(*operands)``, performed at the source line ``site``.

    Under JAX's names it is ``outvars = primitive.bind(*invars, **params)``.
    """

    op: Operation
    operands: tuple[Variable | Literal, ...]
    outvars: tuple[Variable, ...]
    site: Site

    @property
    def primitive(self) -> primitives.Primitive:
        return primitives.primitive_of(type(self.op))

    @property
    def params(self) -> dict[str, Any]:
        return self.op.as_params()

    @property
    def invars(self) -> tuple[Variable | Literal, ...]:
        return tuple(self.op.primitive_operands(self.operands))

    @property
    def effects(self) -> frozenset[Any]:
        return self.op.effects

    @property
    def source_info(self) -> Site:
        return self.site

    def __str__(self) -> str:
        return equation_text(self.op, self.operands, self.outvars)

    def __repr__(self) -> str:
        return str(self)
