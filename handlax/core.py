"""``handlax.core``: programs, their parts and their types, under JAX's names, for code that reads programs.

``Jaxpr`` and ``ClosedJaxpr`` are one class here, ``Program``, whose constants are literals; a ``Tracer`` is a ``Box``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .effects.base.errors import NotAnArray
from .effects.core.arrays import TYPE_RULES as pytype_aval_mappings
from .effects.core.arrays import Box, type_of
from .effects.core.operation import EMPTY_ROW
from .effects.programs.equation_views import DropVar, Literal
from .effects.programs.program import Program
from .effects.types.array_type import ArrayType
from .extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Var, check_jaxpr, jaxpr_as_fun
from .extend.core import PrimitiveTrace as Trace
from .interpreters.core.compile_time import ensure_compile_time_eval
from .interpreters.handlers.handle import trace_state_clean

__all__ = [
    "AbstractValue", "Atom", "ClosedJaxpr", "DropVar", "Jaxpr", "JaxprEqn", "Literal", "ParamDict", "ShapedArray",
    "Trace", "Tracer", "Var", "check_jaxpr", "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "get_aval",
    "jaxpr_as_fun", "max_dim", "min_dim", "no_effects", "pytype_aval_mappings", "trace_state_clean", "valid_jaxtype",
]

Tracer = Box
Atom = Var | Literal
AbstractValue = ShapedArray = ArrayType
ParamDict = dict[str, Any]
get_aval = type_of
eval_context = ensure_compile_time_eval
no_effects = EMPTY_ROW


def eval_jaxpr(jaxpr: Program, consts: Sequence[Any], *args: Any) -> list[Any]:
    """The results of performing a program's equations, with ``consts`` as its constants.

    Raises: BadArgument: the arguments differ from the inputs in number, shape or dtype.

    >>> from handlax import make_jaxpr
    >>> p = make_jaxpr(lambda x: x * 2.0)(1.0)
    >>> eval_jaxpr(p, p.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    return list(jaxpr.with_consts(consts)(*args))


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


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes of dimensions.

    >>> max_dim(2, 3)
    3
    """
    return max(d1.__index__(), d2.__index__())


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes of dimensions.

    >>> min_dim(2, 3)
    2
    """
    return min(d1.__index__(), d2.__index__())


def __dir__() -> list[str]:
    return __all__
