"""Ragged rules of gather and scatter along a ragged axis: indices are relative to the lane and never leave it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import perform
from ...effects.core.arrays import scalar
from ...effects.core.columns import BATCH
from ...effects.operations.elementwise.bitwise import bitwise_and, bitwise_or
from ...effects.operations.elementwise.comparison import clamp, eq, le, lt, ne, select
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, full
from ...effects.operations.indexing.gather_scatter import Gather, ScatterFamily
from ...effects.operations.indexing.gather_windows import GatherScatterMode, window_sizes
from ...effects.operations.indexing.relocation import take_rows
from ...effects.types.extent import Extent
from .lane_lengths import INT32, line
from .ragged_batch import RAGGED, RaggedBatch, ResultTypes, RowsMark
from .row_rules import beside

FILL, ONE_HOT = GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT


def _lengths(run: RaggedBatch, size: Any) -> list[Any]:
    """For each bucket, the lengths of its lanes."""
    partition = run.lanes.rounded
    return [run.lanes.counts(size, partition, k) for k in range(len(partition.buckets))]


@RAGGED.rule(Gather)
def read(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, index: Any) -> Any:
    """Gather: on packed rows if the operand has no ragged axis that is indexed, else at the rows of each lane."""
    axes: Any = run.ragged_axes(x.type.shape) if x.run is run else ()
    if not axes and (x.run is not run):
        return beside(op, run, types, x, index)
    along = [axis for axis, _ in axes if axis in op.dimension_numbers.start_index_map]
    if along and len(axes) == 1:
        return _read_rows(op, run, types, x, index, *axes[0])
    if along:
        index = _within(run, op.dimension_numbers, x, index, op.slice_sizes, op.mode in (FILL, ONE_HOT))
    plain = Gather(op.dimension_numbers, op.slice_sizes, False, False, op.mode, op.fill_value)
    return run.by_bucket(plain, types, [x, index])


def _within(run: RaggedBatch, numbers: Any, x: Any, index: Any, window: Sequence[Any], marked: bool) -> list[Any]:
    """The indices in each bucket, for windows that exceed the lane: -2 if ``marked``, else moved into the lane."""
    parts = [convert(part, INT32) for part in run.padded(index, run.lanes.rounded)]
    for which, d in enumerate(numbers[2]):
        size = x.type.shape[d]
        if type(size) is Extent or not marked:
            parts = [_clamped(part, n - window[d], which, marked) for part, n in zip(parts, _lengths(run, size))]
    return parts


def _clamped(at: Any, last: Any, which: int, marked: bool) -> Any:
    """Index vectors whose entry ``which`` is clamped to [0, last]; if ``marked``, an index out of range becomes -2
    instead.
    """
    shape = at.type.shape
    bound = broadcast_in_dim(last, shape, (0,))
    outside, nothing = full(at.type, -2), full(at.type, 0)
    other = ne(broadcast_in_dim(line(shape[-1]), shape, (len(shape) - 1,)), scalar(which, INT32))
    if marked:
        in_range = bitwise_or(other, bitwise_and(le(nothing, at), le(at, bound)))
        return select(in_range, at, outside)
    return select(other, at, clamp(nothing, at, maximum(bound, nothing)))


@RAGGED.rule(ScatterFamily)
def write(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, index: Any, updates: Any) -> Any:
    """Scatter, on padded lanes; an index out of its lane becomes -1, and is dropped."""
    numbers = op.dimension_numbers
    window, ragged = window_sizes(numbers, x.type.shape, updates.type.shape), run.ragged_axes(index.type.shape)
    if ragged and not numbers.scatter_dims_to_operand_dims:  # no index says that an update is padding
        raise CannotCross(
            f"{op.name}: index vectors along a ragged axis must have an entry, got {index.type}.",
            hint="reduce the updates over the axis: what is left has one shape in all lanes.",
        )
    parts = _within(run, numbers, x, index, window, op.mode is not GatherScatterMode.CLIP)
    for axis, extent in ragged:
        for k, at in enumerate(parts):
            mask = run.lanes.mask(extent, run.lanes.rounded, k)
            parts[k] = select(broadcast_in_dim(mask, at.type.shape, (0, 1 + axis)), at, full(at.type, -1))
    marked = type(op)(numbers, False, op.unique_indices, GatherScatterMode.MARKED)
    return run.by_bucket(marked, types, [x, parts, updates])


def _read_rows(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, index: Any, axis: int, extent: Extent) -> Any:
    """Gather of single rows along the ragged axis of packed rows; indices out of the lane give the fill value."""
    numbers, n = op.dimension_numbers, run.lanes.of(extent)
    if axis not in numbers.collapsed_slice_dims or run.ragged_axes(op.slice_sizes):
        raise CannotCross(f"gather: along a ragged axis single elements are read, got {op!r} for {x.type}.")
    which = numbers.start_index_map.index(axis)
    ragged = run.ragged_axes(index.type.shape)
    if len(ragged) > 1:
        raise CannotCross(f"gather: indices have one ragged axis, got {index.type}.")
    if ragged:
        lane, at, dim = run.lanes.of(ragged[0][1]).lane, run.rows(index), ragged[0][0]
    else:
        lane, (at,), dim = line(run.size), run.force(index, 0), 0
    start, count = [broadcast_in_dim(take_rows(v, lane), at.type.shape, (dim,)) for v in (n.starts, n.values)]
    at = convert(at, INT32)
    inside_lane = lt(at, count) & (at >= 0)
    row = clamp(scalar(0, INT32), clamp(scalar(0, INT32), at, count - 1) + start, scalar(n.total - 1, INT32))
    if op.mode is GatherScatterMode.FILL_OR_DROP:
        row = select(inside_lane, row, broadcast_in_dim(scalar(n.total, INT32), row.type.shape, ()))
    column = broadcast_in_dim(line(at.type.shape[-1]), at.type.shape, (len(at.type.shape) - 1,))
    at = select(eq(column, scalar(which, INT32)), row, at)
    plain = Gather(numbers, op.slice_sizes, False, False, op.mode, op.fill_value)
    if ragged:
        return run.box(RowsMark(*run.ragged_axes(types[0].shape)[0]), (perform(plain, run.rows(x), at),))
    y, d = BATCH.find(Gather)(plain, (None, 0), run.rows(x), at)
    return run.box(d, (y,))
