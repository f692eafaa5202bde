"""``handlax.experimental.sparse.linalg``: linear systems and eigenvalues of sparse matrices, under JAX's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch, whole_number
from ...effects.base.lazy_module import late_module
from ...effects.control.callbacks import pure_callback
from ...numpy.arrays.solver_arguments import need_at_least, result_like
from .matrices import CSR, csr_matvec

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Any:
    """The solution x of ``CSR((data, indices, indptr)) @ x == b``, by a sparse factorisation.

    SciPy solves it, on the host. Derivatives are implicit, by further solves; lanes of ``vmap`` are solved
    sequentially.

    Args:
        tol: ignored, since SciPy chooses its pivots.
        reorder: 0 keeps the order of columns, 1 to 3 choose one for which the factors have fewer entries.

    Raises: DTypeMismatch: data and b differ in dtype, or indices are no integers. ShapeMismatch: they are no vectors
        of a matrix with as many rows as b. BadArgument: ``reorder`` is none of these.

    >>> x = CSR.fromdense(hnp.array([[2.0, 1.0], [0.0, 4.0]]))
    >>> spsolve(x.data, x.indices, x.indptr, hnp.array([4.0, 8.0]))
    Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = map(hnp.asarray, (data, indices, indptr, b))
    if data.dtype != b.dtype or not all([np.issubdtype(x.dtype, np.integer) for x in (indices, indptr)]):
        raise DTypeMismatch(
            f"spsolve: data and b have one dtype, indices are integers, got {data.type}, {b.type}, {indices.type} and "
            f"{indptr.type}."
        )
    n = b.size
    if any([x.ndim != 1 for x in (data, indices, indptr, b)]) or indptr.size != n + 1 or data.shape != indices.shape:
        raise ShapeMismatch(
            f"spsolve: vectors of a square matrix by rows are needed, got {data.type}, {indices.type}, {indptr.type} "
            f"and {b.type}."
        )
    if reorder not in (0, 1, 2, 3):
        raise BadArgument(f"spsolve: reorder is 0, 1, 2 or 3, got {reorder!r}.")
    order = ("NATURAL", "COLAMD", "MMD_AT_PLUS_A", "MMD_ATA")[reorder]
    product = lambda x: csr_matvec(CSR((data, indices, indptr), shape=(n, n)), x)

    def solution(transposed: bool) -> Callable[..., Any]:
        solve = lambda *host: _solved(*host, transposed=transposed, order=order)
        return lambda _, b: pure_callback(solve, b, data, indices, indptr, b, vmap_method="sequential")

    return lax.custom_linear_solve(product, b, solution(False), solution(True))


def _solved(data: Any, indices: Any, indptr: Any, b: Any, *, transposed: bool, order: str) -> Any:
    """The solution of NumPy arrays by SciPy."""
    matrix = late_module("scipy.sparse").csr_matrix(
        (np.asarray(data), np.asarray(indices), np.asarray(indptr)), shape=(len(b), len(b))
    )
    factors = late_module("scipy.sparse.linalg").splu((matrix.T if transposed else matrix).tocsc(), permc_spec=order)
    return factors.solve(np.asarray(b)).astype(data.dtype)


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, Any, Any]:
    """The largest eigenvalues of a symmetric matrix that is given by its products, and their eigenvectors.

        theta, U, count = lobpcg_standard(A, X):   A @ U == U * theta,   theta[0] >= theta[1] >= ...

    Each iteration is a Rayleigh-Ritz step in the span of the current vectors, their residuals and the previous steps.

    Args:
        A: an array ``[n, n]``, dense or sparse, or a function ``[n, k] -> [n, k]``.
        X: vectors ``[n, k]`` to begin with, linearly independent; ``5 * k < n``.
        m: the maximal number of iterations.
        tol: a pair is good if ``norm(A @ u - theta * u) < tol * 10 * n * (theta + norm(A @ u))``; by default with the
            precision of the dtype. ``count`` is how many iterations it took until all are.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: A and X do not fit. BadArgument: ``k`` is 0 or too large,
        ``m`` or ``tol`` is negative or NaN.

    Source: Duersch, Shao, Yang & Gu, A robust and efficient implementation of LOBPCG, 2018.

    >>> theta, U, _ = lobpcg_standard(hnp.diag(hnp.arange(12.0)), hnp.eye(12, 2) + 1)
    >>> [round(float(t), 3) for t in theta]
    [11.0, 10.0]
    """
    X = hnp.asarray(X)
    if X.ndim != 2:
        raise ShapeMismatch(f"lobpcg_standard: X has the shape [n, k], got {X.type}.")
    n, k = X.shape
    if not 0 < 5 * k < n:
        raise BadArgument(f"lobpcg_standard: k must be positive and 5 * k less than n, got n={n} and k={k}.")
    product = A if callable(A) else lambda x: A @ x
    y = product(X)
    result_like("lobpcg_standard: A", y, X)
    if y.dtype != X.dtype:
        raise DTypeMismatch(f"lobpcg_standard: A and X must have one dtype, got {y.dtype} and {X.dtype}.")
    need_at_least(0, "lobpcg_standard", m=m, tol=tol)
    limit = hnp.finfo(X.dtype).eps if tol is None else tol
    state = (*_best(product, hnp.linalg.qr(X)[0], k), hnp.zeros_like(X), 0)
    residuals = lambda X, AX, theta: AX - X * theta[None]

    def more(state: Any) -> Any:
        theta, X, AX, _, count = state
        sizes = hnp.linalg.norm(residuals(X, AX, theta), axis=0)
        bounds = limit * 10 * n * (theta + hnp.linalg.norm(AX, axis=0))
        return (count < whole_number("lobpcg_standard: m", m)) & ~(sizes < bounds).all()

    def step(state: Any) -> Any:
        theta, X, AX, P, count = state
        R = residuals(X, AX, theta)
        scaled = [v / hnp.maximum(hnp.linalg.norm(v, axis=0, keepdims=True), hnp.finfo(v.dtype).tiny) for v in (R, P)]
        space = hnp.linalg.qr(hnp.concatenate([X, *scaled], 1))[0]
        theta, new, AX = _best(product, space, k)
        return theta, new, AX, new - X @ (X.T @ new), count + 1

    theta, U, _, _, count = lax.while_loop(more, step, state)
    return theta, U, count


def _best(product: Any, space: Any, k: int) -> tuple[Any, Any, Any]:
    """Rayleigh-Ritz: the ``k`` largest eigenvalues in the span of an orthonormal basis, their vectors, and these times
    the matrix.
    """
    image = product(space)
    projected = space.T @ image
    theta, vectors = hnp.linalg.eigh((projected + projected.T) / 2)
    chosen = vectors[:, ::-1][:, :k]
    return theta[::-1][:k], space @ chosen, image @ chosen
