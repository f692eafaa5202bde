"""Rows that go to other places of their lanes: slices, padding, reversed lanes, by one index and its inverse.

    up * p == down * q + shift        row p of a lane of the result is row q of the operand's

A slice has p = (q - start) / stride, padding p = (interior + 1) q + low, a reversed lane p = n - 1 - q.
Where there is no such q stands a copy of a row that exists, without cotangent.

What is done to rows is done to all lanes one after the other, or, where values have further ragged axes, to the padded
lanes of each bucket, which are rows of equally long lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
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
from .lane_lengths import INT32, Bucket, RaggedLanes, constant, line
from .ragged_batch import RaggedBatch, RowsMark


class BucketRows:
    """The rows of the padded lanes of a bucket, one lane after the other, described as ``LaneLengths`` does."""

    def __init__(self, lanes: RaggedLanes, bucket: Bucket, size: Any):
        n = lanes.of(size)
        self.place = n.place
        self.count, self.room = len(bucket.lanes), bucket.room(size)
        self.total = self.count * self.room
        with inside(self.place):
            self.values = take_rows(n.values, constant(bucket.lanes))
            self.starts = line(self.count) * self.room

    @cached_property
    def lane(self) -> Any:
        with inside(self.place):
            return reshape(broadcast_in_dim(line(self.count), (self.count, self.room), (0,)), (self.total,))

    @cached_property
    def within(self) -> Any:
        with inside(self.place):
            return reshape(broadcast_in_dim(line(self.room), (self.count, self.room), (1,)), (self.total,))

    @cached_property
    def real(self) -> Any:
        with inside(self.place):
            return lt(self.within, take_rows(self.values, self.lane))


class Frame:
    """Rows of all lanes, or of those of one bucket: ``of(size)`` says where the lanes of this length have theirs."""

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
        """The values of these lanes, from those of all."""
        return values if self.bucket is None else take_rows(values, constant(self.bucket.lanes))

    def place(self, *sizes: Any) -> Run:
        """Where index arrays that depend on these sizes are computed."""
        known = all([self.lanes.of(size).place is BASE for size in sizes])
        return BASE if known else self.lanes.outer


def moved(run: RaggedBatch, x: Any, axis: int, size: Any, up: int, down: int, shift: Any) -> Any:
    """The value whose row ``p`` along ``axis``, of this size in the lane, is row ``q`` of ``x``: see the module."""
    given = x.type.shape[axis]

    def move(frame: Frame, rows: Any) -> Any:
        source, result = frame.of(given), frame.of(size)
        if not (source.total and result.total):
            return zeros(rows.type.update(shape=(result.total, *rows.type.shape[1:])))

        def both() -> Any:
            with inside(frame.place(given, size, shift)):
                by = frame.of(shift).values if type(shift) is Extent else shift
                there = _image(result, source, up, down, by)
                return there, _image(source, result, down, up, -by)

        index, inverse = run.lanes.kept(("moved", frame.key, given, size, up, down, shift), both)
        return relocate(rows, index, inverse, copies=True)

    return along(run, [x], axis, size, move)


def _image(result: Any, source: Any, up: int, down: int, shift: Any) -> Any:
    """For each row p of ``result`` the row q of ``source``, ``up * p == down * q + shift``; ~(a row) where it has none.

    Behind the end of a lane of the result stands what its last row has.
    """
    lane, zero = result.lane, scalar(0, INT32)
    p = minimum(result.within, take_rows(result.values, lane) - 1)
    by = shift if isinstance(shift, int) else take_rows(shift, lane)
    difference = up * p - by
    q = difference if down == 1 else -difference if down == -1 else difference // down
    length = take_rows(source.values, lane)
    found = bitwise_and(bitwise_and(result.real, lt(q, length)), lt(scalar(-1, INT32), q))
    if abs(down) != 1:
        found = bitwise_and(found, eq(q * down, difference))
    row = clamp(zero, q, length - 1) + take_rows(source.starts, lane)
    row = clamp(zero, row, scalar(source.total - 1, INT32))
    return select(found, row, bitwise_not(row))


def along(run: RaggedBatch, xs: Sequence[Any], axis: int, size: Any, f: Callable[..., Any]) -> Any:
    """``f(frame, *rows)`` of the rows of ``xs`` along ``axis``, which has this size in the result."""
    shape = (*xs[0].type.shape[:axis], size, *xs[0].type.shape[axis + 1 :])
    others = [a for value in (shape, *[x.type.shape for x in xs]) for a, _ in run.ragged_axes(value) if a != axis]
    if not others:
        y = f(Frame(run), *[lane_rows(run, x, axis) for x in xs])
        if type(size) is Extent:
            return run.box(RowsMark(axis, size), (move_axis(y, 0, axis),))
        y = reshape(slice_in_dim(y, 0, run.size * size), (run.size, size, *y.type.shape[1:]))
        return run.box(0, (move_axis(y, 1, 1 + axis),))
    partition = run.lanes.rounded
    found = []
    for bucket, parts in zip(partition.buckets, zip(*[run.padded(x, partition) for x in xs])):
        y = f(Frame(run, bucket), *[_flat(part, axis) for part in parts])
        y = reshape(y, (len(bucket.lanes), bucket.room(size), *y.type.shape[1:]))
        found.append(move_axis(y, 1, 1 + axis))
    return run.from_buckets(found, shape, partition)


def _flat(part: Any, axis: int) -> Any:
    """The rows along ``axis`` of padded lanes, which stand first, lane by lane."""
    part = move_axis(part, 1 + axis, 1)
    return reshape(part, (part.type.shape[0] * part.type.shape[1], *part.type.shape[2:]))


def lane_rows(run: RaggedBatch, x: Any, axis: int) -> Any:
    """The rows of all lanes along ``axis``, its only ragged one or of one size in all lanes; at least one row."""
    if run.ragged_axes(x.type.shape[axis : axis + 1]):
        return move_axis(run.rows(x), axis, 0)
    rows = _flat(run.force(x, 0)[0], axis)
    return rows if rows.type.shape[0] else zeros(rows.type.update(shape=(1, *rows.type.shape[1:])))


def interchanged(run: RaggedBatch, x: Any, axis: int, k: int, back: bool = False) -> Any:
    """Rows that number [n, k] numbered as [k, n], along an axis that merges them; or back."""
    whole = x.type.shape[axis]
    n = whole // k

    def move(frame: Frame, rows: Any) -> Any:
        rows_of = frame.of(whole)
        if not rows_of.total:
            return rows

        def both() -> Any:
            with inside(frame.place(whole, n)):
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
