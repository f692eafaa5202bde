"""Dry run: a program is gone through, with zeros of the right types in the place of every result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...effects import trees
from ...effects.arrays import concrete, lift
from ...effects.dtypes import ExtendedDType
from ...effects.errors import need_function
from ...effects.literals import data_shape
from ...effects.naming import every_operation
from ...effects.operations import result_type
from ...effects.types import ArrayType
from ...effects.wrapping import wraps
from ..asking import place
from ..handle import handle
from ..handler import handler


class Step(NamedTuple):
    """One operation of a dry run."""

    op: Any
    types: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    where: str

    def __str__(self) -> str:
        names = lambda types: ", ".join(map(str, types))
        return f"{self.where:<24} {self.op.name:<20} ({names(self.types)}) -> ({names(self.results)})"


class Rehearsal(NamedTuple):
    """What a dry run did: its operations in order, and the result, whose numbers are all zero."""

    steps: tuple[Step, ...]
    result: Any

    @property
    def effects(self) -> frozenset[Any]:
        """The effects that it would have performed."""
        return frozenset().union(*[step.op.effects for step in self.steps])

    @property
    def types(self) -> Any:
        """The tree of the types of the result."""
        return trees.map(lambda x: lift(x).type, self.result)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


def dry_run(f: Callable[..., Any]) -> Callable[..., Rehearsal]:
    """``dry_run(f)(*args)`` goes through ``f`` and computes nothing: every operation and effect gives zeros.

    Mistakes in shapes and dtypes are found as in a real run, with their lines; Python's ``if`` sees zeros. Loops,
    branches and compiled functions are one step each. Zeros take no memory.

    >>> from handlax import numpy
    >>> print(dry_run(lambda x: numpy.sin(x) @ x)(numpy.ones(3)).types)
    f32[]
    """
    need_function("dry_run", f)

    @wraps(f)
    def rehearsed(*args: Any, **kwargs: Any) -> Rehearsal:
        def skipped(steps: tuple[Step, ...], op: Any, *operands: Any) -> Any:
            types = tuple([x.type for x in operands])
            made = result_type(op, types)
            results = tuple(made) if op.multiple else (made,)
            zeros = tuple([nothing_of(t) for t in results])
            return (*steps, Step(op, types, results, place())), zeros if op.multiple else zeros[0]

        bodied = {op: skipped for op in every_operation() if op.bodied}
        return Rehearsal(*handle(handler(bodied, otherwise=skipped), ())(f)(*args, **kwargs))

    return rehearsed


def nothing_of(type: ArrayType) -> Any:
    """Zeros without memory of their own."""
    dtype = type.dtype.base if isinstance(type.dtype, ExtendedDType) else type.dtype
    return concrete(type, np.broadcast_to(np.zeros((), dtype), data_shape(type)))
