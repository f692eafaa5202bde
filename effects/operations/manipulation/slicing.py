"""Slice, pad, reverse, concatenate and split, all at static positions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, ShapeMismatch, as_tuple, whole_number
from ...base.stack import perform
from ...core.arrays import Array, as_array, as_arrays
from ...core.columns import data_movement, linear, zeros_like
from ...core.operation import operation, shared
from ...sharding.sharding_rules import alike, equally, sliced
from ...types.array_type import array_type
from ...types.extent import Extent, as_size, fits, least, positive
from ...types.parts_of_axes import ceiling_divided, part_of
from ...types.sized import extents_in
from ..elementwise.comparison import select
from ..foundations.key_arrays import mapped_over_key_data
from ..foundations.shapes import broadcast_in_dim, canonical_axis, full, move_axis, sum_all
from ..foundations.shapes import reshape as _reshape

_BOOL = np.dtype(bool)


def insert(sizes: Sequence[Any], at: int, item: Any) -> tuple[Any, ...]:
    """The sequence with ``item`` inserted before position ``at``."""
    return (*sizes[:at], item, *sizes[at:])


def within(start: Any, limit: Any, size: Any) -> bool:
    """Whether a part of an axis lies inside the axis, as far as the sizes are known."""
    return fits(0, start) and fits(start, limit) and fits(limit, size)


def spread(size: Any, step: int) -> Any:
    """The length of axis that ``size`` elements span, if each stands ``step`` behind the one before."""
    return size + positive(size - 1) * (step - 1) if step != 1 else size


def _limit(size: Any, room: Any, stride: int) -> Any:
    """The limit of a slice by ``stride`` of ``size`` elements: ``room``, or one past the last element of a lane."""
    return room if type(size) is not Extent else (size - 1) * stride + 1


# y[i] = x[start + stride i], start + stride i < limit
@operation
class Slice:
    start: tuple[int, ...]
    limit: tuple[int, ...]
    strides: tuple[int, ...]
    param_names = {"start": "start_indices", "limit": "limit_indices"}

    def result_type(op, x):
        if not len(op.start) == len(op.limit) == len(op.strides) == len(x.shape):
            raise ShapeMismatch(
                f"slice: needs a start, limit and stride for each dimension of {x},"
                f" got {op.start}, {op.limit}, {op.strides}."
            )
        if any(not within(a, b, n) or s < 1 for a, b, s, n in zip(op.start, op.limit, op.strides, x.shape)):
            raise ShapeMismatch(
                f"slice: 0 <= start <= limit <= size and stride >= 1 must hold,"
                f" got {op.start}, {op.limit}, {op.strides} for {x}."
            )
        sizes = tuple([ceiling_divided(b - a, s) for a, b, s in zip(op.start, op.limit, op.strides)])
        return array_type(sizes, x.dtype, x.weak)

    def workload_size(op, x, *starts):
        """The number of elements taken."""
        return op.result_type(x, *starts).size

    sharding_rule = sliced

    def evaluate(op, x):
        return x[tuple(map(slice_type, op.start, op.limit, op.strides))]

    def batch(op, dims, x):
        (d,) = dims
        wide = Slice(insert(op.start, d, 0), insert(op.limit, d, x.shape[d]), insert(op.strides, d, 1))
        return perform(wide, x), d

    jvp = linear

    def transpose(op, ct, x):
        config = []
        for a, s, n, m in zip(op.start, op.strides, x.shape, ct.shape):
            config.append((a, n - a - spread(m, s), s - 1))
        return pad(ct, 0, config)

    @mapped_over_key_data
    def lower(op, emit, x):
        return emit.slice(x, op.start, op.limit, op.strides, emit.made)

    flops = data_movement


def padded(x: np.ndarray[Any, Any], value: Any, config: Sequence[tuple[int, int, int]]) -> np.ndarray[Any, Any]:
    """The meaning of ``Pad``: an array of NumPy with ``value``, which may be key data, in front, behind and between."""
    sizes, source, target = places_in_padding(x.shape, config)
    y = np.empty((*sizes, *np.shape(value)), x.dtype)
    y[...] = value
    y[target] = x[source]
    return y


def places_in_padding(shape: Sequence[int], config: Sequence[tuple[int, int, int]]) -> tuple[Any, Any, Any]:
    """The sizes with padding, 0 where more is removed than there is; the slices of the elements that are not removed,
    and those of where they are then.
    """
    sizes, source, target = [], [], []
    for (low, high, interior), n in zip(config, shape):
        step = interior + 1
        size = low + high + spread(n, step)
        first = max(0, -(low // step))  # the first element that is not removed
        count = max(0, min(n - first, -(-(size - low - first * step) // step)))
        source.append(slice_type(first, first + count))
        start = low + first * step
        target.append(slice_type(start, start + count * step, step) if count else slice_type(0, 0))
        sizes.append(max(size, 0))
    return tuple(sizes), tuple(source), tuple(target)


# y[low + (1 + interior) i] = x[i], and value elsewhere; negative low and high remove elements
@operation
class Pad:
    config: tuple[tuple[int, int, int], ...]
    param_names = {"config": "padding_config"}

    def sizes(op, shape):
        return tuple([low + high + spread(n, i + 1) for (low, high, i), n in zip(op.config, shape)])

    def result_type(op, x, value):
        if value.shape:
            raise ShapeMismatch(f"pad: the padding value must be a scalar, got {value}.")
        if value.dtype != x.dtype:
            raise DTypeMismatch(f"pad: the padding value must have the operand's dtype, got {value} for {x}.")
        if len(op.config) != len(x.shape):
            raise ShapeMismatch(f"pad: needs (low, high, interior) for each dimension of {x}, got {op.config}.")
        sizes = op.sizes(x.shape)
        if any(not fits(0, size) for size in sizes) or any(i < 0 for _, _, i in op.config):
            raise BadArgument(f"pad: interior padding and result sizes must not be negative, got {op.config} for {x}.")
        return array_type(sizes, x.dtype, x.weak and value.weak)

    sharding_rule = alike

    def evaluate(op, x, value):
        return padded(x, value, op.config)

    def batch(op, dims, x, value):
        d, e = dims
        if e is None:
            return perform(Pad(insert(op.config, d, (0, 0, 0))), x, value), d
        size = value.shape[e]
        x = broadcast_in_dim(x, (size, *x.shape), tuple(range(1, x.ndim + 1))) if d is None else move_axis(x, d, 0)
        batched = Pad(((0, 0, 0), *op.config))
        if size == 0:
            return zeros_like(batched.result_type(x.type, x.type.update(shape=()))), 0
        padded = perform(batched, x, index_in_dim(value, 0, 0, keepdims=False))
        values = broadcast_in_dim(value, padded.shape, (0,))
        return select(perform(batched, *_inside(x)), padded, values), 0

    jvp = linear

    def transpose(op, ct, x, value, *, wrt):
        if wrt == 1:
            return sum_all(select(perform(op, *_inside(x)), zeros_like(ct), ct))
        cut = pad(ct, 0, [(-low, -high, 0) for low, high, _ in op.config])
        strides = [interior + 1 for _, _, interior in op.config]
        return slice(cut, (0,) * cut.ndim, [_limit(*sizes) for sizes in zip(x.shape, cut.shape, strides)], strides)

    @mapped_over_key_data
    def lower(op, emit, x, value):
        return emit.pad(x, value, op.config)

    flops = data_movement


def _inside(x: Any) -> tuple[Any, Any]:
    """Boolean operands whose pad is true at the elements that come from ``x`` and false in the padding."""
    return full(array_type(x.shape, _BOOL), True), full(array_type((), _BOOL), False)


# y = x with the order along these dimensions reversed
@operation
class Rev:
    dimensions: tuple[int, ...]

    def result_type(op, x):
        if any(not 0 <= d < len(x.shape) for d in op.dimensions) or len(set(op.dimensions)) != len(op.dimensions):
            raise BadArgument(f"rev: dimensions must be distinct ones of {x}, got {op.dimensions}.")
        return x

    sharding_rule = alike

    def evaluate(op, x):
        return np.flip(x, op.dimensions)

    def numpy_function(op, types):
        ways = [np.s_[::-1] if d in op.dimensions else np.s_[:] for d in range(len(types[0].shape))]
        return methodcaller("__getitem__", tuple(ways))

    def batch(op, dims, x):
        (d,) = dims
        return perform(shared(Rev, tuple([i + (i >= d) for i in op.dimensions])), x), d

    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    @mapped_over_key_data
    def lower(op, emit, x):
        return emit.inline("reverse", f"{x.name}, dims = {list(op.dimensions)}")

    flops = data_movement


# y = the operands one after another along a dimension
@operation
class Concatenate:
    dimension: int

    def result_type(op, *xs):
        d = op.dimension
        first = xs[0]
        if not 0 <= d < len(first.shape):
            raise BadArgument(f"concatenate: dimension {d} is out of range for {first}.")
        if any(x.dtype != first.dtype for x in xs):
            raise DTypeMismatch(
                f"concatenate: operands must have one dtype, got {', '.join(map(str, xs))}.",
                hint="hx.numpy.concatenate promotes; lax is strict: convert with lax.convert_element_type.",
            )
        rest = (*first.shape[:d], *first.shape[d + 1 :])
        if any((*x.shape[:d], *x.shape[d + 1 :]) != rest or len(x.shape) != len(first.shape) for x in xs):
            raise ShapeMismatch(
                f"concatenate: shapes must agree in all dimensions but {d}, got {', '.join(map(str, xs))}."
            )
        size = sum([x.shape[d] for x in xs])
        return array_type((*first.shape[:d], size, *first.shape[d + 1 :]), first.dtype, all([x.weak for x in xs]))

    sharding_rule = equally

    def evaluate(op, *xs):
        return np.concatenate(xs, op.dimension)

    def batch(op, dims, *xs):
        at = next(d for d in dims if d is not None)
        size = lane_count(xs, dims)
        aligned = [axis_at(x, d, at, size) for x, d in zip(xs, dims)]
        return perform(Concatenate(op.dimension + (at <= op.dimension)), *aligned), at

    jvp = linear

    def transpose(op, ct, *xs, wrt):
        d = op.dimension
        start = sum([x.shape[d] for x in xs[:wrt]])
        return slice_in_dim(ct, start, start + xs[wrt].shape[d], axis=d)

    @mapped_over_key_data
    def lower(op, emit, *xs):
        return emit.inline("concatenate", f"{', '.join([x.name for x in xs])}, dim = {op.dimension}", *xs)

    flops = data_movement


# y_k = x[.., sizes_0 + .. + sizes_{k-1} + i, ..], i < sizes_k
@operation
class Split:
    sizes: tuple[int, ...]
    axis: int
    multiple_results = True

    def result_type(op, x):
        if not 0 <= op.axis < len(x.shape):
            raise BadArgument(f"split: axis {op.axis} is out of range for {x}.")
        if sum(op.sizes) != x.shape[op.axis] or any(size < 0 for size in op.sizes):
            total = x.shape[op.axis]
            raise ShapeMismatch(f"split: sizes must add up to {total}, dimension {op.axis} of {x}, got {op.sizes}.")
        head, tail = x.shape[: op.axis], x.shape[op.axis + 1 :]
        return tuple([array_type((*head, size, *tail), x.dtype, x.weak) for size in op.sizes])

    sharding_rule = alike

    def evaluate(op, x):
        return tuple(np.split(x, np.cumsum(op.sizes)[:-1], op.axis)) if op.sizes else ()

    def batch(op, dims, x):
        (d,) = dims
        return perform(Split(op.sizes, op.axis + (d <= op.axis)), x), d

    jvp = linear

    def transpose(op, cts, x):
        known = next(ct for ct in cts if ct is not None)
        parts = [
            full(known.type.update(shape=(*x.shape[: op.axis], size, *x.shape[op.axis + 1 :])), 0) if ct is None else ct
            for ct, size in zip(cts, op.sizes)
        ]
        return concatenate(parts, op.axis)

    @mapped_over_key_data
    def lower(op, emit, x):
        results, start = [], 0
        for result, size in zip(emit.made, op.sizes):
            starts = [start if d == op.axis else 0 for d in range(len(x.type.shape))]
            limits = [start + size if d == op.axis else n for d, n in enumerate(x.type.shape)]
            results.append(emit.slice(x, starts, limits, [1] * len(starts), result))
            start += size
        return results

    flops = data_movement


def lane_count(xs: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The number of lanes, from the operands of a batch rule, of which one at least is mapped."""
    return next(x.shape[d] for x, d in zip(xs, dims) if d is not None)


def axis_at(x: Any, dim: int | None, at: int, size: int) -> Any:
    """An operand of a batch rule with lanes along dimension ``at``, repeated if it is not mapped."""
    if dim is not None:
        return move_axis(x, dim, at)
    shape = insert(x.shape, at, size)
    return broadcast_in_dim(x, shape, tuple([d for d in range(len(shape)) if d != at]))


def lanes_first(xs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """All operands of a batch rule with lanes along their first dimension."""
    size = lane_count(xs, dims)
    return [axis_at(x, d, 0, size) for x, d in zip(xs, dims)]


slice_type = slice  # Python's; from here on ``slice`` is the function of lax


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """``y[i] = operand[start_indices + strides * i]`` up to ``limit_indices``, in every dimension.

    Shapes: ``a[n] -> a[ceil((limit - start) / stride)]``.
    Raises: BadArgument: a start or limit lies outside the operand.

    >>> slice(np.arange(10), (1,), (8,), (3,))
    Array([1, 4, 7], dtype=int64)
    """
    x = as_array(operand)
    strides = (1,) * len(start_indices) if strides is None else strides
    parts = (start_indices, limit_indices, strides)
    op = Slice(*[tuple([as_size(i, "slice: an index") for i in part]) for part in parts])
    if op.limit == x.type.shape and not any(op.start) and all([s == 1 for s in op.strides]) and len(op.start) == x.ndim:
        return x
    return perform(op, x)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """``operand[start_index:limit_index:stride]`` along one axis; negative indices count from its end.

    >>> slice_in_dim(np.arange(10), -4, None)
    Array([6, 7, 8, 9], dtype=int64)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.ndim, "slice_in_dim")
    size = x.type.shape[axis]
    start = 0 if start_index is None else as_size(start_index, "slice_in_dim: start_index")
    limit = size if limit_index is None else as_size(limit_index, "slice_in_dim: limit_index")
    starts: list[Any] = [0] * x.ndim
    limits: list[Any] = list(x.type.shape)
    strides = [1] * x.ndim
    starts[axis] = start + size if type(start) is int and start < 0 else start
    limits[axis] = limit + size if type(limit) is int and limit < 0 else limit
    if type(limits[axis] - starts[axis]) is Extent:
        starts[axis], limits[axis] = part_of(size, start, limit)
    strides[axis] = whole_number("slice_in_dim: stride", stride)
    return slice(x, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """``operand[index]`` along one axis, which stays with size 1 unless ``keepdims=False``.

    >>> index_in_dim(np.arange(6).reshape(2, 3), -1, 1, keepdims=False)
    Array([2, 5], dtype=int64)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.ndim, "index_in_dim")
    size = x.type.shape[axis]
    index = whole_number("index_in_dim: index", index)
    if not -size <= index < size:
        raise BadArgument(f"index_in_dim: index {index} is out of bounds for axis {axis} of {x.type}.")
    index = index + size if index < 0 else index
    row = slice_in_dim(x, index, index + 1, axis=axis)
    return row if keepdims else _reshape(row, (*x.type.shape[:axis], *x.type.shape[axis + 1 :]))


def concatenate(operands: Any, dimension: int) -> Array:
    """The operands one after another along ``dimension``; all other sizes and the dtype are equal.

    Shapes: ``a[n, *s], a[m, *s] -> a[n + m, *s]`` for ``dimension=0``.

    >>> concatenate([np.zeros(2), np.ones(1)], 0)
    Array([0., 0., 1.], dtype=float64)
    """
    xs = as_arrays(*as_tuple(operands, "concatenate", "the operands"))
    if not xs:
        raise BadArgument("concatenate: needs at least one operand, got none.")
    dimension = canonical_axis(dimension, xs[0].ndim, "concatenate", of_list=True)
    return xs[0] if len(xs) == 1 else perform(Concatenate(dimension), *xs)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """``operand`` with ``padding_value`` around and between: ``(low, high, interior)`` elements in each dimension.

    Negative ``low`` and ``high`` remove elements.

    >>> pad(np.arange(3), 9, [(1, 0, 1)])
    Array([9, 0, 9, 1, 9, 2], dtype=int64)
    """
    x, value = as_arrays(operand, padding_value)
    config = tuple([_padding(item) for item in as_tuple(padding_config, "pad", "padding_config")])
    if any([extents_in((n,)) and min(least(low), least(high)) < 0 for n, (low, high, _) in zip(x.type.shape, config)]):
        return _cut(x, value, config)
    if len(config) == x.ndim and all([item == (0, 0, 0) for item in config]) and value.type == x.type.update(shape=()):
        return x
    return perform(Pad(config), x, value)


def _cut(x: Any, value: Any, config: Any) -> Any:
    """``pad`` with negative sizes of lanes, which may have fewer elements than are removed: padded first, then cut."""
    y = pad(x, value, [(positive(low), positive(high), interior) for low, high, interior in config])
    for d, (low, high, _) in enumerate(config):
        y = slice_in_dim(y, positive(-low), min(high, 0) or None, axis=d)
    return y


def _padding(item: Any) -> Any:
    """An entry (low, high, interior) of a padding configuration as Python integers."""
    try:
        return tuple([as_size(part) for part in item])
    except (AttributeError, TypeError):
        raise BadArgument(f"pad: padding_config has (low, high, interior) for each dimension, got {item!r}.") from None


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """``operand`` with the order of elements along ``dimensions`` reversed.

    >>> rev(np.arange(3), (0,))
    Array([2, 1, 0], dtype=int64)
    """
    x = as_array(operand)
    axes = [canonical_axis(d, x.ndim, "rev") for d in as_tuple(dimensions, "rev", "the dimensions")]
    return perform(shared(Rev, tuple(axes)), x) if axes else x


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """The pieces of ``operand`` along ``axis``, of these sizes: ``concatenate(split(x, sizes), 0) == x``.

    >>> [part.shape for part in split(np.zeros(5), (2, 3))]
    [(2,), (3,)]
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.ndim, "split")
    return list(perform(Split(tuple([as_size(size, "split: a size") for size in sizes]), axis), x))
