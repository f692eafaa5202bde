"""The entries of a log that have one name, merged into one value by the name's mode.

An entry is wrapped in one ``When`` for each branch around it, and its arrays have a leading axis for each loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ....effects.base.errors import TreeMismatch
from ....effects.core.arrays import as_array
from ....effects.core.columns import zeros_like
from ....effects.operations.elementwise.bitwise import bitwise_and, bitwise_or
from ....effects.operations.elementwise.comparison import select
from ....effects.operations.elementwise.conversion import convert
from ....effects.operations.foundations.shapes import broadcast_in_dim, reshape
from ....effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ....effects.operations.manipulation.slicing import concatenate, rev
from ....effects.operations.reductions.reductions import argmax, reduce_or
from ....effects.trees import pytrees
from ....effects.trees.registration import register_dataclass
from ....effects.trees.structure import TreeDef
from ....effects.types.array_type import ArrayType
from ....effects.types.dtypes import int32
from ...handlers.state_movements import When, broadcast_mask

MaskedEntry = tuple[Any, "SownEntry"]  # the mask of an entry, see ``_mask_of``, and the entry


@dataclasses.dataclass(frozen=True)
class SownEntry:
    """A sown value in the log: ``types`` are those of one iteration, axes before theirs belong to loops around it."""

    leaves: Any
    path: tuple[str, ...]
    mode: str
    tree: TreeDef
    types: tuple[ArrayType, ...]


register_dataclass(SownEntry, ("leaves",), ("path", "mode", "tree", "types"))


def entries_of(log: Sequence[Any], path: tuple[str, ...]) -> list[MaskedEntry]:
    """The entries of a log under one name, each with its mask."""
    return [(_mask_of(entry), sown_in(entry)) for entry in log if sown_in(entry).path == path]


def sown_in(entry: Any) -> SownEntry:
    """The sown value of an entry, without its ``When`` wrappers."""
    while not isinstance(entry, SownEntry):
        entry = entry.value
    return entry


def merged(name: str, parts: Sequence[MaskedEntry], always: bool) -> Any:
    """The entries of one name as one value: a ``When``, unless the name is ``always`` sown."""
    first = parts[0][1]
    merge = {"strict": _exclusive, "append": _rows, "clobber": last_of}[first.mode]
    mask, leaves = merge(name, parts)
    value = pytrees.unflatten(first.tree, leaves)
    return value if always or mask is None else When(mask, value)


def _mask_of(entry: Any) -> Any:
    """Whether all branches around an entry were taken, one element per iteration of loops; None without branches."""
    mask = None
    while isinstance(entry, When):
        taken = as_array(entry.taken)
        mask = taken if mask is None else bitwise_and(broadcast_mask(mask, taken.type.shape), taken)
        entry = entry.value
    return mask


def _exclusive(name: str, parts: Sequence[MaskedEntry]) -> tuple[Any, list[Any]]:
    """Mode ``strict``: the value of the entry that was taken, which is at most one."""
    mask, sown = parts[0]
    leaves = list(sown.leaves)
    for taken, other in parts[1:]:
        types, expected = ([as_array(x).type.strong() for x in xs] for xs in (other.leaves, leaves))
        if types != expected:
            raise TreeMismatch(
                f"reap: what the branches sow under {name} must have one type, got {expected} and {types}.",
                hint="give them different names.",
            )
        leaves = [select(broadcast_mask(taken, as_array(y).type.shape), y, x) for x, y in zip(leaves, other.leaves)]
        mask = bitwise_or(mask, taken)
    return mask, leaves


def _flat(x: Any, rank: int) -> Any:
    """An array with all axes before its last ``rank`` ones reshaped into one, of size 1 if there is none."""
    shape = x.type.shape
    count = 1
    for size in shape[: len(shape) - rank]:
        count *= size
    return reshape(as_array(x), (count, *shape[len(shape) - rank :]))


def _row_masks(parts: Sequence[MaskedEntry]) -> list[Any]:
    """The mask of each entry as a vector, one element for each iteration of the loops around it."""
    masks = []
    for taken, sown in parts:
        x = as_array(sown.leaves[0])
        loops = x.type.shape[: len(x.type.shape) - len(sown.types[0].shape)]
        mask = as_array(True) if taken is None else taken
        masks.append(_flat(broadcast_in_dim(mask, loops, range(len(mask.type.shape))), 0))
    return masks


def _rows(name: str, parts: Sequence[MaskedEntry]) -> tuple[Any, list[Any]]:
    """Mode ``append``: one row for each entry and iteration, and the mask of the rows."""
    shapes = {tuple([t.shape for t in sown.types]) for _, sown in parts}
    if len(shapes) > 1:
        raise TreeMismatch(f"reap: what is appended under {name} must have one shape, got {sorted(shapes)}.")
    columns = zip(*[[_flat(as_array(x), len(t.shape)) for x, t in zip(sown.leaves, sown.types)] for _, sown in parts])
    leaves = [concatenate(list(column), 0) for column in columns]
    if all(taken is None for taken, _ in parts):
        return None, leaves
    return concatenate(_row_masks(parts), 0), leaves


def last_of(name: str, parts: Sequence[MaskedEntry]) -> tuple[Any, list[Any]]:
    """Mode ``clobber``: the value of the last row that was taken, and whether there is one."""
    mask, leaves = _rows(name, parts)
    count = leaves[0].type.shape[0]
    if count == 0:
        return as_array(False), [zeros_like(t) for t in parts[0][1].types]
    if mask is None:
        return None, [dynamic_index_in_dim(x, count - 1, 0, False) for x in leaves]
    at = count - 1 - argmax(convert(rev(mask, (0,)), int32), 0, int32)
    return reduce_or(mask, (0,)), [dynamic_index_in_dim(x, at, 0, False) for x in leaves]
