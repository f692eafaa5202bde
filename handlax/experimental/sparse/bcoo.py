"""BCOO: sparse arrays by coordinates, with leading batch dimensions and trailing dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.base.errors import (
    BadArgument,
    BadCall,
    ConcretizationError,
    NotSparse,
    ShapeMismatch,
    whole_number,
    whole_numbers,
)
from ...effects.base.source_locations import warn_user
from ...effects.core.containers import register_vmappable
from .sparse_array import SparseEfficiencyError, SparseEfficiencyWarning
from .sparse_methods import BatchedArray
from .stored_entries import (
    columns_of,
    distinct_entries,
    in_range,
    masked,
    placed,
    reordered,
    repeated_batch,
    size_vector,
    sorted_order,
    taken,
)

__all__ = [
    "BCOO", "bcoo_extract", "bcoo_fromdense", "bcoo_sort_indices", "bcoo_sum_duplicates", "bcoo_todense",
    "bcoo_transpose", "bcoo_update_layout",
]


class BCOO(BatchedArray):
    """A sparse array by coordinates: entry e of batch position b has the coordinate ``indices[b, e]``.

        todense()[b, *indices[b, e]] == sum of data[b, e]      over the entries e with these indices

    Shapes: ``data[*batch, nse, *dense]`` and ``indices[*batch, nse, n_sparse]`` for ``shape == (*batch, *sparse,
    *dense)``. A batch dimension of the buffers may have size 1, and is then broadcast. Entries with an index outside of
    the shape, or a negative one, are padding.

    A pytree with leaves ``data`` and ``indices``. ``vmap`` maps it along a batch dimension.

    Args:
        args: ``(data, indices)``.
        shape: of the dense array.
        indices_sorted: whether the indices are known to be in lexicographic order, within each batch position.
        unique_indices: whether it is known that no coordinate occurs twice, except for padding.

    Raises: ShapeMismatch: the buffers do not fit to each other or to the shape. DTypeMismatch: indices are no integers.

    >>> x = BCOO.fromdense(hnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> x, x.data, x.indices.tolist()
    (BCOO(float32[2, 2], nse=2), Array([2., 3.], dtype=float32), [[0, 1], [1, 0]])
    """

    buffers = ("data", "indices")
    indices_rank = 2
    _forms = "data[*batch, nse, *dense] and indices[*batch, nse, n_sparse]"

    @staticmethod
    def _fits(n_batch: int, shape: Sequence[int], data: Any, indices: Any) -> bool:
        n_lead = n_batch + indices.shape[-1]
        return n_lead <= len(shape) and data.shape[n_batch:] == (indices.shape[-2], *shape[n_lead:])

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions, which the indices address."""
        return self.indices.shape[-1]

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """The sizes of the sparse dimensions."""
        return self.shape[self.n_batch : self.n_batch + self.n_sparse]

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """``bcoo_fromdense``."""
        return bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The array of a matrix of ``scipy.sparse``. Raises: NotSparse: with batch or dense dimensions."""
        if n_dense or n_batch:
            raise NotSparse(f"from_scipy_sparse: SciPy has sparse dimensions alone, got {n_batch=} and {n_dense=}.")
        mat = mat.tocoo()
        indices = np.column_stack((mat.row, mat.col)).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        return self

    def todense(self) -> Any:
        """``bcoo_todense``."""
        return placed(self.data, self.indices, self.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions permuted, in reverse order if ``axes`` is None.

        Raises: NotSparse: batch, sparse and dense dimensions are mixed.
        """
        return bcoo_transpose(self, permutation=range(self.ndim)[::-1] if axes is None else axes)

    def sort_indices(self) -> BCOO:
        """``bcoo_sort_indices``."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with each coordinate stored once, in lexicographic order.

        Args:
            nse: the number of stored entries; by default as many as needed, which is not known under ``jit``.
            remove_zeros: drop entries that are 0. Derivatives by these entries are lost.
        """
        return bcoo_eliminate_zeros(self, nse=nse) if remove_zeros else bcoo_sum_duplicates(self, nse=nse)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """``bcoo_update_layout``."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


def known_nse(where: str, count: Any) -> int:
    """The maximum of the array ``count`` as an integer. Raises: ConcretizationError: ``count`` is traced."""
    try:
        return int(count.max(initial=0))
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{where}: the number of stored entries must be known, and depends on values that are not.",
            hint="pass it: nse=...; where there are fewer entries the others are padding.",
        ) from error


def count_stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    """The number of entries that are not 0, in each batch position; an entry spans the last ``n_dense`` dimensions."""
    mask = mat != 0
    if n_dense:
        mask = mask.any(tuple(range(mat.ndim - n_dense, mat.ndim)))
    return mask.sum(tuple(range(n_batch, mask.ndim)))


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCOO:
    """The sparse array of the entries of a dense one that are not 0.

        bcoo_fromdense(x).todense() == x

    Args:
        nse: the number of entries to store, needed under ``jit``. Where there are fewer, the others are padding; where
            there are more, the last ones are lost.
        n_batch: the number of leading dimensions, each of whose positions stores its own entries.
        n_dense: the number of trailing dimensions, over which each entry is a dense array.

    Raises: ConcretizationError: ``nse`` is None and ``mat`` is traced. BadArgument: there are fewer dimensions.
    """
    mat = hnp.asarray(mat)
    n_batch = whole_number("bcoo_fromdense: n_batch", n_batch)
    n_dense = whole_number("bcoo_fromdense: n_dense", n_dense)
    n_sparse = mat.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise BadArgument(f"bcoo_fromdense: {mat.type} has not {n_batch} batch and {n_dense} dense dimensions.")
    if nse is None:
        nse = known_nse("bcoo_fromdense", count_stored_elements(mat, n_batch, n_dense))
    nse = whole_number("bcoo: nse", nse)
    batch, sizes = mat.shape[:n_batch], mat.shape[n_batch : n_batch + n_sparse]
    mask = mat != 0
    mask = mask.any(tuple(range(n_batch + n_sparse, mat.ndim))) if n_dense else mask
    mask = mask.reshape(*batch, int(np.prod(sizes, dtype=int)))
    slots = hnp.where(mask, hnp.cumsum(mask, -1, dtype=np.int32) - 1, -1)[..., None]
    places = np.stack(np.unravel_index(np.arange(mask.shape[-1]), sizes), -1) if sizes else np.zeros((1, 0), int)
    offsets = hnp.asarray((places - np.array(sizes, int)).astype(index_dtype))
    indices = placed(hnp.broadcast_to(offsets, (*batch, *offsets.shape)), slots, (*batch, nse, n_sparse))
    indices = indices + size_vector(indices, sizes)
    data = taken(mat, indices)
    if not n_sparse:  # the single coordinate is stored even if 0, so that the function is linear
        data = masked(data, lax.broadcasted_iota(np.int32, (*batch, nse), n_batch) == 0)
    unique = n_sparse > 0 or nse <= 1  # without sparse dimensions padding has a coordinate
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=unique)


def bcoo_todense(mat: BCOO) -> Any:
    """The dense array: at each coordinate the sum of its entries.

    >>> bcoo_todense(BCOO((hnp.array([1.0, 2.0, 4.0]), hnp.array([[1], [1], [3]])), shape=(3,)))
    Array([0., 3., 0.], dtype=float32)
    """
    return mat.todense()


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the coordinates that a sparse one stores.

    Args:
        assume_unique: whether each coordinate occurs once, by default ``sparr.unique_indices``; if not, the first of
            several entries with one coordinate gets the value, the others 0.

    Raises: BadCall, ShapeMismatch: ``sparr`` is no BCOO, or not of the shape of ``arr``.
    """
    arr = hnp.asarray(arr)
    if not isinstance(sparr, BCOO):
        raise BadCall(f"bcoo_extract: the first argument is a BCOO, got {type(sparr).__name__}.")
    if arr.shape != sparr.shape:
        raise ShapeMismatch(f"bcoo_extract: shapes must be equal, got {sparr} and {arr.type}.")
    data = taken(arr, sparr.indices)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        distinct = distinct_entries(sparr.indices, sparr.sparse_shape)
        batch = distinct.first.shape[:-1]
        keep = placed(distinct.first, distinct.order[..., None], (*batch, sparr.nse))
        data = masked(data, keep)
    return sparr.replaced(data=data)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its entries in lexicographic order of their coordinates, within each batch position."""
    indices, order = sorted_order(mat.indices)
    return mat.replaced(data=reordered(mat.data, order), indices=indices, indices_sorted=True)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with each coordinate stored once, in lexicographic order, padding last.

    Args:
        nse: the number of stored entries, needed under ``jit``; by default the number of distinct coordinates. If that
            is less, the other entries are padding; if that is more, the last coordinates are lost.

    Raises: ConcretizationError: ``nse`` is None, and the indices are not known.
    """
    distinct = distinct_entries(mat.indices, mat.sparse_shape)
    name = "bcoo_sum_duplicates"
    nse = known_nse(name, distinct.count) if nse is None else whole_number(f"{name}: nse", nse)
    data, indices = distinct.summed(mat.data, nse), distinct.compressed(nse, mat.sparse_shape)
    unique = mat.n_sparse > 0 or nse <= 1
    return mat.replaced(data=data, indices=indices, indices_sorted=True, unique_indices=unique)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """``bcoo_sum_duplicates`` without the entries that are 0."""
    stored = (mat.data != 0).any(tuple(range(mat.n_batch + 1, mat.data.ndim)))
    repeated = tuple([d for d in range(mat.n_batch) if mat.indices.shape[d] == 1])
    stored = stored.any(repeated, keepdims=True)[..., None]
    indices = hnp.where(stored, mat.indices, size_vector(mat.indices, mat.sparse_shape))
    return bcoo_sum_duplicates(mat.replaced(indices=indices), nse=nse)


def with_nse(mat: BCOO, nse: int) -> BCOO:
    """The array with ``nse`` entries: truncated, or extended by padding."""
    size = size_vector(mat.indices, mat.sparse_shape)  # the coordinate of padding
    widths = lambda x: [(0, nse - mat.nse if d == mat.n_batch else 0, 0) for d in range(x.ndim)]
    fitted = lambda x: lax.pad(x, hnp.zeros((), x.dtype), widths(x))
    return mat.replaced(data=fitted(mat.data), indices=fitted(mat.indices - size) + size)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its dimensions permuted: batch, sparse and dense dimensions each among themselves.

    Raises: NotSparse: a dimension would change its kind. BadArgument: ``permutation`` is none.
    """
    permutation = whole_numbers("bcoo_transpose: an axis", permutation)
    if sorted(permutation) != list(range(mat.ndim)):
        raise BadArgument(f"bcoo_transpose: permutation {tuple(permutation)} is none of {mat.ndim} dimensions.")
    n_batch, n_lead = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = permutation[:n_batch], permutation[n_batch:n_lead], permutation[n_lead:]
    if any([p >= n_batch for p in batch]) or any([p < n_lead for p in dense]):
        raise NotSparse(
            f"bcoo_transpose: batch, sparse and dense dimensions are permuted among themselves, got "
            f"{tuple(permutation)} for {mat}.",
            hint="x.update_layout(n_batch=0, n_dense=0) makes all of them sparse.",
        )
    data = mat.data.transpose(*batch, n_batch, *[p - mat.n_sparse + 1 for p in dense])
    indices = mat.indices.transpose(*batch, n_batch, n_batch + 1)
    order = [p - n_batch for p in sparse]
    still_sorted, shape = mat.indices_sorted and order == sorted(order), tuple([mat.shape[p] for p in permutation])
    return mat.replaced(data=data, indices=columns_of(indices, order), shape=shape, indices_sorted=still_sorted)


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense dimensions.

    Args:
        on_inefficient: ``"error"``, ``"warn"`` or None (do it): what happens if a sparse dimension of several elements
            becomes a batch or dense one, since that stores many zeros.

    Raises: SparseEfficiencyError: that, under ``"error"``. BadArgument: there are not so many dimensions.
    """
    n_batch = mat.n_batch if n_batch is None else whole_number("bcoo_update_layout: n_batch", n_batch)
    n_dense = mat.n_dense if n_dense is None else whole_number("bcoo_update_layout: n_dense", n_dense)
    if on_inefficient not in ("error", "warn", None):
        raise BadArgument(f"bcoo_update_layout: on_inefficient is 'error', 'warn' or None, got {on_inefficient!r}.")
    if min(n_batch, n_dense, mat.ndim - n_batch - n_dense) < 0:
        raise BadArgument(f"bcoo_update_layout: {mat} cannot have {n_batch=} and {n_dense=}.")
    filled = {*mat.shape[mat.n_batch : n_batch], *mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]}
    if on_inefficient is not None and max(filled, default=0) > 1:
        message = f"bcoo_update_layout: {mat} with {n_batch=} and {n_dense=} stores many zeros."
        if on_inefficient == "error":
            raise SparseEfficiencyError(message, hint="on_inefficient='warn' or None stores them.")
        warn_user(message, SparseEfficiencyWarning)
    mat = _batch_to_sparse(_dense_to_sparse(mat, n_dense), n_batch)
    return _sparse_to_batch(_sparse_to_dense(mat, n_dense), n_batch)


def _dense_to_sparse(mat: BCOO, n_dense: int) -> BCOO:
    """The array with its first dense dimensions made sparse: each of their elements becomes an entry."""
    n = mat.n_dense - n_dense
    if n <= 0:
        return mat
    sizes = mat.shape[mat.ndim - mat.n_dense : mat.ndim - n_dense]
    places = hnp.asarray(np.indices(sizes, mat.indices.dtype).reshape(n, -1).T)
    data, indices, k = mat.data, mat.indices, len(places)
    shape = (*indices.shape[:-1], k)
    columns = [hnp.broadcast_to(x, (*shape, x.shape[-1])) for x in (indices[..., None, :], places)]
    indices = hnp.concatenate(columns, -1).reshape(*shape[:-2], shape[-2] * k, mat.n_sparse + n)
    data = data.reshape(*data.shape[: mat.n_batch], mat.nse * k, *data.shape[data.ndim - n_dense :])
    return mat.replaced(data=data, indices=indices)


def _batch_to_sparse(mat: BCOO, n_batch: int) -> BCOO:
    """The array with its last batch dimensions made sparse: the entries of their positions are concatenated."""
    n = mat.n_batch - n_batch
    if n <= 0:
        return mat
    moved = mat.shape[n_batch : mat.n_batch]
    indices, data = mat.indices, mat.data
    indices = hnp.broadcast_to(indices, (*indices.shape[:n_batch], *moved, *indices.shape[-2:]))
    data = hnp.broadcast_to(data, (*data.shape[:n_batch], *moved, *data.shape[mat.n_batch :]))
    places = [lax.broadcasted_iota(indices.dtype, (*indices.shape[:-1], 1), n_batch + i) for i in range(n)]
    nse = int(np.prod(moved)) * mat.nse
    indices = hnp.concatenate([*places, indices], -1).reshape(*indices.shape[:n_batch], nse, n + mat.n_sparse)
    data = data.reshape(*data.shape[:n_batch], nse, *data.shape[mat.n_batch + 1 :])
    return mat.replaced(data=data, indices=indices, indices_sorted=False)


def _sparse_to_dense(mat: BCOO, n_dense: int) -> BCOO:
    """The array with its last sparse dimensions made dense: each entry gets zeros at all other positions."""
    n = n_dense - mat.n_dense
    if n <= 0:
        return mat
    own, data = mat.indices[..., mat.n_sparse - n :], mat.data
    batch = np.broadcast_shapes(own.shape[:-2], data.shape[: mat.n_batch])
    own, data = repeated_batch(own, batch), repeated_batch(data, batch)
    shape = (*data.shape[: mat.n_batch + 1], *mat.shape[mat.ndim - n_dense :])
    data = placed(data[(slice(None),) * (mat.n_batch + 1) + (None,)], own[..., None, :], shape)
    return BCOO((data, mat.indices[..., : mat.n_sparse - n]), shape=mat.shape)


def _sparse_to_batch(mat: BCOO, n_batch: int) -> BCOO:
    """The array with its first sparse dimensions made batch dimensions, with zeros at all other positions."""
    n = n_batch - mat.n_batch
    if n <= 0:
        return mat
    own, rest, data = mat.indices[..., :n], mat.indices[..., n:], mat.data
    batch = np.broadcast_shapes(own.shape[:-2], data.shape[: mat.n_batch])
    sizes = mat.shape[mat.n_batch : n_batch]
    numbers = lax.broadcasted_iota(own.dtype, (*own.shape[:-1], 1), own.ndim - 2)
    where = repeated_batch(hnp.concatenate([own, numbers], -1), batch)
    data = repeated_batch(data, batch)
    data = placed(data, where, (*batch, *sizes, mat.nse, *data.shape[mat.n_batch + 1 :]))
    rest = rest[(slice(None),) * mat.n_batch + (None,) * n]
    rest = hnp.broadcast_to(rest, (*rest.shape[: mat.n_batch], *sizes, *rest.shape[-2:]))
    return BCOO((data, rest), shape=mat.shape)


def stored_mask(mat: BCOO) -> Any:
    """Which stored entries are not padding: ``bool[*batch, nse]``."""
    return in_range(mat.indices, mat.sparse_shape)


def to_lane(cont: Any, get_idx: Any, x: Any, axis: int | None) -> Any:
    """One lane's slice of a sparse array ``x``, under ``vmap``: ``cont`` gives that of each buffer.

    Raises: NotSparse: the mapped axis is no batch dimension.
    """
    if axis is None:
        return x
    if not 0 <= axis < x.n_batch:
        raise NotSparse(
            f"vmap: a sparse array is mapped along a batch dimension, got {axis=} of {x}.",
            hint="bcoo_update_layout(x, n_batch=...).",
        )
    lanes = {name: cont(repeated_axis(getattr(x, name), axis, x.shape[axis]), axis) for name in x.buffers}
    return x.replaced(shape=x.shape[:axis] + x.shape[axis + 1 :], **lanes)


def repeated_axis(buffer: Any, axis: int, size: int) -> Any:
    """The buffer broadcast to ``size`` along ``axis``, where its size is 1 or ``size``."""
    return hnp.broadcast_to(buffer, (*buffer.shape[:axis], size, *buffer.shape[axis + 1 :]))


def from_lanes(cont: Any, axis_size: Any, x: Any, axis: int | None) -> Any:
    """The sparse arrays of all lanes as one, after ``vmap``: ``cont`` gives each buffer with the new axis.

    Raises: NotSparse: the new axis is no batch dimension.
    """
    if axis is None:
        return x
    if not 0 <= axis <= x.n_batch:
        raise NotSparse(f"vmap: lanes of sparse arrays are stacked along a batch dimension, got {axis=} for {x}.")
    stacked = {name: cont(axis_size, getattr(x, name), axis) for name in x.buffers}
    return x.replaced(shape=(*x.shape[:axis], whole_number("vmap: a size", axis_size), *x.shape[axis:]), **stacked)


register_vmappable(BCOO, int, int, to_lane, from_lanes)
