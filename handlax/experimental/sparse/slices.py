"""Slices, gathers, sums and convolutions of sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.base.errors import BadArgument, BadAxis, NotSparse, ShapeMismatch, whole_numbers
from ...interpreters.transformations.vmap import vmap
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout, stored_mask
from .layouts import bcoo_squeeze
from .stored_entries import columns_of, in_range, masked, repeated_batch, size_vector


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """``lax.slice``: entries outside of the slice become padding; at most as many entries as the slice has elements
    remain.

    Raises: ShapeMismatch: as many starts, limits and strides as dimensions are needed. BadArgument: they are out of
        range.
    """
    starts, limits = [whole_numbers("bcoo_slice: an index", x) for x in (start_indices, limit_indices)]
    steps = (1,) * mat.ndim if strides is None else whole_numbers("bcoo_slice: a stride", strides)
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ShapeMismatch(f"bcoo_slice: {mat} needs {mat.ndim} starts, limits and strides, got {starts}, {limits}.")
    if min(steps, default=1) <= 0 or any([not 0 <= i <= j <= n for i, j, n in zip(starts, limits, mat.shape)]):
        raise BadArgument(f"bcoo_slice: starts {starts}, limits {limits}, strides {steps} are out of range of {mat}.")
    n, n_lead = mat.n_batch, mat.n_batch + mat.n_sparse
    cuts = [slice(*cut) for cut in zip(starts, limits, steps)]
    shape = tuple([-((i - j) // k) for i, j, k in zip(starts, limits, steps)])
    whole = slice(None)
    own = lambda x: tuple([cut if x.shape[d] == mat.shape[d] else whole for d, cut in enumerate(cuts[:n])])
    data, indices = mat.data[(*own(mat.data), whole, *cuts[n_lead:])], mat.indices[own(mat.indices)]
    lengths = shape[n:n_lead]
    if lengths != mat.sparse_shape:
        begin, step = [np.array(x[n:n_lead], np.int64) for x in (starts, steps)]
        data, indices = _sliced(data, indices, mat.sparse_shape, lengths, hnp.asarray(begin), step)
    return _fitted(BCOO((data, indices), shape=shape), mat.nse)


def _sliced(data: Any, indices: Any, sizes: Any, lengths: Any, begin: Any, step: Any) -> tuple[Any, Any]:
    """The entries of a slice, with indices relative to its start; all others become padding with data 0."""
    wide = indices.astype(hnp.promote_types(indices.dtype, np.int32))
    step = size_vector(wide, step)
    offset = wide - begin.astype(wide.dtype).reshape(step.shape)
    number = offset // step
    keep = in_range(indices, sizes) & ((offset == number * step) & (offset >= 0)).all(-1) & in_range(number, lengths)
    data = masked(repeated_batch(data, np.broadcast_shapes(data.shape[: keep.ndim - 1], keep.shape[:-1])), keep)
    shifted = number.astype(indices.dtype)
    return data, hnp.where(keep[..., None], shifted, size_vector(shifted, lengths))


def _fitted(mat: BCOO, nse: int) -> BCOO:
    """The array with at most as many entries as its sparse dimensions have elements."""
    size = math.prod(mat.sparse_shape)
    return bcoo_sum_duplicates(mat, nse=size) if mat.n_sparse and nse > size else mat


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """``lax.dynamic_slice``: a slice of static sizes from computed starts, which are clamped.

    Raises: ShapeMismatch: as many starts and sizes as dimensions are needed. BadArgument: a size is out of range.
    """
    sizes = whole_numbers("bcoo_dynamic_slice: a size", slice_sizes)
    starts = [hnp.asarray(start) for start in start_indices]
    if not len(starts) == len(sizes) == mat.ndim or any([start.ndim for start in starts]):
        raise ShapeMismatch(f"bcoo_dynamic_slice: {mat} needs {mat.ndim} starts and sizes, got {starts} and {sizes}.")
    if any([not 0 <= size <= whole for size, whole in zip(sizes, mat.shape)]):
        raise BadArgument(f"bcoo_dynamic_slice: slice sizes {sizes} are out of range of {mat}.")
    starts = [hnp.where(i < 0, i + n, i) if n else i for i, n in zip(starts, mat.shape)]
    starts = [hnp.clip(i, 0, n - size).astype(np.int32) for i, n, size in zip(starts, mat.shape, sizes)]
    n, n_lead = mat.n_batch, mat.n_batch + mat.n_sparse

    def own(buffer: Any, dense: bool) -> Any:
        """The part of a buffer along its batch and dense dimensions."""
        cut = [(d, d) for d in range(n) if buffer.shape[d] == mat.shape[d]]
        cut += [(d - mat.n_sparse + 1, d) for d in range(n_lead, mat.ndim)] if dense else []
        for axis, d in cut:
            if sizes[d] != mat.shape[d]:
                buffer = lax.dynamic_slice_in_dim(buffer, starts[d], sizes[d], axis)
        return buffer

    data, indices = own(mat.data, True), own(mat.indices, False)
    lengths = sizes[n:n_lead]
    if lengths != mat.sparse_shape:
        begin = hnp.stack(starts[n:n_lead])
        data, indices = _sliced(data, indices, mat.sparse_shape, lengths, begin, [1] * mat.n_sparse)
    return _fitted(BCOO((data, indices), shape=sizes), mat.nse)


def bcoo_gather(
    operand: BCOO, start_indices: Any, dimension_numbers: Any, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None,
) -> BCOO:  # fmt: skip
    """``lax.gather``: slices of a sparse array, one for each vector of starts.

    Args:
        unique_indices, indices_are_sorted: ignored.
        mode: as of ``lax.gather``; slices out of bounds are clamped or, in mode ``"fill"``, are 0.

    Raises: NotSparse: with batching dimensions, or a ``fill_value`` other than 0.
    """
    mode = lax.GatherScatterMode.from_any(mode)
    filled = mode == lax.GatherScatterMode.FILL_OR_DROP
    numbers, starts = dimension_numbers, hnp.asarray(start_indices)
    if numbers.operand_batching_dims or (filled and fill_value is not None and not np.all(np.equal(fill_value, 0))):
        raise NotSparse(
            f"bcoo_gather: no batching dimensions, and no fill value but 0, got {numbers} and {fill_value}.",
            hint="sparse.todense(x) gives the dense array.",
        )
    sizes = [slice_sizes[d] if d in numbers.start_index_map else operand.shape[d] for d in range(operand.ndim)]
    whole = [d for d in range(operand.ndim) if d not in numbers.start_index_map]
    if any([slice_sizes[d] != operand.shape[d] for d in whole]):
        operand = bcoo_slice(operand, start_indices=[0] * operand.ndim, limit_indices=[
            slice_sizes[d] if d in whole else operand.shape[d] for d in range(operand.ndim)
        ])  # fmt: skip
        sizes = [slice_sizes[d] for d in range(operand.ndim)]
    bounds = np.array([operand.shape[d] - sizes[d] for d in numbers.start_index_map], np.int32)

    def part(index: Any) -> BCOO:
        inside = ((index >= 0) & (index <= bounds)).all()
        index = hnp.clip(index, 0, bounds)
        full: list[Any] = [0] * operand.ndim
        for k, d in enumerate(numbers.start_index_map):
            full[d] = index[k]
        window = bcoo_dynamic_slice(operand, full, sizes)
        window = bcoo_squeeze(window, dimensions=numbers.collapsed_slice_dims)
        return window.replaced(data=hnp.where(inside, window.data, 0).astype(window.dtype)) if filled else window

    rows = vmap(part)(starts.reshape(-1, starts.shape[-1]).astype(np.int32))
    return _with_offsets(rows, starts.shape[:-1], numbers.offset_dims)


def _with_offsets(rows: BCOO, lead: Sequence[int], offset_dims: Sequence[int]) -> BCOO:
    """The stacked slices of a gather with their dimensions permuted to ``offset_dims``."""
    data, indices = [repeated_batch(x, rows.shape[: rows.n_batch]) for x in (rows.data, rows.indices)]
    split = lambda x: x.reshape(*lead, *x.shape[1:])
    result = BCOO((split(data), split(indices)), shape=(*lead, *rows.shape[1:]))
    others = [d for d in range(result.ndim) if d not in offset_dims]
    permutation = [0] * result.ndim
    for k, d in enumerate([*others, *offset_dims]):
        permutation[d] = k
    if permutation == sorted(permutation):
        return result
    if set(permutation[: len(lead)]) != set(range(len(lead))):
        result = bcoo_update_layout(result, n_batch=0)
    return bcoo_transpose(result, permutation=permutation)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over dimensions: entries drop their indices in these, which may leave several entries per coordinate.

    Raises: BadAxis: an axis is none of the array.
    """
    axes = sorted(set(whole_numbers("bcoo_reduce_sum: an axis", axes)))
    if axes and not 0 <= axes[0] <= axes[-1] < mat.ndim:
        raise BadAxis(f"bcoo_reduce_sum: axes {tuple(axes)} are none of {mat}.")
    n, n_lead = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = mat.data, mat.indices
    kept = [k for k in range(mat.n_sparse) if k + n not in axes]
    dense, batch = [d - mat.n_sparse + 1 for d in axes if d >= n_lead], [d for d in axes if d < n]
    data = data.sum(tuple(dense), dtype=data.dtype) if dense else data
    if len(kept) < mat.n_sparse:
        keep = stored_mask(mat)
        data = masked(repeated_batch(data, np.broadcast_shapes(data.shape[:n], keep.shape[:-1])), keep)
        indices = columns_of(hnp.where(keep[..., None], indices, size_vector(indices, mat.sparse_shape)), kept)
    for d in batch:  # entries of all positions stand beside each other
        count = [mat.shape[k] if k == d else size for k, size in enumerate(data.shape)]
        data = hnp.broadcast_to(data, count)
        indices = hnp.broadcast_to(indices, [mat.shape[k] if k == d else size for k, size in enumerate(indices.shape)])
    others = [d for d in range(n) if d not in batch]
    nse = mat.nse * math.prod([mat.shape[d] for d in batch])
    beside = lambda x: x.transpose(*others, *batch, *range(n, x.ndim)).reshape(
        *[x.shape[d] for d in others], nse, *x.shape[n + 1 :]
    )
    shape = [size for d, size in enumerate(mat.shape) if d not in axes]
    return BCOO((beside(data), beside(indices)), shape=shape)


def bcoo_conv_general_dilated(
    lhs: Any, rhs: Any, *, window_strides: Sequence[int], padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None,
) -> BCOO:  # fmt: skip
    """``lax.conv_general_dilated`` in one dimension with one channel: every pair of entries makes an entry of the
    result.

    Args:
        precision, out_sharding: ignored.

    Raises: NotSparse: there are several channels, groups or dimensions, or strides or dilations other than 1.
    """
    ones = [window_strides, lhs_dilation or (1,), rhs_dilation or (1,), (feature_group_count, batch_group_count)]
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    plain = all([list(x) == sorted(x) for x in (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)])
    if lhs.ndim != 3 or {*lhs.shape[:2], *rhs.shape[:2]} != {1} or any([{*x} != {1} for x in ones]) or not plain:
        raise NotSparse(
            f"conv_general_dilated: of sparse arrays along one dimension, of one channel, got {lhs} and {rhs}.",
            hint="sparse.todense(x) gives the dense array.",
        )
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], window_strides, padding)
    ((low, high),) = padding
    x, y = _entries_of_line(lhs), _entries_of_line(rhs)
    dtype = preferred_element_type or hnp.promote_types(x.dtype, y.dtype)
    length = max(0, lhs.shape[2] + low + high - rhs.shape[2] + 1)
    position = x.indices[:, None] - y.indices[None, :] + low
    keep = (stored_mask(x)[:, None] & stored_mask(y)[None, :]) & (position[..., 0] >= 0) & (position[..., 0] < length)
    data = masked(x.data[:, None].astype(dtype) * y.data[None, :].astype(dtype), keep).reshape(1, 1, -1)
    indices = hnp.where(keep[..., None], position, length).reshape(1, 1, -1, 1)
    return BCOO((data, indices), shape=(1, 1, length))


def _entries_of_line(x: Any) -> BCOO:
    """An array of shape ``[1, 1, n]`` as a sparse vector; of a dense one all elements are entries."""
    if not isinstance(x, BCOO):
        x = hnp.asarray(x)
        line = hnp.arange(x.shape[2], dtype=np.int32)[:, None]
        return BCOO((x[0, 0], line), shape=x.shape[2:])
    x = bcoo_update_layout(x, n_batch=0, n_dense=0)
    x = bcoo_squeeze(x, dimensions=(0, 1))
    return x.replaced(indices=x.indices.astype(hnp.promote_types(x.indices.dtype, np.int32)))
