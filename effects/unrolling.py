"""Loops and branches under ``disable_jit``: those of Python, so that a body sees the values that it works on.

Effects are performed as the body comes to them, and a box of ``grad`` or ``vmap`` goes through like any other value.
Where a choice depends on a value that nobody knows yet, and under a handler that records, the operation stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import config, trees
from .arrays import Array, lift
from .bodies import next_carry, row_types, same_structure
from .conversion import convert
from .errors import ConcretizationError
from .rearranging import stack
from .slicing import index_in_dim
from .stack import runs
from .types import ArrayType


def unrolls() -> bool:
    """Whether loops and branches are Python's here: under ``disable_jit``, where nobody records what is performed."""
    return config.current().disable_jit and not any([run.whole for run in runs()])


def known(ask: Callable[[Any], Any], x: Any) -> Any:
    """What Python's ``bool`` or ``int`` gives for a value; None where nobody knows it yet."""
    try:
        return ask(x)
    except ConcretizationError:
        return None


class Carry:
    """The carry between two runs: every run sees the types that the first one saw, or wider ones."""

    __slots__ = ("name", "structure", "below", "types", "values", "given")
    values: list[Any]  # as the next run sees them
    given: Sequence[Any]  # as the last run gave them

    def __init__(self, name: str, structure: Any, below: int, start: Sequence[Array]):
        self.name, self.structure, self.below = name, structure, below
        self.types: list[ArrayType] = [x.type for x in start]
        self.given = self.values = list(start)

    def take(self, made: Sequence[Array]) -> None:
        """Raises StateTypeError: the carry changes its type."""
        self.types = next_carry(self.name, self.structure, self.types, [y.type for y in made], self.below)
        self.given = made
        self.values = [convert(y, t.dtype, t.weak) for y, t in zip(made, self.types)]


def unrolled_scan(
    carry: Carry, step: Callable[..., tuple[Any, Any]], xs: Sequence[Array], order: range
) -> tuple[Any, Any]:
    """The last carry and the stacked results of runs in this order; there is at least one.

    Raises: TreeMismatch, StateTypeError: the runs give different trees or types.
    """
    rows: list[Any] = [None] * len(order)
    structures: list[Any] = []
    for i in order:
        after, made = step(*carry.values, *[index_in_dim(x, i, keepdims=False) for x in xs])
        carry.take([lift(y) for y in trees.leaves(after)])
        leaves, structure = trees.flatten(made)
        rows[i] = [lift(y) for y in leaves]
        structures.append(structure)
    same_structure(carry.name, "runs", structures)
    types = row_types(carry.name, "runs", structures[0], [[y.type for y in row] for row in rows])
    columns = [stack([convert(y, t.dtype, t.weak) for y in ys]) for ys, t in zip(zip(*rows), types)]
    return trees.unflatten(carry.structure, carry.given), trees.unflatten(structures[0], columns)
