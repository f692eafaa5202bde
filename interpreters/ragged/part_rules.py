"""Ragged rules of slicing, padding, concatenation and reversal along the ragged axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import inside, perform
from ...effects.core.arrays import scalar
from ...effects.operations.elementwise.bitwise import bitwise_not
from ...effects.operations.elementwise.comparison import clamp, lt, select
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.comparison import min as minimum
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, reshape, zeros
from ...effects.operations.indexing.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from ...effects.operations.indexing.gather_scatter import Gather
from ...effects.operations.indexing.gather_windows import GatherDimensionNumbers, GatherScatterMode
from ...effects.operations.indexing.relocation import relocate, take_rows
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
from ...effects.types.extent import positive
from ...effects.types.sized import extents_in
from .lane_lengths import INT32, line
from .moved_rows import Frame, along, moved
from .ragged_batch import RAGGED, RaggedBatch, ResultTypes
from .row_rules import beside, mixing


@RAGGED.rule(Rev)
@mixing(lambda op, x: op.dimensions)
def reverse(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """Reverse: along a ragged axis within each lane, along other axes as it is."""
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
def join(op: Any, run: RaggedBatch, types: ResultTypes, *xs: Any) -> Any:
    """Concatenate: each lane of the result has its rows of the first operand, then of the second, and so on."""
    d = op.dimension
    size, sizes = types[0].shape[d], [x.type.shape[d] for x in xs]

    def interleaved(frame: Frame, *rows: Any) -> Any:
        with inside(frame.level(size, *sizes)):
            counts = [part.type.shape[0] for part in rows]
            index, inverse = _interleaved(frame.of(size), [frame.of(n) for n in sizes], counts)
        return relocate(concatenate(rows, 0), index, inverse, copies=True)

    return along(run, xs, d, size, interleaved)


def _interleaved(whole: Any, parts: Sequence[Any], counts: Sequence[int]) -> tuple[Any, Any]:
    """The index from the concatenated rows of all operands into those of the result, and its inverse."""
    within = minimum(whole.within, take_rows(whole.values, whole.lane) - 1)  # padding has its lane's last row
    index = within * 0
    back = []
    offset = 0
    before = whole.values * 0
    for n, count in zip(parts, counts):
        index_in_operand = within - take_rows(before, whole.lane)
        joined_row = index_in_operand + take_rows(n.starts, whole.lane) + offset
        index = select(lt(index_in_operand, 0), index, joined_row)
        target = take_rows(whole.starts + before, n.lane) + n.within
        back.append(slice_in_dim(select(n.real, target, line(n.total) * 0 - 1), 0, count))
        offset += count
        before = before + n.values
    index = clamp(scalar(0, INT32), index, scalar(max(offset - 1, 0), INT32))
    return select(whole.real, index, bitwise_not(index)), concatenate(back, 0)


@RAGGED.rule(DynamicSlice)
@mixing(
    lambda op, x, *starts: [d for d, (n, size) in enumerate(zip(x.type.shape, op.slice_sizes)) if size != n],
    lambda op, d: op.slice_sizes[d],
)
def piece(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, *starts: Any) -> Any:
    """Dynamic slice: rows of each lane from a start index, clamped so that they lie in the lane."""
    with inside(run):  # a start relative to a lane's end is a value of the lane
        starts = tuple([convert(start, INT32) for start in starts])
    sizes = list(op.slice_sizes)
    for axis, n in enumerate(x.type.shape):
        if n != sizes[axis] and run.lanes.owns(extents_in(sizes[axis])):
            with inside(run):
                start = clamp(scalar(0, INT32), starts[axis], convert(positive(n - sizes[axis]), INT32))
                x = read_along(x, axis, iota(INT32, sizes[axis]) + start)
    for axis, n in run.ragged_axes(x.type.shape):
        if n != sizes[axis]:
            x = _taken(run, x, axis, sizes[axis], run.force(starts[axis], 0)[0])
    with inside(run):
        whole = [n == size for n, size in zip(x.type.shape, sizes)]
        starts = tuple([scalar(0, INT32) if same else start for same, start in zip(whole, starts)])
        return x if all(whole) else perform(op, x, *starts)


def read_along(x: Any, axis: int, index: Any) -> Any:
    """The elements of a lane at these indices along an axis, clamped to the axis."""
    shape = x.type.shape
    numbers = GatherDimensionNumbers(tuple([d for d in range(len(shape)) if d != axis]), (axis,), (axis,))
    window = tuple([1 if d == axis else n for d, n in enumerate(shape)])
    at = reshape(index, (index.type.shape[0], 1))
    return perform(Gather(numbers, window, False, False, GatherScatterMode.CLIP), x, at)


def _taken(run: RaggedBatch, x: Any, axis: int, size: int, starts: Any) -> Any:
    """``size`` rows of each lane along a ragged axis, from these starts on; a shorter lane repeats its last row.

    An empty lane gives zeros.
    """
    extent = x.type.shape[axis]

    def take(frame: Frame, rows: Any) -> Any:
        n = frame.of(extent)
        if not n.total:
            return zeros(rows.type.update(shape=(len(frame) * size, *rows.type.shape[1:])))
        zero = scalar(0, INT32)
        at = clamp(zero, frame.pick(starts), maximum(n.values - size, zero))
        shape = (len(frame), size)
        position = broadcast_in_dim(at, shape, (0,)) + broadcast_in_dim(line(size), shape, (1,))
        last, first = [broadcast_in_dim(v, shape, (0,)) for v in (n.values - 1, n.starts)]
        index = clamp(zero, minimum(position, last) + first, scalar(n.total - 1, INT32))
        y = take_rows(rows, reshape(index, (len(frame) * size,)))
        if run.lanes.of(extent).no_empty:
            return y
        some = reshape(lt(-1, last), (len(frame) * size,))
        return select(broadcast_in_dim(some, y.type.shape, (0,)), y, zeros(y.type))

    return along(run, [x], axis, size, take)


def _replaced(op: Any, x: Any, u: Any, *starts: Any) -> list[int]:
    """The dimensions in which the update is smaller than the operand."""
    return [d for d, (n, size) in enumerate(zip(x.type.shape, u.type.shape)) if size != n]


@RAGGED.rule(DynamicUpdateSlice)
@mixing(_replaced)
def replace(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, u: Any, *starts: Any) -> Any:
    """Dynamic update slice: rows of the update are gathered by their distance from the start index."""
    own = {**dict(run.ragged_axes(x.type.shape)), **dict(run.ragged_axes(u.type.shape))}
    replaced = [d for d in _replaced(op, x, u, *starts) if d in own]
    with inside(run):
        updated, start = None, list(starts)
        for d in replaced:
            n, size = x.type.shape[d], u.type.shape[d]
            last = convert(positive(n - size), INT32)
            offset = iota(INT32, n) - clamp(scalar(0, INT32), convert(starts[d], INT32), last)
            u = u[(*[slice(None)] * d, clamp(scalar(0, INT32), offset, convert(size - 1, INT32)))]
            mask = broadcast_in_dim((offset >= 0) & (offset < size), x.type.shape, (d,))
            updated = mask if updated is None else updated & mask
            start[d] = scalar(0, INT32)
        if u.type.shape != x.type.shape:
            u = perform(op, x, u, *[convert(at, INT32) for at in start])
        return select(updated, u, x)


def _sliced(op: Any, x: Any) -> list[int]:
    """The dimensions in which a slice is not the whole operand."""
    whole = [(0, n, 1) for n in x.type.shape]
    return [d for d, part in enumerate(zip(op.start, op.limit, op.strides)) if part != whole[d]]


@RAGGED.rule(Slice)
@mixing(_sliced, lambda op, d: (op.start[d], op.limit[d]))
def part(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """Slice: along a ragged axis within each lane, along other axes as it is."""
    ragged = [axis for axis, _ in run.ragged_axes(x.type.shape)]
    taken = [d for d in _sliced(op, x) if d in ragged]
    measured = [d for d in _sliced(op, x) if d not in ragged and run.lanes.owns(extents_in((op.start[d], op.limit[d])))]
    with inside(run):
        for d in measured:
            x = read_along(x, d, iota(INT32, types[0].shape[d]) * op.strides[d] + convert(op.start[d], INT32))
        sides = (op.start, op.limit, op.strides)
        whole = ([0] * x.ndim, x.type.shape, [1] * x.ndim)
        taken += measured
        x = slice_at(x, *[[w[d] if d in taken else side[d] for d in range(x.ndim)] for w, side in zip(whole, sides)])
    for d in taken:
        if d not in measured:
            x = moved(run, x, d, types[0].shape[d], op.strides[d], 1, -op.start[d])
    return x


@RAGGED.rule(Pad)
def extend(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, value: Any) -> Any:
    """Pad: along a ragged axis rows move within each lane, and the padding value fills the gaps."""
    shape = types[0].shape
    sizes = list(zip(x.type.shape, shape))
    taken = [d for d, part in enumerate(op.config) if any(part) and run.lanes.owns(extents_in(sizes[d]))]
    if not taken:
        return beside(op, run, types, x, value)
    with inside(run):
        x = pad(x, value, [(0, 0, 0) if d in taken else part for d, part in enumerate(op.config)])
    for d in taken:
        low, _, interior = op.config[d]
        given = x.type.shape[d]
        x = moved(run, x, d, shape[d], 1, interior + 1, low)
        with inside(run):
            index = iota(INT32, shape[d]) - low
            filled = (index >= 0) & (index < given + positive(given - 1) * interior)
            if interior:
                filled = filled & (index % (interior + 1) == 0)
            x = select(broadcast_in_dim(filled, x.type.shape, (d,)), x, broadcast_in_dim(value, x.type.shape, ()))
    return x


@RAGGED.rule(Split)
@mixing(lambda op, x: (op.axis,))
def pieces(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """Split: a slice for each size."""
    starts = [sum(op.sizes[:k]) for k in range(len(op.sizes))]
    with inside(run):
        return tuple([slice_in_dim(x, a, a + size, axis=op.axis) for a, size in zip(starts, op.sizes)])
