"""QR factorisation by Householder reflections, and products of these reflections."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import DTypeMismatch, NotDifferentiable, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import Array, as_array, as_arrays
from ...core.operation import operation, shared
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import int32, is_complex
from ...types.sized import smaller
from ..elementwise.complex_parts import conj, real
from ..elementwise.conversion import convert
from ..manipulation.last_axes import EachMatrix
from ..manipulation.slicing import concatenate, slice_in_dim
from .lapack import Factorisation, Routine, each_matrix
from .lu import Lu, factorisation_flops, lu_solve
from .matrices import LAPACK, adjoint, check_matrices, flipped, identity, product, resized, rows_at, triangle
from .triangular import check_beside, triangular_solve

GEQRF = Routine("geqrf", cuda="cusolver_geqrf_ffi")
GEQP3 = Routine("geqp3")
ORGQR = Routine("orgqr", "ungqr", cuda="cusolver_orgqr_ffi")
ORMQR = Routine("ormqr", "unmqr", cuda="cusolver_ormqr_ffi")
_BLOCK = 64  # LAPACK's largest block of columns
_NO_DERIVATIVE = "of reflections as LAPACK stores them; the derivative of the factors is that of qr"


def _check_reflections(name: str, a: ArrayType, taus: ArrayType) -> None:
    """Raise unless ``a`` and ``taus`` can be reflections as ``Geqrf`` gives them: a factor for each of some columns."""
    check_matrices(name, a)
    if a.dtype != taus.dtype:
        raise DTypeMismatch(f"{name}: operands must have one dtype, got {a} and {taus}.")
    if taus.shape[:-1] != a.shape[:-2] or not taus.shape or taus.shape[-1] > smaller(*a.shape[-2:]):
        raise ShapeMismatch(
            f"{name}: there must be factors for some of the columns of the matrix, got {a} and {taus}."
        )


# (a, taus): q = h_1 ... h_k, h_i = 1 - taus[i] v_i v_i^H, v_i in column i of a below the 1 at its diagonal; the upper
# triangle of a is r, and x = q r
@operation
class Geqrf(Factorisation):
    exempt = {"jvp": _NO_DERIVATIVE}
    flops = factorisation_flops

    def result_type(op, x):
        check_matrices("geqrf", x)
        return x, x.update(shape=(*x.shape[:-2], smaller(*x.shape[-2:])), weak=False)

    def evaluate(op, x):
        factors = lambda x: GEQRF.on_host(x.dtype, *x.shape)(x)[:2]
        return each_matrix(factors, op.types_for(x), x)

    def lower(op, emit, x):
        return GEQRF(emit, x, types=emit.made, into={0: 0})


def _reflections_times_unit(a: np.ndarray[Any, Any], taus: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any]]:
    """The product of one matrix's reflections, as a matrix."""
    return (ORGQR.on_host(a.dtype)(a, taus, lwork=_BLOCK * a.shape[1])[0],)


# y = the first columns of h_1 ... h_k, as many as a has; the reflections are those of geqrf
@operation
class HouseholderProduct(EachMatrix):
    dtypes = LAPACK
    exempt = {"jvp": _NO_DERIVATIVE}
    flops = factorisation_flops

    def result_type(op, a, taus):
        _check_reflections("householder_product", a, taus)
        if a.shape[-2] < a.shape[-1]:
            raise ShapeMismatch(f"householder_product: there must not be more columns than rows, got {a}.")
        return a

    def evaluate(op, a, taus):
        return each_matrix(_reflections_times_unit, [array_type(a.shape, a.dtype)], a, taus)[0]

    def lower(op, emit, a, taus):
        return ORGQR(emit, a, taus, types=[a.type], into={0: 0})[0]


# y = q c, or c q, with q = h_1 ... h_k, or its adjoint; the reflections are those of geqrf
@operation
class Ormqr(EachMatrix):
    left: bool
    adjoint: bool
    param_names = {"adjoint": "transpose"}
    dtypes = LAPACK
    flops = factorisation_flops

    def result_type(op, a, taus, c):
        _check_reflections("ormqr", a, taus)
        check_beside("ormqr", "c", "a", a, c, op.left)
        return c

    def evaluate(op, a, taus, c):
        k = taus.shape[-1]
        if not c.size or not k:
            return c
        function = ORMQR.on_host(a.dtype)
        words = "L" if op.left else "R", ("C" if is_complex(a.dtype) else "T") if op.adjoint else "N"
        apply = lambda a, taus, c: function(*words, a[:, :k], taus, c, _BLOCK * max(c.shape))
        return each_matrix(apply, [array_type(c.shape, c.dtype)], a, taus, c)[0]

    def jvp(op, primals, tangents):
        a, taus, c = primals
        da, dtaus, dc = tangents
        if da is not None or dtaus is not None:
            raise NotDifferentiable("ormqr: reflections must be constants, got a tangent.", hint="multiply by q of qr.")
        return perform(op, a, taus, c), perform(op, a, taus, dc)

    def transpose(op, ct, a, taus, c, *, wrt):  # the transpose of q is the conjugate of its adjoint
        return conj(perform(shared(Ormqr, op.left, not op.adjoint), a, taus, conj(ct)))

    def lower(op, emit, a, taus, c):
        k = taus.type.shape[-1]
        if not c.type.size or not k:
            return c
        a = emit.decompose(lambda a: resized(a, a.type.shape[-2], k), a)
        words = {"left": op.left, "transpose": op.adjoint}
        return ORMQR(emit, a, taus, c, types=[c.type], into={2: 0}, attributes=words)[0]

    exempt = dict.fromkeys(
        ("finite_differences", "adjoint", "tangent_types", "symmetric", "commutes"),
        "the derivative is the one by c alone",
    )


def _of_one(op: Qr, x: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """The QR factors of one matrix."""
    m, n = x.shape
    if op.pivoting:
        a, columns, taus, *_ = GEQP3.on_host(x.dtype)(x, lwork=_BLOCK * (n + 1))
        rest = [columns - 1]
    else:
        (a, taus, *_), rest = GEQRF.on_host(x.dtype, m, n)(x), []
    k = m if op.full_matrices else min(m, n)
    start = a[:, :k] if k <= n else np.concatenate([a, np.zeros((m, k - n), a.dtype)], 1)
    (q,) = _reflections_times_unit(start, taus)
    return q, np.triu(a[:k]), *rest


# q r = x, or x[:, p] if pivoting: q unitary, r upper triangular, q square if full_matrices, else r; (q, r) or (q, r, p)
@operation
class Qr(Factorisation):
    full_matrices: bool
    pivoting: bool
    fixed_params = {"use_magma": None}
    flops = factorisation_flops

    def result_type(op, x):
        check_matrices("qr", x)
        *lanes, m, n = x.shape
        k = m if op.full_matrices else smaller(m, n)
        factors = x.update(shape=(*lanes, m, k)), x.update(shape=(*lanes, k, n))
        return (*factors, array_type((*lanes, n), int32)) if op.pivoting else factors

    def evaluate(op, x):
        types = op.types_for(x)
        if not x.size:
            k, n = types[1].shape[-2:]
            start: list[Any] = [np.eye(x.shape[-2], k, dtype=x.dtype), np.zeros((k, n), x.dtype), np.arange(n)]
            return tuple([np.broadcast_to(np.asarray(y, t.dtype), t.shape) for y, t in zip(start, types)])
        return each_matrix(lambda x: _of_one(op, x), types, x)

    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        q, r, *p = perform(op, x)
        m, n = x.type.shape[-2:]
        dx = flipped(rows_at(flipped(dx), p[0])) if op.pivoting else dx
        dq, dr = _tangents(x, q, r, dx)
        if op.full_matrices and m > n:
            dq = concatenate([dq, _other_columns(q, dq)], dq.ndim - 1)
            dr = resized(dr, m, n)
        return (q, r, *p), (dq, dr, *[None for _ in p])

    def lower(op, emit, x):
        *lanes, m, n = x.type.shape
        q, r, *p = emit.made
        if not x.type.size:
            columns = [emit.iota(t, len(lanes)) for t in p]
            return emit.decompose(lambda: identity(q)), emit.full(0, r), *columns
        taus = q.update(shape=(*lanes, smaller(m, n)))
        if op.pivoting:
            free = emit.full(0, p[0])  # no column is fixed at the front
            a, columns, taus = GEQP3(emit, x, free, types=[x.type, p[0], taus], into={0: 0, 1: 1})
            rest = [emit.binary("subtract", columns, emit.full(1, p[0]))]
        else:
            (a, taus), rest = GEQRF(emit, x, types=[x.type, taus], into={0: 0}), []
        k = q.shape[-1]
        start = emit.decompose(lambda a: resized(a, m, k), a) if k != n else a
        y = ORGQR(emit, start, taus, types=[q], into={0: 0})[0]
        return y, emit.decompose(lambda a: triangle(resized(a, k, n), upper=True), a), *rest


def _tangents(x: Any, q: Any, r: Any, dx: Any) -> tuple[Any, Any]:
    """The tangents of the first ``k = min(m, n)`` columns of q, and of as many rows of r.

        w = c - (c's upper triangle, made Hermitian on the diagonal)     c = q^H dx_1 r_1^-1
    """
    k = smaller(*x.type.shape[-2:])
    m, n = x.type.shape[-2:]
    q, r = resized(q, m, k), resized(r, k, n)
    right = triangular_solve(resized(r, k, k), resized(dx, m, k))
    inner = product(adjoint(q), right)
    below = triangle(inner, 1)
    skew = below - adjoint(below)
    if is_complex(inner.type.dtype):
        skew = skew + identity(inner.type) * (inner - convert(real(inner), inner.type.dtype))
    dq = product(q, skew - inner) + right
    return dq, triangle(product(adjoint(q), dx) - product(skew, r), upper=True)


def _other_columns(q: Any, dq: Any) -> Any:
    """The tangents of the last columns of a square q, which r does not determine, from those of the first.

    As q - 1 = v t v^H with n columns in v, q_2 - e_2 = (q_1 - e_1) z^H with z = q_21 (q_11 - 1)^-1, where q_11 and q_21
    are the first n rows of q_1 and the others. Source: arXiv:2409.13374.
    """
    m, n = dq.type.shape[-2:]
    first, others = (slice_in_dim(q, a, b, axis=q.ndim - 1) for a, b in ((0, n), (n, m)))
    (above, below), (d_above, d_below) = (
        [slice_in_dim(x, a, b, axis=x.ndim - 2) for a, b in ((0, n), (n, m))] for x in (first, dq)
    )
    factors, _, permutation = perform(Lu(), above - identity(above.type))
    z = adjoint(lu_solve(factors, permutation, adjoint(below), transpose=True, conjugate=True))
    change = adjoint(d_below - product(z, d_above))
    return product(dq, adjoint(z)) - product(first + product(others, z), change)


def geqrf(a: Any) -> tuple[Array, Array]:
    """The QR factors of matrices as LAPACK stores them: ``a, taus``.

    ``r`` is the upper triangle; ``q`` is the product of the reflections ``1 - taus[i] v_i v_i^H``, whose ``v_i`` are
    stored below the diagonal of column ``i``, without their element 1 on the diagonal.

    Shapes: ``a[*s, m, n] -> a[*s, m, n], taus[*s, min(m, n)]``. Source: LAPACK, ``geqrf``.

    >>> geqrf(np.array([[3.0], [4.0]]))
    (Array([[-5. ],
           [ 0.5]], dtype=float64), Array([1.6], dtype=float64))
    """
    return perform(Geqrf(), as_array(a))


def householder_product(a: Any, taus: Any) -> Array:
    """The first columns of a product of Householder reflections, as many as ``a`` has.

        householder_product(*geqrf(x)) == q        where x = q r has no more columns than rows

    Shapes: ``a[*s, m, n], taus[*s, k] -> q[*s, m, n]``, ``k <= n <= m``.
    Raises: ShapeMismatch, DTypeMismatch: other shapes or dtypes. Source: LAPACK, ``orgqr``.

    >>> householder_product(np.array([[-5.0], [0.5]]), np.array([1.6]))
    Array([[-0.6],
           [-0.8]], dtype=float64)
    """
    return perform(HouseholderProduct(), *as_arrays(a, taus))


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """``q @ c``, or ``c @ q`` with ``left=False``, for a product q of Householder reflections; its adjoint with
    ``transpose``.

    Shapes: ``a[*s, m, n], taus[*s, k], c[*s, m, j] -> c[*s, m, j]``, or ``c[*s, j, m]`` with ``left=False``.
    Raises: ShapeMismatch, DTypeMismatch: other shapes or dtypes. Source: LAPACK, ``ormqr``.

    >>> ormqr(np.array([[-5.0], [0.5]]), np.array([1.6]), np.array([[-5.0], [0.0]]))
    Array([[3.],
           [4.]], dtype=float64)
    """
    return perform(shared(Ormqr, bool(left), bool(transpose)), *as_arrays(a, taus, c))


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any:
    """QR factorisation: ``q, r``, and with ``pivoting`` also the permutation ``p`` of columns.

        x == q @ r        or x[..., p] == q @ r

    Shapes: ``x[*s, m, n] -> q[*s, m, k], r[*s, k, n], i32 p[*s, n]``; ``k`` is ``m`` with ``full_matrices``, else
    ``min(m, n)``. With ``pivoting`` the magnitudes on the diagonal of ``r`` descend.
    Derivatives are those of matrices of full rank. ``use_magma`` is ignored.
    Raises: ShapeMismatch: no matrices. DTypeMismatch: neither 32- nor 64-bit floats or complex numbers.
    Source: LAPACK, ``geqrf`` and ``geqp3``; J. Townsend, Differentiating the QR decomposition (2018).

    >>> q, r = qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> abs(r).round(3)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float64)
    """
    return perform(shared(Qr, bool(full_matrices), bool(pivoting)), as_array(x))
