"""Slices whose start indices are operands: dynamic_slice and dynamic_update_slice.

A start index is clamped so that the slice lies inside the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, ShapeMismatch, as_tuple
from ...base.stack import perform
from ...core.arrays import Array, as_array, as_arrays, scalar
from ...core.columns import BATCH, data_movement, linear_in, zeros_like
from ...core.operation import operation, shared
from ...sharding.sharding_rules import sliced, updated
from ...types import dtypes
from ...types.array_type import ArrayType, array_type
from ...types.extent import fits
from ..elementwise.arithmetic import add
from ..elementwise.comparison import lt, select, select_n
from ..elementwise.conversion import convert
from ..foundations.key_arrays import mapped_over_key_data
from ..foundations.shapes import broadcast_in_dim, canonical_axis, canonical_shape, reshape
from ..manipulation.operand_promotion import promote
from ..manipulation.slicing import axis_at, concatenate, index_in_dim, insert
from .gather_scatter import CLIP, Gather, Scatter
from .gather_windows import GatherDimensionNumbers, ScatterDimensionNumbers


def _check_starts(name: str, x: ArrayType, starts: Sequence[ArrayType]) -> None:
    """Raise unless there is an integer scalar for each dimension of ``x``, all of one dtype."""
    if len(starts) != len(x.shape):
        raise ShapeMismatch(f"{name}: needs a start for each dimension of {x}, got {len(starts)}.")
    if any(s.shape or not dtypes.is_integer(s.dtype) or s.dtype != starts[0].dtype for s in starts):
        raise DTypeMismatch(f"{name}: starts must be integer scalars of one dtype, got {', '.join(map(str, starts))}.")


def _clamped_slices(starts: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> tuple[Any, ...]:
    """Python slices of these sizes at the clamped starts."""
    first = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, shape, sizes)]
    return tuple([slice(a, a + size) for a, size in zip(first, sizes)])


def _vectors(starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """The starts of all lanes as an array of index vectors: ``i[lane, d]``."""
    size = next(s.shape[0] for s, d in zip(starts, dims) if d is not None)
    columns = [broadcast_in_dim(s, (size, 1), () if d is None else (0,)) for s, d in zip(starts, dims)]
    return concatenate(columns, 1)


def _zero_start(starts: Sequence[Any]) -> Any:
    """The start index 0 for the mapped dimension, in the dtype of the other start indices."""
    return scalar(0, starts[0].type.dtype if starts else np.dtype(np.int32))


def _wide(emit: Any, starts: Sequence[Any]) -> list[Any]:
    """The starts in 32 bits or more: XLA's older emitter clamps in their own dtype, which may not hold the last one."""
    return [emit.convert(s, np.dtype(np.int32)) if s.type.dtype.itemsize < 4 else s for s in starts]


# y[i] = x[start + i], i < slice_sizes
@operation
class DynamicSlice:
    slice_sizes: tuple[int, ...]

    def result_type(op, x, *starts):
        _check_starts("dynamic_slice", x, starts)
        sizes = op.slice_sizes
        if len(sizes) != len(x.shape) or any(not (size >= 0 and fits(size, n)) for size, n in zip(sizes, x.shape)):
            raise ShapeMismatch(f"dynamic_slice: a slice must fit into the operand, got {sizes} for {x}.")
        return array_type(sizes, x.dtype, x.weak)

    sharding_rule = sliced

    def workload_size(op, x, *starts):
        """The number of elements taken."""
        return op.result_type(x, *starts).size

    def evaluate(op, x, *starts):
        return x[_clamped_slices(starts, x.shape, op.slice_sizes)]

    def batch(op, dims, x, *starts):
        d = dims[0]
        if any(e is not None for e in dims[1:]):
            all_dims = tuple(range(len(starts)))
            gather = Gather(GatherDimensionNumbers(all_dims, (), all_dims), op.slice_sizes, True, True, CLIP)
            return BATCH.find(Gather)(gather, (d, 0), x, _vectors(starts, dims[1:]))
        sizes = insert(op.slice_sizes, d, x.shape[d])
        return perform(shared(DynamicSlice, sizes), x, *insert(starts, d, _zero_start(starts))), d

    jvp = linear_in(0)

    def transpose(op, ct, x, *starts):
        return perform(DynamicUpdateSlice(), zeros_like(x), ct, *starts)

    @mapped_over_key_data
    def lower(op, emit, x, *starts):
        return emit.dynamic_slice(x, _wide(emit, starts), op.slice_sizes, emit.made)

    flops = data_movement


# y = x, then y[start + i] = u[i]
@operation
class DynamicUpdateSlice:
    def result_type(op, x, u, *starts):
        _check_starts("dynamic_update_slice", x, starts)
        if u.dtype != x.dtype:
            raise DTypeMismatch(f"dynamic_update_slice: the update must have the operand's dtype, got {u} for {x}.")
        if len(u.shape) != len(x.shape) or any(not fits(m, n) for m, n in zip(u.shape, x.shape)):
            raise ShapeMismatch(f"dynamic_update_slice: the update must fit into the operand, got {u} for {x}.")
        return array_type(x.shape, x.dtype, x.weak and u.weak)

    sharding_rule = updated

    def evaluate(op, x, u, *starts):
        y = np.array(x)
        y[_clamped_slices(starts, x.shape, u.shape)] = u
        return y

    def batch(op, dims, x, u, *starts):
        d, e = dims[:2]
        if any(f is not None for f in dims[2:]):
            all_dims = tuple(range(len(starts)))
            scatter = Scatter(ScatterDimensionNumbers(all_dims, (), all_dims), True, True, CLIP)
            return BATCH.find(Scatter)(scatter, (d, 0, e), x, _vectors(starts, dims[2:]), u)
        at = e if d is None else d
        size = u.shape[e] if d is None else x.shape[d]
        x, u = axis_at(x, d, at, size), axis_at(u, e, at, size)
        return perform(op, x, u, *insert(starts, at, _zero_start(starts))), at

    jvp = linear_in(0, 1)

    def transpose(op, ct, x, u, *starts, wrt):
        if wrt == 0:
            return perform(op, ct, zeros_like(u), *starts)
        return perform(shared(DynamicSlice, u.shape), ct, *starts)

    @mapped_over_key_data
    def lower(op, emit, x, u, *starts):
        values = (x, u, *_wide(emit, starts))
        return emit.inline("dynamic_update_slice", ", ".join([v.name for v in values]), *values)

    flops = data_movement

    def masked(op, mask, x, u, *starts):
        """The select is of the slice alone, not of the operand."""
        old = perform(shared(DynamicSlice, u.type.shape), x, *starts)
        return perform(op, x, select_n(mask, old, u), *starts)


def _starts(x: Any, indices: Any, negative: bool | Sequence[bool], name: str) -> list[Any]:
    """Start indices as scalars of one dtype; with ``negative``, negative ones count from the end."""
    starts = _unstacked(indices, name)
    if len(starts) != x.ndim:
        raise ShapeMismatch(f"{name}: needs a start for each dimension of {x.type}, got {len(starts)}.")
    allowed = [negative] * x.ndim if isinstance(negative, bool) else list(negative)
    scalars = []
    for index, size, allow in zip(starts, x.type.shape, allowed):
        if isinstance(index, (int, np.integer)):
            if index < 0 and not allow:
                raise BadArgument(f"{name}: start {index} is out of bounds with allow_negative_indices=False.")
            scalars.append(as_array(int(index) + size if index < 0 else int(index)))
            continue
        index = as_array(index)
        if not dtypes.is_integer(index.type.dtype):
            raise DTypeMismatch(f"{name}: starts must be integers, got {index.type}.")
        if allow and not dtypes.is_unsigned(index.type.dtype):
            index = nonnegative_index(index, size)
        scalars.append(index)
    return promote(*scalars) if scalars else []


def _unstacked(indices: Any, name: str) -> list[Any]:
    """The start indices as a list of scalars, from a sequence or an array of rank 1."""
    if not isinstance(indices, (Array, np.ndarray)):
        return list(as_tuple(indices, name, "the starts"))
    x = as_array(indices)
    if x.ndim != 1:
        raise ShapeMismatch(f"{name}: starts must be a sequence or an array of rank 1, got {x.type}.")
    return [index_in_dim(x, k, keepdims=False) for k in range(x.type.shape[0])]


def index_holding(index: Any, size: int) -> Any:
    """``index`` in its own dtype, or in a wider one if that does not hold ``size``."""
    known = isinstance(size, int)
    if size > dtypes.iinfo(index.type.dtype).max if known else index.type.dtype.itemsize < 4:
        return convert(index, np.dtype(np.int32 if not known or size < 2**31 else np.int64))
    return index


def nonnegative_index(index: Any, size: int) -> Any:
    """``index``, or ``index + size`` where it is negative."""
    index = index_holding(index, size)
    dtype = index.type.dtype
    whole = scalar(size, dtype) if isinstance(size, int) else convert(size, dtype)
    return select(lt(index, scalar(0, dtype)), add(index, whole), index)


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """``y[i] = operand[start_indices + i]``, ``i < slice_sizes``; start indices may be traced values.

    A negative start index counts from the end; then start indices are clamped so that the slice lies inside.

    Shapes: ``a[*n] -> a[*slice_sizes]``.
    Raises: ShapeMismatch: the slice does not fit into the operand.
    Source: StableHLO specification, dynamic_slice.

    >>> dynamic_slice(np.arange(5), (np.int32(4),), (2,))
    Array([3, 4], dtype=int64)
    """
    x = as_array(operand)
    starts = _starts(x, start_indices, allow_negative_indices, "dynamic_slice")
    return perform(shared(DynamicSlice, canonical_shape(slice_sizes, "dynamic_slice")), x, *starts)


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """``operand`` with ``y[start_indices + i] = update[i]``; starts as in ``dynamic_slice``.

    Source: StableHLO specification, dynamic_update_slice.

    >>> dynamic_update_slice(np.zeros(4), np.ones(2), (np.int32(1),))
    Array([0., 1., 1., 0.], dtype=float64)
    """
    x, u = as_arrays(operand, update)
    starts = _starts(x, start_indices, allow_negative_indices, "dynamic_update_slice")
    return perform(DynamicUpdateSlice(), x, u, *starts)


def _along(x: Any, index: Any, axis: int) -> list[Any]:
    """A start index for every dimension: ``index`` along ``axis``, 0 along all others."""
    return [index if d == axis else 0 for d in range(x.ndim)]


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """``dynamic_slice`` along one axis: ``operand[start_index : start_index + slice_size]``.

    >>> dynamic_slice_in_dim(np.arange(5), np.int32(1), 2)
    Array([1, 2], dtype=int64)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.ndim, "dynamic_slice_in_dim")
    sizes = insert(x.type.shape[:axis] + x.type.shape[axis + 1 :], axis, slice_size)
    return dynamic_slice(x, _along(x, start_index, axis), sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """``operand[index]`` along one axis, which stays with size 1 unless ``keepdims=False``.

    >>> dynamic_index_in_dim(np.arange(5), np.int32(-1), keepdims=False)
    Array(4, dtype=int64)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.ndim, "dynamic_index_in_dim")
    row = dynamic_slice_in_dim(x, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return row if keepdims else reshape(row, x.type.shape[:axis] + x.type.shape[axis + 1 :])


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """``operand`` with the slice at ``start_index`` along one axis replaced by ``update``.

    >>> dynamic_update_slice_in_dim(np.zeros(3), np.ones(2), np.int32(9), 0)
    Array([0., 1., 1.], dtype=float64)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.ndim, "dynamic_update_slice_in_dim")
    starts = _along(x, start_index, axis)
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """``operand`` with the row ``index`` along one axis replaced by ``update``, which may lack that axis.

    >>> dynamic_update_index_in_dim(np.zeros(3), 1.0, np.int32(1), 0)
    Array([0., 1., 0.], dtype=float64)
    """
    x, u = as_arrays(operand, update)
    axis = canonical_axis(axis, x.ndim, "dynamic_update_index_in_dim")
    if u.ndim != x.ndim:
        if u.ndim + 1 != x.ndim:
            raise ShapeMismatch(f"dynamic_update_index_in_dim: the update must be a row of {x.type}, got {u.type}.")
        u = reshape(u, insert(u.type.shape, axis, 1))
    return dynamic_update_slice_in_dim(x, u, index, axis, allow_negative_indices=allow_negative_indices)
