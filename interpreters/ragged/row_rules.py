"""Ragged rules of operations that do not mix along the ragged axis: applied to packed rows, or to every bucket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import inside, perform
from ...effects.base.wrapping import wraps
from ...effects.control.checkpoint import Name, OptimizationBarrier
from ...effects.core.arrays import ConcreteArray
from ...effects.operations.dot_general import DotGeneral
from ...effects.operations.elementwise.comparison import lt, select
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.comparison import min as minimum
from ...effects.operations.elementwise.conversion import as_type
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.shapes import (
    BroadcastInDim,
    Reshape,
    SizeOf,
    Transpose,
    broadcast_in_dim,
    full,
    move_axis,
    permute,
    reshape,
)
from ...effects.operations.indexing.relocation import Relocate, relocate
from ...effects.operations.manipulation.creation import Iota, broadcasted_iota
from ...effects.types.sized import extents_in, with_sizes
from .merged_axes import divided, merged, merges
from .moved_rows import interchanged
from .ragged_batch import RAGGED, PaddedMark, RaggedBatch, ResultTypes, RowsMark, at_rest, equal_lengths


@RAGGED.rule(Name)
@RAGGED.rule(Elementwise)
def elementwise(op: Any, run: RaggedBatch, types: ResultTypes, *operands: Any) -> Any:
    """Apply the operation to packed rows; a value without ragged axis is repeated for each row of its lane."""
    shape = types[0].shape
    mark = run.form(run.ragged_axes(shape), operands)
    parts = [run.force(x, mark) if x.type.shape else run.spread(x, mark, shape) for x in operands]
    columns = zip(*[op.as_results(perform(op, *values)) for values in zip(*parts)])
    return op.from_results([run.box(mark, column) for column in columns])


@RAGGED.rule(BroadcastInDim)
def broadcast(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """Broadcast along a ragged axis repeats a lane's value for each row; the adjoint is a segmented sum."""
    mark = run.form(run.ragged_axes(op.shape), [x])
    stored = run.stored(mark, op.shape)
    own, (value, *_) = run.split(x)
    if own is None:
        dims = op.dims if type(mark) is RowsMark else [d + 1 for d in op.dims]
        parts = [broadcast_in_dim(value, shape, dims) for shape in stored]
        return run.box(mark, parts if isinstance(value, ConcreteArray) else run.guarded(parts, mark))
    if type(mark) is PaddedMark:
        dims = (0, *[d + 1 for d in op.dims])
        parts = [broadcast_in_dim(v, size, dims) for v, size in zip(run.padded(x, run.lanes.rounded), stored)]
    else:
        parts = [_along_rows(run, op, x, mark, stored[0])]
    return run.box(mark, run.guarded(parts, mark) if _may_fill(run, op, x) else parts)


def _may_fill(run: RaggedBatch, op: Any, x: Any) -> bool:
    """Whether a value may occur in padding alone: it has no ragged axis, or a lane may be empty along a new one."""
    kept = [op.dims[axis] for axis, _ in run.ragged_axes(x.type.shape)]
    new = [extent for d, extent in run.ragged_axes(op.shape) if d not in kept]
    return not kept or any([not run.lanes.of(extent).no_empty for extent in new])


def _along_rows(run: RaggedBatch, op: Any, x: Any, mark: RowsMark, shape: tuple[int, ...]) -> Any:
    """Broadcast to packed rows, from packed rows or from one value for each lane."""
    dims = op.dims
    if run.ragged_axes(x.type.shape):
        return broadcast_in_dim(run.rows(x), shape, dims)
    value = move_axis(x.value, x.dim, 0)
    if mark.axis in dims:
        at = dims.index(mark.axis)
        value = reshape(value, (*value.type.shape[: 1 + at], *value.type.shape[2 + at :]))
        dims = tuple([d for d in dims if d != mark.axis])
    before = sum([d < mark.axis for d in dims])
    value = move_axis(run.lanes.of(mark.extent).repeated(value), 0, before)
    return broadcast_in_dim(value, shape, (*dims[:before], mark.axis, *dims[before:]))


@RAGGED.rule(Iota)
def index_in_lane(op: Any, run: RaggedBatch, types: ResultTypes) -> Any:
    """Iota: the index within the lane; padding has the lane's last index."""
    mark = at_rest(run.ragged_axes(op.shape))
    stored = run.stored(mark, op.shape)
    if type(mark) is RowsMark and mark.axis == op.dimension:
        line = run.lanes.of(mark.extent).places
        kind = types[0].update(shape=line.type.shape)
        return run.box(mark, (broadcast_in_dim(as_type(line, kind), stored[0], (mark.axis,)),))
    at = op.dimension + (type(mark) is PaddedMark)
    parts = [broadcasted_iota(op.dtype, shape, at) for shape in stored]
    if op.dimension in dict(run.axes(mark)):
        parts = [_clamped_to_lane(run, part, op.shape[op.dimension], k) for k, part in enumerate(parts)]
    return run.box(mark, parts)


def _clamped_to_lane(run: RaggedBatch, index: Any, extent: Any, k: int) -> Any:
    """Indices in bucket ``k``, lanes first, clamped to the last index of the lane."""
    if run.lanes.unpadded(extent, run.lanes.rounded, k):
        return index
    last = maximum(run.lanes.counts(extent, run.lanes.rounded, k) - 1, 0)
    last = as_type(last, index.type.update(shape=last.type.shape))
    return minimum(index, broadcast_in_dim(last, index.type.shape, (0,)))


@RAGGED.rule(SizeOf)
def length_of(op: Any, run: RaggedBatch, types: ResultTypes) -> Any:
    """The size of a symbolic dimension: the vector of its values in the lanes."""
    return run.box(0, (as_type(run.lanes.of(op.size).values, types[0].update(shape=(run.size,))),))


@RAGGED.rule(OptimizationBarrier)
def barrier(op: Any, run: RaggedBatch, types: ResultTypes, *operands: Any) -> Any:
    """Optimization barrier: one around the arrays of all operands."""
    split = [run.split(x) for x in operands]
    ys = iter(perform(op, *[part for _, parts in split for part in parts]))
    return tuple([run.box(mark, [next(ys) for _ in parts]) for mark, parts in split])


@RAGGED.rule(Reshape)
def kept_axes(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """Reshape that keeps every ragged axis, with the same number of elements before it, possibly merged or divided.

    Raises: CannotCross: the rows of a lane would be interleaved.
    """
    old, new = run.ragged_axes(x.type.shape), run.ragged_axes(op.shape)
    for f, pair in ((merged, merges(run, x.type.shape, op.shape)), (divided, merges(run, op.shape, x.type.shape))):
        if pair is not None:
            return f(run, x, pair, op.shape)
    mark = run.form(new, [x])
    sides = ((x.type.shape, old), (op.shape, new))
    front = [prod(shape[:axis]) for shape, axes in sides for axis, _ in axes[:1]]
    if len(old) == 1 and type(mark) is RowsMark and front[0] == front[1]:
        rows, (shape,) = run.rows(x), run.stored(mark, op.shape)
        if prod(shape) == prod(rows.type.shape):
            return run.box(mark, (reshape(rows, shape),))
    if len(old) == len(new) == 1:
        (a, n), (b, m) = old[0], new[0]
        k, left = divmod(max(front), max(min(front), 1))
        size, whole = (n, m) if front[0] > front[1] else (m, n)
        if not left and k > 1 and whole % (k * size) == 0:
            return _merged(run, op, x, k, size, min(front), b if front[0] > front[1] else a)
    before, after = [[(extent, prod(shape[:axis])) for axis, extent in axes] for shape, axes in sides]
    if before != after:
        raise CannotCross(
            f"reshape: the elements of a lane are no rows of {op.shape} one after the other, got {x.type}.",
            hint="keep the ragged axis an axis of its own, with the same axes before it.",
        )
    parts = run.padded(x, run.lanes.rounded)
    return run.box(mark, [reshape(part, shape) for part, shape in zip(parts, run.stored(mark, op.shape))])


def _merged(run: RaggedBatch, op: Any, x: Any, k: int, n: Any, front: int, at: int) -> Any:
    """Reshape [front, k, n, ...] to [front, k*n, ...] for packed rows; or back."""
    merging = x.type.shape[at : at + 1] != op.shape[at : at + 1] and run.ragged_axes(op.shape)[0][1] is not n
    whole = run.ragged_axes(op.shape if merging else x.type.shape)[0][1]
    each, size = whole // (k * n), prod(x.type.shape) // (front * whole)
    with inside(run):
        if merging:
            x = permute(reshape(x, (front, k, n, each, size)), (0, 2, 1, 3, 4))
            x = interchanged(run, reshape(x, (front, n * k, each, size)), 1, k)
            return reshape(x, op.shape)
        x = interchanged(run, reshape(x, (front, n * k, each, size)), 1, k, back=True)
        return reshape(permute(reshape(x, (front, n, k, each, size)), (0, 2, 1, 3, 4)), op.shape)


@RAGGED.rule(DotGeneral)
def dot(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, y: Any) -> Any:
    """Contraction: packed rows with an operand that all lanes share; else padded lanes, with zeros where it sums."""
    inner, _ = op.dimension_numbers
    pair = (x, y)
    if all([_free(run, v, inner[i]) for i, v in enumerate(pair)]) and _same_rows(run, op, pair):
        mark = at_rest(run.ragged_axes(types[0].shape))
        return run.box(mark, run.guarded([perform(op, *[run.split(v)[1][0] for v in pair])], mark))
    padded = [run.filled(v, dict.fromkeys(inner[i], 0)) if v.run is run else v for i, v in enumerate(pair)]
    return run.by_bucket(op, types, padded, zeros=())


def _free(run: RaggedBatch, x: Any, inner: Sequence[int]) -> bool:
    """Whether an operand is shared, or packed rows along an axis that is not contracted."""
    return x.run is not run or (type(x.dim) is RowsMark and x.dim.axis not in inner)


def _same_rows(run: RaggedBatch, op: Any, operands: Sequence[Any]) -> bool:
    """Whether each row of one operand is combined with all of the other, which is shared, or with the same row of it.
    """
    shared = any([x.run is not run for x in operands])
    return shared or all([x.dim.axis in axes for x, axes in zip(operands, op.dimension_numbers[1])])


@RAGGED.rule(Transpose)
def beside(op: Any, run: RaggedBatch, types: ResultTypes, *operands: Any) -> Any:
    """The rule of an operation that mixes along no ragged axis of its operands."""
    results = [run.form(run.ragged_axes(t.shape), operands) for t in types]
    marks = [*results, *[x.dim for x in operands if x.run is run]]
    if all([type(mark) is RowsMark for mark in marks]):
        sized = type(op)(*with_sizes(op.fields, run.lanes.rows))
        ys = op.as_results(perform(sized, *[run.split(x)[1][0] for x in operands]))
        return op.from_results([run.box(mark, (y,)) for mark, y in zip(results, ys)])
    return run.by_bucket(op, types, operands, zeros=())


def mixing(axes_of: Callable[..., Any], part: Callable[[Any, int], Any] = lambda op, d: None) -> Callable[..., Any]:
    """Decorator of the rule of operations that mix along the axes ``axes_of(op, *operands)`` of all operands.

    The rule is used if one of these axes is ragged, or if ``part(op, d)`` contains a length of the lanes; otherwise
    ``beside`` is.
    """

    def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(rule)
        def divided(op: Any, run: RaggedBatch, types: ResultTypes, *operands: Any) -> Any:
            mixed = axes_of(op, *operands)
            touched = any([axis in mixed for x in operands for axis, _ in run.ragged_axes(x.type.shape)])
            touched = touched or any([run.lanes.owns(extents_in(part(op, d))) for d in mixed])
            return (rule if touched else beside)(op, run, types, *operands)

        return divided

    return decorate


@RAGGED.rule(Relocate)
@mixing(lambda op, *operands: (0,))
def relocated_rows(op: Any, run: RaggedBatch, types: ResultTypes, index: Any, inverse: Any, *xs: Any) -> Any:
    """Relocate with ragged indices: on packed rows, with each lane's indices offset by its start; otherwise each length
    separately.
    """
    shapes = [v.type.shape for v in (index, inverse, *xs)]
    if len(types) > 1 or len(xs) > 1 or any([[d for d, _ in run.ragged_axes(shape)] != [0] for shape in shapes]):
        return equal_lengths(op, run, types, index, inverse, *xs)
    source, result = [run.lanes.of(shape[0]) for shape in (shapes[2], shapes[0])]
    indices, inverses = _among_all(run.rows(index), result, source), _among_all(run.rows(inverse), source, result)
    y = relocate(run.rows(xs[0]), indices, inverses, op.copies)
    return (run.box(RowsMark(0, shapes[0][0]), (y if result.full else result.copied(y),)),)


def _among_all(index: Any, n: Any, other: Any) -> Any:
    """Row indices within lanes (negative: padding) as indices of packed rows; padding becomes negative."""
    start = as_type(n.repeated(other.starts), index.type)
    at = select(lt(index, full(index.type, 0)), index - start, index + start)
    return at if n.full else select(n.real, at, full(index.type, -1))
