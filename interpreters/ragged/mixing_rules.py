"""Ragged rules of operations that mix along the ragged axis: folds, prefixes, orders, joins, and reading at a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import CannotCross
from ...effects.base.stack import inside, perform
from ...effects.core.arrays import scalar
from ...effects.core.columns import BATCH
from ...effects.core.operation import shared
from ...effects.operations.elementwise.comparison import clamp, eq, lt, select
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import ReduceSum, broadcast_in_dim, move_axis, reduce_sum, reshape
from ...effects.operations.indexing.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from ...effects.operations.indexing.gather_scatter import Gather, ScatterFamily
from ...effects.operations.indexing.gather_windows import GatherScatterMode, window_sizes
from ...effects.operations.indexing.relocation import relocate
from ...effects.operations.manipulation.slicing import (
    Concatenate,
    Pad,
    Rev,
    Slice,
    Split,
    concatenate,
    pad,
    slice_in_dim,
)
from ...effects.operations.reductions.cumulative import Cumlogsumexp, Cummax, Cummin, Cumprod, Cumsum
from ...effects.operations.reductions.reductions import (
    Argmax,
    Argmin,
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
    all_ones,
    highest,
    lowest,
)
from ...effects.operations.reductions.sorting import Sort
from ...effects.types.extent import Extent
from .lane_lengths import INT32, constant, line, take_rows
from .ragged_batch import RAGGED, RaggedBatch, ResultTypes, RowsMark, equal_lengths, ragged_axes
from .row_rules import beside, mixing

Unit = Callable[[Any], Any]  # the dtype -> the unit of a fold
zero: Unit = lambda dtype: 0
one: Unit = lambda dtype: 1


def folding(unit: Unit) -> Callable[..., Any]:
    """The rule of a fold: lanes padded with its unit, which is the result of an empty lane."""

    def fold(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
        return run.by_bucket(op, types, [run.filled(x, dict.fromkeys(op.axes, unit(x.type.dtype)))])

    return mixing(lambda op, x: op.axes)(fold)


RAGGED.rule(ReduceProd)(folding(one))
RAGGED.rule(ReduceMax)(folding(lowest))
RAGGED.rule(ReduceMin)(folding(highest))
RAGGED.rule(ReduceAnd)(folding(all_ones))
RAGGED.rule(ReduceOr)(folding(zero))
RAGGED.rule(ReduceXor)(folding(zero))
RAGGED.rule(Argmax)(folding(lowest))
RAGGED.rule(Argmin)(folding(highest))


@RAGGED.rule(ReduceSum)
def total(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
    """Over the rows of each lane by their lane; where there are several ragged axes as any fold."""
    if type(x.dim) is not RowsMark or x.dim.axis not in op.axes:
        return folding(zero)(run, op, types, x)
    axis, extent = x.dim
    others = [a for a in op.axes if a != axis]
    rows = move_axis(reduce_sum(x.value, others), axis - sum([a < axis for a in others]), 0)
    return run.box(0, (run.segment_sum(rows, extent),))


def running(unit: Unit) -> Callable[..., Any]:
    """The rule of a cumulative operation: from the front padding is never met, from the end it is the unit."""

    def prefix(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
        operand = run.filled(x, {op.axis: unit(x.type.dtype)}) if op.reverse else x
        return run.by_bucket(op, types, [operand])

    return mixing(lambda op, x: (op.axis,))(prefix)


RAGGED.rule(Cumsum)(running(zero))
RAGGED.rule(Cumprod)(running(one))
RAGGED.rule(Cummax)(running(lowest))
RAGGED.rule(Cummin)(running(highest))
RAGGED.rule(Cumlogsumexp)(running(lowest))


def _rows_first(run: RaggedBatch, x: Any) -> Any:
    """The rows of a value, along its dimension 0."""
    ((axis, _),) = ragged_axes(x.type.shape)
    return move_axis(run.rows(x), axis, 0)


def _one_axis(op: Any, *operands: Any) -> None:
    """Raises: CannotCross: an operand has several ragged axes."""
    for x in operands:
        if len(ragged_axes(x.type.shape)) > 1:
            raise CannotCross(
                f"{op.name}: along a ragged axis of a value that has another one there is no rule, got {x.type}."
            )


@RAGGED.rule(Sort)
@mixing(lambda op, *xs: (op.dimension,))
def order(run: RaggedBatch, op: Any, types: ResultTypes, *xs: Any) -> Any:
    """All rows in one order, by the lane first."""
    _one_axis(op, *xs)
    mark = RowsMark(*ragged_axes(xs[0].type.shape)[0])
    values = [run.rows(x) for x in xs]
    lane = broadcast_in_dim(run.lanes.of(mark.extent).segment, values[0].type.shape, (mark.axis,))
    _, *ys = perform(shared(Sort, op.dimension, op.is_stable, op.num_keys + 1), lane, *values)
    return tuple([run.box(mark, (y,)) for y in ys])


@RAGGED.rule(Rev)
@mixing(lambda op, x: op.dimensions)
def reverse(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
    """Rows exchanged within each lane; along other axes reversed as they are."""
    _one_axis(op, x)
    mark = RowsMark(*ragged_axes(x.type.shape)[0])
    n = run.lanes.of(mark.extent)
    with inside(n.place):
        end = take_rows(n.starts + n.values, n.lane)
        index = select(n.real, end - 1 - n.within, line(n.total))
    y = move_axis(relocate(_rows_first(run, x), index, index, copies=True), 0, mark.axis)
    others = tuple([d for d in op.dimensions if d != mark.axis])
    return run.box(mark, (perform(Rev(others), y) if others else y,))


@RAGGED.rule(Concatenate)
@mixing(lambda op, *xs: (op.dimension,))
def join(run: RaggedBatch, op: Any, types: ResultTypes, *xs: Any) -> Any:
    """The lanes of all operands interleaved: lane i has its rows of the first, then of the second, ..."""
    _one_axis(op, *xs)
    d = op.dimension
    sizes = [x.type.shape[d] for x in xs]
    lengths = [run.lanes.of(size) for size in sizes]
    whole = run.lanes.of(types[0].shape[d])
    rows = [
        _rows_first(run, x) if type(size) is Extent else _rows_of_lanes(run, x, d, n.total)
        for x, size, n in zip(xs, sizes, lengths)
    ]
    places = {n.place for n in (*lengths, whole)}
    with inside(whole.place if len(places) == 1 else run.lanes.outer):
        index, inverse = _interleaved(whole, lengths, rows)
    y = relocate(concatenate(rows, 0), index, inverse, copies=True)
    return run.box(RowsMark(d, types[0].shape[d]), (move_axis(y, 0, d),))


def _rows_of_lanes(run: RaggedBatch, x: Any, d: int, total: int) -> Any:
    """The rows of a value that has one size along ``d`` in all lanes, lane by lane."""
    (value,) = run.force(x, 0)
    value = move_axis(value, 1 + d, 1)
    return reshape(value, (value.type.shape[0] * value.type.shape[1], *value.type.shape[2:]))


def _interleaved(whole: Any, lengths: Sequence[Any], rows: Sequence[Any]) -> tuple[Any, Any]:
    """The index of ``join``: of the rows of all operands, one after the other, into those of the result; and back."""
    index = line(whole.total) * 0
    back = []
    offset = 0
    before = whole.values * 0
    for n, given in zip(lengths, rows):
        place = whole.within - take_rows(before, whole.lane)
        here = place + take_rows(n.starts, whole.lane) + offset
        index = select(lt(place, 0), index, here)
        count = given.type.shape[0]
        target = take_rows(whole.starts + before, n.lane) + n.within
        back.append(slice_in_dim(select(n.real, target, line(n.total) * 0 - 1), 0, count))
        offset += count
        before = before + n.values
    index = clamp(scalar(0, INT32), index, scalar(max(offset - 1, 0), INT32))
    last = broadcast_in_dim(take_rows(index, reshape(whole.last, (1,))), index.type.shape, (0,))
    return select(whole.real, index, -1 - last), concatenate(back, 0)


@RAGGED.rule(DynamicSlice)
@mixing(lambda op, x, *starts: [d for d, (n, size) in enumerate(zip(x.type.shape, op.slice_sizes)) if size != n])
def piece(run: RaggedBatch, op: Any, types: ResultTypes, x: Any, *starts: Any) -> Any:
    """Rows from a place of each lane on, which is clamped so that they lie in it."""
    _one_axis(op, x)
    axis, extent = ragged_axes(x.type.shape)[0]
    n, size = run.lanes.of(extent), op.slice_sizes[axis]
    at = convert(run.force(starts[axis], 0)[0], INT32)
    with inside(run.outer):
        at = clamp(scalar(0, INT32), at, n.values - size) + n.starts
        shape = (run.size, size)
        index = broadcast_in_dim(at, shape, (0,)) + broadcast_in_dim(line(size), shape, (1,))
        index = clamp(scalar(0, INT32), index, scalar(n.total - 1, INT32))
        rows = take_rows(_rows_first(run, x), reshape(index, (run.size * size,)))
        value = reshape(rows, (*shape, *rows.type.shape[1:]))
    y = run.box(0, (move_axis(value, 1, 1 + axis),))
    others = [scalar(0, INT32) if d == axis else convert(s, INT32) for d, s in enumerate(starts)]
    if op.slice_sizes == y.type.shape:
        return y
    return run.answer(op, (y, *others))


def _replaced(op: Any, x: Any, u: Any, *starts: Any) -> list[int]:
    """The dimensions of which a part is replaced."""
    return [d for d, (n, size) in enumerate(zip(x.type.shape, u.type.shape)) if size != n]


RAGGED.rule(DynamicUpdateSlice)(mixing(_replaced)(equal_lengths))


@RAGGED.rule(Gather)
def read(run: RaggedBatch, op: Any, types: ResultTypes, x: Any, index: Any) -> Any:
    """Of shared or whole lanes at ragged indices: on rows. Along the ragged axis: at the rows of the lane."""
    axes = ragged_axes(x.type.shape) if x.run is run else ()
    if not axes and (x.run is not run):
        return beside(run, op, types, x, index)
    if len(axes) == 1 and axes[0][0] in op.dimension_numbers.start_index_map:
        return _read_rows(run, op, types, x, index, *axes[0])
    return run.by_bucket(op, types, [x, index])


def _read_rows(run: RaggedBatch, op: Any, types: ResultTypes, x: Any, index: Any, axis: int, extent: Extent) -> Any:
    """A gather at places of the ragged axis, one element of it each: at the row of the place, or at none."""
    numbers, n = op.dimension_numbers, run.lanes.of(extent)
    if axis not in numbers.collapsed_slice_dims or ragged_axes(op.slice_sizes):
        raise CannotCross(f"gather: along a ragged axis single elements are read, got {op!r} for {x.type}.")
    which = numbers.start_index_map.index(axis)
    ragged = ragged_axes(index.type.shape)
    if index.run is run and type(index.dim) is RowsMark:
        lane, at, dim = run.lanes.of(index.dim.extent).lane, index.value, index.dim.axis
    else:
        lane, (at,), dim = line(run.size), run.force(index, 0), 0
    if len(ragged) > 1:
        raise CannotCross(f"gather: indices have one ragged axis, got {index.type}.")
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
        return run.box(RowsMark(*ragged_axes(types[0].shape)[0]), (perform(plain, x.value, at),))
    y, d = BATCH.find(Gather)(plain, (None, 0), x.value, at)
    return run.box(d, (y,))


@RAGGED.rule(ScatterFamily)
def write(run: RaggedBatch, op: Any, types: ResultTypes, x: Any, index: Any, update: Any) -> Any:
    """At the places of each lane; padding is written nowhere, since its index is outside of any array."""
    if op.mode is GatherScatterMode.CLIP and ragged_axes(x.type.shape):
        return equal_lengths(run, op, types, x, index, update)
    if not ragged_axes(index.type.shape):
        return run.by_bucket(op, types, [x, index, update])
    if op.mode is GatherScatterMode.CLIP:
        with inside(run):
            index = _clipped(op, x.type.shape, index, update.type.shape)
    nowhere = np.iinfo(index.type.dtype).max
    outside = run.filled(index, {axis: nowhere for axis, _ in ragged_axes(index.type.shape)})
    dropping = type(op)(op.dimension_numbers, False, op.unique_indices, GatherScatterMode.FILL_OR_DROP)
    return run.by_bucket(dropping, types, [x, outside, update])


def _clipped(op: Any, shape: tuple[Any, ...], index: Any, update: tuple[Any, ...]) -> Any:
    """The indices clamped so that all windows lie in an operand of this shape."""
    numbers = op.dimension_numbers
    window = window_sizes(numbers, shape, update)
    last = convert(constant([shape[d] - window[d] for d in numbers.scatter_dims_to_operand_dims]), index.type.dtype)
    bounds = broadcast_in_dim(last, index.type.shape, (len(index.type.shape) - 1,))
    return clamp(scalar(0, index.type.dtype), index, bounds)


def _sliced(op: Any, x: Any) -> list[int]:
    """The dimensions of which a slice takes a part."""
    whole = [(0, n, 1) for n in x.type.shape]
    return [d for d, part in enumerate(zip(op.start, op.limit, op.strides)) if part != whole[d]]



RAGGED.rule(Slice)(mixing(_sliced)(equal_lengths))


@RAGGED.rule(Pad)
@mixing(lambda op, x, value: [d for d, part in enumerate(op.config) if any(part)])
def extend(run: RaggedBatch, op: Any, types: ResultTypes, x: Any, value: Any) -> Any:
    """Rows put before and behind each lane; rows between or taken away need the length as a whole."""
    _one_axis(op, x)
    axis, _ = ragged_axes(x.type.shape)[0]
    low, high, between = op.config[axis]
    if low < 0 or high < 0 or between:
        return equal_lengths(run, op, types, x, value)
    with inside(run):
        others = tuple([(0, 0, 0) if d == axis else part for d, part in enumerate(op.config)])
        x = pad(x, value, others)
        ends = [x.type.update(shape=(*x.type.shape[:axis], n, *x.type.shape[axis + 1 :])) for n in (low, high)]
        before, behind = [broadcast_in_dim(value, end.shape, ()) for end in ends]
        return concatenate([before, x, behind], axis)


RAGGED.rule(Split)(mixing(lambda op, x: (op.axis,))(equal_lengths))
