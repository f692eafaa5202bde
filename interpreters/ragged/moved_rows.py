"""Affine moves of rows within their lanes: slices, padding, reversal, as one gather index and its inverse.

    up * p == down * q + shift        row p of the result's lane is row q of the operand's lane

A slice has p = (q - start) / stride, padding p = (interior + 1) q + low, reversal p = n - 1 - q.
Where no q solves the equation, row p is a copy of an existing row, without cotangent.

It acts on the packed rows of all lanes or, for values with further ragged axes, on the padded lanes of each bucket,
seen as packed rows of equally long lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.stack import BASE, Run, inside
from ...effects.core.arrays import scalar
from ...effects.operations.elementwise.bitwise import bitwise_and, bitwise_not
from ...effects.operations.elementwise.comparison import clamp, eq, lt, select
from ...effects.operations.elementwise.comparison import min as minimum
from ...effects.operations.foundations.shapes import broadcast_in_dim, move_axis, reshape, zeros
from ...effects.operations.indexing.relocation import relocate, take_rows
from ...effects.operations.manipulation.slicing import slice_in_dim
from ...effects.types.extent import Extent
from .lane_lengths import INT32, Bucket, RaggedLanes, constant, index_array, line
from .ragged_batch import RaggedBatch, RowsMark


class BucketRows:
    """The padded lanes of a bucket as packed rows, with the interface of ``LaneLengths``."""

    def __init__(self, lanes: RaggedLanes, bucket: Bucket, size: Any):
        n = lanes.of(size)
        self.level = n.level
        self.count, self.length = len(bucket.lanes), bucket.padded(size)
        self.total = self.count * self.length
        with inside(self.level):
            self.values = take_rows(n.values, constant(bucket.lanes))
            self.starts = line(self.count) * self.length

    @index_array
    def lane(self) -> Any:
        return reshape(broadcast_in_dim(line(self.count), (self.count, self.length), (0,)), (self.total,))

    @index_array
    def within(self) -> Any:
        return reshape(broadcast_in_dim(line(self.length), (self.count, self.length), (1,)), (self.total,))

    @index_array
    def real(self) -> Any:
        return lt(self.within, take_rows(self.values, self.lane))


class Frame:
    """Packed rows of all lanes, or of those of one bucket: ``of(size)`` is the layout for lanes of this size."""

    def __init__(self, run: RaggedBatch, bucket: Bucket | None = None):
        self.lanes, self.bucket = run.lanes, bucket
        self.key = bucket

    def of(self, size: Any) -> Any:
        if self.bucket is None:
            return self.lanes.of(size)
        bucket = self.bucket
        return self.lanes.kept(("rows", size, bucket), lambda: BucketRows(self.lanes, bucket, size))

    def __len__(self) -> int:
        return self.lanes.count if self.bucket is None else len(self.bucket.lanes)

    def pick(self, values: Any) -> Any:
        """The entries of a per-lane array for the lanes of this frame."""
        return values if self.bucket is None else take_rows(values, constant(self.bucket.lanes))

    def level(self, *sizes: Any) -> Run:
        """The run in which index arrays that depend on these sizes are computed."""
        known = all([self.lanes.of(size).level is BASE for size in sizes])
        return BASE if known else self.lanes.outer


def moved(run: RaggedBatch, x: Any, axis: int, size: Any, up: int, down: int, shift: Any) -> Any:
    """The value whose row ``p`` along ``axis``, of this size in the lane, is row ``q`` of ``x``, up * p == down * q +
    shift.
    """
    given = x.type.shape[axis]

    def move(frame: Frame, rows: Any) -> Any:
        source, result = frame.of(given), frame.of(size)
        if not (source.total and result.total):
            return zeros(rows.type.update(shape=(result.total, *rows.type.shape[1:])))

        def both() -> Any:
            with inside(frame.level(given, size, shift)):
                by = frame.of(shift).values if type(shift) is Extent else shift
                index = _image(result, source, up, down, by)
                return index, _image(source, result, down, up, -by)

        index, inverse = run.lanes.kept(("moved", frame.key, given, size, up, down, shift), both)
        return relocate(rows, index, inverse, copies=True)

    return along(run, [x], axis, size, move)


def _image(result: Any, source: Any, up: int, down: int, shift: Any) -> Any:
    """For each row p of ``result``, the row q of ``source`` with ``up * p == down * q + shift``, or the complement ~q'
    of some row if there is none.

    Padding of a lane of the result gets the value of its last row.
    """
    lane, zero = result.lane, scalar(0, INT32)
    p = minimum(result.within, take_rows(result.values, lane) - 1)
    by = shift if isinstance(shift, int) else take_rows(shift, lane)
    difference = up * p - by
    q = difference if down == 1 else -difference if down == -1 else difference // down
    length = take_rows(source.values, lane)
    in_lane = bitwise_and(bitwise_and(result.real, lt(q, length)), lt(scalar(-1, INT32), q))
    if abs(down) != 1:
        in_lane = bitwise_and(in_lane, eq(q * down, difference))
    row = clamp(zero, q, length - 1) + take_rows(source.starts, lane)
    row = clamp(zero, row, scalar(source.total - 1, INT32))
    return select(in_lane, row, bitwise_not(row))


def along(run: RaggedBatch, xs: Sequence[Any], axis: int, size: Any, f: Callable[..., Any]) -> Any:
    """``f(frame, *rows)`` applied to the packed rows of ``xs`` along ``axis``, which has this size in the result."""
    shape = (*xs[0].type.shape[:axis], size, *xs[0].type.shape[axis + 1 :])
    others = [a for value in (shape, *[x.type.shape for x in xs]) for a, _ in run.ragged_axes(value) if a != axis]
    if not others:
        y = f(Frame(run), *[lane_rows(run, x, axis) for x in xs])
        if type(size) is Extent:
            return run.box(RowsMark(axis, size), (move_axis(y, 0, axis),))
        y = reshape(slice_in_dim(y, 0, run.size * size), (run.size, size, *y.type.shape[1:]))
        return run.box(0, (move_axis(y, 1, 1 + axis),))
    partition = run.lanes.rounded
    buckets = []
    for bucket, parts in zip(partition.buckets, zip(*[run.padded(x, partition) for x in xs])):
        y = f(Frame(run, bucket), *[_flat(part, axis) for part in parts])
        y = reshape(y, (len(bucket.lanes), bucket.padded(size), *y.type.shape[1:]))
        buckets.append(move_axis(y, 1, 1 + axis))
    return run.from_buckets(buckets, shape, partition)


def _flat(part: Any, axis: int) -> Any:
    """The packed rows along ``axis`` of padded lanes; the lanes are first."""
    part = move_axis(part, 1 + axis, 1)
    return reshape(part, (part.type.shape[0] * part.type.shape[1], *part.type.shape[2:]))


def lane_rows(run: RaggedBatch, x: Any, axis: int) -> Any:
    """The packed rows of all lanes along ``axis``, which is the only ragged axis or has one size in all lanes."""
    if run.ragged_axes(x.type.shape[axis : axis + 1]):
        return move_axis(run.rows(x), axis, 0)
    rows = _flat(run.force(x, 0)[0], axis)
    return rows if rows.type.shape[0] else zeros(rows.type.update(shape=(1, *rows.type.shape[1:])))


def interchanged(run: RaggedBatch, x: Any, axis: int, k: int, back: bool = False) -> Any:
    """Rows of a merged axis [n, k] transposed to [k, n]; or, with ``back``, the inverse."""
    whole = x.type.shape[axis]
    n = whole // k

    def move(frame: Frame, rows: Any) -> Any:
        rows_of = frame.of(whole)
        if not rows_of.total:
            return rows

        def both() -> Any:
            with inside(frame.level(whole, n)):
                lane, zero = rows_of.lane, scalar(0, INT32)
                count = take_rows(frame.of(n).values, lane)
                p = minimum(rows_of.within, k * count - 1)
                start = take_rows(rows_of.starts, lane)
                each = clamp(scalar(1, INT32), count, scalar(rows_of.total, INT32))
                places = (p % each) * k + p // each, (p % k) * count + p // k
                index = [clamp(zero, start + q, scalar(rows_of.total - 1, INT32)) for q in places]
                return [select(rows_of.real, row, bitwise_not(row)) for row in index]

        index, inverse = run.lanes.kept(("interchanged", frame.key, whole, k), both)
        return relocate(rows, *((inverse, index) if back else (index, inverse)), copies=True)

    return along(run, [x], axis, whole, move)
