"""Ragged rules of operations that mix along the ragged axis: folds, prefixes, orders and joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import inside, perform
from ...effects.core.arrays import scalar
from ...effects.core.operation import result_type, shared
from ...effects.operations.elementwise.comparison import clamp, lt, select
from ...effects.operations.foundations.shapes import (
    ReduceSum,
    broadcast_in_dim,
    full,
    move_axis,
    reduce_sum,
    reshape,
)
from ...effects.operations.indexing.relocation import relocate
from ...effects.operations.linalg import Cholesky, TriangularSolve
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.slicing import (
    Concatenate,
    Pad,
    Rev,
    Slice,
    Split,
    concatenate,
    pad,
    rev,
    slice_in_dim,
)
from ...effects.operations.manipulation.slicing import slice as slice_at
from ...effects.operations.reductions.cumulative import Cumlogsumexp, Cummax, Cummin, Cumprod, Cumsum
from ...effects.operations.reductions.generic_reduce import Reduce
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
from ...effects.operations.reductions.softmax import Softmax
from ...effects.operations.reductions.sorting import Sort, TopK
from ...effects.types.extent import Extent, extents_in, positive
from .lane_lengths import INT32, line, take_rows
from .moved_rows import moved
from .ragged_batch import RAGGED, RaggedBatch, ResultTypes, RowsMark, equal_lengths
from .row_rules import mixing

Unit = Callable[[Any], Any]  # the dtype -> the unit of a fold
zero: Unit = lambda dtype: 0
one: Unit = lambda dtype: 1


def folding(unit: Unit) -> Callable[..., Any]:
    """The rule of a fold: lanes padded with its unit, which is the result of an empty lane."""

    def fold(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
        return run.by_bucket(op, types, [run.filled(x, dict.fromkeys(op.axes, unit(x.type.dtype)))], zeros=())

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


@RAGGED.rule(Reduce)
def folded_by(run: RaggedBatch, op: Any, _: Any, *operands: Any) -> Any:
    """Over lanes padded with the start, which changes nothing."""
    types = op.as_results(result_type(op, tuple([x.type for x in operands])))
    starts, found = operands[: op.carry], list(operands[op.carry :])
    for i, (start, x) in enumerate(zip(starts, found)):
        axes = [(axis, extent) for axis, extent in run.ragged_axes(x.type.shape) if axis in op.axes]
        if axes:
            found[i] = [_started(run, part, first, axes, k) for k, (part, first) in enumerate(
                zip(run.padded(x, run.lanes.rounded), run.padded(start, run.lanes.rounded))
            )]
    return run.by_bucket(op, types, [*starts, *found])


def _started(run: RaggedBatch, part: Any, start: Any, axes: Any, k: int) -> Any:
    """Bucket ``k`` of a value, with its start in the places of these axes that a lane does not have."""
    for axis, extent in axes:
        mask = run.lanes.mask(extent, run.lanes.rounded, k)
        wide = broadcast_in_dim(start, part.type.shape, (0,))
        part = select(broadcast_in_dim(mask, part.type.shape, (0, 1 + axis)), part, wide)
    return part


@RAGGED.rule(Softmax)
@mixing(lambda op, x: op.axes)
def shares(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
    """Lanes padded with -inf, whose share is 0, and so what a cotangent there gives; in an empty lane it is made 0."""
    y = run.by_bucket(op, types, [run.filled(x, dict.fromkeys(op.axes, -float("inf")))], zeros=op.axes)
    if type(y.dim) is RowsMark:
        return y
    parts = list(y.value)
    for axis, extent in y.dim.axes:
        if axis in op.axes and not run.lanes.of(extent).no_empty:
            parts = [run.masked(part, axis, extent, k, full(part.type, 0)) for k, part in enumerate(parts)]
    return run.box(y.dim, parts)


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
    ((axis, _),) = run.ragged_axes(x.type.shape)
    return move_axis(run.rows(x), axis, 0)


def _one_axis(run: RaggedBatch, op: Any, *operands: Any) -> None:
    """Raises: CannotCross: an operand has several ragged axes."""
    for x in operands:
        if len(run.ragged_axes(x.type.shape)) > 1:
            raise CannotCross(
                f"{op.name}: along a ragged axis of a value that has another one there is no rule, got {x.type}."
            )


@RAGGED.rule(Sort)
@mixing(lambda op, *xs: (op.dimension,))
def order(run: RaggedBatch, op: Any, types: ResultTypes, *xs: Any) -> Any:
    """All rows in one order, by the lane first."""
    _one_axis(run, op, *xs)
    mark = RowsMark(*run.ragged_axes(xs[0].type.shape)[0])
    values = [run.rows(x) for x in xs]
    lane = broadcast_in_dim(run.lanes.of(mark.extent).segment, values[0].type.shape, (mark.axis,))
    _, *ys = perform(shared(Sort, op.dimension, op.is_stable, op.num_keys + 1), lane, *values)
    return tuple([run.box(mark, (y,)) for y in ys])


@RAGGED.rule(Rev)
@mixing(lambda op, x: op.dimensions)
def reverse(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
    """Rows exchanged within each lane; along other axes reversed as they are."""
    shape = x.type.shape
    own = dict(run.ragged_axes(shape))
    others = tuple([d for d in op.dimensions if d not in own])
    for d in op.dimensions:
        if d not in others:
            x = moved(run, x, d, shape[d], 1, -1, shape[d] - 1)
    with inside(run):
        return rev(x, others)


@RAGGED.rule(Concatenate)
@mixing(lambda op, *xs: (op.dimension,))
def join(run: RaggedBatch, op: Any, types: ResultTypes, *xs: Any) -> Any:
    """The lanes of all operands interleaved: lane i has its rows of the first, then of the second, ..."""
    _one_axis(run, op, *xs)
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


def _sliced(op: Any, x: Any) -> list[int]:
    """The dimensions of which a slice takes a part."""
    whole = [(0, n, 1) for n in x.type.shape]
    return [d for d, part in enumerate(zip(op.start, op.limit, op.strides)) if part != whole[d]]


@RAGGED.rule(Slice)
@mixing(_sliced)
def part(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
    """Rows of each lane, which has as many as its length says; along other axes sliced as it is."""
    ragged = [axis for axis, _ in run.ragged_axes(x.type.shape)]
    taken = [d for d in _sliced(op, x) if d in ragged]
    with inside(run):
        sides = (op.start, op.limit, op.strides)
        whole = ([0] * x.ndim, x.type.shape, [1] * x.ndim)
        x = slice_at(x, *[[w[d] if d in taken else side[d] for d in range(x.ndim)] for w, side in zip(whole, sides)])
    for d in taken:
        x = moved(run, x, d, types[0].shape[d], op.strides[d], 1, -op.start[d])
    return x


@RAGGED.rule(Pad)
@mixing(lambda op, x, value: [d for d, part in enumerate(op.config) if any(part)])
def extend(run: RaggedBatch, op: Any, types: ResultTypes, x: Any, value: Any) -> Any:
    """Rows moved apart within each lane, and the value where there is none then."""
    shape = types[0].shape
    sizes = list(zip(x.type.shape, shape))
    taken = [d for d, part in enumerate(op.config) if any(part) and run.lanes.owns(extents_in(sizes[d]))]
    with inside(run):
        x = pad(x, value, [(0, 0, 0) if d in taken else part for d, part in enumerate(op.config)])
    for d in taken:
        low, _, interior = op.config[d]
        given = x.type.shape[d]
        x = moved(run, x, d, shape[d], 1, interior + 1, low)
        with inside(run):
            place = iota(INT32, shape[d]) - low
            there = (place >= 0) & (place < given + positive(given - 1) * interior)
            if interior:
                there = there & (place % (interior + 1) == 0)
            x = select(broadcast_in_dim(there, x.type.shape, (d,)), x, broadcast_in_dim(value, x.type.shape, ()))
    return x


@RAGGED.rule(Split)
@mixing(lambda op, x: (op.axis,))
def pieces(run: RaggedBatch, op: Any, types: ResultTypes, x: Any) -> Any:
    """A slice for each size."""
    starts = [sum(op.sizes[:k]) for k in range(len(op.sizes))]
    with inside(run):
        return tuple([slice_in_dim(x, a, a + size, axis=op.axis) for a, size in zip(starts, op.sizes)])


RAGGED.rule(TopK)(mixing(lambda op, x: (op.axis,))(equal_lengths))
RAGGED.rule(Cholesky)(mixing(lambda op, x: _matrix(x))(equal_lengths))
RAGGED.rule(TriangularSolve)(mixing(lambda op, a, b: _matrix(a))(equal_lengths))


def _matrix(x: Any) -> tuple[int, int]:
    """The axes of a matrix, the last two."""
    rank = len(x.type.shape)
    return rank - 2, rank - 1
