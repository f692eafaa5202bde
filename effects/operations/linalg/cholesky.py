"""The Cholesky factor of a positive definite matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.stack import perform
from ...core.arrays import Array, as_array, scalar
from ...core.columns import add_tangents
from ...core.operation import operation
from ...types.array_type import array_type
from ..elementwise.arithmetic import div
from ..manipulation.last_axes import EachMatrix
from .lapack import Routine, each_matrix, info_type, or_nan
from .matrices import LAPACK, adjoint, check_matrices, halved_diagonal, product, triangle
from .triangular import solve_flops, triangular_solve

POTRF = Routine("potrf", cuda="cusolver_potrf_ffi")


# l l^H = x, l lower triangular; only the lower triangle of x is read; NaN where x is not positive definite
@operation
class Cholesky(EachMatrix):
    dtypes = LAPACK

    def result_type(op, x):
        check_matrices("cholesky", x, square=True)
        return x

    def evaluate(op, x):
        factor = POTRF.on_host(x.dtype)

        def lower(x: Any) -> Any:
            l, info = factor(x, lower=True)
            return [np.tril(np.full_like(l, np.nan)) if info else l]

        return each_matrix(lower, [array_type(x.shape, x.dtype)], x)[0]

    def jvp(op, primals, tangents):
        # dl = l phi(l^-1 dx l^-H), phi halving the diagonal of the lower triangle
        (x,), (dx,) = primals, tangents
        l = perform(op, x)
        half = halved_diagonal(dx)
        both = add_tangents(half, adjoint(half))
        right = triangular_solve(l, both, lower=True, transpose_a=True, conjugate_a=True)
        inner = triangular_solve(l, right, left_side=True, lower=True)
        return l, triangle(product(l, halved_diagonal(inner)))

    def lower(op, emit, x):
        l, info = POTRF(
            emit, x, types=[x.type, info_type(x)], into={0: 0}, attributes={"uplo": "L"}, cuda={"lower": True}
        )
        return emit.decompose(triangle, *or_nan(emit, info, [l]))

    flops = solve_flops



def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
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
    check_matrices("cholesky", x.type, square=True)
    if symmetrize_input:
        x = div(x + adjoint(x), scalar(2, x.type.dtype))
    return perform(Cholesky(), x)
