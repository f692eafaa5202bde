"""LU factorisation with partial pivoting, and the permutation of the rows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import Array, as_array, scalar
from ...core.columns import data_movement, zero
from ...core.operation import operation, shared
from ...types.array_type import array_type
from ...types.dtypes import int32
from ...types.sized import smaller
from ..elementwise.arithmetic import add, like
from ..elementwise.comparison import eq, lt, select
from ..foundations.foreign_call import ForeignCall
from ..foundations.shapes import broadcast_in_dim
from ..indexing.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from ..manipulation.creation import broadcasted_iota
from ..manipulation.last_axes import OnLastAxes
from ..reductions.sorting import Sort, take_along_axis
from .lapack import Factorisation, Routine, each_matrix, info_type, or_nan
from .matrices import check_matrices, identity, product, resized, rows_at, triangle
from .triangular import triangular_solve

GETRF = Routine("getrf", cuda="cusolver_getrf_ffi")


def factorisation_flops(op, operands, results):
    """The cost in multiplications: about m n min(m, n) / 3."""
    *_, m, n = operands[0].shape
    return operands[0].size * min(m, n) // 3


# x[permutation] = l u: (lu, pivots, permutation); lu holds l, with unit diagonal, below its diagonal, u in the rest;
# row i was exchanged with row pivots[i] >= i, for i in order
@operation
class Lu(Factorisation):
    flops = factorisation_flops

    def result_type(op, x):
        check_matrices("lu", x)
        *lanes, m, n = x.shape
        return x, array_type((*lanes, smaller(m, n)), int32), array_type((*lanes, m), int32)

    def evaluate(op, x):
        factors, pivots = each_matrix(GETRF.on_host(x.dtype), op.types_for(x)[:2], x)
        return factors, pivots, permuted(pivots, x.shape[-2])

    def jvp(op, primals, tangents):
        lu, pivots, permutation = perform(op, *primals)
        return (lu, pivots, permutation), (_tangent(lu, rows_at(tangents[0], permutation)), None, None)

    def lower(op, emit, x):
        _, pivots, permutation = emit.made
        lu, swaps, info = GETRF(emit, x, types=(x.type, pivots, info_type(x)), into={0: 0})
        swaps = emit.binary("subtract", swaps, emit.full(1, pivots))
        return *or_nan(emit, info, [lu], singular=True), swaps, _emit_permutation(emit, swaps, permutation)


def _tangent(lu: Any, dx: Any) -> Any:
    """The tangents of both factors, stored in one matrix as the factors are, from the permuted tangent of the matrix.

        dl = l tril(l^-1 dx u^-1, -1)      du = triu(l^-1 dx u^-1) u

    A factor that is not square is extended by columns or rows of the identity. Source: de Hoog, Anderssen & Lukas,
    Differentiation of matrix functionals using triangular factorization (2011).
    """
    *lanes, m, n = lu.type.shape
    k = smaller(m, n)
    l = resized(triangle(resized(lu, m, k), 1), m, m) + identity(lu.type.update(shape=(*lanes, m, m)))
    u = resized(triangle(resized(lu, k, n), 0, upper=True), n, n)
    if k < n:
        rest = identity(lu.type.update(shape=(*lanes, n, n)))
        u = u + (rest - resized(resized(rest, k, k), n, n))
    left = triangular_solve(l, dx, left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(u, left)
    return product(l, triangle(inner, 1)) + product(triangle(inner, 0, upper=True), u)


def lu_solve(lu: Any, permutation: Any, b: Any, transpose: bool = False, conjugate: bool = False) -> Any:
    """The solution of ``x y = b``, or with the transpose or adjoint of ``x``, from the factors of ``x``."""
    solve = lambda b, lower: triangular_solve(
        lu, b, left_side=True, lower=lower, unit_diagonal=lower, transpose_a=transpose, conjugate_a=conjugate
    )
    if not transpose:
        return solve(solve(rows_at(b, permutation), True), False)
    positions = broadcasted_iota(int32, permutation.type.shape, permutation.ndim - 1)
    inverse = perform(Sort(permutation.ndim - 1, False, 1), permutation, positions)[1]
    return rows_at(solve(solve(b, False), True), inverse)


def permuted(pivots: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """The permutation of ``range(size)`` made by swapping positions i and pivots[i], for i in order."""
    lanes, count = pivots.shape[:-1], pivots.shape[-1]
    if not lanes:
        order = list(range(size))
        for i, j in enumerate(pivots.tolist()):
            order[i], order[j] = order[j], order[i]
        return np.array(order, int32)
    y = np.empty((*lanes, size), int32)
    y[...] = np.arange(size)
    each = np.arange(prod(lanes))
    rows, swaps = y.reshape(len(each), size), pivots.reshape(len(each), count)
    for i in range(count):
        j = swaps[:, i]
        rows[:, i], rows[each, j] = rows[each, j], rows[:, i].copy()
    return y


# y = 0, ..., size - 1 after swapping the elements at i and pivots[i], for i in order
@operation
class LuPivotsToPermutation(OnLastAxes):
    size: int
    last_axes = 1
    dtypes = frozenset({int32})
    flops = data_movement
    jvp = zero

    def result_type(op, pivots):
        if pivots.dtype != int32:
            raise DTypeMismatch(f"lu_pivots_to_permutation: pivots must be of dtype int32, got {pivots}.")
        if not pivots.shape:
            raise ShapeMismatch("lu_pivots_to_permutation: pivots must be vectors, got a scalar.")
        if pivots.shape[-1] > op.size:
            raise BadArgument(
                f"lu_pivots_to_permutation: there must not be more pivots than rows, got {pivots} for {op.size} rows."
            )
        return array_type((*pivots.shape[:-1], op.size), int32)

    def evaluate(op, pivots):
        return permuted(pivots, op.size)

    def lower(op, emit, pivots):
        return _emit_permutation(emit, pivots, emit.made)


def _emit_permutation(emit: Any, pivots: Any, out: Any) -> Any:
    """The permutation, of type ``out``, by a loop over the swaps."""
    axis, count = len(out.shape) - 1, pivots.type.shape[-1]
    rows = emit.iota(out, axis)
    if not out.size or not count:
        return rows
    if emit.platform == "cuda":
        return emit.foreign_call(ForeignCall("cu_lu_pivots_to_permutation", [out], batch_dims=axis), [pivots])[0]

    def exchange(i: Any, pivots: Any, rows: Any) -> Any:
        j, at_i = dynamic_slice_in_dim(pivots, i, 1, axis), dynamic_slice_in_dim(rows, i, 1, axis)
        at_j = take_along_axis(rows, j, axis)
        dims = range(axis + 1)
        iotas = broadcasted_iota(int32, out.shape, axis)
        moved = select(eq(iotas, broadcast_in_dim(j, out.shape, dims)), broadcast_in_dim(at_i, out.shape, dims), rows)
        return [add(i, scalar(1, int32)), pivots, dynamic_update_slice_in_dim(moved, at_j, i, axis)]

    start = emit.constant(0, array_type((), int32))
    return emit.loop(lambda i, pivots, rows: lt(i, like(i, count)), exchange, start, pivots, rows)[2]


def lu(x: Any) -> Any:
    """LU factorisation with partial pivoting: ``lu, pivots, permutation``.

        x[permutation] == l @ u        l = tril(lu, -1) + eye(m, n), u = triu(lu)

    Row ``i`` was exchanged with row ``pivots[i]``, for ``i`` in order. The factor ``u`` of a singular matrix has a zero
    on its diagonal. Shapes: ``x[*s, m, n] -> lu[*s, m, n], pivots[*s, min(m, n)], permutation[*s, m]``. Raises:
    ShapeMismatch: no matrices. DTypeMismatch: neither 32- nor 64-bit floats or complex numbers. Source: LAPACK,
    ``getrf``.

    >>> factors, pivots, permutation = lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors, permutation
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float64), Array([1, 0], dtype=int32))
    """
    return perform(Lu(), as_array(x))


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The permutation of rows made by exchanging row ``i`` with row ``pivots[i]``, for ``i`` in order.

    Shapes: ``i32[*s, k] -> i32[*s, permutation_size]``, where ``k <= permutation_size``.

    >>> lu_pivots_to_permutation(np.array([2, 2], "int32"), 3)
    Array([2, 0, 1], dtype=int32)
    """
    return perform(shared(LuPivotsToPermutation, int(permutation_size)), as_array(pivots))
