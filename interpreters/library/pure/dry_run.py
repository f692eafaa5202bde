"""Dry run: call a function with every operation replaced by zeros of its result types, and list the operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....effects.base.errors import need_function
from ....effects.base.stack import site
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import as_array, concrete
from ....effects.core.operation import result_type
from ....effects.core.result_trees import as_declared
from ....effects.programs.literals import data_shape
from ....effects.programs.operation_names import every_operation
from ....effects.trees import pytrees
from ....effects.types.array_type import ArrayType
from ....effects.types.dtypes import ExtendedDType
from ...handlers.handle import handle
from ...handlers.handler import handler


class DryRunStep(NamedTuple):
    """One operation of a dry run: its operand and result types, and the user's line."""

    op: Any
    types: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    where: str

    def __str__(self) -> str:
        names = lambda types: ", ".join(map(str, types))
        return f"{self.where:<24} {self.op.name:<20} ({names(self.types)}) -> ({names(self.results)})"


class DryRun(NamedTuple):
    """The operations of a dry run in order, and its result, whose arrays are all zero."""

    steps: tuple[DryRunStep, ...]
    result: Any

    @property
    def effects(self) -> frozenset[Any]:
        """The effects that the function would perform."""
        return frozenset().union(*[step.op.effects for step in self.steps])

    @property
    def types(self) -> Any:
        """The tree of the types of the result."""
        return pytrees.map(lambda x: as_array(x).type, self.result)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


def dry_run(f: Callable[..., Any]) -> Callable[..., DryRun]:
    """``dry_run(f)(*args)`` calls ``f`` and computes nothing: every operation and effect answers with zeros.

    Errors in shapes and dtypes are raised as in a real call, with their lines; Python's ``if`` branches on zeros.
    Loops, branches and compiled functions are one step each. Zeros take no memory.

    >>> from handlax import numpy
    >>> print(dry_run(lambda x: numpy.sin(x) @ x)(numpy.ones(3)).types)
    f32[]
    """
    need_function("dry_run", f)

    @wraps(f)
    @unnamed_boundary
    def called(*args: Any, **kwargs: Any) -> DryRun:
        def skip(steps: tuple[DryRunStep, ...], op: Any, *operands: Any) -> Any:
            types = tuple([x.type for x in operands[op.scopes :]])  # a scoped effect takes functions first
            every = (*op.bodies[0].in_types[: op.shared], *types) if op.scopes else types
            results = tuple(op.as_results(result_type(op, every)))
            zeros = [_virtual_zeros(t) for t in results]
            answer = as_declared(op, every, zeros) if op.effectful else op.from_results(zeros)
            return (*steps, DryRunStep(op, types, results, site().scoped)), answer

        bodied = {op: skip for op in every_operation() if op.bodied}
        return DryRun(*handle(handler(bodied, otherwise=skip), ())(f)(*args, **kwargs))

    return called


def _virtual_zeros(type: ArrayType) -> Any:
    """Zeros of this type that share the memory of one element."""
    dtype = type.dtype.base if isinstance(type.dtype, ExtendedDType) else type.dtype
    return concrete(type, np.broadcast_to(np.zeros((), dtype), data_shape(type)))
