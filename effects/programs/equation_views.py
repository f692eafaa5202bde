"""Views of a program's equations: objects with the attributes of a jaxpr's equations, variables and literals.

A program stores operations, numbers and types in flat tuples; these objects are built on demand and never stored in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.errors import BadArgument, BadCall
from ..base.lazy_module import LazyModule
from ..base.source_locations import Site
from ..core.arrays import as_array
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
        operands = self.invars if invars is None else tuple(invars)
        types = [x.aval for x in operands]
        op = (primitive or self.primitive).performed_on(types, self.params if params is None else params)
        return new._replace(op=op, operands=operands)

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


def with_constants(where: str, program: Any, consts: Iterable[Any]) -> Any:
    """A program with these constants, converted to arrays; ``where`` names the function in errors.

    Raises: BadArgument: there is another number of them, or one has another type.
    """
    values = [as_array(x) for x in consts]
    if [x.type for x in values] != [x.type for x in program.consts]:
        needed, got = (", ".join([str(x.type) for x in xs]) for xs in (program.consts, values))
        raise BadArgument(f"{where}: the constants must be those of the equations, ({needed}), got ({got}).")
    return program.with_consts(values)


def replaced(program: Any, builder: Any, consts: Sequence[Any] | None = None, **parts: Any) -> Any:
    """A program with other ``consts``, ``invars``, ``eqns`` or ``outvars``; what else it has follows from these.

    ``builder``: a new one, in which the constants stay those that there are, in their order.

    Raises: BadCall: a program has no such part. BadArgument: there is another number of constants, or one has another
    type; or an equation reads what is not defined.
    """
    if consts is not None:
        program = with_constants("replace", program, consts)
    if tuple(parts.pop("constvars", program.constvars)) != program.constvars:
        hint = "extend.partial_eval.convert_constvars_jaxpr makes them inputs."
        raise BadArgument("replace: the variables of the constants must be those that the program has.", hint=hint)
    known = {name: getattr(program, name) for name in ("invars", "eqns", "outvars")}
    if unknown := {*parts} - {*known, "effects", "debug_info"}:
        raise BadCall(f"replace: a program has no {', '.join(sorted(unknown))}.", hint=f"it has {', '.join(known)}.")
    numbers = {v: builder.const(value) for v, value in zip(program.constvars, program.consts)}
    chosen = {name: parts.get(name, part) for name, part in known.items()}
    return builder.freeze(_appended(builder, numbers, **chosen), program.name)


def _appended(
    builder: Any, numbers: dict[Variable, int], invars: Sequence[Variable], eqns: Iterable[Equation],
    outvars: Sequence[Variable | Literal],
) -> list[int]:
    """The numbers of results after appending inputs and equations; ``numbers``: those of variables so far."""
    numbers |= {v: builder.input(v.aval) for v in invars}

    def number(atom: Variable | Literal) -> int:
        if isinstance(atom, Literal):
            return int(builder.const(as_array(atom.val)))
        if atom not in numbers:
            raise BadArgument(f"replace: a variable must be defined before it is read, got {atom} of {atom.aval}.")
        return numbers[atom]

    for eqn in eqns:
        types = tuple([v.aval for v in eqn.outvars])
        first = builder.append(eqn.op, tuple(map(number, eqn.operands)), eqn.op.from_results(types), eqn.site)
        numbers |= {v: first + i for i, v in enumerate(eqn.outvars)}
    return [*map(number, outvars)]
