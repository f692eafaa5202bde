"""Matrix factorisations."""

from __future__ import annotations

from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch, need_one_of
from ...effects.control.loops import fori_loop
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.indexing.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from ...effects.operations.linalg.cholesky import cholesky as _cholesky
from ...effects.operations.linalg.eigh import eigh as _eigh
from ...effects.operations.linalg.eigh import eigvalsh
from ...effects.operations.linalg.lu import lu as _lu
from ...effects.operations.linalg.matrices import adjoint, flipped, product, resized
from ...effects.operations.linalg.qr import geqrf, householder_product, ormqr
from ...effects.operations.linalg.qr import qr as _qr
from ...effects.operations.linalg.schur import hessenberg as _hessenberg
from ...effects.operations.linalg.schur import schur as _schur
from ...effects.operations.linalg.triangular import triangular_solve
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.types import dtypes
from ...effects.types.sized import smaller
from ...interpreters.core.eager_programs import programs
from ...lax import linalg
from ...numpy.arrays.argument_conversion import inexact
from ...numpy.linalg import decompositions

__all__ = [
    "cho_factor", "cholesky", "eigh", "eigh_tridiagonal", "hessenberg", "lu", "lu_factor", "polar", "qr",
    "qr_multiply", "rsf2csf", "schur", "svd",
]


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The upper Cholesky factor U, ``conj(U).T @ U == a``, or the lower one; only that triangle of ``a`` is read.

    Source: SciPy, ``linalg.cholesky``.

    >>> from handlax.numpy import array
    >>> cholesky(array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = decompositions.matrices("cholesky", a, square=True)
    if lower:
        return _cholesky(x, symmetrize_input=False)
    return adjoint(_cholesky(adjoint(x), symmetrize_input=False))


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor of a positive definite matrix, and whether it is lower: the argument of ``cho_solve``.

        a @ cho_solve(cho_factor(a), b) == b

    Source: SciPy, ``linalg.cho_factor``.

    >>> from handlax.numpy import array
    >>> cho_factor(array([[4.0, 2.0], [2.0, 5.0]]))
    (Array([[2., 1.],
           [0., 2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """LU factorisation with partial pivoting: ``p, l, u``; or ``p @ l, u`` with ``permute_l``.

        a == p @ l @ u

    Shapes: ``a[*s, m, n] -> p[*s, m, m], l[*s, m, k], u[*s, k, n]``, ``k = min(m, n)``. Source: SciPy, ``linalg.lu``.

    >>> from handlax.numpy import array
    >>> p, l, u = lu(array([[1.0, 2.0], [4.0, 4.0]]))
    >>> u
    Array([[4., 4.],
           [0., 1.]], dtype=float32)
    """
    x = decompositions.matrices("lu", a)
    m, n = x.shape[-2:]
    k = smaller(m, n)
    factors, _, order = _lu(x)
    rows = hnp.arange(m, dtype="int32").reshape(*(1,) * (order.ndim - 1), m, 1)
    p = convert(rows == order[..., None, :], dtypes.to_real(x.dtype))
    l = hnp.tril(resized(factors, m, k), -1) + hnp.eye(m, k, dtype=x.dtype).reshape(*(1,) * (x.ndim - 2), m, k)
    u = hnp.triu(resized(factors, k, n))
    return (product(p.astype(x.dtype), l), u) if permute_l else (p, l, u)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The LU factors in one matrix, and the pivots: the argument of ``lu_solve``.

        a @ lu_solve(lu_factor(a), b) == b

    Source: SciPy, ``linalg.lu_factor``.

    >>> from handlax.numpy import array
    >>> lu_factor(array([[1.0, 2.0], [4.0, 4.0]]))
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32))
    """
    factors, pivots, _ = _lu(decompositions.matrices("lu_factor", a))
    return factors, pivots


def qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """QR factorisation, ``q, r``; with ``pivoting`` also the permutation of columns.

    ``mode``: "full" for a square ``q``, "economic", or "r" for ``(r,)`` alone.
    Raises: BadArgument: another mode. Source: SciPy, ``linalg.qr``.

    >>> from handlax.numpy import array
    >>> abs(qr(array([[3.0], [4.0]]), mode="economic")[1])
    Array([[5.]], dtype=float32)
    """
    need_one_of("qr: the mode", mode, ("full", "economic", "r"))
    factors = _qr(decompositions.matrices("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(factors[1:] if mode == "r" else factors)


def qr_multiply(
    a: Any, c: Any, mode: str = "right", pivoting: bool = False, conjugate: bool = False, overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array]:
    """The product of a matrix and the Q factor of another, without forming Q: ``c @ q, r``.

    Args:
        mode: "right" for ``c @ q``, "left" for ``q @ c``.
        pivoting: pivot columns, and return their permutation as a third result.
        conjugate: use the conjugate of ``q``.
    A vector ``c`` is a row or a column. Raises: BadArgument, ShapeMismatch: another mode, or shapes.
    Source: SciPy, ``linalg.qr_multiply``.

    >>> from handlax.numpy import array
    >>> abs(qr_multiply(array([[3.0], [4.0]]), array([3.0, 4.0]))[0])
    Array([5.], dtype=float32)
    """
    need_one_of("qr_multiply: the mode", mode, ("right", "left"))
    x, y = (hnp.asarray(inexact(z)) for z in promote(a, c))
    x, vector, left = decompositions.matrices("qr_multiply", x), y.ndim == 1, mode == "left"
    y = (y[:, None] if left else y[None, :]) if vector else y
    m, n = x.shape[-2:]
    k = smaller(m, n)
    wanted = k if left else m
    if y.shape[-2 if left else -1] != wanted:
        line = "rows" if left else "columns"
        raise ShapeMismatch(f"qr_multiply: c must have {wanted} {line}, got {y.type} for {x.type}.")
    lanes = hnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (hnp.broadcast_to(z, (*lanes, *z.shape[-2:])) for z in (x, y))
    order: tuple[Any, ...] = ()
    if pivoting:
        order = _qr(x, pivoting=True, full_matrices=False)[2:]
        x = hnp.take_along_axis(x, order[0][..., None, :], -1)
    reflections, taus = geqrf(x)
    y = resized(y, m, y.shape[-1]) if left else y
    turned = flipped(y) if conjugate else y  # conj(q) c is (c^T q^H)^T
    y = ormqr(reflections, taus, turned.astype(x.dtype), left=left != conjugate, transpose=conjugate)
    y = flipped(y) if conjugate else y
    y = y if left else y[..., :k]
    return (y.ravel() if vector else y, hnp.triu(resized(reflections, k, n)), *order)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Singular value decomposition, ``U, s, Vh``: ``numpy.linalg.svd`` as a tuple.

        a == (U * s) @ Vh        without full_matrices

    Source: SciPy, ``linalg.svd``.

    >>> from handlax.numpy import array
    >>> svd(array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    factors = decompositions.svd(a, full_matrices, compute_uv)
    return tuple(factors) if compute_uv else factors


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Any:
    """Eigenvalues of Hermitian matrices, in ascending order, and eigenvectors: ``w, v``; or ``w`` alone with
    ``eigvals_only``.

    With a positive definite ``b``, by ``type``: 1 for ``a @ v == w * b @ v``, 2 for ``a @ b @ v == w * v``, 3 for
    ``b @ a @ v == w * v``.

    Args:
        lower: which triangles are read.
        eigvals: must be None.
    Raises: BadArgument: another type, or ``eigvals``. Source: SciPy, ``linalg.eigh``; LAPACK, ``sygst``.

    >>> from handlax.numpy import array
    >>> eigh(array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    if type not in (1, 2, 3) or eigvals is not None:
        raise BadArgument(f"eigh: the type must be 1, 2 or 3, and eigvals None, got {type!r} and {eigvals!r}.")
    x = decompositions.matrices("eigh", a, square=True)
    if b is None:
        if eigvals_only:
            return eigvalsh(x, lower)
        v, w = _eigh(x, lower=lower)
        return w, v
    x, y = (decompositions.matrices("eigh", z, square=True) for z in promote(x, b))
    x = _completed(x, lower)
    l = _cholesky(y if lower else adjoint(y), symmetrize_input=False)
    if type == 1:
        left = triangular_solve(l, x, left_side=True, lower=True)
        inner = triangular_solve(l, left, lower=True, transpose_a=True, conjugate_a=True)
    else:
        inner = product(adjoint(l), product(x, l))
    if eigvals_only:
        return eigvalsh(inner)
    v, w = _eigh(inner)
    if type == 3:
        return w, product(l, v)
    return w, triangular_solve(l, v, left_side=True, lower=True, transpose_a=True, conjugate_a=True)


def _completed(x: Any, lower: bool) -> Any:
    """The Hermitian matrix whose lower triangle, or upper one, is that of ``x``."""
    part = hnp.tril(x, -1) if lower else hnp.triu(x, 1)
    ends = hnp.diagonal(x, axis1=-2, axis2=-1).real.astype(x.dtype)
    return part + adjoint(part) + ends[..., None] * hnp.eye(x.shape[-1], dtype=x.dtype)


def eigh_tridiagonal(
    d: Any, e: Any, *, eigvals_only: bool = False, select: str = "a",
    select_range: tuple[float, float] | None = None, tol: float | None = None, key: Any = None,
) -> Any:
    """Eigenvalues of a Hermitian tridiagonal matrix, in ascending order, and eigenvectors: ``w, v``.

    Args:
        d, e: the diagonal, and the one below it.
        select: "a" for all, "i" for those with indices from ``select_range[0]`` to ``select_range[1]``.
        tol, key: ignored.
    Raises: BadArgument: another ``select``, or no range. DTypeMismatch: dtypes differ, or are no floats.
    Source: SciPy, ``linalg.eigh_tridiagonal``.

    >>> from handlax.numpy import array
    >>> eigh_tridiagonal(array([2.0, 2.0]), array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    ends, side = hnp.asarray(d), hnp.asarray(e)
    if ends.dtype != side.dtype or ends.dtype not in dtypes.INEXACT:
        raise DTypeMismatch(
            f"eigh_tridiagonal: diagonals must be floats of one dtype, got {ends.type} and {side.type}."
        )
    start, end = 0, ends.shape[-1]
    need_one_of("eigh_tridiagonal: select", select, ("a", "i"))
    if select == "i":
        if select_range is None or select_range[0] > select_range[1]:
            raise BadArgument(f"eigh_tridiagonal: select='i' needs a range of numbers, got {select_range}.")
        start, end = int(select_range[0]), int(select_range[1]) + 1
    x = hnp.diag(ends.real.astype(ends.dtype)) + hnp.diag(side, -1) + hnp.diag(hnp.conj(side), 1)
    if eigvals_only:
        return eigvalsh(x, symmetrize_input=False)[start:end]
    v, w = _eigh(x, symmetrize_input=False)
    return w[start:end], v[:, start:end]


def schur(a: Any, output: str = "real") -> tuple[Array, Array]:
    """The Schur form of square matrices: ``T, Z`` with ``a == Z @ T @ conj(Z).T``.

    ``output``: "real", where ``T`` of a real matrix has 2 by 2 blocks for complex eigenvalues, or "complex".
    Raises: BadArgument: another word. Source: SciPy, ``linalg.schur``.

    >>> from handlax.numpy import array
    >>> schur(array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    need_one_of("schur: the output", output, ("real", "complex"))
    x = decompositions.matrices("schur", a, square=True)
    t, z = _schur(x.astype(dtypes.to_complex(x.dtype)) if output == "complex" else x)
    return t, z


def hessenberg(a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Hessenberg form ``h`` of square matrices; with ``calc_q`` also the unitary factor: ``h, q``.

        a == q @ h @ conj(q).T

    Source: SciPy, ``linalg.hessenberg``.

    >>> from handlax.numpy import array
    >>> hessenberg(array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x = decompositions.matrices("hessenberg", a, square=True)
    n = x.shape[-1]
    if not x.size:
        return (x, x) if calc_q else x
    packed, taus = _hessenberg(x)
    h = hnp.triu(packed, -1)
    if not calc_q:
        return h
    inner = householder_product(packed[..., 1:, : n - 1], taus)
    gaps = [(0, 0)] * (x.ndim - 2)
    return h, hnp.pad(inner, [*gaps, (1, 0), (1, 0)]).at[..., 0, 0].set(1)


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form from the real one: ``T, Z`` of ``schur(a, "complex")`` from those of ``schur(a)``.

    Each 2 by 2 block is made triangular by a rotation, the last one first.
    Raises: ShapeMismatch: matrices that are not square, or of several sizes. Source: SciPy, ``linalg.rsf2csf``.

    >>> from handlax.numpy import array, eye
    >>> rsf2csf(array([[0.0, -1.0], [1.0, 0.0]]), eye(2))[0].round(4)
    Array([[0.+1.j, 0.+0.j],
           [0.+0.j, 0.-1.j]], dtype=complex64)
    """
    t, z = (decompositions.matrices("rsf2csf", x, square=True) for x in (T, Z))
    if t.shape[-1] != z.shape[-1]:
        raise ShapeMismatch(f"rsf2csf: matrices must be of one size, got {t.type} and {z.type}.")
    kind = dtypes.to_complex(hnp.promote_types(t.dtype, z.dtype))
    return hnp.vectorize(_complex_form, signature="(n,n),(n,n)->(n,n),(n,n)")(t.astype(kind), z.astype(kind))


def _complex_form(t: Any, z: Any) -> tuple[Any, Any]:
    """The complex Schur form of one matrix, by a rotation of two rows and columns for each block.

    As in SciPy, LAPACK's first eigenvalue of a block comes first, and elements that are 0 in a real form are not read.
    """
    n, eps = t.shape[0], float(dtypes.finfo(t.dtype).eps)
    if n < 2:
        return t, z
    index = hnp.arange(n)

    def turned(i: Any, state: Any) -> Any:
        t, z = state
        m = n - 2 - i  # the upper row of the block
        block = dynamic_slice_in_dim(dynamic_slice_in_dim(t, m, 2, 0), m, 2, 1)
        (a, _), (c, d) = block
        mu = decompositions.eigvals(block)[0] - d
        none = abs(c) <= eps * (abs(a) + abs(d))
        size = hnp.where(none, 1, hnp.hypot(abs(mu), abs(c))).astype(t.dtype)
        first, second = (hnp.where(none, x, y / size) for x, y in ((1, mu), (0, c)))
        turn = hnp.stack([hnp.conj(first), second, -second, first]).reshape(2, 2)
        rows = dynamic_slice_in_dim(t, m, 2, 0)
        t = dynamic_update_slice_in_dim(t, hnp.where(index >= m, product(turn, rows), rows), m, 0)
        columns = [dynamic_slice_in_dim(x, m, 2, 1) for x in (t, z)]
        of_t, of_z = [product(x, adjoint(turn)) for x in columns]
        of_t = hnp.where(index[:, None] <= m + 1, of_t, columns[0]).at[m + 1, 0].set(0)
        return tuple([dynamic_update_slice_in_dim(x, y, m, 1) for x, y in ((t, of_t), (z, of_z))])

    return fori_loop(0, n - 1, turned, (t, z))


def polar(
    a: Any, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None
) -> tuple[Array, Array]:
    """Polar decomposition, a unitary and a positive factor: ``u, p`` with ``a == u @ p``, or ``a == p @ u`` for
    ``side="left"``.

    ``method`` is "qdwh", ``lax.linalg.qdwh`` with its ``eps`` and ``max_iterations``, differentiable at matrices of
    full rank; or "svd", by singular values, which is also used where ``p`` has the size of the longer side.
    Shapes: ``a[*s, m, n] -> u[*s, m, n], p[*s, n, n]``, or ``p[*s, m, m]``.
    Raises: BadArgument: another side or method. Source: SciPy, ``linalg.polar``.

    >>> from handlax.numpy import array
    >>> polar(array([[0.0, -2.0], [3.0, 0.0]]))[1].diagonal().round(4)
    Array([3., 2.], dtype=float32)
    """
    if side not in ("right", "left") or method not in ("qdwh", "svd"):
        raise BadArgument(
            f"polar: the side must be 'right' or 'left' and the method 'qdwh' or 'svd', got {side!r}, {method!r}."
        )
    x = decompositions.matrices("polar", a)
    turned = x if side == "right" else adjoint(x)
    if method == "qdwh" and turned.shape[-2] >= turned.shape[-1]:
        u, p, *_ = linalg.qdwh(turned, eps=eps, max_iterations=max_iterations)
        return u if side == "right" else adjoint(u), p
    u, s, vh = decompositions.svd(x, full_matrices=False)
    scale = s[..., None, :].astype(u.dtype)
    p = product(adjoint(vh) * scale, vh) if side == "right" else product(u * scale, adjoint(u))
    return product(u, vh), p


programs(globals())
