"""``handlax.extend.partial_eval``: functions traced to programs, as JAX has it in ``jax.interpreters.partial_eval``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.base.stack import current, installed
from ..effects.base.wrapping import unwound
from ..effects.core.arrays import as_array, type_of
from ..effects.programs.closure_conversion import with_inputs
from ..effects.programs.equation_views import replaced
from ..effects.programs.program import Program, ResidualBuilder
from ..effects.types.array_type import ArrayType
from ..interpreters.analysis.simplify import dead_code_elimination
from ..interpreters.core.record import record
from ..interpreters.differentiation.partial_eval import Tape
from .linear_util import WrappedFun

__all__ = [
    "PartialVal", "close_jaxpr", "convert_constvars_jaxpr", "dce_jaxpr", "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]


class PartialVal(tuple[Any, Any]):
    """A value that is known, ``(None, value)``, or of which the type is, ``(type, None)``."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: ArrayType) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        """The value; None where it is not known."""
        return self[1]

    def get_aval(self) -> ArrayType:
        """The type."""
        return type_of(self[1]) if self.is_known() else self[0]


@unwound
def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[PartialVal], tuple[Any, ...]]:
    """Trace a flat function of values of which some are known: what depends on known ones alone is computed.

    Gives the program from the unknown arguments to the unknown results, all results, and the program's constants.
    ``instantiate``: the results that are to be unknown in any case.
    """
    run = Tape(current(), "trace_to_jaxpr_nounits")
    with installed(run):
        args = [pv.get_known() if pv.is_known() else run.input(pv.get_aval()) for pv in pvals]
        results = [as_array(y) for y in fun.call_wrapped(*args)]
        forced = [instantiate] * len(results) if isinstance(instantiate, bool) else instantiate
        unknown = [yes or y.run is run for yes, y in zip(forced, results)]
        jaxpr = run.freeze([y for y, yes in zip(results, unknown) if yes], fun.__name__)
    outs = [PartialVal.unknown(y.type) if yes else PartialVal.known(y) for y, yes in zip(results, unknown)]
    return jaxpr, outs, jaxpr.consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ArrayType]
) -> tuple[Program, list[ArrayType], tuple[Any, ...]]:
    """The program of a flat function of arrays of these types, the types of its results, and its constants.

    >>> from handlax.core import ShapedArray
    >>> from handlax.extend.linear_util import wrap_init
    >>> p, out_avals, consts = trace_to_jaxpr_dynamic(wrap_init(lambda x: [x * x]), [ShapedArray((2,), "float32")])
    >>> [eqn.primitive for eqn in p.eqns], out_avals
    ([mul], [f32[2]])
    """
    jaxpr = record(fun.call_wrapped, list(in_avals), fun.__name__)
    return jaxpr, list(jaxpr.out_types), jaxpr.consts


def dce_jaxpr(
    jaxpr: Program, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[bool]]:
    """The program of the used results alone, without the equations and inputs that they do not need, and which inputs
    it has; those of ``instantiate`` in any case. It keeps all constants, so that those of ``jaxpr`` fit it.
    """
    used = [used_outputs] * len(jaxpr.outs) if isinstance(used_outputs, bool) else used_outputs
    pruned, inputs = dead_code_elimination(jaxpr, used, instantiate=instantiate)
    builder = ResidualBuilder()
    for value in jaxpr.consts:
        builder.const(value)
    return replaced(pruned, builder), list(inputs)


def convert_constvars_jaxpr(jaxpr: Program) -> Program:
    """The program whose first inputs are its constants."""
    return with_inputs(jaxpr, jaxpr.consts, [x.type for x in jaxpr.consts])


def close_jaxpr(jaxpr: Program) -> Program:
    """The program itself, whose constants are part of it."""
    return jaxpr
