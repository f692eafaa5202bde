"""Programs and their parts under JAX's names.

A ``Jaxpr`` and a ``ClosedJaxpr`` are both a ``Program`` here, whose constants are literals; an effect is an operation.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from ...effects.base.source_locations import NOWHERE, Site
from ...effects.control.recorded_bodies import with_recorded_constants
from ...effects.core.named_axes import Axis
from ...effects.core.operation import Operation
from ...effects.programs.equation_views import Equation, Literal, Variable
from ...effects.programs.primitives import Primitive
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...interpreters.analysis.typecheck import typecheck

Jaxpr = Program
JaxprEqn = Equation
Var = Variable


class ClosedJaxpr(metaclass=ABCMeta):  # noqa: B024 (abstract so that programs can be registered)
    """``ClosedJaxpr(jaxpr, consts)``: the program with these values of its constants; every ``Program`` is one.

    Raises: BadArgument: there is another number of constants, or one has another shape or dtype.

    >>> from handlax import lax, make_jaxpr
    >>> p = make_jaxpr(lambda x: lax.sin(x))(1.0)
    >>> ClosedJaxpr(p.jaxpr, p.consts) == p and isinstance(p, ClosedJaxpr)
    True
    """

    def __new__(cls, jaxpr: Program, consts: Sequence[Any] = ()) -> Program:  # type: ignore[misc]
        return with_recorded_constants("ClosedJaxpr", jaxpr, consts)


ClosedJaxpr.register(Program)


class Effect(metaclass=ABCMeta):  # noqa: B024 (abstract so that operations and axes can be registered)
    """The elements of effect rows: operations, axes, and what primitives have as effects.

    A base class for the latter, which may be objects of any class, if they hash.
    """


Effect.register(Operation)
Effect.register(Axis)
Effects = frozenset[Effect]
"""An effect row: the effects that a program performs and does not handle."""

_NEW_NUMBERS = count(1 << 40)  # above those of all programs


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[Program]:
    """The programs among the parameters of an equation, and in tuples and lists of them.

    >>> from handlax import lax, make_jaxpr
    >>> (loop,) = make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: 2.0 * c, x))(1.0).eqns
    >>> [program.name for program in jaxprs_in_params(loop.params)]
    ['<lambda>']
    """
    for value in params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, Program):
                yield each


def subjaxprs(jaxpr: Program) -> Iterator[Program]:
    """The programs that the equations of a program have as parameters, without those within them."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def gensym(suffix: str = "") -> Callable[[ArrayType], Variable]:
    """A function of a type to a new variable of it, of which no program has the number.

    ``suffix`` changes nothing: variables are printed by their numbers.

    >>> from handlax import typeof
    >>> new = gensym()
    >>> new(typeof(1.0)) == new(typeof(1.0))
    False
    """
    return lambda aval: Variable(next(_NEW_NUMBERS), aval)


def new_jaxpr_eqn(
    invars: Sequence[Variable | Literal], outvars: Sequence[Variable], primitive: Primitive,
    params: Mapping[str, Any], effects: Any = None, source_info: Site | None = None, ctx: Any = None,
) -> Equation:
    """The equation ``outvars = primitive.bind(*invars, **params)``; its effects follow from these.

    >>> from handlax import lax, make_jaxpr
    >>> p = make_jaxpr(lambda x: lax.sin(x))(1.0)
    >>> cosine = new_jaxpr_eqn(p.invars, p.outvars, lax.cos_p, {})
    >>> p.replace(eqns=[cosine])(0.0)
    (Array(1., dtype=float32, weak_type=True),)
    """
    op = primitive.performed_on([x.aval for x in invars], params)
    return Equation(op, tuple(invars), tuple(outvars), source_info or NOWHERE)


def jaxpr_as_fun(jaxpr: Program) -> Callable[..., list[Any]]:
    """A program as a function from a flat list of arguments to the list of its results."""

    def fun(*args: Any) -> list[Any]:
        return list(jaxpr(*args))

    fun.__name__ = jaxpr.name
    return fun


def check_jaxpr(jaxpr: Program) -> None:
    """Raises TypeCheckError: an equation does not have the type that the program states."""
    typecheck(jaxpr)
