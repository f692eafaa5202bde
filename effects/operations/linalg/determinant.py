"""The determinant of a matrix, and its logarithm."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np

from ...base.stack import perform
from ...core.arrays import as_array, scalar
from ...core.operation import operation
from ...types.dtypes import int32, is_complex, to_real
from ..dot_general import Precision, dot_general
from ..elementwise.arithmetic import abs as absolute
from ..elementwise.arithmetic import like, sign
from ..elementwise.bitwise import bitwise_and
from ..elementwise.comparison import eq, ne, select
from ..elementwise.complex_parts import real
from ..elementwise.conversion import convert
from ..elementwise.transcendental import log
from ..foundations.shapes import broadcast_in_dim, full, reduce_sum
from ..manipulation.creation import broadcasted_iota
from ..manipulation.last_axes import OnLastAxes
from ..manipulation.rearranging import stack
from ..manipulation.slicing import index_in_dim, slice_in_dim
from ..reductions.reductions import reduce_prod
from .lu import Lu, factorisation_flops
from .matrices import LAPACK, check_matrices, diagonal, identity, rows_at, triangle
from .solve import solve
from .triangular import triangular_solve


def _entry(x: Any, i: int, j: int) -> Any:
    """``x[..., i, j]``."""
    rank = x.ndim
    return index_in_dim(index_in_dim(x, i, rank - 2, keepdims=False), j, rank - 2, keepdims=False)


def _cofactor(x: Any, i: int, j: int) -> Any:
    """The cofactor of ``x[i, j]``, the determinant's derivative by it, for matrices of at most three rows."""
    n = x.type.shape[-1]
    if n == 1:
        return full(x.type.update(shape=x.type.shape[:-2]), 1)
    if n == 2:
        other = _entry(x, 1 - i, 1 - j)
        return other if i == j else -other
    a, b, c, d = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3)  # cyclic: the sign is in the order
    return _entry(x, a, c) * _entry(x, b, d) - _entry(x, a, d) * _entry(x, b, c)


def _expanded(x: Any) -> Any:
    """The determinant of matrices of one to three rows, by cofactors of the first row."""
    return reduce(operator.add, [_entry(x, 0, j) * _cofactor(x, 0, j) for j in range(x.type.shape[-1])])


def _parity(pivots: Any, dtype: Any) -> Any:
    """The determinant of the row permutation that ``pivots`` describes: 1 or -1."""
    axis = pivots.ndim - 1
    count = reduce_sum(convert(ne(pivots, broadcasted_iota(int32, pivots.type.shape, axis)), int32), (axis,))
    odd = convert(bitwise_and(count, scalar(1, int32)), dtype)
    return scalar(1, dtype) - scalar(2, dtype) * odd


def _by_factors(x: Any) -> Any:
    """The determinant from the LU factors."""
    lu, pivots, _ = perform(Lu(), x)
    return reduce_prod(diagonal(lu), (pivots.ndim - 1,)) * _parity(pivots, x.type.dtype)


def _reflected(x: Any) -> Any:
    """``x (1 - 2 w w^T)`` with a dense unit vector w: the determinant is minus that of ``x``, zero pivots of LU come
    last.

    This holds for almost all w, however the rows and columns of a singular ``x`` depend on each other.
    """
    n, rank = x.type.shape[-1], x.ndim
    dense = np.sqrt(np.arange(2.0, n + 2)) % 1 + 0.5
    w = as_array((dense * np.sqrt(2 / (dense @ dense))).astype(x.type.dtype))
    along = dot_general(x, w, (((rank - 1,), (0,)), ((), ())), Precision.HIGHEST)
    shape = x.type.shape
    return x - broadcast_in_dim(along, shape, tuple(range(rank - 1))) * broadcast_in_dim(w, shape, (rank - 1,))


def _derivative(x: Any, dx: Any) -> tuple[Any, Any]:
    """The determinant and its derivative ``trace(det(x) x^-1 dx)``, also for singular matrices.

    In ``det(x) x^-1`` the last pivot cancels, so that it is never divided by.
    """
    n, rank = x.type.shape[-1], x.ndim
    if n <= 3:
        rows = [stack([_cofactor(x, i, j) for j in range(n)], rank - 2) for i in range(n)]
        return _expanded(x), reduce_sum(stack(rows, rank - 2) * dx, (rank - 2, rank - 1))
    lu, pivots, permutation = perform(Lu(), _reflected(x))
    pivot = diagonal(lu)
    others = slice_in_dim(pivot, 0, n - 1, axis=rank - 2)
    minor = -(reduce_prod(others, (rank - 2,)) * _parity(pivots, x.type.dtype))
    y = minor * index_in_dim(pivot, n - 1, rank - 2, keepdims=False)
    shape, lanes = x.type.shape, tuple(range(rank - 2))
    last = eq(broadcasted_iota(int32, shape, rank - 2), scalar(n - 1, int32))
    scale = select(last, broadcast_in_dim(minor, shape, lanes), broadcast_in_dim(y, shape, lanes))
    left = triangular_solve(
        lu, rows_at(_reflected(dx), permutation), left_side=True, lower=True, unit_diagonal=True
    )
    unit = identity(lu.type)
    upper = select(last, unit, triangle(lu, upper=True))
    flat = bitwise_and(eq(unit, like(unit, 1)), eq(upper, like(upper, 0)))  # if a second pivot is 0, all minors are 0
    upper = select(flat, unit, upper)
    return y, reduce_sum(diagonal(triangular_solve(upper, scale * left, left_side=True)), (rank - 2,))


# y = det x
@operation
class Determinant(OnLastAxes):
    dtypes = LAPACK
    flops = factorisation_flops

    def result_type(op, x):
        check_matrices("det", x, square=True)
        return x.update(shape=x.shape[:-2])

    def evaluate(op, x):
        return np.asarray(np.linalg.det(x), x.dtype)

    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        if not x.type.size:
            return perform(op, x), None
        return _derivative(x, dx)

    def decompose(op, x):
        if not x.type.size:
            return full(op.result_type(x.type), 1)
        return _expanded(x) if x.type.shape[-1] <= 3 else _by_factors(x)


# (sign, log|det x|), det x = sign exp(log|det x|)
@operation
class LogDeterminant(OnLastAxes):
    multiple_results = True
    dtypes = LAPACK
    flops = factorisation_flops

    def result_type(op, x):
        check_matrices("slogdet", x, square=True)
        y = x.update(shape=x.shape[:-2])
        return y, y.update(dtype=to_real(x.dtype))

    def evaluate(op, x):
        sign, size = np.linalg.slogdet(x)
        sign = np.where(np.isnan(size), sign * np.nan, sign)  # LAPACK counts signs, and NaN is not less than 0
        return np.asarray(sign, x.dtype), np.asarray(size, to_real(x.dtype))

    def jvp(op, primals, tangents):
        # d log det x = trace(x^-1 dx); its imaginary part turns the sign
        (x,), (dx,) = primals, tangents
        y, size = perform(op, x)
        if not x.type.size:
            return (y, size), (None, None)
        change = reduce_sum(diagonal(solve(x, dx)), (x.ndim - 2,))
        if not is_complex(x.type.dtype):
            return (y, size), (None, change)
        return (y, size), ((change - convert(real(change), change.type.dtype)) * y, real(change))

    def decompose(op, x):
        if not x.type.size:
            sign_type, size_type = op.result_type(x.type)
            return full(sign_type, 1), full(size_type, 0)
        return _logarithm_by_factors(x)


def _logarithm_by_factors(x: Any) -> tuple[Any, Any]:
    """The sign of the determinant, and the logarithm of its absolute value, from the LU factors."""
    lu, pivots, _ = perform(Lu(), x)
    pivot, axis = diagonal(lu), pivots.ndim - 1
    y = reduce_prod(sign(pivot), (axis,)) * _parity(pivots, x.type.dtype)
    return y, reduce_sum(log(absolute(pivot)), (axis,))


def det(x: Any) -> Any:
    """The determinants of square matrices. Derivatives are exact unless more than one pivot is 0."""
    return perform(Determinant(), x)


def slogdet(x: Any) -> Any:
    """The sign (for complex matrices, the phase) of determinants, and the logarithm of their absolute value."""
    return perform(LogDeterminant(), x)
