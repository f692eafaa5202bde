"""BCSR: sparse arrays by compressed rows, with leading batch dimensions and trailing dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.base.errors import NotSparse, ShapeMismatch
from ...effects.core.containers import register_vmappable
from .bcoo import BCOO, bcoo_fromdense, from_lanes, to_lane
from .layouts import bcoo_broadcast_in_dim, bcoo_concatenate
from .sparse_methods import BatchedArray
from .sparse_products import bcoo_dot_general
from .stored_entries import placed, taken

__all__ = [
    "BCSR", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense",
    "bcsr_sum_duplicates", "bcsr_todense",
]


def _histogram(places: Any, count: int) -> Any:
    """The number of occurrences of 0, 1, ..., ``count - 1`` along the last dimension."""
    return placed(hnp.ones(places.shape, places.dtype), places[..., None], (*places.shape[:-1], count))


def rows_of(indptr: Any, nse: int) -> Any:
    """The row of each entry, where ``indptr[r]`` is the number of entries in the rows before ``r``.

    Entries after those of the last row are padding: their row is the number of rows.
    """
    return hnp.cumsum(_histogram(indptr[..., 1:], nse), -1, dtype=indptr.dtype)


def pointers_of(rows: Any, count: int) -> Any:
    """``indptr[count + 1]`` of sorted row numbers: the number of entries in the rows before each row, and in all."""
    zero = hnp.zeros((*rows.shape[:-1], 1), rows.dtype)
    return hnp.concatenate([zero, hnp.cumsum(_histogram(rows, count), -1, dtype=rows.dtype)], -1)


class BCSR(BatchedArray):
    """A sparse array by compressed rows: row r of batch position b has entries ``range(indptr[b, r], indptr[b, r+1])``.

        todense()[b, r, indices[b, e]] == sum of data[b, e]      over the entries e of row r with this index

    Shapes: ``data[*batch, nse, *dense]``, ``indices[*batch, nse]`` and ``indptr[*batch, rows + 1]`` for ``shape ==
    (*batch, rows, columns, *dense)``. A batch dimension of the buffers may have size 1, and is then broadcast. Entries
    with an index outside of the shape, or after those of the last row, are padding.

    A pytree with leaves ``data``, ``indices`` and ``indptr``. ``vmap`` maps it along a batch dimension.

    Args:
        args: ``(data, indices, indptr)``.
        shape: of the dense array.
        indices_sorted: whether the indices of each row are known to increase.
        unique_indices: whether it is known that no index, but that of padding, occurs twice in a row.

    Raises: ShapeMismatch: the buffers do not fit to each other or to the shape. DTypeMismatch: indices are no integers.

    >>> x = BCSR.fromdense(hnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> x, x.indices.tolist(), x.indptr.tolist()
    (BCSR(float32[2, 2], nse=3), [1, 0, 1], [0, 1, 3])
    """

    buffers = ("data", "indices", "indptr")
    indices_rank = 1
    _forms = "data[*batch, nse, *dense], indices[*batch, nse] and indptr[*batch, rows + 1]"
    n_sparse = 2
    indptr: Any

    @staticmethod
    def _fits(n_batch: int, shape: Sequence[int], data: Any, indices: Any, indptr: Any) -> bool:
        if len(shape) < n_batch + 2 or indptr.shape[n_batch:] != (shape[n_batch] + 1,):
            return False
        return data.shape[n_batch:] == (indices.shape[-1], *shape[n_batch + 2 :])

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """``bcsr_fromdense``."""
        return bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The same array as a BCSR. Raises: NotSparse: ``arr`` has not two sparse dimensions."""
        if arr.n_sparse != 2:
            raise NotSparse(
                f"BCSR.from_bcoo: needs two sparse dimensions, got {arr}.",
                hint="x.update_layout(n_batch=..., n_dense=...).",
            )
        arr = arr if arr.indices_sorted else arr.sort_indices()
        rows, columns = arr.indices[..., 0], arr.indices[..., 1]
        columns = hnp.where(rows < 0, -1, columns).astype(columns.dtype)  # padding before the first row
        indptr = pointers_of(hnp.maximum(rows, 0), arr.sparse_shape[0])
        return cls(
            (arr.data, columns, indptr), shape=arr.shape, indices_sorted=True,
            unique_indices=arr.unique_indices,
        )

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The array of a matrix of ``scipy.sparse``. Raises: NotSparse: with batch or dense dimensions."""
        if n_dense or n_batch:
            raise NotSparse(f"from_scipy_sparse: SciPy has sparse dimensions alone, got {n_batch=} and {n_dense=}.")
        if mat.ndim != 2:
            raise ShapeMismatch(f"BCSR.from_scipy_sparse: needs a matrix, got {mat.ndim} dimensions.")
        mat, dtype = mat.tocsr(), index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(dtype), mat.indptr.astype(dtype)), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        indices = hnp.stack(hnp.broadcast_arrays(rows_of(self.indptr, self.nse), self.indices), -1)
        return BCOO(
            (self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Raises: NotSparse: in a transposed array columns, not rows, would be compressed."""
        raise NotSparse("BCSR.transpose: rows are compressed, columns are not.", hint="x.to_bcoo().transpose().")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with each coordinate stored once, in lexicographic order.

        Args:
            nse: the number of stored entries; by default as many as needed, which is not known under ``jit``.
            remove_zeros: drop entries that are 0. Derivatives by these entries are lost.
        """
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCSR:
    """The sparse array of the entries of a dense one that are not 0, as ``bcoo_fromdense``.

        bcsr_fromdense(x).todense() == x
    """
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Any:
    """The dense array: at each coordinate the sum of its entries."""
    return mat.todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements of a dense array at the coordinates of a BCSR with these indices and pointers: its data.

    >>> bcsr_extract(hnp.array([1, 0]), hnp.array([0, 1, 2]), hnp.arange(4.0).reshape(2, 2))
    Array([1., 2.], dtype=float32)
    """
    indices, indptr, mat = map(hnp.asarray, (indices, indptr, mat))
    places = hnp.stack(hnp.broadcast_arrays(rows_of(indptr, indices.shape[-1]), indices), -1)
    return taken(mat, places)


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """``bcoo_sum_duplicates`` for a BCSR."""
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``bcoo_dot_general`` for a BCSR."""
    lhs, rhs = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    return bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """``bcoo_broadcast_in_dim`` for a BCSR. Raises: NotSparse: the result has not two sparse dimensions."""
    return BCSR.from_bcoo(
        bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    )


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """``bcoo_concatenate`` for BCSRs."""
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


register_vmappable(BCSR, int, int, to_lane, from_lanes)
