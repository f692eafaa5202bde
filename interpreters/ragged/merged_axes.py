"""Reshapes of two ragged axes into one, ``[n, m] -> [n*m]``, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.stack import inside
from ...effects.core.arrays import scalar
from ...effects.operations.elementwise.bitwise import bitwise_and, bitwise_not
from ...effects.operations.elementwise.comparison import clamp, lt, select
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.foundations.shapes import broadcast_in_dim, move_axis, reshape
from ...effects.operations.indexing.relocation import relocate, take_rows
from ...effects.operations.manipulation.slicing import concatenate, split
from .lane_lengths import INT32, constant, line
from .ragged_batch import RaggedBatch, RowsMark

AdjacentAxes = tuple[int, Any, Any]  # an axis, its size, and the size of the next axis


def merges(run: RaggedBatch, shape: Sequence[Any], merged: Sequence[Any]) -> AdjacentAxes | None:
    """The two adjacent ragged axes of ``shape`` that are one axis of ``merged``, else None."""
    axes = run.ragged_axes(shape)
    if len(axes) != 2 or axes[1][0] != axes[0][0] + 1:
        return None
    (axis, n), (_, m) = axes
    return (axis, n, m) if (*shape[:axis], n * m, *shape[axis + 2 :]) == tuple(merged) else None


def merged(run: RaggedBatch, x: Any, pair: AdjacentAxes, shape: Sequence[Any]) -> Any:
    """The value with both axes merged, row-major: element ``(i, j)`` becomes element ``i * m + j``."""
    axis, n, m = pair
    parts = [move_axis(move_axis(part, 1 + axis, 1), 2 + axis, 2) for part in run.padded(x, run.lanes.rounded)]
    flat = [reshape(v, (v.type.shape[0] * v.type.shape[1] * v.type.shape[2], *v.type.shape[3:])) for v in parts]
    index, inverse = _layout(run, n, m)
    rows = relocate(concatenate(flat, 0), index, inverse, copies=True)
    return run.box(RowsMark(axis, n * m), (move_axis(rows, 0, axis),))


def divided(run: RaggedBatch, x: Any, pair: AdjacentAxes, shape: Sequence[Any]) -> Any:
    """The value with axis ``(i * m + j)`` divided into the two axes ``i`` and ``j`` again, where ``m`` is the size
    of the second.
    """
    axis, n, m = pair
    index, inverse = _layout(run, n, m)
    elements = relocate(move_axis(run.rows(x), axis, 0), inverse, index, copies=True)
    sizes = [(len(b.lanes), b.padded(n), b.padded(m)) for b in run.lanes.rounded.buckets]
    parts = []
    for piece, size in zip(split(elements, [count * i * j for count, i, j in sizes]), sizes):
        piece = reshape(piece, (*size, *elements.type.shape[1:]))
        parts.append(move_axis(move_axis(piece, 2, 2 + axis), 1, 1 + axis))
    return run.from_buckets(parts, shape, run.lanes.rounded)


def _layout(run: RaggedBatch, n: Any, m: Any) -> Any:
    """The padded element of each packed row of the merged axis, and the packed row of each padded element."""
    whole = run.lanes.of(n * m)

    def both() -> Any:
        with inside(whole.level):
            return _elements_of_rows(run, n, m, whole), _rows_of_elements(run, n, m, whole)

    return run.lanes.kept(("merged", n, m), both)


def _elements_of_rows(run: RaggedBatch, n: Any, m: Any, whole: Any) -> Any:
    """The padded element of each packed row of the merged axis; of padding the complement of the last row's."""
    partition = run.lanes.rounded
    width = np.zeros(run.size, INT32)
    for bucket in partition.buckets:
        width[bucket.lanes] = bucket.padded(m)
    starts, end = partition.element_starts(lambda bucket: bucket.padded(n) * bucket.padded(m))
    count = maximum(take_rows(run.lanes.of(m).values, whole.lane), scalar(1, INT32))
    first, width = [take_rows(constant(v), whole.lane) for v in (starts, width)]
    at = first + whole.within // count * width + whole.within % count
    return whole.complemented(clamp(scalar(0, INT32), at, scalar(max(end - 1, 0), INT32)))


def _rows_of_elements(run: RaggedBatch, n: Any, m: Any, whole: Any) -> Any:
    """The packed row of the merged axis for each padded element ``(i, j)``; of padding the complement of a row."""
    pieces = []
    for bucket in run.lanes.rounded.buckets:
        shape = (len(bucket.lanes), bucket.padded(n), bucket.padded(m))
        lanes = constant(bucket.lanes)
        values = [take_rows(v, lanes) for v in (whole.starts, run.lanes.of(n).values, run.lanes.of(m).values)]
        start, rows, columns = [broadcast_in_dim(v, shape, (0,)) for v in values]
        i, j = [broadcast_in_dim(line(shape[d]), shape, (d,)) for d in (1, 2)]
        row = clamp(scalar(0, INT32), start + i * columns + j, scalar(whole.total - 1, INT32))
        in_lane = bitwise_and(lt(i, rows), lt(j, columns))
        pieces.append(reshape(select(in_lane, row, bitwise_not(row)), (shape[0] * shape[1] * shape[2],)))
    return concatenate(pieces, 0)
