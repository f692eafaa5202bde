"""Programs and their parts under JAX's names.

``Jaxpr`` and ``ClosedJaxpr`` are one class here, ``Program``, whose constants are literals; an effect is an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...effects.base.source_locations import NOWHERE, Site
from ...effects.core.operation import Operation
from ...effects.programs.equation_views import Equation, Literal, Variable
from ...effects.programs.primitives import Primitive
from ...effects.programs.program import Program
from ...interpreters.analysis.typecheck import typecheck

Jaxpr = ClosedJaxpr = Program
JaxprEqn = Equation
Var = Variable
Effect = Operation

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
    op = primitive.operation.from_params(params)
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
