"""Groups of lanes as a rectangular table, so that groups and positions are dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import scalar
from ..foundations.shapes import broadcast, reshape
from ..indexing.gather_scatter import gather
from ..indexing.gather_windows import GatherDimensionNumbers
from ..manipulation.slicing import concatenate, slice_in_dim

Groups = tuple[tuple[int, ...], ...]


def rows(x: Any, index: Any, **fill: Any) -> Any:
    """``x[index]`` along dimension 0 for an index vector; with ``mode="fill", fill_value=0``, 0 for indices out of
    range.
    """
    window = (1, *x.type.shape[1:])
    numbers = GatherDimensionNumbers(tuple(range(1, len(window))), (0,), (0,))
    return gather(x, np.asarray(index, np.int32)[:, None], numbers, window, **fill)


class GroupTable(NamedTuple):
    """A partition of lanes into ordered groups, as a table with one line for each group.

    Attributes:
        lanes: the lane at each (group, position); the number of lanes as padding, where groups differ in size.
        cell: the row-major index of each lane in this table.
        position: the position of each lane in its group.
    """

    lanes: np.ndarray[Any, Any]
    cell: np.ndarray[Any, Any]
    position: np.ndarray[Any, Any]

    @staticmethod
    def of(groups: Groups) -> GroupTable:
        total, width = sum(map(len, groups)), max(map(len, groups))
        lanes = np.full((len(groups), width), total, np.int32)
        cell, position = np.zeros((2, total), np.int32)
        for g, group in enumerate(groups):
            lanes[g, : len(group)] = group
            position[list(group)] = range(len(group))
            cell[list(group)] = g * width + position[list(group)]
        return GroupTable(lanes, cell, position)

    @property
    def in_order(self) -> bool:
        """Whether the table holds lanes 0, 1, 2, ... in row-major order."""
        return np.array_equal(self.cell, np.arange(self.lanes.size))

    def by_group(self, table: Any, unit: Callable[[Any], Any]) -> Any:
        """``a[lanes, ...] -> a[groups, positions, ...]``, padded with ``unit(dtype)``."""
        if self.lanes.size > self.cell.size:
            dtype = table.type.dtype
            empty = broadcast(scalar(unit(dtype), dtype), (1, *table.type.shape[1:]))
            table = concatenate([table, empty], 0)
        if not self.in_order:
            table = rows(table, self.lanes.ravel())
        return reshape(table, (*self.lanes.shape, *table.type.shape[1:]))

    def by_lane(self, table: Any) -> Any:
        """The inverse, ``a[groups, positions, ...] -> a[lanes, ...]``."""
        groups, width, *lane = table.type.shape
        flat = reshape(table, (groups * width, *lane))
        return flat if self.in_order else rows(flat, self.cell)


def along_groups(
    scan: Callable[..., Any], table: Any, groups: Groups | None, reverse: bool, exclusive: bool, unit: Any
) -> Any:
    """A cumulative function ``scan(x, axis, reverse)`` of ``a[lanes, ...]`` along the lanes of each group."""
    total = table.type.shape[0]
    members = GroupTable.of(groups or (tuple(range(total)),))
    y = scan(members.by_group(table, unit), 1, reverse)
    if exclusive:
        count, width = members.lanes.shape
        start = broadcast(scalar(unit(y.type.dtype), y.type.dtype), (count, 1, *y.type.shape[2:]))
        rest = slice_in_dim(y, 1, width, axis=1) if reverse else slice_in_dim(y, 0, width - 1, axis=1)
        y = concatenate([rest, start] if reverse else [start, rest], 1)
    return members.by_lane(y)
