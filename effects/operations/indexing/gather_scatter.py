"""Gather and scatter: windows of an array, read and written at indices that are operands.

    gather            y[o, w] = x[i[o] + w]
    scatter           y = x, y[i[o] + w] = u[o, w], for o in order
    scatter_add, ...  y = x, y[i[o] + w] += u[o, w], and so on: the adjoint of gather
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import Array, as_array, scalar
from ...core.columns import data_movement, linear_in, zeros_like
from ...core.operation import Operation, operation, shared
from ...sharding.sharding_rules import ShardingRule, numbered
from ...types import dtypes
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import ANY, FOUR_BITS, NUMERIC, ORDERED
from ...types.extent import fits
from ...types.sized import smaller
from ..elementwise.arithmetic import add, div, like, neg, sub
from ..elementwise.comparison import eq, max, min, select
from ..foundations.half_precision import in_bytes
from ..foundations.key_arrays import mapped_over_key_data
from ..foundations.shapes import broadcast_in_dim, canonical_shape, full, move_axis, need_dtype, reshape
from ..manipulation.creation import iota
from ..manipulation.slicing import axis_at, insert, lane_count
from .gather_windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_dimension_numbers,
    evaluate_gather,
    evaluate_scatter,
    gathered_shape,
    gathering,
    outer_dims,
    scattering,
    window_dims,
    window_sizes,
)

CLIP, FILL = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP


def shifted(dims: Sequence[int], at: int) -> tuple[int, ...]:
    """``dims`` renumbered after a new dimension is inserted at position ``at``."""
    return tuple([d + (d >= at) for d in dims])


def with_window_dim(numbers: Any, rank: int, d: int, last: int) -> tuple[Any, int]:
    """The dimension numbers where windows have the operand's new dimension ``d`` too, and its position in them.

    ``rank``: the operand's with it. ``last``: the position if it comes behind all other dimensions of windows.
    """
    inner = numbers[0]
    before = sum([w < d for w in window_dims(numbers, rank - 1)])
    at = inner[before] if before < len(inner) else last
    others = [shifted(part, d) for part in numbers[1:4]]
    return type(numbers)(insert(shifted(inner, at), before, at), *others, numbers[4]), at


def with_batch_pair(numbers: Any, d: int) -> Any:
    """The dimension numbers where the operand's new dimension ``d`` and a new first one of the indices are a batch."""
    inner, dropped, index_map, operand_batch, indices_batch = numbers
    pairs = sorted([(d, 0), *zip(shifted(operand_batch, d), shifted(indices_batch, 0))])
    return type(numbers)(shifted(inner, 0), shifted(dropped, d), shifted(index_map, d), *map(tuple, zip(*pairs)))


def gather_sharding(op: Any, x: ArrayType, i: ArrayType, y: ArrayType) -> ShardingRule:
    """Windows are whole dimensions or lie in whole ones, and indices along which nothing is paired are whole."""
    numbers = op.dimension_numbers
    pairs = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims))
    operand = [("i", pairs[d]) if d in pairs else d for d in numbered(x)]
    indices = [("i", d) for d in numbered(i)]
    windows = iter([d for d in numbered(x) if d not in numbers.collapsed_slice_dims and d not in pairs])
    outer = iter(indices)
    result = [next(windows) if d in numbers.offset_dims else next(outer) for d in numbered(y)]
    whole = {d for d in numbered(x) if d not in pairs and (op.slice_sizes[d] != x.shape[d])}
    return ShardingRule([operand, indices], [result], whole | {*numbers.collapsed_slice_dims, indices[-1]})


def scatter_sharding(op: Any, x: ArrayType, i: ArrayType, u: ArrayType) -> ShardingRule:
    """Windows are cut as the operand where they are whole dimensions; all else is whole."""
    numbers = op.dimension_numbers
    pairs = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims))
    operand = [("i", pairs[d]) if d in pairs else d for d in numbered(x)]
    indices = [("i", d) for d in numbered(i)]
    windows = iter([d for d in numbered(x) if d not in numbers.inserted_window_dims and d not in pairs])
    outer = iter(indices)
    updates = [next(windows) if d in numbers.update_window_dims else next(outer) for d in numbered(u)]
    parts = {factor for factor, n in zip(updates, u.shape) if isinstance(factor, int) and n != x.shape[factor]}
    whole = {factor for factor in indices if factor not in operand} | parts | {*numbers.inserted_window_dims}
    equal = [factor for factor in updates if isinstance(factor, int)]
    return ShardingRule([operand, indices, updates], [operand], whole, equal)


# y[o, w] = x[i[o] + w]: o runs over the index vectors, w over a window of size window
@operation
class Gather:
    dimension_numbers: GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    unique_indices: bool = False
    indices_are_sorted: bool = False
    mode: GatherScatterMode = GatherScatterMode.PROMISE_IN_BOUNDS
    fill_value: bool | int | float | complex | None = None

    def result_type(op, x, i):
        dims = op.dimension_numbers
        check_dimension_numbers("gather", dims, x, i, op.slice_sizes)
        rank = len(i.shape) - 1 + len(dims.offset_dims)
        if any(not 0 <= d < rank for d in dims.offset_dims):
            raise ShapeMismatch(f"gather: {dims.offset_dims} must be dimensions of a result of rank {rank}.")
        return array_type(gathered_shape(dims, i.shape, op.slice_sizes), x.dtype, x.weak)

    def sharding_rule(op, operands, results):
        return gather_sharding(op, *operands, *results)

    def workload_size(op, x, *starts):
        """The number of elements taken."""
        return op.result_type(x, *starts).size

    def evaluate(op, x, i):
        return evaluate_gather(op.dimension_numbers, x, i, op.slice_sizes, op.fill_value if op.mode.fills else None)

    def batch(op, dims, x, i):
        d, e = dims
        numbers, window = op.dimension_numbers, op.slice_sizes
        if e is None:  # the mapped dimension becomes one of the window
            numbers, at = with_window_dim(numbers, x.ndim, d, i.ndim - 1 + len(numbers.offset_dims))
            return perform(op.over(numbers, insert(window, d, x.shape[d])), x, i), at
        i = move_axis(i, e, 0)
        if d is None:  # several lanes may read one element, in any order
            numbers = numbers._replace(
                offset_dims=shifted(numbers.offset_dims, 0),
                start_indices_batching_dims=shifted(numbers.start_indices_batching_dims, 0),
            )
            return perform(Gather(numbers, window, False, False, op.mode, op.fill_value), x, i), 0
        window = insert(window, d, 1 if x.shape[d] else 0)
        return perform(op.over(with_batch_pair(numbers, d), window), x, i), 0

    def jvp(op, primals, tangents):
        dx = tangents[0]
        return perform(op, *primals), None if dx is None else perform(op.linear, dx, primals[1])

    def transpose(op, ct, x, i):
        flags = op.indices_are_sorted, op.unique_indices, op.mode
        return perform(shared(ScatterAdd, scattering(op.dimension_numbers), *flags), zeros_like(x), i, ct)

    @mapped_over_key_data
    def lower(op, emit, x, i):
        result = emit.made
        if prod(result.shape) == 0:
            return emit.full(0, result)
        numbers = numbers_text("gather", op.dimension_numbers, i)
        flags = {"dimension_numbers": numbers, "indices_are_sorted": _flag(op.indices_are_sorted)}
        y = emit.gather(x, i, op.slice_sizes, **flags)
        if not op.mode.fills or not op.dimension_numbers.start_index_map:
            return y
        inside = emit_inside(emit, op, x.type.shape, i)
        inside = emit.broadcast_in_dim(inside, result.shape, outer_dims(op.dimension_numbers, len(result.shape)))
        return emit.select(inside, y, emit.full(op.fill_value, result))

    def over(op, numbers, window):
        """The same operation with other dimension numbers."""
        return Gather(numbers, window, op.unique_indices, op.indices_are_sorted, op.mode, op.fill_value)

    @property
    def linear(op):
        """The operation on tangents: the fill value is constant, so its tangent is 0."""
        return replace(op, fill_value=0) if op.mode.fills else op

    flops = data_movement


def _flag(value: bool) -> str:
    return "true" if value else "false"


def numbers_text(kind: str, numbers: Any, i: Any) -> str:
    """The StableHLO attribute of the dimension numbers."""
    names = [name.replace("operand_b", "input_b") if kind == "scatter" else name for name in numbers._fields]
    # in the attribute's grammar the batching dimensions come before the index map
    parts = [f"{names[k]} = {list(numbers[k])}" for k in (0, 1, 3, 4, 2) if numbers[k]]
    return f"#stablehlo.{kind}<{', '.join([*parts, f'index_vector_dim = {len(i.type.shape) - 1}'])}>"


def _bounds(emit: Any, i: Any, last: Sequence[int]) -> Any:
    """The largest valid start for each entry of an index vector, as an array of the type of the indices."""
    largest = int(dtypes.iinfo(i.type.dtype).max)
    line = emit.sizes([smaller(bound, largest) for bound in last], i.type.dtype)
    return emit.broadcast_in_dim(line, i.type.shape, (len(i.type.shape) - 1,))


def emit_inside(emit: Any, op: Gather, shape: tuple[int, ...], i: Any) -> Any:
    """A mask of the index vectors: the window lies inside the operand."""
    last = [shape[d] - op.slice_sizes[d] for d in op.dimension_numbers.start_index_map]
    inside = emit.compare("LE", i, _bounds(emit, i, last))
    if not dtypes.is_unsigned(i.type.dtype):
        inside = emit.binary("and", emit.compare("GE", i, emit.full(0, i.type)), inside)
    return emit.reduce("and", inside, True, (len(i.type.shape) - 1,))


def batch_scatter(op: Any, dims: tuple[int | None, ...], x: Any, i: Any, u: Any) -> tuple[Any, int]:
    """The batch rule: a new window dimension, or a new pair of batch dimensions where the indices are mapped."""
    d, e, f = dims
    size = lane_count((x, i, u), dims)
    at = 0 if d is None else d
    x = axis_at(x, d, at, size)
    if e is None:
        numbers, position = with_window_dim(op.dimension_numbers, x.ndim, at, u.ndim - (f is not None))
    else:
        numbers, position = with_batch_pair(op.dimension_numbers, at), 0
        i = move_axis(i, e, 0)
    return perform(type(op)(numbers, *op.fields[1:]), x, i, axis_at(u, f, position, size)), at


def combining(f: np.ufunc | None) -> Callable[..., Any]:
    """The ``evaluate`` rule of a scatter that combines updates by ``f`` in order; None: updates replace elements."""
    return in_bytes(lambda op, x, i, u: evaluate_scatter(op.dimension_numbers, x, i, u, f, op.mode is not CLIP))


def region(f: Callable[..., Any]) -> Callable[..., Any]:
    """The ``lower`` rule of a scatter whose new element is ``f(element, update)``."""

    @mapped_over_key_data
    def lower(op: Any, emit: Any, x: Any, i: Any, u: Any) -> Any:
        result = emit.made
        numbers = op.dimension_numbers
        if not result.shape:  # XLA treats several updates of a scalar as one, so the operand is reshaped to (1,)
            x, i = emit.reshape(x, (1,)), emit.full(0, i.type.update(shape=(*i.type.shape[:-1], 1)))
            numbers = ScatterDimensionNumbers((), (0,), (0,))
        elif op.mode is CLIP and numbers.scatter_dims_to_operand_dims:
            window = window_sizes(numbers, x.type.shape, u.type.shape)
            last = [x.type.shape[d] - window[d] for d in numbers.scatter_dims_to_operand_dims]
            clipped = f"{emit.full(0, i.type).name}, {i.name}, {_bounds(emit, i, last).name}"
            i = emit.inline("clamp", clipped, type=i.type)
        element = x.type.update(shape=())
        attributes = (
            f"indices_are_sorted = {_flag(op.indices_are_sorted)}, scatter_dimension_numbers = "
            f"{numbers_text('scatter', numbers, i)}, unique_indices = {_flag(op.unique_indices)}"
        )
        body = emit.region([element, element], lambda a, b: emit.decompose(lambda a, b: [f(a, b)], a, b))
        return emit.reshape(emit.op("scatter", x, i, u, attributes=attributes, regions=body, type=x.type), result.shape)

    return lower


def windows_of(op: Any, x: Any, i: Any, u: Any, dropped: int = 0) -> Any:
    """The elements of ``x`` to which the updates belong; ``dropped`` for updates that are dropped."""
    numbers, window = gathering(op.dimension_numbers), window_sizes(op.dimension_numbers, x.shape, u.shape)
    return perform(Gather(numbers, window, op.unique_indices, op.indices_are_sorted, op.mode, dropped), x, i)


def added(op: Any) -> Any:
    """The ``scatter_add`` of updates with the same fields as ``op``."""
    return ScatterAdd(*op.fields)


class ScatterFamily(Operation):
    """Windows of the first operand, at indices, the second, are combined with updates, the third."""

    __slots__ = ()
    dimension_numbers: ScatterDimensionNumbers
    batch = batch_scatter

    def result_type(op: Any, x: ArrayType, i: ArrayType, u: ArrayType) -> ArrayType:
        dims = op.dimension_numbers
        need_dtype(op, x)
        if u.dtype != x.dtype:
            raise DTypeMismatch(f"{op.name}: updates must have the operand's dtype, got {u} for {x}.")
        if any(not 0 <= d < len(u.shape) for d in dims.update_window_dims):
            raise ShapeMismatch(f"{op.name}: window dimensions {dims.update_window_dims} are out of range for {u}.")
        if len(dims.update_window_dims) != len(window_dims(dims, len(x.shape))):
            raise ShapeMismatch(f"{op.name}: a window of {x} has other dimensions than named, got {dims}.")
        check_dimension_numbers(op.name, dims, x, i, window_sizes(dims, x.shape, u.shape))
        outer = tuple([u.shape[d] for d in outer_dims(dims, len(u.shape))])
        if outer != i.shape[:-1]:
            raise ShapeMismatch(f"{op.name}: updates need a window for each index vector, got {u} for indices {i}.")
        return array_type(x.shape, x.dtype, x.weak)

    def sharding_rule(op, operands, results):
        return scatter_sharding(op, *operands)


# y = x, then y[i[o] + w] = u[o, w] for o in order
@operation
class Scatter(ScatterFamily):
    dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: GatherScatterMode = FILL
    fixed_params = {"update_jaxpr": None, "update_consts": ()}

    evaluate = combining(None)

    def jvp(op, primals, tangents):
        x, i, u = primals
        dx, _, du = tangents
        if dx is None and du is None:
            return perform(op, x, i, u), None
        dx, du = zeros_like(x) if dx is None else dx, zeros_like(u) if du is None else du
        if op.unique_indices:
            return perform(op, x, i, u), perform(op, dx, i, du)
        # the device chooses which of several updates of an element wins: value and derivative must use the same
        unwritten, winning = _winners(op, x.type, i, u.type)
        old, new = (lambda a: select(unwritten, a, like(a, 0))), (lambda a: select(winning, a, like(a, 0)))
        into = added(op)
        return perform(into, old(x), i, new(u)), perform(into, old(dx), i, new(du))

    def transpose(op, ct, x, i, u, *, wrt):
        if wrt == 0:
            return perform(op, ct, i, zeros_like(u))
        part = windows_of(op, ct, i, u)
        return part if op.unique_indices else select(_winners(op, x, i, u)[1], part, like(part, 0))

    lower = region(lambda a, b: b)


def _winners(op: Scatter, x: Any, i: Any, u: Any) -> tuple[Any, Any]:
    """Two masks: the elements of the operand without an update, and the updates that win their element."""
    outer = outer_dims(op.dimension_numbers, len(u.shape))
    count = prod([u.shape[d] for d in outer])
    number = np.dtype(np.int32 if fits(count, 2**31 - 2) else np.int64)
    line = add(reshape(iota(number, count), tuple([u.shape[d] for d in outer])), scalar(1, number))
    numbers = broadcast_in_dim(line, u.shape, outer)
    last = perform(op, full(array_type(x.shape, number), 0), i, numbers)
    return eq(last, scalar(0, number)), eq(windows_of(op, last, i, numbers), numbers)


# y = x, then y[i[o] + w] += u[o, w] for o in order
@operation
class ScatterAdd(Scatter):
    primitive_name = "scatter-add"
    dtypes = ANY | FOUR_BITS

    evaluate = combining(np.add)
    jvp = linear_in(0, 2)

    def transpose(op, ct, x, i, u, *, wrt):
        return ct if wrt == 0 else windows_of(op, ct, i, u)

    lower = region(add)


# y = x, then y[i[o] + w] -= u[o, w] for o in order
@operation
class ScatterSub(Scatter):
    primitive_name = "scatter-sub"
    dtypes = NUMERIC | FOUR_BITS

    evaluate = combining(np.subtract)
    jvp = linear_in(0, 2)

    def transpose(op, ct, x, i, u, *, wrt):
        return ct if wrt == 0 else neg(windows_of(op, ct, i, u))

    lower = region(sub)


def _extreme_jvp(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The jvp rule of scatter_min and scatter_max: the mean over the elements and updates equal to the result."""
    x, i, u = primals
    dx, _, du = tangents
    y = perform(op, x, i, u)
    if dx is None and du is None:
        return y, None
    into = added(op)
    from_x, from_u = eq(x, y), eq(u, windows_of(op, y, i, u))
    old, new = (lambda a: select(from_x, a, like(a, 0))), (lambda a: select(from_u, a, like(a, 0)))
    count = perform(into, old(full(x.type, 1)), i, new(full(u.type, 1)))
    total = perform(into, zeros_like(x) if dx is None else old(dx), i, zeros_like(u) if du is None else new(du))
    return y, div(total, count)


# y = x, then y[i[o] + w] = min(y[i[o] + w], u[o, w]) for o in order
@operation
class ScatterMin(Scatter):
    primitive_name = "scatter-min"
    dtypes = ORDERED | FOUR_BITS
    exempt = {"transpose": "it is not linear"}

    evaluate = combining(np.minimum)
    jvp = _extreme_jvp
    transpose = None  # type: ignore[assignment]
    lower = region(min)


# y = x, then y[i[o] + w] = max(y[i[o] + w], u[o, w]) for o in order
@operation
class ScatterMax(Scatter):
    primitive_name = "scatter-max"
    dtypes = ORDERED | FOUR_BITS
    exempt = {"transpose": "it is not linear"}

    evaluate = combining(np.maximum)
    jvp = _extreme_jvp
    transpose = None  # type: ignore[assignment]
    lower = region(max)


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Array:
    """Windows of ``operand``: ``y[o, w] = operand[start_indices[o] + w]``; ``dimension_numbers`` names the dimensions.

    Args:
        start_indices: integers; the last dimension is that of index vectors.
        slice_sizes: the window's size in every dimension of ``operand``.
        unique_indices: a promise that no element is read twice, which makes the adjoint cheaper.
        mode: ``clip``, ``fill``, ``promise_in_bounds`` (the default) or ``one_hot``; see ``GatherScatterMode``.
        fill_value: the value of mode ``fill``; NaN, the least signed, the largest unsigned number, or True by default.
    Raises: ShapeMismatch, BadArgument, DTypeMismatch: dimension numbers, shapes and dtypes do not agree.
    Source: StableHLO specification, gather.

    >>> rows = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> gather(np.arange(6).reshape(3, 2), np.array([[2], [0]]), rows, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int64)
    """
    x, i = as_array(operand), as_array(start_indices)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if mode is GatherScatterMode.ONE_HOT:
        mode, fill_value = FILL, 0
    elif mode is not FILL:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill(x.type.dtype)
    else:
        fill_value = np.asarray(fill_value).item()
    numbers = GatherDimensionNumbers(*map(tuple, dimension_numbers))
    window = canonical_shape(slice_sizes, "gather")
    return perform(Gather(numbers, window, bool(unique_indices), bool(indices_are_sorted), mode, fill_value), x, i)


def default_fill(dtype: Any) -> Any:
    """The default fill value: NaN, the least signed integer, the largest unsigned one, or True."""
    if dtypes.is_extended(dtype):
        dtype = dtype.base
    if dtypes.is_inexact(dtype):
        return float("nan")
    if dtypes.is_bool(dtype):
        return True
    info = dtypes.iinfo(dtype)
    return int(info.max if dtypes.is_unsigned(dtype) else info.min)
