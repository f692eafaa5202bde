"""Linear systems with a general square matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.stack import perform
from ...core.operation import operation, shared
from ...types.array_type import array_type
from ..manipulation.last_axes import EachMatrix
from .lapack import each_matrix
from .lu import GETRF, Lu, factorisation_flops, lu_solve, permuted
from .matrices import LAPACK, batch_system, check_matrices, flipped, product
from .triangular import TRSM, check_beside


def _of_one(op: Solve, x: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any]]:
    """The solution for one matrix by its LU factors; infinite or NaN where a pivot is 0."""
    lu, pivots, _ = GETRF.on_host(x.dtype)(x)
    solve, order = TRSM.on_host(x.dtype), permuted(pivots, len(b))
    if not op.transposed:
        return (solve(1.0, lu, solve(1.0, lu, b[order], lower=True, diag=True)),)
    y = np.empty_like(b)
    y[order] = solve(1.0, lu, solve(1.0, lu, b, trans_a=1), lower=True, trans_a=1, diag=True)
    return (y,)


# x y = b, or with the transpose of x
@operation
class Solve(EachMatrix):
    transposed: bool
    dtypes = LAPACK
    flops = factorisation_flops

    def result_type(op, x, b):
        check_matrices("solve", x, square=True)
        check_beside("solve", "the right side", "the matrix", x, b)
        return b

    def evaluate(op, x, b):
        return each_matrix(lambda x, b: _of_one(op, x, b), [array_type(b.shape, b.dtype)], x, b)[0]

    batch = batch_system

    def jvp(op, primals, tangents):
        # x dy = db - dx y
        (x, b), (dx, db) = primals, tangents
        y = perform(op, x, b)
        if dx is not None:
            change = product(flipped(dx) if op.transposed else dx, y)
            db = -change if db is None else db - change
        return y, perform(op, x, db)  # the compiler factorises x once

    def transpose(op, ct, x, b, *, wrt):
        return perform(shared(Solve, not op.transposed), x, ct)

    def decompose(op, x, b):
        if not b.type.size:
            return b
        lu, _, permutation = perform(Lu(), x)
        return lu_solve(lu, permutation, b, op.transposed)


def solve(x: Any, b: Any) -> Any:
    """The solution y of ``x @ y == b``, for matrices with equal leading dimensions."""
    return perform(Solve(False), x, b)
