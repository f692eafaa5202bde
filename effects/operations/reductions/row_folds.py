"""Segmented reductions of packed rows, and their adjoint, the repetition of one value per lane for each of its rows.

    fold      y[i] = x[ends[i - 1]] o ... o x[ends[i] - 1]
    repeat    x[t] = y[lane[t]]

All take the index arrays of ``row_index``. The sum and the repetition are each other's adjoints.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np

from ...base.errors import ShapeMismatch
from ...base.stack import perform
from ...core.arrays import scalar
from ...core.columns import data_movement, linear_in, per_operand, zero
from ...core.operation import Operation, operation, shared
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import ANY, BOOL, FOUR_BITS, INTEGER, NUMERIC, is_complex
from ...types.sized import surely_at_most
from ..elementwise import comparison
from ..elementwise.arithmetic import Unread, add, div, mul
from ..elementwise.bitwise import bitwise_and, bitwise_or, bitwise_xor, shift_left
from ..elementwise.comparison import eq, lt, ne, select
from ..elementwise.conversion import convert
from ..foundations.half_precision import in_bytes, wide
from ..foundations.shapes import ReduceSum, broadcast_in_dim, full, reduce_sum, reshape, zeros
from ..indexing.gather_scatter import Gather, Scatter, ScatterAdd, region
from ..indexing.gather_windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from ..indexing.relocation import index_column, take_rows
from ..manipulation.creation import iota
from ..manipulation.slicing import axis_at, concatenate, lane_count, slice_in_dim
from .cumulative import Cumsum
from .reductions import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceXor,
    performed_whole_nan,
    whole_nan,
    with_signed_zeros,
)

INT32 = np.dtype("int32")
BLOCK = 8  # rows that are reduced together before the scatter
FEW = 1 << 16  # up to so many (lane, row) pairs are compared directly
SHORT = 16  # with fewer rows per lane on average, single rows are scattered


def row_starts(ends: Any) -> Any:
    """The index of the first row of each lane, from the index one past its last row."""
    return concatenate([zeros(array_type((1,), INT32)), slice_in_dim(ends, 0, -1)], 0) if ends.type.size else ends


def lanes_of_rows(ends: Any, total: int) -> Any:
    """For each packed row, the index of its lane; for padding, the number of lanes."""
    count = ends.type.shape[0]
    if surely_at_most(count * total, FEW):
        end, row = [broadcast_in_dim(v, (total, count), (d,)) for v, d in ((ends, 1), (iota(INT32, total), 0))]
        return reduce_sum(convert(comparison.le(end, row), INT32), (1,))
    ones = broadcast_in_dim(scalar(1, INT32), ends.type.shape, ())
    at = comparison.min(ends, scalar(total, INT32))
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    into = zeros(array_type((total,), INT32))
    ended = perform(ScatterAdd(numbers, True, False, GatherScatterMode.MARKED), into, index_column(at), ones)
    return perform(shared(Cumsum, 0, False), ended)


def row_index(ends: Any, total: int) -> tuple[Any, Any, Any]:
    """The index arrays of a packed layout: ``(ends, blocks, lane)``.

    ``ends``: for each lane the index one past its last row; further rows are padding. ``blocks``: see ``row_blocks``.
    ``lane``: for each row the index of its lane; for padding, that of the last row.
    """
    lane, count = lanes_of_rows(ends, total), ends.type.shape[0]
    if count:
        before = lt(ends, broadcast_in_dim(slice_in_dim(ends, count - 1, count), (count,), (0,)))
        last = reduce_sum(convert(before, INT32), (0,))
        lane = comparison.min(lane, broadcast_in_dim(last, (total,), ()))
    return ends, row_blocks(ends, total), lane


def most_blocks(count: int, total: int) -> int:
    """An upper bound of the number of blocks of ``total`` rows of ``count`` lanes."""
    return total // BLOCK + count


def row_blocks(ends: Any, total: int) -> Any:
    """The rows of each lane in blocks of ``BLOCK``: each block's first row, a bit mask of the rows of its lane, and the
    lane.

    Lane ``i`` has the blocks from ``start // BLOCK + i`` on; its last one may be empty.
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
    block_start = comparison.min(first, scalar(max(total - BLOCK, 0), INT32))
    one = full(lane.type, 1)
    rows = shift_left(one, last - block_start) - shift_left(one, first - block_start)
    return concatenate([reshape(v, (1, number)) for v in (block_start, rows, lane)], 0)


class OnRows(Operation):
    """An operation on packed rows, or on one value per lane, whose further operands are the ``row_index``.

    ``numbered(real, x, index, size)``: the result for ``size`` packed layouts, concatenated to one; ``real``: which
    rows are not padding in their own layout.
    """

    __slots__ = ()
    numbered: ClassVar[Any]

    def batch(op: Any, dims: Any, x: Any, *index: Any) -> Any:
        size = lane_count((x, *index), dims)
        if not any([d is not None for d in dims[1:]]):  # the mapped axis becomes a dimension of each row
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
        row = broadcast_in_dim(iota(INT32, total), lane.type.shape, (1,))
        real = lt(row, broadcast_in_dim(last, lane.type.shape, (0, 1)))
        return op.numbered(reshape(real, (size * total,)), _joined(x), every, size), 0


def _need_one_for_each(what: str, x: ArrayType, index: ArrayType) -> None:
    """Raises ShapeMismatch: ``x`` does not have as many values as this index array of the packed rows."""
    if x.shape[:1] != index.shape:
        raise ShapeMismatch(f"packed rows: there must be one value for each {what}, got {x} beside {index}.")


def _joined(x: Any) -> Any:
    """The array with its first two axes merged."""
    return reshape(x, (x.type.shape[0] * x.type.shape[1], *x.type.shape[2:]))


def _where(mask: Any, x: Any, other: Any) -> Any:
    """``x`` in the rows where ``mask`` is True, else ``other``, an array or a scalar."""
    other = other if hasattr(other, "type") else full(x.type, other)
    return select(broadcast_in_dim(mask, x.type.shape, (0,)), x, other)


class RowFold(OnRows):
    """y[i] = x[ends[i - 1]] o ... o x[ends[i] - 1], the identity for an empty lane; padding rows are left out.

    Rows are reduced within blocks, which XLA fuses with their producer, and the blocks are scattered.
    """

    __slots__ = ()
    combine: ClassVar[Any]
    reduction: ClassVar[Any]
    flops = per_operand

    @property
    def unit(op) -> Callable[[Any], Any]:
        return op.reduction.unit

    def result_type(op, x: ArrayType, ends: ArrayType, blocks: ArrayType, lane: ArrayType) -> ArrayType:
        _need_one_for_each("row", x, lane)
        return array_type((ends.shape[0], *x.shape[1:]), x.dtype, x.weak)

    def numbered(op, real: Any, x: Any, index: Any, size: int) -> Any:
        y = perform(op, _where(real, x, op.unit(x.type.dtype)), *index)  # padding precedes the next layout's lanes
        return reshape(y, (size, y.type.shape[0] // size, *y.type.shape[1:]))

    @in_bytes
    def evaluate(op, x: Any, ends: Any, blocks: Any, lane: Any) -> Any:
        return wide(lambda x: _by_lane(op.reduction.ufunc, op.unit(x.dtype), x, ends))(x)

    def lower(op, emit: Any, x: Any, ends: Any, blocks: Any, lane: Any) -> Any:
        """The lowering: reduce each block (single rows if lanes are short), then scatter to the lanes."""
        count, each = ends.type.shape[0], tuple(range(1, len(x.type.shape)))
        if not x.type.size or not count:
            return emit.full(op.unit(x.type.dtype), emit.made)
        parts = _in_blocks if x.type.shape[0] >= SHORT * count else _rows_alone

        def rule(x: Any) -> Any:
            u, at = emit.decompose(partial(parts, op), x, ends, blocks, lane)
            into = emit.full(op.unit(x.type.dtype), x.type.update(shape=(count, *x.type.shape[1:])))
            numbers = ScatterDimensionNumbers(each, (0,), (0,))
            return region(op.combine)(Scatter(numbers, True, False, GatherScatterMode.MARKED), emit, into, at, u)

        return emit.wide(x, rule)


def _rows_alone(op: Any, x: Any, ends: Any, blocks: Any, lane: Any) -> list[Any]:
    """Single rows, and the lane index that each is scattered to; padding has the number of lanes, and is dropped."""
    return [x, index_column(select(_real(ends, lane), lane, full(lane.type, ends.type.shape[0])))]


def _in_blocks(op: Any, x: Any, ends: Any, blocks: Any, lane: Any) -> list[Any]:
    """The reduction of each block over the rows of its lane, and the index of that lane, to which it is scattered."""
    unit, each, number = op.unit(x.type.dtype), x.type.shape[1:], blocks.type.shape[1]
    block_start, rows, lane = [reshape(slice_in_dim(blocks, i, i + 1), (number,)) for i in range(3)]
    numbers = GatherDimensionNumbers(tuple(range(1, 2 + len(each))), (), (0,))
    gather = shared(Gather, numbers, (BLOCK, *each), False, True, GatherScatterMode.CLIP)
    windows, nth = perform(gather, x, index_column(block_start)), []
    for i in range(BLOCK):
        row = reshape(slice_in_dim(windows, i, i + 1, axis=1), (number, *each))
        its = ne(bitwise_and(rows, scalar(1 << i, INT32)), scalar(0, INT32))
        nth.append(_where(its, row, unit))
    return [reduce(op.combine, nth), index_column(lane)]


def _real(ends: Any, lane: Any) -> Any:
    """Whether each packed row belongs to a lane, and is not padding."""
    count, total = ends.type.shape[0], lane.type.shape[0]
    return lt(iota(INT32, total), broadcast_in_dim(slice_in_dim(ends, count - 1, count), (total,), (0,)))


def _by_lane(f: np.ufunc, unit: Any, x: Any, ends: Any) -> Any:
    """``f`` reduced over the packed rows of each lane, whose rows end before ``ends[lane]``; ``unit`` for no rows."""
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
    combine, reduction = staticmethod(add), ReduceSum
    jvp = linear_in(0)

    def transpose(op, ct, x, ends, blocks, lane):
        return perform(shared(RepeatRows, False), ct, ends, blocks, lane)


class ExtremeRow(RowFold):
    """A segmented max or min; complex numbers are ordered by real, then imaginary part."""

    __slots__ = ()
    dtypes = ANY | FOUR_BITS
    exempt: ClassVar[Any] = {"transpose": "it is not linear"}

    def evaluate(op, x: Any, ends: Any, blocks: Any, lane: Any) -> Any:
        f, unit = op.reduction.ufunc, op.unit(x.dtype)
        y = in_bytes(lambda op, x: _by_lane(f, unit, x, ends))(op, x)
        y = with_signed_zeros(x, y, op.reduction.larger, partial(_by_lane, np.logical_or, False), ends)
        return whole_nan(y) if x.dtype.kind == "c" else y

    def lower(op, emit: Any, x: Any, ends: Any, blocks: Any, lane: Any) -> Any:
        y = RowFold.lower(op, emit, x, ends, blocks, lane)
        return emit.decompose(performed_whole_nan, y) if is_complex(x.type.dtype) else y

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
    combine, reduction = staticmethod(comparison.max), ReduceMax


# y[i] = the smallest x[t], t in lane i; NaN where one is NaN
@operation
class MinRows(ExtremeRow):
    combine, reduction = staticmethod(comparison.min), ReduceMin


class BitwiseRows(RowFold):
    """A segmented bitwise reduction, which is the logical one for booleans."""

    __slots__ = ()
    dtypes = BOOL | INTEGER | FOUR_BITS
    jvp = zero


# y[i] = the bits set in all x[t], t in lane i
@operation
class AndRows(BitwiseRows):
    combine, reduction = staticmethod(bitwise_and), ReduceAnd


# y[i] = the bits set in some x[t], t in lane i
@operation
class OrRows(BitwiseRows):
    combine, reduction = staticmethod(bitwise_or), ReduceOr


# y[i] = the bits set in an odd number of x[t], t in lane i
@operation
class XorRows(BitwiseRows):
    combine, reduction = staticmethod(bitwise_xor), ReduceXor


# x[t] = y[lane[t]]; in padding 0, or with ``copies`` the last lane's value, without cotangent
@operation
class RepeatRows(OnRows):
    copies: bool
    dtypes = ANY | FOUR_BITS

    def result_type(op, y, ends, blocks, lane):
        _need_one_for_each("lane", y, ends)
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
