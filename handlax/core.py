"""``handlax.core``: programs, their parts and their types, under JAX's names, for code that reads programs.

``Jaxpr`` and ``ClosedJaxpr`` are one class here, ``Program``, whose constants are literals; a ``Tracer`` is a ``Box``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .effects.base.errors import NotAnArray
from .effects.control.recorded_bodies import with_recorded_constants
from .effects.core.arrays import TYPE_RULES as pytype_aval_mappings
from .effects.core.arrays import Box
from .effects.core.operation import EMPTY_ROW
from .effects.programs.equation_views import DropVar, Literal
from .effects.programs.program import Program
from .effects.types.array_type import ArrayType
from .effects.types.extent import as_size
from .effects.types.sized import larger, smaller
from .extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Var, check_jaxpr, jaxpr_as_fun
from .extend.core import PrimitiveTrace as Trace
from .interpreters.core.compile_time import ensure_compile_time_eval
from .interpreters.handlers.handle import trace_state_clean
from .interpreters.references.reference import typeof as get_aval

__all__ = [
    "AbstractValue", "Atom", "ClosedJaxpr", "DropVar", "Jaxpr", "JaxprEqn", "Literal", "ParamDict", "ShapedArray",
    "Trace", "Tracer", "Var", "check_jaxpr", "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "get_aval",
    "jaxpr_as_fun", "max_dim", "min_dim", "no_effects", "pytype_aval_mappings", "trace_state_clean", "valid_jaxtype",
]

Tracer = Box
Atom = Var | Literal
"""An operand of an equation."""
AbstractValue = ShapedArray = ArrayType
ParamDict = dict[str, Any]
"""The static parameters of an equation by their names."""
eval_context = ensure_compile_time_eval
no_effects = EMPTY_ROW
"""The effect row of a pure program."""


def eval_jaxpr(jaxpr: Program, consts: Sequence[Any], *args: Any) -> list[Any]:
    """The results of performing a program's equations, with ``consts`` as its constants.

    Raises: BadArgument: the arguments differ from the inputs, or the constants from those of the program, in number,
    shape or dtype.

    >>> from handlax import make_jaxpr
    >>> p = make_jaxpr(lambda x: x * 2.0)(1.0)
    >>> eval_jaxpr(p, p.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    return list(with_recorded_constants("eval_jaxpr", jaxpr, consts)(*args))


def valid_jaxtype(x: Any) -> bool:
    """Whether ``x`` is an array, or can be made one.

    >>> valid_jaxtype(1.0), valid_jaxtype("a"), valid_jaxtype([1.0])
    (True, False, False)
    """
    try:
        get_aval(x)
    except NotAnArray:
        return False
    return True


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two sizes of dimensions, numbers or symbolic.

    >>> max_dim(2, 3)
    3
    """
    return larger(as_size(d1, "max_dim"), as_size(d2, "max_dim"))


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two sizes of dimensions, numbers or symbolic.

    >>> min_dim(2, 3)
    2
    """
    return smaller(as_size(d1, "min_dim"), as_size(d2, "min_dim"))


def __dir__() -> list[str]:
    return __all__
