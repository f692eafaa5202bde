"""Views of a program's equations: objects with the attributes of a jaxpr's equations, variables and literals.

A program stores operations, numbers and types in flat tuples; these objects are built on demand and never stored in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class DropVar(Variable):
    """A result that nothing reads."""

    __slots__ = ()

    def __str__(self) -> str:
        return "_"


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

    def replace(
        self, invars: Sequence[Variable | Literal] | None = None, outvars: Sequence[Variable] | None = None,
        primitive: primitives.Primitive | None = None, params: Mapping[str, Any] | None = None, effects: Any = None,
        source_info: Site | None = None, ctx: Any = None,
    ) -> Equation:
        """The equation with other parts; effects follow from the operation."""
        new = self._replace(outvars=tuple(outvars or self.outvars), site=source_info or self.site)
        if invars is None and primitive is None and params is None:
            return new
        kind = (primitive or self.primitive).operation
        op = kind.from_params(self.params if params is None else params)
        return new._replace(op=op, operands=self.invars if invars is None else tuple(invars))

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
