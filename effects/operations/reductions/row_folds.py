"""Rows of lanes one after the other: the fold of each lane's rows, and what a lane has repeated along its rows.

    fold      y[i] = x[ends[i - 1]] o ... o x[ends[i] - 1]
    repeat    x[t] = y[lane[t]]

All take one description of the lanes, ``row_index``. The sum and the repetition are each other's adjoints.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, ClassVar

import numpy as np

from ...base.stack import perform
from ...core.arrays import scalar
from ...core.columns import data_movement, linear_in, per_operand
from ...core.operation import Operation, operation, shared
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import ANY, FOUR_BITS, NUMERIC, ORDERED
from ..elementwise import comparison
from ..elementwise.arithmetic import Unread, add, div, mul
from ..elementwise.bitwise import bitwise_and, shift_left
from ..elementwise.comparison import eq, has_zero, lt, ne, select
from ..elementwise.conversion import convert
from ..foundations.half_precision import in_bytes, wide
from ..foundations.shapes import ReduceSum, broadcast_in_dim, full, reduce_sum, reshape, zeros
from ..indexing.gather_scatter import Gather, ScatterAdd, ScatterMax, ScatterMin
from ..indexing.gather_windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from ..indexing.relocation import index_column, take_rows
from ..manipulation.creation import iota
from ..manipulation.slicing import axis_at, concatenate, lane_count, slice_in_dim
from .cumulative import Cumsum
from .reductions import ReduceMax, ReduceMin, highest, lowest

INT32 = np.dtype("int32")
BLOCK = 8  # rows that are combined at once
FEW = 1 << 16  # so many pairs of lanes and rows are all compared
SHORT = 16  # where lanes have fewer rows than that on average, each row is scattered


def row_starts(ends: Any) -> Any:
    """Where lanes begin that end before these rows."""
    return concatenate([zeros(array_type((1,), INT32)), slice_in_dim(ends, 0, -1)], 0) if ends.type.size else ends


def lanes_of_rows(ends: Any, total: int) -> Any:
    """The lane of each row, how many lanes have ended at or before it; of spare rows the number of lanes."""
    count = ends.type.shape[0]
    if count * total <= FEW:
        end, row = [broadcast_in_dim(v, (total, count), (d,)) for v, d in ((ends, 1), (iota(INT32, total), 0))]
        return reduce_sum(convert(comparison.le(end, row), INT32), (1,))
    ones = broadcast_in_dim(scalar(1, INT32), ends.type.shape, ())
    at = comparison.min(ends, scalar(total, INT32))
    return perform(shared(Cumsum, 0, False), _scattered(SumRows(), ones, at, total))


def row_index(ends: Any, total: int) -> tuple[Any, Any, Any]:
    """The lanes that end before these rows, of ``total``, as folds and repetitions of rows take them.

    ``ends``, which does not decrease; rows from its last one on are spare, and belong to no lane. The ``blocks`` of
    rows; and the lane of each row, of spare ones the lane of the last row here.
    """
    lane, count = lanes_of_rows(ends, total), ends.type.shape[0]
    if count:
        before = lt(ends, broadcast_in_dim(slice_in_dim(ends, count - 1, count), (count,), (0,)))
        last = reduce_sum(convert(before, INT32), (0,))
        lane = comparison.min(lane, broadcast_in_dim(last, (total,), ()))
    return ends, row_blocks(ends, total), lane


def most_blocks(count: int, total: int) -> int:
    """How many blocks there are for so many lanes and rows."""
    return total // BLOCK + count


def row_blocks(ends: Any, total: int) -> Any:
    """The rows of each lane in blocks: where each begins, which of the ``BLOCK`` rows there are its, as bits, the lane.

    Lane ``i`` has the blocks from ``start // BLOCK + i`` on, enough for its rows, of which the last may be empty.
    """
    count = ends.type.shape[0]
    number = most_blocks(count, total)
    if not count:
        return zeros(array_type((3, number), INT32))
    starts = row_starts(ends)
    begin, until = [div(v, scalar(BLOCK, INT32)) + iota(INT32, count) for v in (starts, ends)]
    lane = comparison.min(lanes_of_rows(until + 1, number), scalar(count - 1, INT32))
    start, end, begin = [take_rows(v, lane) for v in (starts, ends, begin)]
    first = comparison.min(start + (iota(INT32, number) - begin) * BLOCK, end)
    last = comparison.min(first + BLOCK, end)
    place = comparison.min(first, scalar(max(total - BLOCK, 0), INT32))
    one = full(lane.type, 1)
    rows = shift_left(one, last - place) - shift_left(one, first - place)
    return concatenate([reshape(v, (1, number)) for v in (place, rows, lane)], 0)


class OnRows(Operation):
    """An operation on rows, or on what lanes have, that takes the ``row_index`` of the lanes behind its operand.

    ``numbered(real, x, index, size)``: the result for the lanes of ``size`` lanes, one after the other;
    ``real``: which rows are not spare in their own lane.
    """

    __slots__ = ()
    numbered: ClassVar[Any]

    def batch(op: Any, dims: Any, x: Any, *index: Any) -> Any:
        size = lane_count((x, *index), dims)
        if not any([d is not None for d in dims[1:]]):  # the lanes are part of each row
            return perform(op, axis_at(x, dims[0], 1, size), *index), 1
        x, ends, parts, lane = [axis_at(v, d, 0, size) for v, d in zip((x, *index), dims)]
        if not size:
            t = op.result_type(*[v.type.update(shape=v.type.shape[1:]) for v in (x, ends, parts, lane)])
            return zeros(t.update(shape=(0, *t.shape))), 0
        count, total = ends.type.shape[1], lane.type.shape[1]
        first = broadcast_in_dim(iota(INT32, size) * total, ends.type.shape, (0,))
        ends_of_all = reshape(ends + first, (size * count,))
        lane_of_all = lane + broadcast_in_dim(iota(INT32, size) * count, lane.type.shape, (0,))
        every = (ends_of_all, row_blocks(ends_of_all, size * total), reshape(lane_of_all, (size * total,)))
        last = slice_in_dim(ends, count - 1, count, axis=1) if count else zeros(array_type((size, 1), INT32))
        place = broadcast_in_dim(iota(INT32, total), lane.type.shape, (1,))
        real = lt(place, broadcast_in_dim(last, lane.type.shape, (0, 1)))
        return op.numbered(reshape(real, (size * total,)), _joined(x), every, size), 0


def _joined(x: Any) -> Any:
    """The first two axes as one."""
    return reshape(x, (x.type.shape[0] * x.type.shape[1], *x.type.shape[2:]))


def _where(mask: Any, x: Any, other: Any) -> Any:
    """``x`` where the mask of its rows holds, else ``other``, an array or the number that stands for all."""
    other = other if hasattr(other, "type") else full(x.type, other)
    return select(broadcast_in_dim(mask, x.type.shape, (0,)), x, other)


class RowFold(OnRows):
    """y[i] = x[ends[i - 1]] o ... o x[ends[i] - 1], the unit where a lane is empty; spare rows are left out.

    The rows of each block are combined, together with what is computed to give them, and the blocks are scattered.
    """

    __slots__ = ()
    combine: ClassVar[Any]
    reduction: ClassVar[Any]
    scatter: ClassVar[Any]
    flops = per_operand

    @staticmethod
    def unit(dtype: Any) -> Any:
        return 0

    def result_type(op, x: ArrayType, ends: ArrayType, blocks: ArrayType, lane: ArrayType) -> ArrayType:
        return array_type((ends.shape[0], *x.shape[1:]), x.dtype, x.weak)

    def numbered(op, real: Any, x: Any, index: Any, size: int) -> Any:
        y = perform(op, _where(real, x, op.unit(x.type.dtype)), *index)  # spare rows precede the next lanes
        return reshape(y, (size, y.type.shape[0] // size, *y.type.shape[1:]))

    def lower(op, emit: Any, x: Any, ends: Any, blocks: Any, lane: Any) -> Any:
        count = ends.type.shape[0]
        if not x.type.size or not count:
            return emit.full(op.unit(x.type.dtype), emit.made)

        def fold(x: Any, ends: Any, parts: Any, lane: Any) -> Any:
            if x.type.shape[0] < SHORT * count:
                return _scattered(op, x, _lane_or_count(ends, lane), count)
            place, rows, lane = [reshape(slice_in_dim(parts, i, i + 1), parts.type.shape[1:]) for i in range(3)]
            return _scattered(op, _in_blocks(op, x, place, rows), lane, count)

        return emit.wide(x, lambda x: emit.decompose(fold, x, ends, blocks, lane))


def _real(ends: Any, lane: Any) -> Any:
    """Which rows are not spare."""
    count, total = ends.type.shape[0], lane.type.shape[0]
    return lt(iota(INT32, total), broadcast_in_dim(slice_in_dim(ends, count - 1, count), (total,), (0,)))


def _lane_or_count(ends: Any, lane: Any) -> Any:
    """The lane of each row, of spare rows the number of lanes."""
    return select(_real(ends, lane), lane, full(lane.type, ends.type.shape[0]))


def _in_blocks(op: Any, x: Any, place: Any, rows: Any) -> Any:
    """The fold of each block: of those of the ``BLOCK`` rows at its place that are its rows."""
    unit, each = op.unit(x.type.dtype), x.type.shape[1:]
    numbers = GatherDimensionNumbers(tuple(range(1, 2 + len(each))), (), (0,))
    gather = shared(Gather, numbers, (BLOCK, *each), False, True, GatherScatterMode.CLIP)
    windows = perform(gather, x, index_column(place))
    nth = []
    for i in range(BLOCK):
        row = reshape(slice_in_dim(windows, i, i + 1, axis=1), (place.type.shape[0], *each))
        its = ne(bitwise_and(rows, scalar(1 << i, INT32)), scalar(0, INT32))
        nth.append(_where(its, row, unit))
    return reduce(op.combine, nth)


def _scattered(op: Any, x: Any, lane: Any, count: int) -> Any:
    """The fold of rows one by one, at the place ``lane`` of ``count``; those beyond are left out."""
    numbers = ScatterDimensionNumbers(tuple(range(1, len(x.type.shape))), (0,), (0,))
    into = full(x.type.update(shape=(count, *x.type.shape[1:])), op.unit(x.type.dtype))
    return perform(op.scatter(numbers, True, False, GatherScatterMode.MARKED), into, index_column(lane), x)


def _by_lane(f: np.ufunc, unit: Any, x: Any, ends: Any) -> Any:
    """The fold of the rows of each lane by a function of NumPy."""
    y = np.full((len(ends), *x.shape[1:]), unit, x.dtype)
    start = np.concatenate([np.zeros(1, ends.dtype), ends])[:-1]
    some = start < ends
    if some.any():
        y[some] = f.reduceat(x[: ends[-1]], start[some], axis=0, dtype=x.dtype)
    return y


# y[i] = sum of x[t] over t in lane i
@operation
class SumRows(RowFold):
    dtypes = NUMERIC | FOUR_BITS
    combine, reduction, scatter = staticmethod(add), ReduceSum, ScatterAdd

    @in_bytes
    def evaluate(op, x, ends, blocks, lane):
        return wide(lambda x: _by_lane(np.add, 0, x, ends))(x)

    jvp = linear_in(0)

    def transpose(op, ct, x, ends, blocks, lane):
        return perform(shared(RepeatRows, False), ct, ends, blocks, lane)


class ExtremeRow(RowFold):
    """Folds by max or min."""

    __slots__ = ()
    dtypes = ORDERED | FOUR_BITS
    larger: ClassVar[bool]
    exempt: ClassVar[Any] = {"transpose": "it is not linear"}

    def evaluate(op, x: Any, ends: Any, blocks: Any, lane: Any) -> Any:
        f = np.maximum if op.larger else np.minimum
        unit = op.unit(x.dtype)
        y = in_bytes(lambda op, x: _by_lane(f, unit, x, ends))(op, x)
        if x.dtype.kind in "fV" and has_zero(y, op.larger):  # -0 < +0
            preferred = _by_lane(np.logical_or, False, (x == 0) & (np.signbit(x) != op.larger), ends)
            y = np.where((y == 0) & preferred, x.dtype.type(0.0 if op.larger else -0.0), y)
        return y

    def jvp(op, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        """The mean of the tangents of the elements equal to the result, 0 if it is NaN."""
        (x, *index), dx = primals, tangents[0]
        y = perform(op, *primals)
        if dx is None:
            return y, None
        mask = convert(eq(x, perform(shared(RepeatRows, True), y, *index)), x.type.dtype)
        count = perform(SumRows(), mask, *index)
        return y, div(perform(SumRows(), mul(dx, mask), *index), comparison.max(count, scalar(1, x.type.dtype)))


# y[i] = the largest x[t], t in lane i; NaN where one is NaN
@operation
class MaxRows(ExtremeRow):
    combine, reduction, scatter, larger = staticmethod(comparison.max), ReduceMax, ScatterMax, True
    unit = staticmethod(lowest)


# y[i] = the smallest x[t], t in lane i; NaN where one is NaN
@operation
class MinRows(ExtremeRow):
    combine, reduction, scatter, larger = staticmethod(comparison.min), ReduceMin, ScatterMin, False
    unit = staticmethod(highest)


# x[t] = y[lane[t]]; in spare rows 0, or with ``copies`` what the last lane has, without cotangent
@operation
class RepeatRows(OnRows):
    copies: bool
    dtypes = ANY | FOUR_BITS

    def result_type(op, y, ends, blocks, lane):
        return array_type((lane.shape[0], *y.shape[1:]), y.dtype, y.weak)

    def evaluate(op, y, ends, blocks, lane):
        x = y[lane] if len(y) else np.zeros((len(lane), *y.shape[1:]), y.dtype)
        if not op.copies and len(ends):
            x[ends[-1] :] = 0
        return x

    def numbered(op, real, y, index, size):
        x = perform(shared(RepeatRows, True), y, *index)
        x = _where(real, x, perform(Unread(), x) if op.copies else 0)
        return reshape(x, (size, x.type.shape[0] // size, *x.type.shape[1:]))

    jvp = linear_in(0)

    def transpose(op, ct, y, ends, blocks, lane):
        return perform(SumRows(), ct, ends, blocks, lane)

    def lower(op, emit, y, ends, blocks, lane):
        if not y.type.size or not emit.made.size:
            return emit.full(0, emit.made)

        def repeated(y, ends, lane):
            x = take_rows(y, lane)
            return x if op.copies else _where(_real(ends, lane), x, 0)

        return emit.decompose(repeated, y, ends, lane)

    flops = data_movement
