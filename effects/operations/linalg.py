"""Linear algebra on the last two dimensions: the Cholesky factor, and linear systems with a triangular matrix."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..base.caches import once
from ..base.errors import DTypeMismatch, ShapeMismatch
from ..base.stack import perform
from ..core.arrays import as_array, as_arrays, scalar
from ..core.columns import add_tangents
from ..core.operation import operation, shared
from ..types.array_type import ArrayType, array_type
from ..types.dtypes import COMPLEX, complex64, complex128, float32, float64, int32, is_complex
from .dot_general import Precision, batch_matmul
from .elementwise.arithmetic import abs as absolute
from .elementwise.arithmetic import div, like, mul, sqrt, sub
from .elementwise.bitwise import bitwise_and, bitwise_or
from .elementwise.comparison import eq, ge, gt, lt, ne, select_n
from .elementwise.complex_parts import conj, real
from .elementwise.conversion import convert
from .foundations.shapes import broadcast_in_dim, move_axis, permute, reshape
from .indexing.dynamic_slicing import dynamic_slice_in_dim
from .manipulation.creation import broadcasted_iota
from .manipulation.slicing import axis_at
from .reductions.reductions import reduce_and, reduce_max, reduce_or

LAPACK = frozenset({float32, float64, complex64, complex128})


def flipped(x: Any) -> Any:
    """The last two dimensions exchanged."""
    rank = len(x.type.shape)
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return conj(flipped(x)) if is_complex(x.type.dtype) else flipped(x)


def _triangle(x: Any, offset: int = 0, upper: bool = False) -> Any:
    """``x`` with zeros outside the lower triangle, row - column >= offset, or the upper one, column - row >= offset."""
    shape = x.type.shape
    rank, size = len(shape), shape[-2:]
    rows, columns = broadcasted_iota("int32", size, 0), broadcasted_iota("int32", size, 1)
    first, second = (columns, rows) if upper else (rows, columns)
    mask = ge(first, second + offset if offset else second)
    if rank > 2:
        mask = broadcast_in_dim(mask, shape, (rank - 2, rank - 1))
    return select_n(mask, scalar(0, x.type.dtype, x.type.weak), x)


def _halved_diagonal(x: Any) -> Any:
    """The lower triangle of ``x``, the diagonal halved."""
    size = x.type.shape[-2:]
    same = broadcasted_iota("int32", size, 0) == broadcasted_iota("int32", size, 1)
    weights = div(scalar(1, x.type.dtype), convert(same, x.type.dtype) + scalar(1, x.type.dtype))
    rank = len(x.type.shape)
    if rank > 2:
        weights = broadcast_in_dim(weights, x.type.shape, (rank - 2, rank - 1))
    return mul(_triangle(x), weights)


def _or_nan(l: Any) -> Any:
    """A factor that XLA computed, or NaN where a pivot was not positive; of 0 it makes numbers."""
    shape = l.type.shape
    rank, size = len(shape), shape[-2:]
    same = broadcasted_iota("int32", size, 0) == broadcasted_iota("int32", size, 1)
    pivots = select_n(broadcast_in_dim(same, shape, (rank - 2, rank - 1)), like(l, 1), l)
    pivots = real(pivots) if is_complex(l.type.dtype) else pivots
    whole = reduce_and(gt(pivots, like(pivots, 0)), (rank - 2, rank - 1))
    return select_n(broadcast_in_dim(whole, shape, tuple(range(rank - 2))), like(l, np.nan), l)


def _has_infinite_pivots(x: Any) -> Any:
    """1 if an element of a diagonal is infinite, else 0."""
    rows, columns = (broadcasted_iota("int32", x.type.shape, len(x.type.shape) - d) for d in (2, 1))
    x = real(x) if is_complex(x.type.dtype) else x
    found = bitwise_and(eq(rows, columns), eq(x, like(x, np.inf)))
    return convert(reduce_or(found, tuple(range(len(x.type.shape)))), int32)


def _factor_by_columns(emit: Any, x: Any) -> Any:
    """The Cholesky factor, in its lower triangle, one column after the other, as LAPACK computes it."""
    rank, size, dtype = len(x.type.shape), x.type.shape[-1], x.type.dtype
    dims = tuple(range(rank))

    def step(k: Any, a: Any) -> Any:
        column = dynamic_slice_in_dim(a, k, 1, rank - 1)
        pivot = dynamic_slice_in_dim(column, k, 1, rank - 2)
        root = sqrt(real(pivot) if is_complex(dtype) else pivot)
        scaled = mul(column, broadcast_in_dim(convert(div(like(root, 1), root), dtype), column.type.shape, dims))
        rows = broadcasted_iota("int32", column.type.shape, rank - 2)
        below = select_n(gt(rows, k), like(scaled, 0), scaled)
        done = select_n(eq(rows, k), below, broadcast_in_dim(convert(root, dtype), column.type.shape, dims))
        shape = a.type.shape
        rest = sub(a, mul(broadcast_in_dim(below, shape, dims), broadcast_in_dim(adjoint(below), shape, dims)))
        here = eq(broadcasted_iota("int32", shape, rank - 1), k)
        return [k + scalar(1, int32), select_n(here, rest, broadcast_in_dim(done, shape, dims))]

    counter = emit.constant(0, array_type((), int32))
    return emit.loop(lambda k, a: lt(k, scalar(size, int32)), step, counter, x)[1]


def _check_square(name: str, x: ArrayType) -> None:
    """Raise DTypeMismatch or ShapeMismatch unless these are square matrices of a dtype of LAPACK."""
    if x.dtype not in LAPACK:
        raise DTypeMismatch(f"{name}: matrices must be of 32- or 64-bit floats or complex numbers of these, got {x}.")
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeMismatch(f"{name}: the last two dimensions must form a square matrix, got {x}.")


def _factor(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The Cholesky factor of one matrix, NaN where there is none."""
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return np.tril(np.full_like(x, np.nan))


def _flops(op, operands, results):
    """One multiplication for each pair of an element of the result and a row of the matrix."""
    return results[0].size * operands[0].shape[-1]


# l l^H = x, l lower triangular; only the lower triangle of x is read; NaN where x is not positive definite
@operation
class Cholesky:
    dtypes = LAPACK

    def result_type(op, x):
        _check_square("cholesky", x)
        return x

    def evaluate(op, x):
        try:
            return np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            return np.stack([_factor(m) for m in x.reshape((-1, *x.shape[-2:]))]).reshape(x.shape)

    def batch(op, dims, x):
        return perform(op, move_axis(x, dims[0], 0)), 0

    def jvp(op, primals, tangents):
        # dl = l phi(l^-1 dx l^-H), phi halving the diagonal of the lower triangle
        (x,), (dx,) = primals, tangents
        l = perform(op, x)
        half = _halved_diagonal(dx)
        both = add_tangents(half, adjoint(half))
        right = triangular_solve(l, both, lower=True, transpose_a=True, conjugate_a=True)
        inner = triangular_solve(l, right, left_side=True, lower=True)
        return l, _triangle(batch_matmul(l, _halved_diagonal(inner), Precision.HIGHEST))

    def lower(op, emit, x):
        attributes, out = "lower = true", emit.made
        if not x.type.size:
            return emit.op("cholesky", x, attributes=attributes)
        # XLA divides a pivot by its root: an infinite one becomes NaN
        infinite = emit.decompose(_has_infinite_pivots, x)
        whole = lambda: [emit.op("cholesky", x, attributes=attributes, type=out)]
        y = emit.case(infinite, [whole, lambda: [_factor_by_columns(emit, x)]], [out])[0]
        return emit.decompose(lambda y: [_triangle(_or_nan(y))], y)[0]

    flops = _flops


_cholesky = Cholesky()


@once
def _blas() -> Any:
    return import_module("scipy.linalg.blas")


# op(a) y = b, or y op(a) = b; op(a) is a, its conjugate, transpose or adjoint, and a is triangular
@operation
class TriangularSolve:
    left_side: bool
    lower: bool
    transpose_a: bool
    conjugate_a: bool
    unit_diagonal: bool
    dtypes = LAPACK

    def result_type(op, a, b):
        _check_square("triangular_solve", a)
        if a.dtype != b.dtype:
            raise DTypeMismatch(f"triangular_solve: operands must have one dtype, got {a} and {b}.")
        side = -2 if op.left_side else -1
        if len(a.shape) != len(b.shape) or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[side]:
            line = "row" if op.left_side else "column"
            raise ShapeMismatch(
                f"triangular_solve: b must have a {line} for each row of a, and its leading sizes, got {a} and {b}."
            )
        return b

    def evaluate(op, a, b):
        solve = getattr(_blas(), {"f": "s", "d": "d", "F": "c", "D": "z"}[a.dtype.char] + "trsm")
        matrix = np.conj(a) if op.conjugate_a and not op.transpose_a else a
        mode = (2 if op.conjugate_a else 1) if op.transpose_a else 0
        y = np.empty(b.shape, b.dtype)
        for i in np.ndindex(a.shape[:-2]) if b.size else ():
            y[i] = solve(
                1.0, matrix[i], b[i], side=not op.left_side, lower=op.lower, trans_a=mode, diag=op.unit_diagonal
            )
        return y

    def batch(op, dims, a, b):
        p, q = dims
        if p is not None:
            size = a.type.shape[p]
            return perform(op, axis_at(a, p, 0, size), axis_at(b, q, 0, size)), 0
        rank = len(a.type.shape)
        if op.left_side:  # lanes become columns of one system
            wide = move_axis(b, q, rank)
            lanes = wide.type.shape
            y = perform(op, a, reshape(wide, (*lanes[:-2], lanes[-2] * lanes[-1])))
            return reshape(y, lanes), rank
        wide = move_axis(b, q, rank - 2)
        lanes = wide.type.shape
        y = perform(op, a, reshape(wide, (*lanes[: rank - 2], lanes[-3] * lanes[-2], lanes[-1])))
        return reshape(y, lanes), rank - 2

    def jvp(op, primals, tangents):
        # op(a) dy = db - op(da) y
        (a, b), (da, db) = primals, tangents
        y = perform(op, a, b)
        if da is not None:
            read = _triangle(da, int(op.unit_diagonal), not op.lower)
            read = flipped(read) if op.transpose_a else read
            read = conj(read) if op.conjugate_a and is_complex(read.type.dtype) else read
            pair = (read, y) if op.left_side else (y, read)
            product = batch_matmul(*pair, Precision.HIGHEST)
            db = -product if db is None else sub(db, product)
        return y, None if db is None else perform(op, a, db)

    def transpose(op, ct, a, b, *, wrt):
        other = shared(TriangularSolve, op.left_side, op.lower, not op.transpose_a, op.conjugate_a, op.unit_diagonal)
        return perform(other, a, ct)

    def lower(op, emit, a, b):  # type: ignore[no-redef]  # the rule; the field of this name is BLAS's
        mode = "NO_TRANSPOSE" if not op.transpose_a else "ADJOINT" if op.conjugate_a else "TRANSPOSE"
        if op.conjugate_a and not op.transpose_a and a.type.dtype in COMPLEX:
            a = emit.decompose(lambda a: [conj(a)], a)[0]
        flags = (("left_side", op.left_side), ("lower", op.lower), ("unit_diagonal", op.unit_diagonal))
        flags_text = ", ".join([f"{name} = {'true' if flag else 'false'}" for name, flag in flags])
        attributes = f"{flags_text}, transpose_a = #stablehlo<transpose {mode}>"
        out = emit.made
        if not a.type.size or not b.type.size:
            return emit.op("triangular_solve", a, b, attributes=attributes)

        def solve() -> list[Any]:
            return [emit.op("triangular_solve", a, b, attributes=attributes, type=out)]

        # XLA multiplies by inverses of blocks, whose infinities and NaNs spread to elements that have none of them
        regular = emit.decompose(lambda a: _is_regular(op, a), a)
        return emit.case(regular, [lambda: [_substitute(op, emit, a, b)], solve], [out])[0]

    flops = _flops


def _is_regular(op: Any, a: Any) -> Any:
    """1 if the triangle that is read has finite elements, of which those of the diagonal are not 0; else 0."""
    read = _triangle(a, int(op.unit_diagonal), not op.lower)
    size = absolute(read)
    everything = tuple(range(len(a.type.shape)))
    wrong = convert(ne(size - size, like(size, 0)), int32)
    if not op.unit_diagonal:
        rows, columns = (broadcasted_iota("int32", a.type.shape, d) for d in everything[-2:])
        wrong = bitwise_or(wrong, convert(bitwise_and(eq(rows, columns), eq(size, like(size, 0))), int32))
    return convert(eq(reduce_max(wrong, everything), scalar(0, int32)), int32)


def _substitute(op: Any, emit: Any, a: Any, b: Any) -> Any:
    """The solution by substitution, one row after the other, as BLAS computes it."""
    rank, size = len(a.type.shape), a.type.shape[-1]
    forwards = op.lower != op.transpose_a
    if not op.left_side:  # y op(a) = b is op(a)^T y^T = b^T
        forwards = not forwards

    def start(a: Any, b: Any) -> Any:
        turned = op.transpose_a == op.left_side
        a = flipped(a) if turned else a
        conjugate = op.conjugate_a and op.transpose_a and is_complex(a.type.dtype)
        return [conj(a) if conjugate else a, b if op.left_side else flipped(b)]

    def step(i: Any, a: Any, y: Any) -> Any:
        k = i if forwards else scalar(size - 1, int32) - i
        column, row = dynamic_slice_in_dim(a, k, 1, rank - 1), dynamic_slice_in_dim(y, k, 1, rank - 2)
        if not op.unit_diagonal:
            divisor = dynamic_slice_in_dim(column, k, 1, rank - 2)
            row = div(row, broadcast_in_dim(divisor, row.type.shape, tuple(range(rank))))
        rows = broadcasted_iota("int32", y.type.shape, rank - 2)
        dims = tuple(range(rank))
        rest = sub(y, mul(broadcast_in_dim(column, y.type.shape, dims), broadcast_in_dim(row, y.type.shape, dims)))
        later = gt(rows, k) if forwards else lt(rows, k)
        solved = select_n(eq(rows, k), y, broadcast_in_dim(row, y.type.shape, dims))
        return [i + scalar(1, int32), a, select_n(later, solved, rest)]

    a, b = emit.decompose(start, a, b)
    counter = emit.constant(0, array_type((), int32))
    y = emit.loop(lambda i, a, y: lt(i, scalar(size, int32)), step, counter, a, b)[2]
    return y if op.left_side else emit.decompose(lambda y: [flipped(y)], y)[0]


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular factor of Hermitian positive definite matrices.

        l @ l^H == x

    Shapes: ``x[*s, n, n] -> l[*s, n, n]``. A matrix that is not positive definite gives NaNs.
    The derivative takes ``x`` as Hermitian.

    Args:
        symmetrize_input: factor ``(x + x^H) / 2``; otherwise only the lower triangle of ``x`` is read.
    Raises: ShapeMismatch: the last two dimensions differ. DTypeMismatch: neither 32- nor 64-bit floats.
    Source: I. Murray, Differentiation of the Cholesky decomposition (2016), section 3.1.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float64)
    """
    x = as_array(x)
    _check_square("cholesky", x.type)
    if symmetrize_input:
        x = div(x + adjoint(x), scalar(2, x.type.dtype))
    return perform(_cholesky, x)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solve ``op(a) y = b``, or ``y op(a) = b``, for a triangular matrix ``a``.

    Shapes: ``a[*s, m, m]``, ``b[*s, m, n]`` if ``left_side``, else ``b[*s, n, m]``; ``n`` may be missing.

    Args:
        left_side: the matrix stands on the left of the unknown.
        lower: which triangle of ``a`` is read.
        transpose_a, conjugate_a: ``op(a)`` is the transpose, the conjugate, or both.
        unit_diagonal: the diagonal is taken to be ones and not read.
    Raises: ShapeMismatch: sizes do not agree. DTypeMismatch: dtypes differ, or are neither 32- nor 64-bit floats.

    >>> triangular_solve(np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0]), left_side=True, lower=True)
    Array([1., 2.], dtype=float64)
    """
    a, b = as_arrays(a, b)
    vector = len(b.type.shape) == len(a.type.shape) - 1
    if vector:
        shape = b.type.shape
        b = reshape(b, (*shape, 1) if left_side else (*shape[:-1], 1, shape[-1]))
    conjugate = bool(conjugate_a) and is_complex(a.type.dtype)
    op = shared(TriangularSolve, bool(left_side), bool(lower), bool(transpose_a), conjugate, bool(unit_diagonal))
    y = perform(op, a, b)
    return reshape(y, shape) if vector else y
