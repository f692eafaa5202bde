"""``RaggedLoop``: a loop over lanes, for lengths that are values of a program.

    c[i + 1], y[i] = body(s, c[i], x[i]),   x[i], y[i] : f32[n_i, ...] as packed rows, or f32[...]

The body is the program of one lane, ``f32[n0,64] -> ...``, under every transformation. Symbolic dimensions get values
only in evaluation and lowering: for each of a few padded sizes there is a loop over the lanes for which it is the
smallest that suffices. So a value with two ragged axes takes the memory of one lane, and the time of the lanes'
lengths. Reverse mode saves the operands, and recomputes a lane's residuals.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.later_layers import LaterLayers
from ...effects.base.stack import current, inside, perform
from ...effects.control.body_rules import evaluate_body
from ...effects.control.checkpoint import OptimizationBarrier
from ...effects.control.checkpoint_policies import nothing_saveable
from ...effects.control.loops import Scan, fori_loop
from ...effects.core.arrays import scalar
from ...effects.core.operation import operation, shared
from ...effects.operations.elementwise.comparison import lt, select
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, full, reduce_sum, reshape, zeros
from ...effects.operations.indexing.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from ...effects.operations.manipulation.slicing import axis_at, concatenate, index_in_dim, slice_in_dim, split
from ...effects.operations.reductions.sorting import Sort
from ...effects.programs.higher_order import HigherOrder, record_body
from ...effects.programs.program import Program, derived_once, interpret
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.extent import Extent
from ...effects.types.sized import extents_in
from ..batching.batch import BatchBox
from .lane_lengths import INT32, LaneLengths, Partition, RaggedLanes, constant, lane_sizes, line, rows_bound
from .ragged_batch import PaddedMark, RaggedBatch, RowsMark

LengthBounds = tuple[int, int, int]


def leading_extent(type: ArrayType) -> Extent | None:
    """The symbolic first dimension of a lane's value, of which all lanes are packed rows; None: lanes are stacked."""
    size = type.shape[0] if type.shape else None
    return size if isinstance(size, Extent) else None


# c[i + 1], y[i] = body(s, c[i], x[i])  for the lanes i, where x[i] and y[i] are rows with the lane's length
@operation
class RaggedLoop(HigherOrder):
    """``bounds``: for each vector of lengths, which are the operands ``selects``: its index, and bounds of its sum and
    its maximum.

    The carry must be a sum over the lanes, since they are visited in the order of their lengths.
    """

    bodies: tuple[Program, ...]
    shared: int
    carry: int
    length: int
    bounds: tuple[LengthBounds, ...]
    backwards: bool = False
    runs = "loop"
    saves = nothing_saveable

    @property
    def selects(self) -> int:  # type: ignore[override]
        return len(self.bounds)

    @property
    def longest(self) -> dict[int, int]:
        """A bound of each length, by index."""
        return {number: longest for number, _, longest in self.bounds}

    def rows(self, extent: Extent) -> int:
        """The number of packed rows of an axis of this size, with padding."""
        return rows_bound(extent, {number: total for number, total, _ in self.bounds}, self.longest, self.length)

    @property
    def typical(self) -> tuple[Program, ...]:
        """The body at the mean length, assuming no padding."""
        sizes = {number: min(-(-total // max(self.length, 1)), longest) for number, total, longest in self.bounds}
        return tuple([sized_program(body, tuple(sizes.items())) for body in self.bodies])

    def in_order(self) -> None:
        """None: lanes are visited in the order of their lengths."""

    def slices(self, type: ArrayType) -> bool:
        return leading_extent(type) is None

    def stacked(self, type: ArrayType) -> ArrayType:
        extent = leading_extent(type)
        if extents_in(type.shape[1:]):
            raise CannotCross(
                f"{self.name}: a value {type} of each lane leaves it, and there is none for all lanes.",
                hint="handle it inside, vmap(hx.handle(h)(f)), or reduce it over its ragged axes.",
            )
        if extent is None:
            return type.update(shape=(self.length, *type.shape))
        return type.update(shape=(self.rows(extent), *type.shape[1:]))

    def batch(op, dims, *operands):
        same_lengths = all([d is None for d in dims[: op.selects]])
        return (_batched if same_lengths else _one_by_one)(op, dims, operands)

    def evaluate(op, *values):
        return evaluate_body(over_lanes(op.bodies[0], op), values)

    def lower(op, emit, *values):
        return emit.program(over_lanes(op.bodies[0], op), values)


@derived_once
def sized_program(program: Program, lengths: tuple[tuple[int, int], ...]) -> Program:
    """The program with these integers in place of the lengths, by index."""
    sizes = dict(lengths)
    return program.with_sizes(lambda extent: extent.at(sizes))


def _batched(op: RaggedLoop, dims: Sequence[int | None], operands: Sequence[Any]) -> Any:
    """The batch rule: the body batched, with the new dimension behind the axis of lanes."""
    size = next(x.type.shape[d] for x, d in zip(operands, dims) if d is not None)
    groups, marks = op.groups(operands), op.groups(dims)
    mapped = [None if d is None else 0 for d in marks.shared] + [0] * op.carry
    types = op.bodies[0].in_types[len(mapped) :]
    inner = [None if d is None else 1 if leading_extent(t) else 0 for d, t in zip(marks.each, types)]
    program, result_dims = LaterLayers.batch_program(op.bodies[0], [*mapped, *inner], size)
    ends = [0] * op.carry + [1 if leading_extent(t) else 0 for t in op.bodies[0].out_types[op.carry :]]
    body = record_body(
        lambda *xs: [axis_at(y, d, at, size) for y, d, at in zip(interpret(program, xs), result_dims, ends)],
        program.in_types,
        program.name,
    )
    first = [x if d is None else axis_at(x, d, 0, size) for x, d in zip(groups.shared, marks.shared)]
    carry = [axis_at(x, d, 0, size) for x, d in zip(groups.carry, marks.carry)]
    each = [x if d is None else axis_at(x, d, 1, size) for x, d in zip(groups.each, marks.each)]
    results = perform(op.with_bodies((body,)), *groups.selects, *first, *carry, *each)
    return results, (0,) * op.carry + (1,) * (len(results) - op.carry)


def _one_by_one(op: RaggedLoop, dims: Sequence[int | None], operands: Sequence[Any]) -> Any:
    """The batch rule for mapped lengths: one loop for each element of the mapped axis."""
    size = next(x.type.shape[d] for x, d in zip(operands, dims) if d is not None)
    fixed = [i for i, d in enumerate(dims) if d is None]
    moving = [i for i, d in enumerate(dims) if d is not None]
    order = [*fixed, *moving]
    each = [axis_at(operands[i], dims[i], 0, size) for i in moving]
    types = [*[operands[i].type for i in fixed], *[x.type.update(shape=x.type.shape[1:]) for x in each]]
    body = record_body(lambda *xs: perform(op, *[xs[order.index(i)] for i in range(len(xs))]), types, op.name)
    results = perform(Scan((body,), len(fixed), 0, size), *[operands[i] for i in fixed], *each)
    return results, (0,) * len(results)


class ZeroPaddedRows(BatchBox):
    """The rows of a single lane as they enter it, whose padding is 0, so that no contraction has to mask them."""

    __slots__ = ()

    def __init__(self, run: Any, mark: Any, rows: Any):
        self.type = rows.type.update(shape=(mark.extent, *rows.type.shape[1:]))
        self.run, self.dim, self.site, self.value = run, mark, run.cell.site, rows


class _OneLane(RaggedBatch):
    """The ragged vmap handler for a single lane padded to a given size, where packed and padded form coincide; padding
    is arbitrary.

    Its program is not differentiated afterwards, so that cotangents of padding need not be dropped.
    """

    __slots__ = ()

    def padded(self, x: Any, partition: Partition, copies: bool = True, unread: Container[int] = ()) -> list[Any]:
        if x.run is not self or type(x.dim) is not RowsMark:
            return super().padded(x, partition, copies, unread)
        part = reshape(x.value, (1, *x.value.type.shape))
        if not copies and type(x) is not ZeroPaddedRows:
            mask = self.real(PaddedMark(0, ((x.dim.axis, x.dim.extent),)), part.type.shape, 0)
            part = select(mask, part, zeros(part.type))
        return [part]

    def _copied(self, part: Any, axis: int, extent: Extent, k: int) -> Any:
        return part

    def joined_rows(self, parts: Sequence[Any], axis: int, extent: Extent, partition: Partition) -> Any:
        (part,) = parts
        return reshape(part, part.type.shape[1:])

    def folded(self, fold: Any, rows: Any, extent: Extent) -> Any:
        mask = broadcast_in_dim(self.lanes.of(extent).real, rows.type.shape, (0,))
        y = perform(fold.reduction((0,)), select(mask, rows, full(rows.type, fold.unit(rows.type.dtype))))
        return reshape(y, (1, *y.type.shape))

    def guarded(self, parts: Sequence[Any], mark: Any) -> list[Any]:
        return list(parts)


@derived_once
def over_lanes(body: Program, op: RaggedLoop) -> Program:
    """The operation as a program of ordinary loops: for each padded size a loop over the lanes of this size."""
    selects = [array_type((op.length,), INT32)] * op.selects
    shared, carry = body.in_types[: op.shared], body.in_types[op.shared : op.shared + op.carry]
    each = [op.stacked(t) for t in body.in_types[op.shared + op.carry :]]
    return record_body(lambda *xs: _LaneLoops(op, xs).results(), [*selects, *shared, *carry, *each], op.name)


class _LaneLoops:
    """The loops over lanes that compute one ``RaggedLoop``, with its operands."""

    def __init__(self, op: RaggedLoop, operands: Sequence[Any]):
        self.op = op
        self.body = op.bodies[0]
        self.selects, self.shared, self.carry, each = op.groups(operands)
        self.each_types = self.body.in_types[op.shared + op.carry :]
        self.out_types = self.body.out_types[op.carry :]
        self.extents = list(dict.fromkeys(filter(None, map(leading_extent, (*self.each_types, *self.out_types)))))
        self.each = [self.with_padding(x, t) for x, t in zip(each, self.each_types)]

    def with_padding(self, x: Any, t: ArrayType) -> Any:
        """Packed rows, padded so that a slice of the padded size from any lane's start lies in the array."""
        extent = leading_extent(t)
        if extent is None:
            return x
        return concatenate([x, zeros(x.type.update(shape=(extent.at(self.op.longest), *x.type.shape[1:])))], 0)

    def results(self) -> list[Any]:
        op = self.op
        sizes = lane_sizes(op.longest)
        lasts, lanes = self.by_size(sizes)
        state = [*self.carry, *[self.with_padding(zeros(op.stacked(t)), t) for t in self.out_types]]
        first: Any = scalar(0, INT32)
        for k, size in enumerate(sizes):
            last = index_in_dim(lasts, k, keepdims=False)
            state = fori_loop(first, last, partial(self.step, lanes, size), state)
            first = last
        ends = [slice_in_dim(y, 0, op.stacked(t).shape[0]) for y, t in zip(state[op.carry :], self.out_types)]
        return [*state[: op.carry], *ends]

    def by_size(self, sizes: Sequence[dict[int, int]]) -> tuple[Any, Any]:
        """For each padded size the number of lanes of at most this size; and a row of integers for each lane, from
        small ones to large ones: its index, its lengths, and the first rows of its extents.
        """
        op = self.op
        kind: Any = zeros(array_type((op.length,), INT32))
        bounds = {}
        for (number, total, longest), n in zip(op.bounds, self.selects):
            bounds[number] = LaneLengths(n, total, longest, current())
            kind = maximum(kind, _count_below(constant([size[number] for size in sizes[:-1]]), n))
        lengths = RaggedLanes(op.length, bounds, current())
        columns = [line(op.length), *self.selects, *[lengths.of(extent).starts for extent in self.extents]]
        kinds, *columns = perform(shared(Sort, 0, True, 1), kind, *columns)
        lanes = concatenate([reshape(column, (op.length, 1)) for column in columns], 1)
        return _count_below(kinds, line(len(sizes)) + 1), lanes

    def step(self, lanes: Any, sizes: dict[int, int], i: Any, state: Sequence[Any]) -> list[Any]:
        """The loop's state after one more lane."""
        op = self.op
        (row,) = perform(OptimizationBarrier(), _slice(lanes, i, 1))  # it is read once, not by each computation of it
        lane, *rest = [reshape(column, ()) for column in split(row, [1] * row.type.shape[1], 1)]
        starts = dict(zip(self.extents, rest[op.selects :]))
        own = {
            number: LaneLengths(reshape(n, (1,)), sizes[number], sizes[number], current())
            for n, (number, _, _) in zip(rest, op.bounds)
        }
        run = _OneLane(current(), RaggedLanes(1, own, current()))
        xs = [self.read(run, x, t, lane, sizes, starts) for x, t in zip(self.each, self.each_types)]
        with inside(run):
            ys = interpret(self.body, [*self.shared, *state[: op.carry], *xs])
        sums = [y if y.run is not run else reshape(run.force(y, 0)[0], y.type.shape) for y in ys[: op.carry]]
        return [*sums, *[self.write(run, old, y, lane, starts) for old, y in zip(state[op.carry :], ys[op.carry :])]]

    def read(self, run: Any, x: Any, t: ArrayType, lane: Any, sizes: dict[int, int], starts: dict[Any, Any]) -> Any:
        """One lane's slice of an operand."""
        extent = leading_extent(t)
        if extent is None:
            return run.box(0, (_slice(x, lane, 1),))
        rows = _slice(x, starts[extent], extent.at(sizes))
        mask = broadcast_in_dim(run.lanes.of(extent).real, rows.type.shape, (0,))
        return ZeroPaddedRows(run, RowsMark(0, extent), select(mask, rows, zeros(rows.type)))

    def write(self, run: Any, old: Any, y: Any, lane: Any, starts: dict[Any, Any]) -> Any:
        """A stacked or packed result with one lane's slice updated; rows of other lanes stay."""
        extent = leading_extent(y.type)
        if extent is None:
            return _updated(old, run.force(y, 0)[0], lane)
        (rows,) = run.force(y, RowsMark(0, extent))
        start = starts[extent]
        mask = broadcast_in_dim(run.lanes.of(extent).real, rows.type.shape, (0,))
        return _updated(old, select(mask, rows, _slice(old, start, rows.type.shape[0])), start)


def _count_below(values: Any, bounds: Any) -> Any:
    """For each bound, how many of the values are less than it."""
    shape = (*bounds.type.shape, *values.type.shape)
    less = lt(broadcast_in_dim(values, shape, (1,)), broadcast_in_dim(bounds, shape, (0,)))
    return reduce_sum(convert(less, INT32), (1,))


def _slice(x: Any, start: Any, size: int) -> Any:
    """``x[start : start + size]``, for a slice that lies inside the array."""
    sizes = (size, *x.type.shape[1:])
    return perform(shared(DynamicSlice, sizes), x, start, *[scalar(0, INT32)] * (len(sizes) - 1))


def _updated(x: Any, rows: Any, start: Any) -> Any:
    """The array with ``x[start : start + len(rows)] = rows``, for a slice that lies inside the array."""
    return perform(DynamicUpdateSlice(), x, rows, start, *[scalar(0, INT32)] * (len(x.type.shape) - 1))
