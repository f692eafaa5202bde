"""The handler of vmap over lanes of different lengths: ``vmap(f)(x)[i] == f(x_i)``, x_i : f32[n_i, ...].

Within a lane its length is a symbolic dimension, ``f32[n0,64]``. The mark of a value is its layout in arrays of all
lanes:

    int d                    value[.., B, ..]               no ragged axis: as in ordinary vmap
    RowsMark(a, n)               value[.., T, ..]               one ragged axis, a: packed rows
    PaddedMark(d, ((a, n), ..))  value[.., B_k, .., M_k, ..]    any number of them: one array for each bucket of lanes

Packed rows have the dimensions of one lane, so that an operation that does not mix along the ragged axis is applied to
them unchanged, at the cost of the sum of the lengths. Padding holds copies of existing rows, so that it causes no NaN
that no lane has. It is masked in reductions, in contractions, and in results.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import CannotCross, MissingRule
from ...effects.base.stack import Run, at_site, inside, perform
from ...effects.core.arrays import ConcreteArray, scalar
from ...effects.core.columns import BATCH, RAGGED
from ...effects.core.operation import Operation, effects_text, is_pure, result_type
from ...effects.operations.elementwise.arithmetic import Unread
from ...effects.operations.elementwise.bitwise import bitwise_and
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.comparison import select
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.shapes import broadcast_in_dim, full, move_axis, reshape
from ...effects.operations.indexing.dynamic_slicing import DynamicSlice
from ...effects.operations.indexing.relocation import relocated
from ...effects.operations.manipulation.slicing import axis_at, concatenate, slice_in_dim
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import INEXACT
from ...effects.types.extent import Extent
from ...effects.types.sized import extents_in, with_sizes
from ..batching.batch import Batch, by_batch_rule, lane_box
from ..core.body_transform import cross
from ..core.state_flow import StateFlow
from ..differentiation.linear_rules import cross_linear
from .lane_lengths import (
    INT32,
    EnteredRows,
    LengthsAsOperands,
    Partition,
    RaggedLanes,
    Segments,
    line,
)

ResultTypes = Sequence[ArrayType]
RaggedAxes = tuple[tuple[int, Extent], ...]


class RowsMark(NamedTuple):
    """The layout of packed rows: all lanes concatenated along dimension ``axis``, whose size in a lane is ``extent``.
    """

    axis: int
    extent: Extent


class PaddedMark(NamedTuple):
    """The layout of padded lanes: one array for each bucket, lanes along ``dim``, with these ragged ``axes``, padded.

    Along the axes ``zeros`` padding is 0 (NaN where all of the lane is NaN) and not copies, which must be made if
    needed.
    """

    dim: int
    axes: RaggedAxes
    zeros: tuple[int, ...] = ()


def ragged_axes(shape: Sequence[Any]) -> RaggedAxes:
    """The ragged axes of a shape, with their symbolic dimensions."""
    return tuple([(axis, size) for axis, size in enumerate(shape) if type(size) is Extent])


def at_rest(axes: RaggedAxes) -> Any:
    """The default layout of values with these ragged axes: packed rows for one, padded lanes for several."""
    return RowsMark(*axes[0]) if len(axes) == 1 else PaddedMark(0, axes) if axes else 0


class RaggedBatch(Batch):
    """The vmap handler for ragged lanes; also batches operand-free operations, such as iota, whose size is one of its
    ragged lengths.
    """

    __slots__ = ("lanes",)
    lanes: RaggedLanes

    def __init__(self, outer: Run, lanes: RaggedLanes, axis_name: Any = None, site: Any = None):
        super().__init__(outer, lanes.count, axis_name, site)
        self.lanes = lanes
        if lanes.home is None:
            lanes.home = self
        if lanes.lengths:
            self.label = "ragged " + self.label

    @property
    def lengths(self) -> Container[int]:  # type: ignore[override]
        return self.lanes.lengths

    @property
    def home(self) -> Run:
        return self.lanes.home or self

    def fresh(self, outer: Run) -> RaggedBatch:
        run = type(self)(outer, self.lanes, self.axis_name)
        run.crossed = self.crossed
        return run

    def key(self) -> Any:
        """Transformed bodies capture index arrays and lane indices, which differ from one ``vmap`` to the next."""
        return None if self.lanes.lengths or self.lanes.make_numbers else super().key()

    def flow(self, op: Any) -> StateFlow:
        given = op.deferred and (not self.lanes.known or self.lanes.make_numbers is not None)
        return LengthsAsOperands(self.lanes) if given else super().flow(op)

    def ragged_axes(self, shape: Sequence[Any]) -> RaggedAxes:
        """The axes of a shape that are ragged in these lanes; lengths of outer lanes count as ordinary sizes."""
        return tuple([(axis, size) for axis, size in ragged_axes(shape) if self.lanes.owns((size,))])

    def axes(self, mark: Any) -> RaggedAxes:
        return ((mark.axis, mark.extent),) if type(mark) is RowsMark else mark.axes if type(mark) is PaddedMark else ()

    def split(self, x: Any) -> tuple[Any, Sequence[Any]]:
        if x.run is not self:
            return None, (x,)
        return x.dim, x.value if type(x.dim) is PaddedMark else (x.value,)

    def box(self, mark: Any, parts: Sequence[Any]) -> Any:
        if mark is None or type(mark) is int:
            return super().box(mark, parts)
        shape = list(parts[0].type.shape)
        if type(mark) is PaddedMark:
            del shape[mark.dim]
        for axis, extent in self.axes(mark):
            shape[axis] = extent
        value = tuple(parts) if type(mark) is PaddedMark else parts[0]
        return lane_box(self, value, mark, parts[0].type.update(shape=tuple(shape)), self.cell.site)

    def part_types(self, mark: Any, type_: ArrayType) -> Sequence[ArrayType]:
        if mark is None or type(mark) is int:
            return super().part_types(mark, type_)
        return [type_.update(shape=shape) for shape in self.stored(mark, type_.shape)]

    def stored(self, mark: Any, shape: Sequence[Any]) -> list[tuple[int, ...]]:
        """The shapes of the arrays that hold a value with this shape in the lane."""
        if type(mark) is RowsMark:
            return [with_sizes(tuple(shape), self.lanes.rows)]
        shapes = []
        for bucket in self.lanes.rounded.buckets:
            sizes = [bucket.padded(size) for size in shape]
            shapes.append((*sizes[: mark.dim], len(bucket.lanes), *sizes[mark.dim :]))
        return shapes

    def force(self, x: Any, mark: Any) -> Sequence[Any]:
        own, parts = self.split(x)
        if mark is None or own == mark:
            return parts
        if type(mark) is RowsMark:
            return (self.rows(x),)
        if type(mark) is PaddedMark:
            return [move_axis(part, 0, mark.dim) for part in self.padded(x, self.lanes.rounded)]
        if type(own) in (RowsMark, PaddedMark):
            raise CannotCross(
                f"{self.label}: a value of type {x.type} has a ragged axis, where lanes of one shape are needed."
            )
        return (axis_at(parts[0], own, mark, self.size),)

    def mapped_mark(self, type: ArrayType) -> Any:
        return at_rest(self.ragged_axes(type.shape))

    def mark_of_type(self, mark: Any, type: ArrayType) -> Any:
        return None if mark is None else self.mapped_mark(type)

    def join(self, marks: Sequence[Any]) -> Any:
        layouts = {mark for mark in marks if mark is not None}
        if len(layouts) <= 1:
            return layouts.pop() if layouts else None
        return at_rest(max([self.axes(mark) for mark in layouts], key=len))

    def carried(self, mark: Any) -> Any:
        return None if mark is None else at_rest(self.axes(mark))

    def form(self, axes: RaggedAxes, operands: Sequence[Any]) -> Any:
        """The layout of a result with these ragged axes: with one axis, padded only if no operand is packed."""
        ragged = [x.dim for x in operands if x.run is self and type(x.dim) is not int]
        padded = len(axes) == 1 and ragged and all([type(mark) is PaddedMark for mark in ragged])
        return PaddedMark(0, axes) if padded else at_rest(axes)

    def slice(self, mark: Any, parts: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        if type(mark) is RowsMark:  # the loop's axis is never the ragged one: see ``answer``
            return RowsMark(mark.axis - 1, mark.extent), parts
        if type(mark) is not PaddedMark:
            return super().slice(mark, parts)
        axes, zero = tuple([(axis - 1, extent) for axis, extent in mark.axes]), tuple([a - 1 for a in mark.zeros])
        if mark.dim:
            return PaddedMark(mark.dim - 1, axes, zero), parts
        return PaddedMark(0, axes, zero), [move_axis(part, 0, 1) for part in parts]

    def stack(self, mark: Any) -> Any:
        if type(mark) is RowsMark:
            return RowsMark(mark.axis + 1, mark.extent)
        if type(mark) is not PaddedMark:
            return super().stack(mark)
        axes = tuple([(axis + 1, extent) for axis, extent in mark.axes])
        return PaddedMark(mark.dim + 1, axes, tuple([a + 1 for a in mark.zeros]))

    def of_no_lanes(self, type: ArrayType) -> Any:
        """The value of this type for zero lanes, all of whose rows are padding."""
        mark = self.mapped_mark(type)
        return self.box(mark, [full(t, 1) for t in self.part_types(mark, type)])

    # --- changes of layout

    def extent(self, rows: Segments) -> Extent:
        """The symbolic dimension of these packed rows in the lane."""
        if not self.lanes.lengths:
            self.label = "ragged " + self.label
        return self.lanes.extent(rows)

    def enter(self, x: Any, extent: Extent) -> Any:
        """The box of packed rows with arbitrary padding; in the box's value padding copies the last row."""
        n = self.lanes.of(extent)
        if not x.type.shape[0]:
            x = concatenate([x, full(x.type.update(shape=(1, *x.type.shape[1:])), 1)], 0)
        return self.box(RowsMark(0, extent), (x,)) if n.full else EnteredRows(self, RowsMark(0, extent), n, x)

    def leave(self, x: Any, extent: Extent) -> Any:
        """The packed rows of a value whose first axis is ragged, with zeros as padding."""
        ((axis, _),) = self.ragged_axes(x.type.shape)
        n, rows = self.lanes.of(extent), move_axis(self.rows(x), axis, 0)
        if n.full:
            return rows
        mask = broadcast_in_dim(n.real, rows.type.shape, (0,))
        return select(mask, rows, full(rows.type, 0))

    def rows(self, x: Any) -> Any:
        """The packed rows, along its ragged axis, of a value that has one."""
        mark, parts = self.split(x)
        if type(mark) is RowsMark:
            return parts[0]
        ((axis, extent),) = self.ragged_axes(x.type.shape)
        return self.joined_rows([move_axis(part, mark.dim, 0) for part in parts], axis, extent, self.lanes.rounded)

    def joined_rows(self, parts: Sequence[Any], axis: int, extent: Extent, partition: Partition) -> Any:
        """The packed rows along ``axis`` from the padded lanes of each bucket, which have the lanes first."""
        moved = [move_axis(part, 1 + axis, 1) for part in parts]
        flat = [reshape(v, (v.type.shape[0] * v.type.shape[1], *v.type.shape[2:])) for v in moved]
        if not self.lanes.aligned(extent, partition):
            index, inverse = self.lanes.layout(extent, partition)
            flat = relocated(flat, inverse, index, inverse.type.shape, copies=True)
        return move_axis(flat[0], 0, axis)

    def padded(
        self, x: Any, partition: Partition, copies: bool = True, unread: Container[int] = ()
    ) -> list[Any]:
        """The padded lanes of each bucket of a partition, lanes first; padding is copies of the lane's last row, or
        zeros.

        Along the axes ``unread`` padding is arbitrary.
        """
        mark, parts = self.split(x)
        if mark is None or type(mark) is int:
            return self.by_lane(axis_at(parts[0], mark, 0, self.size), partition)
        if type(mark) is PaddedMark and len(mark.axes) == 1 and partition is not self.lanes.rounded:
            mark, parts = RowsMark(*mark.axes[0]), [self.rows(x)]
        if type(mark) is PaddedMark:
            if partition is not self.lanes.rounded:
                return self._cut(self.padded(x, self.lanes.rounded), x.type.shape)
            parts = [move_axis(part, mark.dim, 0) for part in parts]
            for axis, extent in mark.axes:
                if axis in mark.zeros and axis not in unread:
                    parts = [self._copied(part, axis, extent, k) for k, part in enumerate(parts)]
            return list(parts)
        sizes = [len(bucket.lanes) * bucket.padded(mark.extent) for bucket in partition.buckets]
        pieces = [move_axis(parts[0], mark.axis, 0)]
        if not self.lanes.aligned(mark.extent, partition):
            pieces = relocated(pieces, *self.lanes.layout(mark.extent, partition), sizes, copies)
        buckets = []
        for piece, bucket in zip(pieces, partition.buckets):
            piece = reshape(piece, (len(bucket.lanes), bucket.padded(mark.extent), *piece.type.shape[1:]))
            buckets.append(move_axis(piece, 1, 1 + mark.axis))
        return buckets

    def masked(self, part: Any, axis: int, extent: Extent, k: int, padding: Any) -> Any:
        """Bucket ``k``, lanes first, with its padding along ``axis`` replaced."""
        partition, shape = self.lanes.rounded, part.type.shape
        if self.lanes.unpadded(extent, partition, k):
            return part
        mask = self.lanes.mask(extent, partition, k)
        return select(broadcast_in_dim(mask, shape, (0, 1 + axis)), part, padding)

    def _copied(self, part: Any, axis: int, extent: Extent, k: int) -> Any:
        """Bucket ``k``, lanes first, whose padding copies the lane's last element, or is 1 in an empty lane."""
        lanes, shape = self.lanes, part.type.shape
        with inside(lanes.of(extent).level):
            length = lanes.counts(extent, lanes.rounded, k)
            last, some = maximum(length - 1, scalar(0, INT32)), length > 0
        starts = [last if d == axis else scalar(0, INT32) for d in range(len(shape) - 1)]
        piece = DynamicSlice((*shape[1 : 1 + axis], 1, *shape[2 + axis :]))
        copy, d = BATCH.find(DynamicSlice)(piece, (0, *[0 if v is last else None for v in starts]), part, *starts)
        copy = broadcast_in_dim(axis_at(copy, d, 0, shape[0]), shape, tuple(range(len(shape))))
        copy = select(broadcast_in_dim(some, shape, (0,)), copy, full(part.type, 1))
        return self.masked(part, axis, extent, k, perform(Unread(), copy))

    def by_lane(self, value: Any, partition: Partition) -> list[Any]:
        """An array with the lanes first, partitioned into the buckets."""
        if partition.whole:
            return [value]
        return list(relocated([value], partition.order, partition.inverse, partition.counts))

    def from_buckets(self, parts: Sequence[Any], shape: Sequence[Any], partition: Partition, zeros: Any = None) -> Any:
        """The box of a value with this shape in the lane, from the padded lanes of each bucket, lanes first.

        ``zeros``: the axes along which padding is 0; along others it is copies. None: padding is arbitrary.
        """
        axes = self.ragged_axes(shape)
        if not axes:
            whole = parts if partition.whole else relocated(parts, partition.inverse, partition.order, (self.size,))
            return self.box(0, (whole[0],))
        kept = zeros == () and self.lanes.divided and partition is self.lanes.rounded
        if len(axes) == 1 and not kept:
            return self.box(RowsMark(*axes[0]), (self.joined_rows(parts, *axes[0], partition),))
        if partition is not self.lanes.rounded:
            parts = self._extended(parts, shape)
        return self.box(PaddedMark(0, axes, tuple([a for a, _ in axes if a in (zeros or ())])), parts)

    def _cut(self, parts: Sequence[Any], shape: Sequence[Any]) -> list[Any]:
        """One array for each length of lanes, without padding, from one for each of the buckets of rounded lengths."""
        by_length: dict[int, Any] = {}
        for part, (order, inverse, inner) in zip(parts, self.lanes.refined):
            buckets = [self.lanes.equal.buckets[j] for j in inner]
            pieces = relocated([part], order, inverse, [len(bucket.lanes) for bucket in buckets])
            for j, piece, bucket in zip(inner, pieces, buckets):
                for axis, extent in self.ragged_axes(shape):
                    piece = slice_in_dim(piece, 0, bucket.padded(extent), axis=1 + axis)
                by_length[j] = piece
        return [by_length[j] for j in sorted(by_length)]

    def _extended(self, parts: Sequence[Any], shape: Sequence[Any]) -> list[Any]:
        """Lanes of equal length, padded to the length of their bucket: by copies of the last element, or by ones."""
        buckets = []
        for bucket, (order, inverse, inner) in zip(self.lanes.rounded.buckets, self.lanes.refined):
            pieces = []
            for piece in [parts[j] for j in inner]:
                for axis, extent in self.ragged_axes(shape):
                    size, padded = piece.type.shape[1 + axis], bucket.padded(extent)
                    more = (*piece.type.shape[: 1 + axis], padded - size, *piece.type.shape[2 + axis :])
                    if size:
                        last = perform(Unread(), slice_in_dim(piece, size - 1, size, axis=1 + axis))
                        behind = broadcast_in_dim(last, more, tuple(range(len(more))))
                    else:
                        behind = full(piece.type.update(shape=more), 1)
                    piece = concatenate([piece, behind], 1 + axis) if padded > size else piece
                pieces.append(piece)
            buckets.append(relocated(pieces, inverse, order, (len(bucket.lanes),))[0])
        return buckets

    def filled(self, x: Any, units: dict[int, Any]) -> list[Any]:
        """The padded lanes of a value, lanes first, with padding along the axes of ``units`` replaced by a reduction's
        identity.
        """
        partition, axes = self.lanes.rounded, self.ragged_axes(x.type.shape)
        if set(units.values()) == {0} and len(axes) == 1 and axes[0][0] in units and type(x.dim) is RowsMark:
            return self.padded(x, partition, copies=False)
        buckets = []
        zeros = x.dim.zeros if type(x.dim) is PaddedMark else ()
        for k, part in enumerate(self.padded(x, partition, unread=units)):
            for axis, extent in axes:
                if axis in units and not (axis in zeros and units[axis] == 0):
                    part = self.masked(part, axis, extent, k, full(part.type, units[axis]))
            buckets.append(part)
        return buckets

    def spread(self, x: Any, mark: Any, shape: Sequence[Any]) -> list[Any]:
        """The arrays of a scalar of the lane, broadcast to a shape in the lane with this layout."""
        own, (value,) = self.split(x)
        stored = self.stored(mark, shape)
        if own is None and isinstance(value, ConcreteArray):
            return [value] * len(stored)
        if own is None:
            return self.guarded([broadcast_in_dim(value, size, ()) for size in stored], mark)
        if type(mark) is RowsMark:
            parts, dim = [self.lanes.of(mark.extent).repeated(value)], mark.axis
        else:
            parts, dim = self.by_lane(value, self.lanes.rounded), mark.dim
        return self.guarded([broadcast_in_dim(part, size, (dim,)) for part, size in zip(parts, stored)], mark)

    def guarded(self, parts: Sequence[Any], mark: Any) -> list[Any]:
        """The arrays of a value that lanes share, or that is repeated, with cotangents of padding dropped.

        Such a cotangent may be NaN, if an empty lane has infinite values, and would otherwise enter the sum over all
        rows.
        """
        full = type(mark) is RowsMark and self.lanes.of(mark.extent).full
        if full or not all([part.type.dtype in INEXACT for part in parts]):
            return list(parts)
        masks = [self.real(mark, part.type.shape, k) for k, part in enumerate(parts)]
        return [
            part if mask is None else select(mask, part, perform(Unread(), part))
            for mask, part in zip(masks, parts)
        ]

    def real(self, mark: Any, shape: tuple[int, ...], k: int) -> Any:
        """Which elements of array ``k`` of a value are not padding; None: all."""
        if type(mark) is RowsMark:
            return broadcast_in_dim(self.lanes.of(mark.extent).real, shape, (mark.axis,))
        real = None
        for axis, extent in mark.axes:
            if self.lanes.unpadded(extent, self.lanes.rounded, k):
                continue
            mask = self.lanes.mask(extent, self.lanes.rounded, k)
            mask = broadcast_in_dim(mask, shape, (mark.dim, axis + (axis >= mark.dim)))
            real = mask if real is None else bitwise_and(real, mask)
        return real

    def folded(self, fold: Any, rows: Any, extent: Extent) -> Any:
        """The segmented reduction of packed rows, which are first, by this operation; one result for each lane."""
        return perform(fold, rows, *self.lanes.of(extent).index)

    # --- answers

    def in_lanes(self, op: Operation, dims: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
        if any([not (dim is None or type(dim) is int) for dim in dims]):
            raise CannotCross(
                f"{op.name}: each lane would execute it alone, since it performs {effects_text(op.effects)}, "
                "but lanes have values of different types.",
                hint="perform the effect on both sides, or outside of it; or handle it inside: vmap(hx.handle(h)(f)).",
            )
        return super().in_lanes(op, dims, values)

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if not self.lanes.lengths:
            return super().answer(op, operands)
        dense = all([x.run is not self or type(x.dim) is int for x in operands])
        if dense and not self.lanes.owns(extents_in(op.fields)):
            return super().answer(op, operands)
        with at_site(self.cell.site or self.labelled_site(), self.cell), inside(self.outer):
            return self.ragged(op, operands)

    def collective(self, op: Any, dims: Any, values: Any) -> Any:
        y, dim = super().collective(op, dims, values)
        if self.lanes.make_numbers is None:
            return y, dim
        return op.renumbered(self.axis_name, y, self.lanes.numbers - line(self.size)), dim

    def ragged(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Answer an operation with a ragged operand or result."""
        kind = type(op)
        RAGGED.complete()
        if self.size or not is_pure(op):
            if self.crosses(op) and not RAGGED.has(kind):
                return cross(self, self.batched(op), operands)
            if op.deferred:
                return cross_linear(self, op, operands)
            if not self.crosses(op) and (op.effectful or op.named):
                shown = ", ".join([str(x.type) for x in operands])
                raise CannotCross(
                    f"{op.name}: lanes have values of different types, got {shown}; there is none for all of them.",
                    hint="compute it on values of one shape in all lanes, such as a sum over the ragged axis.",
                )
        types = op.as_results(result_type(op, tuple([x.type for x in operands])))
        if not self.size and is_pure(op):
            return op.from_results([self.of_no_lanes(t) for t in types])
        if not op.bodied and BATCH.in_scope(kind) and not RAGGED.in_scope(kind):  # by ``hx.rules(batch=...)``
            if isinstance(op, Elementwise):
                return self.by_bucket(op, types, operands, zeros=())
            return _overridden(op, self, types, *operands)
        return (RAGGED.find(kind) if RAGGED.has(kind) else _without_rule)(op, self, types, *operands)

    def by_bucket(
        self,
        op: Any,
        types: Sequence[ArrayType],
        operands: Sequence[Any],
        partition: Partition | None = None,
        zeros: Any = None,
    ) -> Any:
        """Apply an operation to each bucket by its ordinary batch rule.

        ``operands``: boxes, or lists of an array for each bucket, lanes first. ``zeros``: as in ``from_buckets``; () if
        the operation mixes along none of the axes that the results keep.
        """
        partition = partition or self.lanes.rounded
        columns: list[list[Any]] = [[] for _ in types]
        shared = [type(x) is not list and x.run is not self for x in operands]
        dims = tuple([None if same else 0 for same in shared])
        parts = [
            [x] * len(partition.buckets) if same else x if type(x) is list else self.padded(x, partition)
            for x, same in zip(operands, shared)
        ]
        for bucket, values in zip(partition.buckets, zip(*parts)):
            sized = type(op)(*with_sizes(op.fields, bucket.padded))
            axis = self.axis_name, len(bucket.lanes)
            y, dim = (perform(sized, *values), None) if all(shared) else by_batch_rule(sized, dims, values, *axis)
            result_dims = dim if isinstance(dim, (tuple, list)) else (dim,) * len(types)
            for column, value, d in zip(columns, op.as_results(y), result_dims):
                column.append(axis_at(value, d, 0, len(bucket.lanes)))
        results = [self.from_buckets(column, t.shape, partition, zeros) for column, t in zip(columns, types)]
        return op.from_results(results)


def on_equal_lengths(reason: str) -> Callable[..., Any]:
    """The rule that applies the ordinary batch rule to all lanes of each distinct length.

    Where lengths are values of a program, the rule raises MissingRule, with this reason.
    """

    def rule(op: Any, run: RaggedBatch, types: Sequence[ArrayType], *operands: Any) -> Any:
        if run.lanes.known:
            return run.by_bucket(op, types, operands, run.lanes.equal)
        shown = ", ".join([str(x.type) for x in operands])
        raise MissingRule(
            f"{op.name}: {reason}, and lengths are values here, got {shown}.",
            hint="a Ragged with known lengths, hx.Ragged(data, (3, 1, 4)), computes lanes of equal length together; "
            f"a rule for all lengths is the cell `ragged`, @hx.columns.ragged.rule({type(op).__name__}).",
        )

    return rule


equal_lengths = on_equal_lengths("it depends on the length as a whole")
_without_rule = on_equal_lengths("it has no rule for lanes of different lengths")
_overridden = on_equal_lengths("the batch rule of this scope is for lanes of one length")
