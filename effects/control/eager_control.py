"""Loops and branches under ``disable_jit``: executed by Python, so that bodies see concrete values.

The functions are called directly: their effects are performed in order, and boxes of ``grad`` or ``vmap`` are operands
like others. Where a predicate or test is not concrete, or a handler records, the operation is performed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base import config
from ..base.errors import ConcretizationError
from ..base.stack import runs
from ..core.arrays import Array, as_array
from ..operations.elementwise.conversion import convert
from ..operations.manipulation.rearranging import stack
from ..operations.manipulation.slicing import index_in_dim
from ..trees import pytrees
from ..types.array_type import ArrayType
from .recorded_bodies import next_carry, row_types, same_structure


def unrolls() -> bool:
    """Whether Python executes loops and branches here: under ``disable_jit``, unless a handler records."""
    return config.current().disable_jit and not any([run.records_everything for run in runs()])


def concrete_or_none(cast: Callable[[Any], Any], x: Any) -> Any:
    """``cast(x)``, ``cast`` being ``bool`` or ``int``; None where ``x`` is not concrete."""
    try:
        return cast(x)
    except ConcretizationError:
        return None


class EagerCarry:
    """The carry between two iterations; its types start as those of the initial value, and are only promoted."""

    __slots__ = ("name", "structure", "below", "types", "values", "results")
    values: list[Any]  # converted to ``types``: the operands of the next iteration
    results: Sequence[Any]  # as the last iteration returned them

    def __init__(self, name: str, structure: Any, below: int, start: Sequence[Array]):
        self.name, self.structure, self.below = name, structure, below
        self.types: list[ArrayType] = [x.type for x in start]
        self.results = self.values = list(start)

    def update(self, results: Sequence[Array]) -> None:
        """Replace the carry by the results of an iteration. Raises StateTypeError: it changes its type."""
        self.types = next_carry(self.name, self.structure, self.types, [y.type for y in results], self.below)
        self.results = results
        self.values = [convert(y, t.dtype, t.weak) for y, t in zip(results, self.types)]


def unrolled_scan(
    carry: EagerCarry, step: Callable[..., tuple[Any, Any]], xs: Sequence[Array], order: range
) -> tuple[Any, Any]:
    """The last carry and the stacked results of the iterations in ``order``, which is not empty.

    Raises: TreeMismatch, StateTypeError: the iterations give different trees or types.
    """
    rows: list[Any] = [None] * len(order)
    structures: list[Any] = []
    for i in order:
        after, result = step(*carry.values, *[index_in_dim(x, i, keepdims=False) for x in xs])
        carry.update([as_array(y) for y in pytrees.leaves(after)])
        leaves, structure = pytrees.flatten(result)
        rows[i] = [as_array(y) for y in leaves]
        structures.append(structure)
    same_structure(carry.name, "iterations", structures)
    types = row_types(carry.name, "iterations", structures[0], [[y.type for y in row] for row in rows])
    columns = [stack([convert(y, t.dtype, t.weak) for y in ys]) for ys, t in zip(zip(*rows), types)]
    return pytrees.unflatten(carry.structure, carry.results), pytrees.unflatten(structures[0], columns)
