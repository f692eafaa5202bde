"""Stored entries as data and indices: the two linear maps, scatter and gather, of which all sparse functions are
composed.

    placed(data, indices, shape)[b, *indices[b, e]] += data[b, e]      for each batch position b and entry e
    taken(dense, indices)[b, e] == dense[b, *indices[b, e]]

``data`` has the shape ``[*batch, nse, *dense]``, ``indices`` the shape ``[*batch, nse, n_sparse]``, for an array of
shape ``[*batch, *sparse, *dense]``; a batch dimension of the buffers may have size 1, and is then broadcast. An entry
with an index outside of the shape is padding, and ignored. Both functions are linear, and each is the other's adjoint,
so that derivatives of whatever is composed of them follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.types.array_type import Shape


def coordinates(indices: Any, shape: Shape) -> Any:
    """The indices in all leading dimensions, batch dimensions included: ``[*batch, nse, n_batch + n_sparse]``."""
    n_batch = indices.ndim - 2
    if not n_batch:
        return indices
    full = (*shape[:n_batch], *indices.shape[n_batch:])
    dtype = hnp.promote_types(indices.dtype, np.int32)  # narrow indices need not reach the last position of a batch
    places = [lax.broadcasted_iota(dtype, (*full[:-1], 1), d) for d in range(n_batch)]
    return hnp.concatenate([*places, hnp.broadcast_to(indices, full).astype(dtype)], -1)


def columns_of(indices: Any, columns: Sequence[int]) -> Any:
    """The indices in these sparse dimensions."""
    columns = list(columns)
    first = columns[0] if columns else 0
    if columns != list(range(first, first + len(columns))):
        return indices[..., np.array(columns)]
    return lax.slice_in_dim(indices, first, first + len(columns), axis=indices.ndim - 1)


def repeated_batch(buffer: Any, batch: Shape) -> Any:
    """The buffer broadcast to batch dimensions of these sizes."""
    return hnp.broadcast_to(buffer, (*batch, *buffer.shape[len(batch) :]))


def placed(data: Any, indices: Any, shape: Shape) -> Any:
    """The dense array: the sum of the entries at each coordinate."""
    n_batch = indices.ndim - 2
    return scattered(repeated_batch(data, shape[:n_batch]), coordinates(indices, shape), shape, n_batch + 1)


def scattered(data: Any, where: Any, shape: Shape, n_entries: int, dims: Sequence[int] | None = None) -> Any:
    """Zeros of ``shape``, to which ``data[e]`` is added at ``where[e]`` in ``dims``, by default the first dimensions.

    ``n_entries``: the number of leading dimensions of ``data``, and of ``where``, that count entries.
    """
    dims = tuple(range(where.shape[-1]) if dims is None else dims)
    if 0 in shape:
        return hnp.zeros(shape, data.dtype)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(n_entries, data.ndim)),
        inserted_window_dims=tuple(sorted(dims)),
        scatter_dims_to_operand_dims=dims,
    )
    return lax.scatter_add(hnp.zeros(shape, data.dtype), where, data, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)


def taken(dense: Any, indices: Any) -> Any:
    """The elements of a dense array at these coordinates; 0 for padding."""
    return gathered(dense, coordinates(indices, dense.shape))


def gathered(dense: Any, where: Any, dims: Sequence[int] | None = None) -> Any:
    """``dense[where[e]]``, where ``where[e]`` is a coordinate in ``dims``, by default the first dimensions."""
    dims = tuple(range(where.shape[-1]) if dims is None else dims)
    sizes = tuple([1 if d in dims else size for d, size in enumerate(dense.shape)])
    entries = where.ndim - 1
    if 0 in dense.shape:
        rest = [size for d, size in enumerate(dense.shape) if d not in dims]
        return hnp.zeros((*where.shape[:-1], *rest), dense.dtype)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(entries, entries + dense.ndim - len(dims))),
        collapsed_slice_dims=tuple(sorted(dims)),
        start_index_map=dims,
    )
    return lax.gather(dense, where, numbers, sizes, mode=lax.GatherScatterMode.FILL_OR_DROP, fill_value=0)


def in_range(indices: Any, sizes: Sequence[int]) -> Any:
    """Which entries are not padding: ``bool[*batch, nse]``."""
    return ((indices >= 0) & (indices < size_vector(indices, sizes))).all(-1)


def size_vector(indices: Any, sizes: Sequence[int]) -> Any:
    """The sizes of the sparse dimensions, which are the coordinate of padding, along the last dimension of the indices.
    """
    return hnp.asarray(np.asarray(sizes, dtype=indices.dtype).reshape(*(1,) * (indices.ndim - 1), -1))


def masked(data: Any, keep: Any) -> Any:
    """``data`` with 0 where ``keep`` is False, which has the dimensions of batch and entries."""
    return hnp.where(keep.reshape(*keep.shape, *(1,) * (data.ndim - keep.ndim)), data, hnp.zeros((), data.dtype))


def reordered(buffer: Any, order: Any) -> Any:
    """``buffer[b, order[b, e]]``."""
    batch = np.broadcast_shapes(buffer.shape[: order.ndim - 1], order.shape[:-1])
    return taken(repeated_batch(buffer, batch), repeated_batch(order, batch)[..., None])


def sorted_order(indices: Any) -> tuple[Any, Any]:
    """The indices in lexicographic order, and the stable permutation of entries that sorts them."""
    columns = [indices[..., i] for i in range(indices.shape[-1])]
    numbers = lax.broadcasted_iota(np.dtype("int32"), indices.shape[:-1], indices.ndim - 2)
    *columns, order = lax.sort([*columns, numbers], dimension=-1, num_keys=len(columns)) if columns else [numbers]
    return hnp.stack(columns, -1) if columns else indices, order


class DistinctEntries(NamedTuple):
    """The distinct coordinates among stored entries, in lexicographic order.

    ``indices``: sorted, padding last; ``first``: whether each is the first of equal ones. ``order``: the permutation
    that sorts the entries. ``slots``: for each sorted entry the rank of its coordinate; -1 for padding. ``count``: the
    number of distinct coordinates, for each batch position.
    """

    indices: Any
    order: Any
    first: Any
    slots: Any
    count: Any

    def compressed(self, nse: int, sizes: Shape) -> Any:
        """The first ``nse`` distinct coordinates, and padding."""
        batch = self.indices.shape[:-2]
        fill = size_vector(self.indices, sizes)
        places = hnp.where(self.first, self.slots, -1)[..., None]
        return placed(self.indices - fill, places, (*batch, nse, len(sizes))) + fill

    def summed(self, data: Any, nse: int) -> Any:
        """The sum of the data at each of the first ``nse`` distinct coordinates."""
        ordered = reordered(data, self.order)
        batch = ordered.shape[: self.order.ndim - 1]
        slots = repeated_batch(self.slots, batch)[..., None]
        return placed(ordered, slots, (*batch, nse, *ordered.shape[len(batch) + 1 :]))


def distinct_entries(indices: Any, sizes: Shape) -> DistinctEntries:
    """The distinct coordinates among entries with these indices, in dimensions of these sizes."""
    keep = in_range(indices, sizes)
    indices, order = sorted_order(hnp.where(keep[..., None], indices, size_vector(indices, sizes)))
    keep = in_range(indices, sizes)
    changes = (indices[..., 1:, :] != indices[..., :-1, :]).any(-1)
    first = keep & hnp.concatenate([hnp.ones((*keep.shape[:-1], min(keep.shape[-1], 1)), bool), changes], -1)
    slots = hnp.cumsum(first, -1, dtype=np.int32) - 1
    return DistinctEntries(indices, order, first, hnp.where(keep, slots, -1), first.sum(-1, dtype=np.int32))
