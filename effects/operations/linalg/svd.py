"""Singular value decomposition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base.errors import BadArgument, NotDifferentiable
from ...base.stack import perform
from ...core.arrays import as_array
from ...core.operation import operation, shared
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import to_real
from ...types.sized import smaller
from ..elementwise.arithmetic import like
from ..elementwise.comparison import eq, select_n
from ..elementwise.conversion import convert
from ..foundations.shapes import full
from ..manipulation.slicing import slice_in_dim
from .eigh import subset
from .lapack import Factorisation, Implementation, Routine, each_or_nan, info_type, no_implementation, or_nan
from .matrices import (
    adjoint,
    check_matrices,
    columns_of,
    conjugate_dot,
    diagonal,
    identity,
    inverse_gaps,
    or_not_finite,
    product,
    real_part,
    resized,
    rows_of,
    spoiled,
)

GESDD = Routine("gesdd")
GESVD = Routine("gesvd", cuda="cusolver_gesvd_ffi")
GESVDJ = Routine("gesvdj", cuda="cusolver_gesvdj_ffi")
GESVDP = Routine("gesvdp", cuda="cusolver_gesvdp_ffi")
_BATCHED = 32  # cuSOLVER computes matrices of so many rows or columns together by Jacobi's method, all vectors of each


class SvdAlgorithm(Implementation):
    """The algorithm of a singular value decomposition.

    A CPU has ``DIVIDE_AND_CONQUER`` and, slower, ``QR``; a GPU ``QR``, ``JACOBI`` and ``POLAR``.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# x = u diag(s) vh, u and vh unitary, s >= 0 and descending: (s, u, vh), or (s,) without vectors; u and vh have as many
# columns and rows as s, or are square if full_matrices; NaN where the iteration does not converge
@operation
class Svd(Factorisation):
    full_matrices: bool
    vectors: bool
    algorithm: SvdAlgorithm | None
    param_names = {"vectors": "compute_uv"}
    fixed_params = {"subset_by_index": None}

    def result_type(op, x):
        check_matrices("svd", x)
        *lanes, m, n = x.shape
        k = smaller(m, n)
        s = array_type((*lanes, k), to_real(x.dtype))
        if not op.vectors:
            return (s,)
        rows, columns = (m, n) if op.full_matrices else (k, k)
        u, vh = (x.update(shape=(*lanes, *shape), weak=False) for shape in ((m, rows), (columns, n)))
        return s, u, vh

    def evaluate(op, x):
        types = op.types_for(x)
        routine = _routine(op, "cpu")
        if not x.size:
            s, *vectors = op.result_type(array_type(x.shape, x.dtype))
            empty = [np.broadcast_to(np.eye(*t.shape[-2:], dtype=t.dtype), t.shape) for t in vectors]
            return np.zeros(s.shape, s.dtype), *empty
        options = {"compute_uv": op.vectors, "full_matrices": op.full_matrices}
        function = routine.on_host(x.dtype, *x.shape[-2:], *options.values())

        def factors(x: Any) -> Any:
            u, s, vh, info = function(x, **options)
            return *((s, u, vh) if op.vectors else (s,)), info

        return each_or_nan(factors, types, x, iterative=True)

    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        m, n = x.type.shape[-2:]
        if op.vectors and op.full_matrices and m != n:
            raise NotDifferentiable(
                f"svd: of the matrices {x.type} full_matrices has vectors that no singular value determines.",
                hint="full_matrices=False has those that are determined.",
            )
        s, u, vh = perform(shared(Svd, False, True, op.algorithm), x)
        if not op.vectors:
            return (s,), (real_part(conjugate_dot(u, product(dx, adjoint(vh)))),)
        ds, du, dvh = _tangents(u, s, vh, dx)
        return (s, u, vh), (ds, du, dvh)

    def lower(op, emit, x):
        routine = _routine(op, emit.platform)
        s, u, vh = shared(Svd, op.full_matrices, True, None).result_type(x.type)
        count = 3 if op.vectors else 1
        if not x.type.size:
            return tuple(emit.decompose(lambda: [full(s, 0), identity(u), identity(vh)][:count]))
        if emit.platform == "cuda" and x.type.shape[-2] < x.type.shape[-1]:  # cuSOLVER takes no wide matrices
            turned = emit.decompose(lambda x: perform(op, adjoint(x)), x)
            return tuple(emit.decompose(lambda s, *vectors: [s, *map(adjoint, reversed(vectors))], *turned))
        mode = ("A" if op.full_matrices else "S") if op.vectors else "N"
        cuda = {"full_matrices": op.full_matrices, "compute_uv": op.vectors}
        given = emit.decompose(spoiled, x)
        if routine in (GESVDJ, GESVDP):
            s, u, vh, info = _by_own_vectors(routine, emit, given, s, u, vh, cuda)
        else:
            types, cuda = (x.type, s, u, vh, info_type(x)), cuda | {"transposed": False}
            _, s, u, vh, info = routine(emit, given, types=types, into={0: 0}, attributes={"mode": mode}, cuda=cuda)
        return or_nan(emit, emit.decompose(or_not_finite, info, x), (s, u, vh)[:count])

    def flops(op, operands, results):
        """About 20 m n min(m, n) floating-point operations with vectors, a fifth of it without."""
        return (20 if op.vectors else 4) * operands[0].size * min(operands[0].shape[-2:])


def _routine(op: Svd, platform: str) -> Routine:
    """The routine for an algorithm. Raises MissingRule: the platform has none."""
    others: dict[Implementation | None, Routine]
    if platform == "cuda":
        own, others = GESVD, {SvdAlgorithm.JACOBI: GESVDJ, SvdAlgorithm.POLAR: GESVDP}
    else:
        own, others = GESDD, {SvdAlgorithm.DIVIDE_AND_CONQUER: GESDD}
    routines = others | {None: own, SvdAlgorithm.DEFAULT: own, SvdAlgorithm.QR: GESVD}
    if op.algorithm in routines:
        return routines[op.algorithm]
    raise no_implementation("svd", "algorithm", op.algorithm, platform)


def _by_own_vectors(
    routine: Routine, emit: Any, x: Any, s: ArrayType, u: ArrayType, vh: ArrayType, cuda: Mapping[str, bool]
) -> tuple[Any, Any, Any, Any]:
    """s, u, vh and info by a routine that returns v, not its adjoint, and of small matrices all vectors."""
    *lanes, m, n = x.type.shape
    whole = cuda["full_matrices"] or (routine is GESVDJ and min(m, n) <= _BATCHED)
    rows, columns = (m, n) if whole else (min(m, n), min(m, n))
    types = (x.type, s, u.update(shape=(*lanes, m, rows)), vh.update(shape=(*lanes, n, columns)), info_type(x))
    _, s, all_u, v, info = routine(emit, x, types=types, into={0: 0}, cuda={**cuda, "full_matrices": whole})
    u, vh = emit.decompose(lambda u_, v: [resized(u_, *u.shape[-2:]), resized(adjoint(v), *vh.shape[-2:])], all_u, v)
    return s, u, vh, info


def _tangents(u: Any, s: Any, vh: Any, dx: Any) -> tuple[Any, Any, Any]:
    """The tangents of s, of u and of vh.

        p = u^H dx v,  ds = diag p,  du = u a,  dv = v b
        (a + b)[i, j] = (p + p^H)[i, j] / (s[j] - s[i])        (a - b)[i, j] = (p - p^H)[i, j] / (s[j] + s[i])

    The components of dx outside the column spaces of u and v are added to du and dv. The diagonal of a + b, the phases,
    is 0.
    """
    v, k, dtype = adjoint(vh), s.shape[-1], u.dtype
    right = product(dx, v)
    p = product(adjoint(u), right)
    sums = columns_of(s, k) + rows_of(s, k)
    zeros = eq(sums, like(sums, 0))  # there p - p^H is 0 too, if it is on the diagonal
    apart = (p - adjoint(p)) * convert(1 / select_n(zeros, sums, like(sums, 1)), dtype)
    both = (p + adjoint(p)) * inverse_gaps(s, dtype)
    half, inverse = like(p, 0.5), convert(1 / s, dtype)
    du, dv = product(u, half * (both + apart)), product(v, half * (both - apart))
    if u.shape[-2] > k:
        du = du + (right - product(u, p)) * columns_of(inverse, u.shape[-2])
    if v.shape[-2] > k:
        dv = dv + (product(adjoint(dx), u) - product(v, adjoint(p))) * columns_of(inverse, v.shape[-2])
    return real_part(diagonal(p)), du, adjoint(dv)


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """The singular values of matrices, which descend, and their vectors: ``u, s, vh``, or ``s`` alone.

        x == (u * s) @ vh        u^H @ u == 1        vh @ vh^H == 1

    Shapes: ``x[*s, m, n] -> u[*s, m, k], s[*s, k], vh[*s, k, n]`` with ``k = min(m, n)``; with ``full_matrices`` u and
    vh are square. Where the iteration does not converge, or an
    element is not finite, they are NaN.

    The tangents of vectors keep the phases, which are free. Where singular values are equal, or 0 and the matrix is not
    square, they are infinite or NaN, but symmetric functions of the singular values, such as sums, have derivatives.

    Args:
        full_matrices: extend u and vh to square matrices; for matrices that are not square these have no derivative.
        compute_uv: whether to compute u and vh.
        subset_by_index: (start, end): the singular values with these indices, and their vectors.
        algorithm: by default the device's choice.
    Raises: ShapeMismatch: no matrices. DTypeMismatch: neither 32- nor 64-bit floats or complex numbers. BadArgument: a
    subset of full matrices. MissingRule: the device has no such algorithm.
    Source: LAPACK, ``gesdd``; M. Giles, An extended collection of matrix derivative results (2008), section 3.2.

    >>> u, s, vh = svd(np.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> s, abs(u)
    (Array([2., 1.], dtype=float64), Array([[1., 0.],
           [0., 1.]], dtype=float64))
    """
    x = as_array(x)
    check_matrices("svd", x.type)
    k = smaller(*x.shape[-2:])
    start, end = subset("svd", subset_by_index, k)
    whole = end - start == k
    if full_matrices and not whole:
        raise BadArgument("svd: a subset of the vectors is no full matrix.", hint="use full_matrices=False.")
    results = perform(shared(Svd, bool(full_matrices), bool(compute_uv), algorithm), x)
    if not whole:
        axes = x.ndim - 2, x.ndim - 1, x.ndim - 2
        results = [slice_in_dim(y, start, end, axis=axis) for y, axis in zip(results, axes)]
    s, *vectors = results
    return (vectors[0], s, vectors[1]) if compute_uv else s
