"""Sparse arrays rearranged without arithmetic: broadcast, concatenated, reshaped, reversed, sliced, gathered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.base.errors import BadArgument, BadAxis, NotSparse, ShapeMismatch, whole_number, whole_numbers
from ...interpreters.transformations.vmap import vmap
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout, stored_mask, with_nse
from .stored_entries import columns_of, in_range, masked, repeated_batch, size_vector

__all__ = [
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dynamic_slice", "bcoo_gather", "bcoo_reshape", "bcoo_rev",
    "bcoo_slice", "bcoo_squeeze",
]


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """``lax.broadcast_in_dim``: new dimensions before the sparse ones are batch dimensions, and no entry is repeated.

    Args:
        sharding: ignored.

    Raises: ShapeMismatch: ``mat`` does not broadcast to the shape. NotSparse: kinds of dimensions are mixed.
    """
    shape = whole_numbers("bcoo_broadcast_in_dim: a size", shape)
    dims = whole_numbers("bcoo_broadcast_in_dim: a dimension", broadcast_dimensions)
    if len(dims) != mat.ndim or any([m not in (1, shape[d]) for m, d in zip(mat.shape, dims)]):
        raise ShapeMismatch(f"bcoo_broadcast_in_dim: {mat} does not broadcast to {shape} by dimensions {dims}.")
    n, m = mat.n_batch, mat.n_sparse
    batch, sparse, dense = dims[:n], dims[n : n + m], dims[n + m :]
    n_batch = min(dims[n:], default=len(shape))
    n_dense = len(shape) - min(dense) if dense else 0
    n_sparse = len(shape) - n_batch - n_dense
    sizes = shape[n_batch : n_batch + n_sparse]
    if max(batch, default=-1) >= n_batch or max(sparse, default=-1) >= n_batch + n_sparse:
        raise NotSparse(f"bcoo_broadcast_in_dim: batch, sparse and dense dimensions of {mat} are mixed by {dims}.")
    ones = lambda buffer: [k for k, d in enumerate(batch) if buffer.shape[k] == 1]
    kept = lambda buffer: [1 if k in [batch[i] for i in ones(buffer)] else shape[k] for k in range(n_batch)]
    data = lax.broadcast_in_dim(
        mat.data, (*kept(mat.data), mat.nse, *shape[n_batch + n_sparse :]),
        (*batch, n_batch, *[d + 1 - n_sparse for d in dense]),
    )
    indices = lax.broadcast_in_dim(
        mat.indices, (*kept(mat.indices), mat.nse, m), (*batch, n_batch, n_batch + 1)
    )
    lead = (*shape[:n_batch], *mat.sparse_shape)
    batched = mat.replaced(data=data, indices=indices, shape=(*lead, *shape[n_batch + n_sparse :]))
    return batched if mat.sparse_shape == sizes else _repeated_entries(batched, shape, [d - n_batch for d in sparse])


def _repeated_entries(mat: BCOO, shape: Sequence[int], places: Sequence[int]) -> BCOO:
    """The array broadcast along new sparse dimensions: each entry is repeated at each of their positions.

    ``places``: for each sparse dimension of ``mat`` its position among the sparse dimensions of ``shape``.
    """
    n, m = mat.n_batch, len(shape) - mat.n_batch - mat.n_dense
    sizes = shape[n : n + m]
    own = {d: k for k, d in enumerate(places) if mat.sparse_shape[k] == sizes[d]}
    new = [1 if d in own else size for d, size in enumerate(sizes)]
    k = math.prod(new)
    grid = hnp.asarray(np.indices(new, mat.indices.dtype).reshape(m, *(1,) * (n + 1), k))
    full = (*mat.indices.shape[:-1], k)
    columns = [mat.indices[..., own[d]][..., None] if d in own else grid[d] for d in range(m)]
    indices = hnp.stack([hnp.broadcast_to(column, full) for column in columns], -1)
    indices = hnp.where(stored_mask(mat)[..., None, None], indices, size_vector(indices, sizes))
    data = hnp.broadcast_to(hnp.expand_dims(mat.data, n + 1), (*mat.data.shape[: n + 1], k, *mat.data.shape[n + 1 :]))
    flat = lambda x: x.reshape(*x.shape[:n], mat.nse * k, *x.shape[n + 2 :])
    still_sorted = mat.indices_sorted and k == 1
    return mat.replaced(data=flat(data), indices=flat(indices), shape=tuple(shape), indices_sorted=still_sorted)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """``lax.concatenate`` along a batch or a sparse dimension.

    Raises: ShapeMismatch: other dimensions differ. NotSparse: ``dimension`` is a dense one, or the layouts differ.
    """
    operands, dimension = list(operands), whole_number("bcoo_concatenate: dimension", dimension)
    if not operands or not all([isinstance(x, BCOO) for x in operands]):
        raise BadArgument(f"bcoo_concatenate: operands are BCOO arrays, got {[type(x).__name__ for x in operands]}.")
    shapes = {(*x.shape[:dimension], *x.shape[dimension + 1 :]) for x in operands}
    if len(shapes) > 1 or not 0 <= dimension < operands[0].ndim:
        raise ShapeMismatch(f"bcoo_concatenate: along dimension {dimension} shapes must agree, got {operands}.")
    operands = _with_equal_batch(operands)
    first = operands[0]
    n_batch, n_lead = first.n_batch, first.n_batch + first.n_sparse
    if len({(x.n_batch, x.n_dense) for x in operands}) > 1 or dimension >= n_lead:
        raise NotSparse(
            f"bcoo_concatenate: along dimension {dimension}, sparse or batch, of one layout, got {operands}.",
            hint="bcoo_update_layout gives arrays other numbers of batch and dense dimensions.",
        )
    if dimension < n_batch:
        nse = max([x.nse for x in operands])
        operands = [with_nse(x, nse) for x in operands]
    datas, places = [_with_common_batch(operands, name, dimension) for name in ("data", "indices")]
    *starts, total = np.cumsum([0, *[x.shape[dimension] for x in operands]]).tolist()
    if dimension >= n_batch:
        masks = [stored_mask(x.replaced(indices=indices)) for x, indices in zip(operands, places)]
        column, rows = dimension - n_batch, zip(places, masks, starts)
        places = [_shifted(indices, keep, column, start, total) for indices, keep, start in rows]
    data, indices = [hnp.concatenate(buffers, min(dimension, n_batch)) for buffers in (datas, places)]
    return BCOO((data, indices), shape=(*first.shape[:dimension], total, *first.shape[dimension + 1 :]))


def _with_equal_batch(operands: list[BCOO]) -> list[BCOO]:
    """The arrays with equal numbers of batch dimensions; batch dimensions of size 1 may be made sparse."""
    if {x.n_batch for x in operands} == {0, 1}:
        for n in (1, 0):
            if all([x.shape[0] == 1 for x in operands if x.n_batch != n]):
                return [bcoo_update_layout(x, n_batch=n) for x in operands]
    return operands


def _with_common_batch(operands: Sequence[BCOO], name: str, dimension: int) -> list[Any]:
    """The buffers ``name`` of the arrays, a batch dimension broadcast to its full size if some buffer has that size.

    The batch dimension ``dimension``, along which the buffers are to be concatenated, always gets its full size.
    """
    buffers = [getattr(x, name) for x in operands]
    sizes = enumerate(zip(*[buffer.shape[: x.n_batch] for x, buffer in zip(operands, buffers)]))
    full = [d for d, lengths in sizes if d == dimension or max(lengths) > 1]
    batch = lambda x: tuple([x.shape[d] if d in full else 1 for d in range(x.n_batch)])
    return [repeated_batch(buffer, batch(x)) for x, buffer in zip(operands, buffers)]


def _shifted(indices: Any, keep: Any, column: int, start: int, total: int) -> Any:
    """Indices with ``start`` added to one column; padding gets the index ``total`` there."""
    columns = [indices[..., k] for k in range(indices.shape[-1])]
    columns[column] = hnp.where(keep, columns[column] + start, total).astype(indices.dtype)
    return hnp.stack(columns, -1)


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """``lax.reshape``, where batch, sparse and dense dimensions are each reshaped among themselves.

    Args:
        dimensions: a permutation that is applied first.
        sharding: ignored.

    Raises: NotSparse: the new shape mixes kinds of dimensions. ShapeMismatch: the number of elements would change.
    """
    shape = whole_numbers("bcoo_reshape: a size", new_sizes)
    if math.prod(shape) != mat.size:
        raise ShapeMismatch(f"bcoo_reshape: the number of elements must stay, got {mat} and {shape}.")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    n, m = mat.n_batch, mat.n_sparse
    groups = _groups(shape, math.prod(mat.shape[:n]), math.prod(mat.sparse_shape), math.prod(mat.shape[n + m :]))
    if groups is None:
        raise NotSparse(
            f"bcoo_reshape: {shape} mixes batch, sparse and dense dimensions of {mat}.",
            hint="x.update_layout(n_batch=0, n_dense=0) makes all of them sparse.",
        )
    n_batch, n_lead = groups
    data, indices = repeated_batch(mat.data, mat.shape[:n]), repeated_batch(mat.indices, mat.shape[:n])
    keep = stored_mask(mat.replaced(indices=indices)).reshape(*shape[:n_batch], mat.nse)
    data = data.reshape(*shape[:n_batch], mat.nse, *shape[n_lead:])
    indices = indices.reshape(*shape[:n_batch], mat.nse, m)
    new = shape[n_batch:n_lead]
    if new != mat.sparse_shape:
        indices, data = _renumbered(indices, keep, mat.sparse_shape, new), masked(data, keep)
    unique = mat.unique_indices and (bool(new) or not m)  # without sparse dimensions padding has a coordinate
    return BCOO((data, indices), shape=shape, indices_sorted=mat.indices_sorted, unique_indices=unique)


def _groups(shape: Sequence[int], batch: int, sparse: int, dense: int) -> tuple[int, int] | None:
    """The last positions where ``shape`` is divided into groups with these products, or None."""
    ends = range(len(shape) + 1)
    products = lambda i, j: (math.prod(shape[:i]), math.prod(shape[i:j]), math.prod(shape[j:]))
    return max([(i, j) for i in ends for j in ends[i:] if products(i, j) == (batch, sparse, dense)], default=None)


def _renumbered(indices: Any, keep: Any, old: Sequence[int], new: Sequence[int]) -> Any:
    """The coordinates, in the shape ``new``, of the elements at ``indices`` in the shape ``old``; ``~keep`` is padding.
    """
    wide = np.dtype("int64" if math.prod(old) > np.iinfo(np.int32).max else "int32")
    number = hnp.zeros(indices.shape[:-1], wide)
    for k, size in enumerate(old):
        number = number * size + hnp.where(keep, indices[..., k], 0).astype(wide)
    columns: list[Any] = []
    for size in new[::-1]:
        columns.insert(0, number % max(size, 1))
        number = number // max(size, 1)
    if not columns:
        return hnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    coordinates = hnp.stack(columns, -1).astype(indices.dtype)
    return hnp.where(keep[..., None], coordinates, size_vector(coordinates, new))


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """``lax.rev``: the array with ``dimensions`` reversed."""
    dims = whole_numbers("bcoo_rev: a dimension", dimensions)
    n, n_lead = operand.n_batch, operand.n_batch + operand.n_sparse
    if len(set(dims)) != len(dims) or any([not 0 <= d < operand.ndim for d in dims]):
        raise BadAxis(f"bcoo_rev: dimensions are distinct ones of {operand.ndim}, got {tuple(dims)}.")
    batch = [d for d in dims if d < n]
    data = lax.rev(operand.data, (*batch, *[d - operand.n_sparse + 1 for d in dims if d >= n_lead]))
    indices = lax.rev(operand.indices, tuple(batch))
    sparse = [d - n for d in dims if n <= d < n_lead]
    if sparse:
        keep, size = stored_mask(operand.replaced(indices=indices)), size_vector(indices, operand.sparse_shape)
        mirrored = np.isin(np.arange(operand.n_sparse), sparse)
        indices = hnp.where(keep[..., None], hnp.where(mirrored, size - 1 - indices, indices), size)
    sorted_still = operand.indices_sorted and not sparse
    return operand.replaced(data=data, indices=indices, indices_sorted=sorted_still)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """``lax.squeeze``: the array without ``dimensions``, whose sizes must be 1."""
    dims = {d % max(arr.ndim, 1) for d in whole_numbers("bcoo_squeeze: a dimension", dimensions)}
    if any([arr.shape[d] != 1 for d in dims]):
        raise ShapeMismatch(f"bcoo_squeeze: dimensions must have size 1, got {tuple(dimensions)} of {arr}.")
    n, n_lead = arr.n_batch, arr.n_batch + arr.n_sparse
    batch = tuple([d for d in dims if d < n])
    kept = [k for k in range(arr.n_sparse) if k + n not in dims]
    data, indices = arr.data, arr.indices
    if len(kept) < arr.n_sparse:  # entries may be padding because of an index that is dropped
        keep = stored_mask(arr)
        data = masked(data, keep)
        indices = columns_of(hnp.where(keep[..., None], indices, size_vector(indices, arr.sparse_shape)), kept)
    data = lax.squeeze(data, (*batch, *[d - arr.n_sparse + 1 for d in dims if d >= n_lead]))
    shape = tuple([size for d, size in enumerate(arr.shape) if d not in dims])
    unique = arr.unique_indices and (len(kept) == arr.n_sparse or len(kept) > 0)
    return arr.replaced(data=data, indices=lax.squeeze(indices, batch), shape=shape, unique_indices=unique)


def merged_entries(x: BCOO, y: BCOO) -> BCOO:
    """The sum of two sparse arrays of one shape, by concatenating their entries.

    Raises: ShapeMismatch: the shapes differ.
    """
    if x.shape != y.shape:
        raise ShapeMismatch(f"add: sparse arrays are added if their shapes are equal, got {x} and {y}.")
    layout = {name: min(getattr(x, name), getattr(y, name)) for name in ("n_batch", "n_dense")}
    x, y = bcoo_update_layout(x, **layout), bcoo_update_layout(y, **layout)
    batch = x.shape[: x.n_batch]
    both = lambda a, b: hnp.concatenate([repeated_batch(a, batch), repeated_batch(b, batch)], x.n_batch)
    return BCOO((both(x.data, y.data), both(x.indices, y.indices)), shape=x.shape)


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
    shifted = number.astype(indices.dtype)
    return masked(data, keep), hnp.where(keep[..., None], shifted, size_vector(shifted, lengths))


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
) -> BCOO:
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
        ])
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
