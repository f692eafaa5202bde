"""Functions of matrices in the last two dimensions: triangles, transposes, products, and checks of shapes."""

from __future__ import annotations

from typing import Any

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import scalar
from ...types.array_type import ArrayType
from ...types.dtypes import complex64, complex128, float32, float64, is_complex
from ..dot_general import Precision, batch_matmul
from ..elementwise.arithmetic import like
from ..elementwise.comparison import eq, ge, select, select_n
from ..elementwise.complex_parts import conj, real
from ..elementwise.conversion import convert
from ..foundations.shapes import broadcast_in_dim, move_axis, permute, reduce_sum, reshape
from ..indexing.gather_scatter import gather
from ..indexing.gather_windows import GatherDimensionNumbers
from ..manipulation.creation import broadcasted_iota
from ..manipulation.slicing import lanes_first, pad

LAPACK = frozenset({float32, float64, complex64, complex128})


def check_matrices(name: str, x: ArrayType, square: bool = False) -> None:
    """Check that a type is one of matrices, optionally square, of a dtype of LAPACK. Raises: DTypeMismatch,
    ShapeMismatch.
    """
    if x.dtype not in LAPACK:
        raise DTypeMismatch(f"{name}: matrices must be of 32- or 64-bit floats or complex numbers of these, got {x}.")
    if len(x.shape) < 2:
        raise ShapeMismatch(f"{name}: the last two dimensions must form a matrix, got {x}.")
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeMismatch(f"{name}: the last two dimensions must form a square matrix, got {x}.")


def flipped(x: Any) -> Any:
    """The transpose: the last two dimensions exchanged."""
    rank = len(x.type.shape)
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return conj(flipped(x)) if is_complex(x.type.dtype) else flipped(x)


def real_part(x: Any) -> Any:
    """The real part of complex numbers; real ones unchanged."""
    return real(x) if is_complex(x.type.dtype) else x


def product(a: Any, b: Any) -> Any:
    """The matrix product, in full precision."""
    return batch_matmul(a, b, Precision.HIGHEST)


def triangle(x: Any, offset: int = 0, upper: bool = False) -> Any:
    """``x`` with zeros outside the lower triangle, row - column >= offset; or the upper, column - row >= offset."""
    shape = x.type.shape
    rank, size = len(shape), shape[-2:]
    rows, columns = broadcasted_iota("int32", size, 0), broadcasted_iota("int32", size, 1)
    first, second = (columns, rows) if upper else (rows, columns)
    mask = ge(first, second + offset if offset else second)
    if rank > 2:
        mask = broadcast_in_dim(mask, shape, (rank - 2, rank - 1))
    return select_n(mask, scalar(0, x.type.dtype, x.type.weak), x)


def spoiled(x: Any) -> Any:
    """``x``, of which matrices with an element that is not finite are NaN throughout.

    LAPACK may iterate forever on infinities, and not report NaN that it has not met.
    """
    rank = len(x.type.shape)
    zeros = reduce_sum(x * like(x, 0), (rank - 2, rank - 1))
    return x + broadcast_in_dim(zeros, x.type.shape, tuple(range(rank - 2)))


def or_not_finite(info: Any, x: Any) -> Any:
    """``info``, replaced by 1 for matrices with elements that are not finite, for which LAPACK may report success."""
    zeros = x * like(x, 0)  # NaN where an element is not finite
    return select(eq(reduce_sum(zeros, (x.ndim - 2, x.ndim - 1)), scalar(0, x.dtype)), info, like(info, 1))


def identity(type: ArrayType) -> Any:
    """Identity matrices of this type."""
    rank, size = len(type.shape), type.shape[-2:]
    ones = convert(eq(broadcasted_iota("int32", size, 0), broadcasted_iota("int32", size, 1)), type.dtype)
    return broadcast_in_dim(ones, type.shape, (rank - 2, rank - 1)) if rank > 2 else ones


def halved_diagonal(x: Any) -> Any:
    """The lower triangle of ``x`` with its diagonal halved."""
    return triangle(x) / (identity(x.type) + like(x, 1))


def resized(x: Any, rows: int, columns: int) -> Any:
    """Matrices truncated to these numbers of rows and columns, or padded with zeros."""
    m, n = x.type.shape[-2:]
    gaps = [(0, 0, 0)] * (len(x.type.shape) - 2)
    return pad(x, scalar(0, x.type.dtype), [*gaps, (0, rows - m, 0), (0, columns - n, 0)])


def rows_at(x: Any, index: Any) -> Any:
    """``y[.., i, :] = x[.., index[.., i], :]``, for distinct indices."""
    if not x.type.size:
        return x
    lanes = tuple(range(len(x.type.shape) - 2))
    rows, columns = len(lanes), len(lanes) + 1
    numbers = GatherDimensionNumbers((columns,), (rows,), (rows,), lanes, lanes)
    index = reshape(index, (*index.type.shape, 1))
    return gather(x, index, numbers, (*[1] * columns, x.type.shape[-1]), unique_indices=True)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    rank = len(x.type.shape)
    rows, columns = (broadcasted_iota("int32", x.type.shape, rank - d) for d in (2, 1))
    return reduce_sum(select_n(eq(rows, columns), like(x, 0), x), (rank - 2,))


def columns_of(row: Any, size: int) -> Any:
    """``y[.., i, j] = row[.., j]``, with ``size`` rows."""
    *lanes, n = row.type.shape
    return broadcast_in_dim(row, (*lanes, size, n), (*range(len(lanes)), len(lanes) + 1))


def rows_of(column: Any, size: int) -> Any:
    """``y[.., i, j] = column[.., i]``, with ``size`` columns."""
    shape = column.type.shape
    return broadcast_in_dim(column, (*shape, size), tuple(range(len(shape))))


def conjugate_dot(a: Any, b: Any) -> Any:
    """``y[.., j]`` is the inner product of column ``j`` of ``a``, conjugated, and column ``j`` of ``b``."""
    a = conj(a) if is_complex(a.type.dtype) else a
    return reduce_sum(a * b, (len(a.type.shape) - 2,))


def batch_system(op: Any, dims: tuple[Any, ...], *operands: Any) -> tuple[Any, int]:
    """The batch rule of a solver of linear systems, whose last operand holds the right sides, the others the matrix.

    Lanes become leading dimensions; those of right sides alone become columns.
    """
    *matrix, b = operands
    if any([d is not None for d in dims[:-1]]):
        return perform(op, *lanes_first(operands, dims)), 0
    rank = b.ndim - 1
    wide = move_axis(b, dims[-1], rank)
    shape = wide.type.shape
    return reshape(perform(op, *matrix, reshape(wide, (*shape[:-2], shape[-2] * shape[-1]))), shape), rank


def inverse_gaps(w: Any, dtype: Any) -> Any:
    """``y[.., i, j] = 1 / (w[.., j] - w[.., i])`` with 0 on the diagonal; infinite for equal eigenvalues."""
    n = w.type.shape[-1]
    gaps = columns_of(w, n) - rows_of(w, n)
    one = identity(gaps.type)
    return convert(like(gaps, 1) / (gaps + one) - one, dtype)
