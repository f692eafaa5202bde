"""COO, CSR and CSC: sparse matrices without batch dimensions; and makers of sparse arrays: empty, eye, random_bcoo."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import numpy as hnp
from ... import random
from ...effects.base.errors import BadArgument, NotSparse, ShapeMismatch, whole_number, whole_numbers
from ...interpreters.transformations.vmap import vmap
from .bcoo import BCOO, bcoo_fromdense, count_stored_elements
from .bcsr import BCSR, pointers_of
from .sparse_array import JAXSparse
from .sparse_products import bcoo_dot_general

__all__ = [
    "COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat",
    "csr_matvec", "csr_todense", "empty", "eye", "random_bcoo",
]


class _Matrix(JAXSparse):
    """The base of COO, CSR and CSC: two dimensions, and products with dense vectors and matrices."""

    @property
    def nse(self) -> int:
        return self.data.size

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> Any:
        """The matrix with each coordinate stored once, in order, as ``BCOO.sum_duplicates``."""
        return _as_format(self.to_bcoo().sum_duplicates(nse, remove_zeros), type(self), diagonal=False)

    def __matmul__(self, other: Any) -> Any:
        """The product with a dense vector or matrix. Raises: NotSparse: ``other`` is sparse, or of another rank."""
        if isinstance(other, JAXSparse):
            raise NotSparse(f"matmul: of {type(self).__name__} with dense arrays, got {other}.", hint="x.to_bcoo().")
        other = hnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotSparse(f"matmul: a sparse matrix times a vector or a matrix, got {other.type}.")
        return _product(self, other)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Any:
        """The matrix of the nonzero elements of a dense one; arguments as ``bcoo_fromdense``."""
        mat = _ranked(f"{cls.__name__.lower()}_fromdense", mat, 2)
        return _as_format(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype), cls, diagonal=False)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The transposed matrix; that of a CSR is a CSC, and conversely. Raises: NotSparse: ``axes`` is given."""
        if axes is not None:
            raise NotSparse(f"transpose: a sparse matrix has two dimensions to exchange, got {axes=}.", hint="x.T.")
        return self._transposed()

    @abstractmethod
    def _transposed(self) -> Any:
        """The transposed matrix."""

    def _initialise(self, args: Any, shape: Sequence[int], **flags: bool) -> None:
        """Assign the buffers ``args``, the shape and the flags. Raises: ShapeMismatch: the shape is not of a matrix."""
        name = type(self).__name__
        shape = whole_numbers(f"{name}: a size", shape)
        if len(shape) != 2:
            raise ShapeMismatch(f"{name}: it has two dimensions, got shape {shape}.")
        self._set(**dict(zip(self.buffers, map(hnp.asarray, args))), shape=shape, **flags)


def _product(mat: Any, v: Any, transpose: bool = False) -> Any:
    """The product of a sparse matrix, transposed if ``transpose``, with a dense vector or matrix."""
    x = mat.to_bcoo()
    return bcoo_dot_general(x, v, dimension_numbers=(((0,) if transpose else (1,), (0,)), ((), ())))


class COO(_Matrix):
    """A sparse matrix by coordinates: ``todense()[row[e], col[e]] == sum of data[e]``; ``BCOO`` is more general.

    Args:
        args: ``(data, row, col)``, vectors.
        rows_sorted, cols_sorted: whether ``row``, or ``col``, is known not to decrease.

    >>> COO.fromdense(hnp.array([[0.0, 2.0], [3.0, 0.0]])) @ hnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    buffers = ("data", "row", "col")
    flags = ("_rows_sorted", "_cols_sorted")
    row: Any
    col: Any

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ):
        self._initialise(args, shape, _rows_sorted=rows_sorted, _cols_sorted=cols_sorted)

    def to_bcoo(self) -> BCOO:
        return BCOO((self.data, hnp.stack([self.row, self.col], -1)), shape=self.shape)

    def _transposed(self) -> COO:
        flags = {"rows_sorted": self._cols_sorted, "cols_sorted": self._rows_sorted}  # type: ignore[attr-defined]
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], **flags)


class _Compressed(_Matrix):
    """The base of CSR and CSC: matrices of three vectors, data, indices and indptr."""

    flags = ()
    indices: Any
    indptr: Any

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        self._initialise(args, shape)

    def _transposed(self) -> Any:
        other = CSC if type(self) is CSR else CSR
        return other((self.data, self.indices, self.indptr), shape=self.shape[::-1])


class CSR(_Compressed):
    """A sparse matrix by compressed rows: row r has the entries ``indptr[r]`` to ``indptr[r + 1] - 1``.

    ``BCSR`` is more general.

    Args:
        args: ``(data, indices, indptr)``, vectors.
    """

    buffers = ("data", "indices", "indptr")

    def to_bcoo(self) -> BCOO:
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()


class CSC(_Compressed):
    """A sparse matrix by compressed columns: the transpose of a ``CSR`` with the same buffers.

    Args:
        args: ``(data, indices, indptr)``, vectors.
    """

    buffers = ("data", "indices", "indptr")

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """The matrix of the nonzero elements of a dense one; arguments as ``bcoo_fromdense``."""
        return CSR.fromdense(hnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).transpose()

    def to_bcoo(self) -> BCOO:
        return self.transpose().to_bcoo().transpose()


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """The matrix of the nonzero elements of a dense one; arguments as ``bcoo_fromdense``."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Any:
    """The dense matrix: at each coordinate the sum of its entries."""
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, with a dense vector."""
    return _product(mat, _ranked("coo_matvec", v, 1), transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, with a dense matrix."""
    return _product(mat, _ranked("coo_matmat", B, 2), transpose)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """The matrix of the nonzero elements of a dense one; arguments as ``bcoo_fromdense``."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: CSR) -> Any:
    """The dense matrix: at each coordinate the sum of its entries."""
    return mat.todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, with a dense vector."""
    return _product(mat, _ranked("csr_matvec", v, 1), transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, with a dense matrix."""
    return _product(mat, _ranked("csr_matmat", B, 2), transpose)


def _ranked(where: str, x: Any, rank: int) -> Any:
    """``x`` as an array. Raises: ShapeMismatch: its rank is another."""
    x = hnp.asarray(x)
    if x.ndim != rank:
        raise ShapeMismatch(f"{where}: needs {rank} dimensions, got {x.type}.")
    return x


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> Any:
    """A sparse array of zeros.

    Args:
        sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
        kwds: ``nse``, the number of entries, all padding; for BCOO and BCSR also ``n_batch`` and ``n_dense``.

    Raises: BadArgument: the format is none of these, or a number is negative.

    >>> empty((2, 3), nse=1)
    BCOO(float32[2, 3], nse=1)
    """
    shape = whole_numbers("empty: a size", shape)
    format = _format(sparse_format)
    counts = ("n_batch", "n_dense", "nse")
    n_batch, n_dense, nse = [whole_number(f"empty: {name}", kwds.pop(name, 0)) for name in counts]
    n_sparse = len(shape) - n_batch - n_dense
    if kwds or min(n_batch, n_dense, n_sparse, nse) < 0:
        raise BadArgument(f"empty: shape {shape} has not {n_batch=}, {n_dense=} and {nse=}, {', '.join(kwds)}.")
    sizes = np.array(shape[n_batch : n_batch + n_sparse], np.dtype(index_dtype))
    data = hnp.zeros((*shape[:n_batch], nse, *shape[n_batch + n_sparse :]), dtype)
    indices = hnp.asarray(np.broadcast_to(sizes, (*shape[:n_batch], nse, n_sparse)))
    return _as_format(BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True), format)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:
    """The sparse matrix with ones on a diagonal.

    Args:
        k: the diagonal, 0 the main one; a positive ``k`` is above it.
        sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
        kwds: ``n_batch`` and ``n_dense``, for BCOO and BCSR.

    >>> eye(2, 3, k=1).todense()
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    n, m, k = (whole_number(f"eye: {s}", x) for s, x in (("N", N), ("M", N if M is None else M), ("k", k)))
    format = _format(sparse_format)
    n_batch, n_dense = [whole_number(f"eye: {name}", kwds.pop(name, 0)) for name in ("n_batch", "n_dense")]
    if kwds or min(n_batch, n_dense, 2 - n_batch - n_dense) < 0:
        raise BadArgument(f"eye: a matrix has not {n_batch=} and {n_dense=}, {', '.join(kwds)}.")
    count = max(0, min(n, m - k) if k > 0 else min(n + k, m))
    index = np.arange(count, dtype=np.dtype(index_dtype))
    indices = np.stack([index + max(-k, 0), index + max(k, 0)], -1).astype(np.dtype(index_dtype))
    x = BCOO((hnp.ones(count, dtype), indices), shape=(n, m), indices_sorted=True, unique_indices=True)
    if n_batch or n_dense:
        nse = int(count_stored_elements(np.eye(n, m, k), n_batch, n_dense).max(initial=0))
        x = bcoo_fromdense(x.todense(), nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return _as_format(x, format)


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = float, indices_dtype: Any = None, nse: float = 0.2,
    n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform, **kwds: Any,
) -> BCOO:
    """A sparse array of random entries at random coordinates.

    Args:
        nse: the number of entries, in each batch position; if less than 1, as a fraction of all.
        unique_indices: no coordinate occurs twice.
        sorted_indices: the entries are in lexicographic order.
        generator: ``generator(key, shape=, dtype=, **kwds)`` returns the data.

    Raises: BadArgument: ``nse`` or a number of dimensions is out of range.

    >>> random_bcoo(random.key(0), (4, 5), nse=3)
    BCOO(float32[4, 5], nse=3)
    """
    shape = whole_numbers("random_bcoo: a size", shape)
    n_batch, n_dense = whole_number("random_bcoo: n_batch", n_batch), whole_number("random_bcoo: n_dense", n_dense)
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise BadArgument(f"random_bcoo: shape {shape} has not {n_batch=} and {n_dense=}.")
    batch, sizes, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    count = math.prod(sizes)
    if not 0 <= nse < count:
        raise BadArgument(f"random_bcoo: nse must be at least 0 and less than {count}, got {nse}.")
    number = math.ceil(nse * count) if 0 < nse < 1 else int(nse)
    int_dtype = hnp.asarray(0).dtype if indices_dtype is None else np.dtype(indices_dtype)
    if count > np.iinfo(int_dtype).max:
        raise BadArgument(f"random_bcoo: {int_dtype} cannot count the {count} elements of {sizes}.")

    def places(key: Any) -> Any:
        if not sizes:
            return hnp.zeros((number, 0), int_dtype)
        flat = random.choice(key, count, shape=(number,), replace=not unique_indices).astype(int_dtype)
        return hnp.stack(hnp.unravel_index(flat, sizes), -1).astype(int_dtype)

    keys = random.split(key, math.prod(batch) + 1)
    data = generator(keys[0], shape=(*batch, number, *dense), dtype=dtype, **kwds)
    indices = vmap(places)(keys[1:]).reshape(*batch, number, n_sparse)
    drawn = BCOO((data, indices), shape=shape)
    return drawn.sort_indices() if sorted_indices else drawn


def _format(name: str) -> Any:
    """The class of a sparse format. Raises: BadArgument: the name is none of ``FORMATS``."""
    if name not in FORMATS:
        raise BadArgument(f"sparse_format={name!r} is none of {', '.join(FORMATS)}.")
    return FORMATS[name]


def _as_format(x: BCOO, format: Any, diagonal: bool = True) -> Any:
    """``x``, whose entries must be sorted, in another format; ``diagonal`` says that its columns are sorted, too."""
    if format is BCOO:
        return x
    if format is BCSR:
        return BCSR.from_bcoo(x)
    if format is CSC:
        return _as_format(x.transpose().sort_indices(), CSR).transpose()
    if x.ndim != 2 or x.n_sparse != 2:
        raise NotSparse(f"{format.__name__}: it has two sparse dimensions, got {x}.")
    row, col = x.indices[:, 0], x.indices[:, 1]
    if format is COO:
        return COO((x.data, row, col), shape=x.shape, rows_sorted=True, cols_sorted=diagonal)
    return CSR((x.data, col, pointers_of(row, x.shape[0])), shape=x.shape)


FORMATS = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}
