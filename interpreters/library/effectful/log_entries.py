"""Merging the log entries of one name into one value, by the name's mode.

An entry is wrapped in one ``When`` for each branch around it, and its arrays have a leading axis for each loop and each
``vmap`` around it, outermost first. Lanes are independent: in every mode

    reap(vmap(f)) == vmap(reap(f))
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ....effects.base.errors import TreeMismatch
from ....effects.core.arrays import as_array
from ....effects.core.columns import zeros_like
from ....effects.operations.elementwise.bitwise import bitwise_and
from ....effects.operations.elementwise.comparison import select
from ....effects.operations.elementwise.conversion import convert
from ....effects.operations.foundations.shapes import move_axis, permute, reshape
from ....effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ....effects.operations.manipulation.slicing import concatenate, rev
from ....effects.operations.reductions.reductions import argmax, reduce_or
from ....effects.trees import pytrees
from ....effects.trees.registration import register_dataclass
from ....effects.types.dtypes import int32
from ...handlers.log_axes import LogAxes, LogAxis
from ...handlers.state_movements import When, broadcast_mask, either_mask
from ...transformations.vmap import vmap

if TYPE_CHECKING:
    from ....effects.trees.cpp_pytrees import PyTreeDef

MaskedEntry = tuple[Any, "SownEntry"]  # an entry's mask (``_mask_of``) and the entry


@dataclasses.dataclass(frozen=True)
class SownEntry:
    """A sown value in the log; ``axes`` describes the leading axes of each leaf, which are of loops and lanes."""

    leaves: Any
    path: tuple[str, ...]
    mode: str
    tree: PyTreeDef
    axes: LogAxes

    @property
    def lanes(self) -> LogAxes:
        """The leading axes that are mapped axes."""
        return tuple([axis for axis in self.axes if axis.of_lanes])

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the leaves without their leading axes."""
        return [as_array(x).type.shape[len(self.axes) :] for x in self.leaves]


register_dataclass(SownEntry, ("leaves",), ("path", "mode", "tree", "axes"))


def entries_of(log: Sequence[Any], path: tuple[str, ...]) -> list[MaskedEntry]:
    """The entries of a log under one name, each with its mask."""
    return [(_mask_of(entry), sown_in(entry)) for entry in log if sown_in(entry).path == path]


def sown_in(entry: Any) -> SownEntry:
    """The sown value of an entry, without its ``When`` wrappers."""
    while not isinstance(entry, SownEntry):
        entry = entry.value
    return entry


def with_axes(entry: Any, axes: LogAxes) -> Any:
    """An entry whose sown value has these axes."""
    if isinstance(entry, SownEntry):
        return dataclasses.replace(entry, axes=axes)
    return When(entry.taken, with_axes(entry.value, axes))


def merged(name: str, parts: Sequence[MaskedEntry], always: bool) -> Any:
    """The value of one name: a ``When``, unless the name is ``always`` sown and no stacked value is masked."""
    first = parts[0][1]
    merge = {"strict": _exclusive, "append": _appended, "clobber": last_of}[first.mode]
    mask, leaves = merge(name, parts)
    value = pytrees.unflatten(first.tree, leaves)
    whole = mask is None or (always and first.mode != "append")
    return value if whole else When(mask, value)


def in_order(entries: Sequence[Any]) -> list[Any]:
    """The entries of one iteration, with those of a name that may be sown again stacked, or reduced to the last."""
    named: dict[tuple[str, ...], list[Any]] = {}
    for entry in entries:
        named.setdefault(sown_in(entry).path, []).append(entry)
    return [entry for own in named.values() for entry in _as_one(own)]


def _as_one(entries: Sequence[Any]) -> Sequence[Any]:
    """The entries of one name stacked, or reduced to the last, as their mode says; unchanged if there is only one."""
    first = sown_in(entries[0])
    kinds = {(sown_in(entry).mode, sown_in(entry).tree) for entry in entries}
    if len(entries) == 1 or len(kinds) > 1 or first.mode == "strict":
        return entries
    name, parts = "/".join(first.path), entries_of(entries, first.path)
    if first.mode == "append":
        mask, leaves, at, _ = _rows(name, parts)
        axes = (*first.lanes[:at], LogAxis(leaves[0].type.shape[at], False), *first.lanes[at:])
    else:
        mask, leaves = last_of(name, parts)
        axes = first.lanes
    one = SownEntry(leaves, first.path, first.mode, first.tree, axes)
    return [one if mask is None else When(mask, one)]


def _mask_of(entry: Any) -> Any:
    """Whether all branches around an entry were taken, one element per iteration of loops; None without branches."""
    mask = None
    while isinstance(entry, When):
        taken = as_array(entry.taken)
        mask = taken if mask is None else bitwise_and(broadcast_mask(mask, taken.type.shape), taken)
        entry = entry.value
    return mask


def _exclusive(name: str, parts: Sequence[MaskedEntry]) -> tuple[Any, list[Any]]:
    """Mode ``strict``: the value of the only entry whose branch was taken."""
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
        mask = either_mask(mask, taken)
    return mask, leaves


def _rows_at(x: Any, axes: LogAxes, at: int) -> Any:
    """The array with all its loop axes merged into one, at ``at`` among its mapped axes."""
    lanes = [i for i, axis in enumerate(axes) if axis.of_lanes]
    loops = [i for i, axis in enumerate(axes) if not axis.of_lanes]
    value = range(len(axes), len(x.type.shape))
    shape = [[x.type.shape[i] for i in group] for group in (lanes[:at], lanes[at:], value)]
    moved = permute(x, [*lanes[:at], *loops, *lanes[at:], *value])
    return reshape(moved, (*shape[0], math.prod([axes[i].size for i in loops]), *shape[1], *shape[2]))


def _in_time(mask: Any, sown: SownEntry) -> MaskedEntry:
    """An entry, and its mask, with loop axes permuted to the order of execution."""
    back = [i for i, axis in enumerate(sown.axes) if axis.backwards]
    if not back:
        return mask, sown
    turned = [i for i in back if mask is not None and i < len(mask.type.shape)]
    leaves = [rev(as_array(x), back) for x in sown.leaves]
    return rev(mask, turned) if turned else mask, dataclasses.replace(sown, leaves=leaves)


class Rows(NamedTuple):
    """The values of a name stacked along axis ``at``, behind ``lanes`` mapped axes; and their mask, or None."""

    mask: Any
    leaves: list[Any]
    at: int
    lanes: int


def _rows(name: str, parts: Sequence[MaskedEntry]) -> Rows:
    """The values of all entries of a name, stacked over entries and iterations in the order of execution.

    The axis is that of the outermost loop: behind the mapped axes around all of them.
    """
    shapes = {(tuple([axis.size for axis in sown.lanes]), *sown.shapes) for _, sown in parts}
    if len(shapes) > 1:
        raise TreeMismatch(
            f"reap: what is appended under {name} must have one shape, got {sorted({s[1:] for s in shapes})}."
        )
    lanes = len(parts[0][1].lanes)
    loops = [[i for i, axis in enumerate(sown.axes) if not axis.of_lanes] for _, sown in parts]
    at = min([own[0] if own else lanes for own in loops])
    columns = zip(*[[_rows_at(as_array(x), sown.axes, at) for x in sown.leaves] for _, sown in parts])
    leaves = [concatenate(list(column), at) for column in columns]
    if all(taken is None for taken, _ in parts):
        return Rows(None, leaves, at, lanes)
    masks = []
    for taken, sown in parts:
        mask = as_array(True) if taken is None else taken
        masks.append(_rows_at(broadcast_mask(mask, tuple([axis.size for axis in sown.axes])), sown.axes, at))
    return Rows(concatenate(masks, at), leaves, at, lanes)


def _appended(name: str, parts: Sequence[MaskedEntry]) -> tuple[Any, list[Any]]:
    """Mode ``append``: all stacked values, and their mask."""
    rows = _rows(name, parts)
    return rows.mask, rows.leaves


def last_of(name: str, parts: Sequence[MaskedEntry]) -> tuple[Any, list[Any]]:
    """Mode ``clobber``: whether the name was sown, and the last value that was, for every lane."""
    mask, leaves, at, lanes = _rows(name, [_in_time(*part) for part in parts])
    types = [x.type.update(shape=(*x.type.shape[:at], *x.type.shape[at + 1 :])) for x in leaves]
    count = leaves[0].type.shape[at]
    if count == 0:
        return as_array(False), [zeros_like(t) for t in types]
    if mask is None:
        return None, [dynamic_index_in_dim(x, count - 1, at, False) for x in leaves]
    last = count - 1 - argmax(convert(rev(mask, (at,)), int32), at, int32)
    row: Any = lambda x, i: dynamic_index_in_dim(x, i, 0, False)
    for _ in range(lanes):
        row = vmap(row)
    return reduce_or(mask, (at,)), [row(move_axis(x, at, lanes), last) for x in leaves]
