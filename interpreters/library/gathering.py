"""Gathering: the entries of a log that have one name, as one value.

An entry stands inside ``When`` for each branch around it, and its arrays have an axis in front for each loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...effects import trees
from ...effects.arrays import lift
from ...effects.bitwise import bitwise_and, bitwise_or
from ...effects.columns import zeros_like
from ...effects.comparison import select
from ...effects.conversion import convert
from ...effects.dtypes import bool_, int32
from ...effects.dynamic import dynamic_index_in_dim
from ...effects.errors import TreeMismatch
from ...effects.reductions import argmax, reduce_or
from ...effects.shapes import broadcast_in_dim, reshape
from ...effects.slicing import concatenate, rev
from ...effects.treedefs import TreeDef
from ...effects.treenodes import register_dataclass
from ...effects.types import ArrayType, array_type
from ..movements import When

Part = tuple[Any, "Sown"]  # whether the branches around an entry were taken, None where there are none; the entry


@dataclasses.dataclass(frozen=True)
class Sown:
    """An entry of the log: what stands before the axes of ``types`` are loops around it."""

    leaves: Any
    path: tuple[str, ...]
    mode: str
    tree: TreeDef
    types: tuple[ArrayType, ...]


register_dataclass(Sown, ("leaves",), ("path", "mode", "tree", "types"))


def entries_of(log: Sequence[Any], path: tuple[str, ...]) -> list[Part]:
    """What a log has under one name."""
    return [(_taken(entry), sown_in(entry)) for entry in log if sown_in(entry).path == path]


def sown_in(entry: Any) -> Sown:
    """The entry without the branches around it."""
    while not isinstance(entry, Sown):
        entry = entry.value
    return entry


def merged(name: str, parts: Sequence[Part], always: bool) -> Any:
    """One value of all entries; ``When`` it was taken, unless it ``always`` is."""
    first = parts[0][1]
    gather = {"strict": _exclusive, "append": _rows, "clobber": last_of}[first.mode]
    mask, leaves = gather(name, parts)
    value = trees.unflatten(first.tree, leaves)
    return value if always or mask is None else When(mask, value)


def _taken(entry: Any) -> Any:
    """Whether the branches around an entry were taken, for every run of the loops; None where there is no branch."""
    mask = None
    while isinstance(entry, When):
        mask = lift(entry.taken) if mask is None else bitwise_and(_over(mask, lift(entry.taken)), lift(entry.taken))
        entry = entry.value
    return mask


def _over(mask: Any, x: Any) -> Any:
    """A mask of the outer loops, for each run of the inner ones of ``x``."""
    shape = x.type.shape
    return broadcast_in_dim(mask, shape, range(len(mask.type.shape))) if mask.type.shape != shape else mask


def _exclusive(name: str, parts: Sequence[Part]) -> tuple[Any, list[Any]]:
    """At most one of them was taken."""
    mask, sown = parts[0]
    leaves = list(sown.leaves)
    for taken, other in parts[1:]:
        found, wanted = ([lift(x).type.strong() for x in xs] for xs in (other.leaves, leaves))
        if found != wanted:
            raise TreeMismatch(
                f"reap: what the branches sow under {name} must have one type, got {wanted} and {found}.",
                hint="give them different names.",
            )
        leaves = [select(_over(taken, y), y, x) for x, y in zip(leaves, other.leaves)]
        mask = bitwise_or(mask, taken)
    return mask, leaves


def _flat(x: Any, rank: int) -> Any:
    """An array with the loops around it as one axis, of one run where there is none."""
    shape = x.type.shape
    count = 1
    for size in shape[: len(shape) - rank]:
        count *= size
    return reshape(lift(x), (count, *shape[len(shape) - rank :]))


def _row_masks(parts: Sequence[Part]) -> list[Any]:
    """For each entry whether each run of the loops took it."""
    masks = []
    for taken, sown in parts:
        x = lift(sown.leaves[0])
        loops = x.type.shape[: len(x.type.shape) - len(sown.types[0].shape)]
        run = array_type(loops, bool_)
        mask = lift(True) if taken is None else taken
        masks.append(_flat(broadcast_in_dim(mask, run.shape, range(len(mask.type.shape))), 0))
    return masks


def _rows(name: str, parts: Sequence[Part]) -> tuple[Any, list[Any]]:
    """All of them, one row for each."""
    shapes = {tuple([t.shape for t in sown.types]) for _, sown in parts}
    if len(shapes) > 1:
        raise TreeMismatch(f"reap: what is appended under {name} must have one shape, got {sorted(shapes)}.")
    columns = zip(*[[_flat(lift(x), len(t.shape)) for x, t in zip(sown.leaves, sown.types)] for _, sown in parts])
    leaves = [concatenate(list(column), 0) for column in columns]
    if all(taken is None for taken, _ in parts):
        return None, leaves
    return concatenate(_row_masks(parts), 0), leaves


def last_of(name: str, parts: Sequence[Part]) -> tuple[Any, list[Any]]:
    """The last that was taken, with whether there is one."""
    mask, leaves = _rows(name, parts)
    count = leaves[0].type.shape[0]
    if count == 0:
        return lift(False), [zeros_like(t) for t in parts[0][1].types]
    if mask is None:
        return None, [dynamic_index_in_dim(x, count - 1, 0, False) for x in leaves]
    at = count - 1 - argmax(convert(rev(mask, (0,)), int32), 0, int32)
    return reduce_or(mask, (0,)), [dynamic_index_in_dim(x, at, 0, False) for x in leaves]
