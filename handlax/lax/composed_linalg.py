"""Functions of matrices that are composed of others of ``lax``: products, updates, the polar decomposition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, ShapeMismatch, whole_number
from ..effects.control.loops import scan
from ..effects.core.arrays import Array, as_array, as_arrays, scalar
from ..effects.operations.elementwise.arithmetic import abs as absolute
from ..effects.operations.elementwise.arithmetic import add, div, like, mul, sqrt, sub
from ..effects.operations.elementwise.comparison import eq, max, select, select_n
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations.shapes import broadcast, broadcast_in_dim, reduce_sum
from ..effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ..effects.operations.linalg.cholesky import cholesky
from ..effects.operations.linalg.eigh import hermitian_part
from ..effects.operations.linalg.matrices import adjoint, check_matrices, flipped, identity, product, triangle
from ..effects.operations.linalg.qr import qr
from ..effects.operations.linalg.triangular import triangular_solve
from ..effects.operations.manipulation.creation import iota
from ..effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ..effects.operations.reductions.reductions import reduce_max
from ..effects.types import dtypes


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """``alpha * a @ a.T + beta * c``, of a symmetric ``c``.

    Shapes: ``a[*s, m, n], c[*s, m, m] -> [*s, m, m]``. With ``symmetrize_output`` the upper triangle is made of the
    lower one. Raises: ShapeMismatch: other shapes. Source: BLAS, ``syrk``.

    >>> from handlax.numpy import array
    >>> symmetric_product(array([[1.0], [2.0]]), array([[1.0, 0.0], [0.0, 1.0]]), beta=1.0)
    Array([[2., 2.],
           [2., 5.]], dtype=float32)
    """
    a, c = as_arrays(a_matrix, c_matrix)
    shape = a.type.shape
    if len(shape) < 2 or c.type.shape != (*shape[:-1], shape[-2]):
        raise ShapeMismatch(
            f"symmetric_product: matrices of shapes [m, n] and [m, m] are needed, got {a.type} and {c.type}."
        )
    y = product(a, flipped(a))
    y = add(mul(like(y, alpha), y), mul(like(c, beta), c))
    return add(triangle(y), flipped(triangle(y, 1))) if symmetrize_output else y


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangular factor of ``r.T @ r + outer(w, w)``, from the one of ``r.T @ r``, by n rotations.

    Shapes: ``r[n, n], w[n] -> [n, n]``. Raises: ShapeMismatch: other shapes.
    Source: Golub & Van Loan, Matrix Computations (4th ed., 2013), 6.5.4.

    >>> from handlax.numpy import array
    >>> cholesky_update(array([[3.0, 0.0], [0.0, 1.0]]), array([4.0, 0.0]))
    Array([[5., 0.],
           [0., 1.]], dtype=float32)
    """
    r, w = as_arrays(r_matrix, w_vector)
    n = r.type.shape[0] if r.type.shape else 0
    if r.type.shape != (n, n) or w.type.shape != (n,):
        raise ShapeMismatch(
            f"cholesky_update: a square matrix and a vector of its size are needed, got {r.type} and {w.type}."
        )
    if not n:
        return r

    def rotate(w: Any, step: Any) -> tuple[Any, Any]:
        row, k = step
        a, b = (dynamic_index_in_dim(x, k, 0, keepdims=False) for x in (row, w))
        size = max(absolute(a), absolute(b))
        none = eq(b, like(b, 0))  # nothing to turn
        scale = select(none, like(size, 1), size)
        a, b = select(none, like(a, 1), div(a, scale)), select(none, like(b, 0), div(b, scale))
        length = sqrt(add(mul(a, a), mul(b, b)))
        cosine, sine = (broadcast(div(x, length), (n,)) for x in (a, b))
        return sub(mul(cosine, w), mul(sine, row)), add(mul(cosine, row), mul(sine, w))

    return triangle(scan(rotate, w, (r, iota(dtypes.int32, n)))[1], upper=True)


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """The polar decomposition of matrices that are not wide: ``u, h, iterations, is_converged``.

        x == u @ h        u^H @ u == 1, h Hermitian with eigenvalues that are not negative

    ``is_converged`` says whether ``u^H @ u`` is 1 up to rounding, in all matrices. Each step is a rational function of
    the singular values, of which the least is taken to be ``eps`` times the largest at first: so the number of steps is
    known, six at most, and they have derivatives where ``x`` has full rank.
    Shapes: ``x[*s, m, n] -> u[*s, m, n], h[*s, n, n], i32[], bool[]`` with ``m >= n``.

    Args:
        is_hermitian: does not matter.
        max_iterations: the number of steps at most, 10 by default.
        eps: rounding, by default that of the dtype.
        dynamic_shape: not supported.
    Raises: ShapeMismatch: a wide matrix. BadArgument: ``dynamic_shape``.
    Source: Nakatsukasa, Bai & Gygi, Optimizing Halley's iteration for computing the matrix polar decomposition (2010).

    >>> u, h, _, converged = qdwh(np.array([[0.0, -2.0], [2.0, 0.0]]))
    >>> u.round(12), h.round(12), converged
    (Array([[ 0., -1.],
           [ 1.,  0.]], dtype=float64), Array([[2., 0.],
           [0., 2.]], dtype=float64), Array(True, dtype=bool))
    """
    x = as_array(x)
    check_matrices("qdwh", x.type)
    if dynamic_shape is not None:
        raise BadArgument("qdwh: there is no dynamic_shape.", hint="cut the matrix to its size.")
    if x.shape[-2] < x.shape[-1]:
        raise ShapeMismatch(f"qdwh: matrices must not have more columns than rows, got {x.type}.")
    rounding = float(dtypes.finfo(x.dtype).eps) if eps is None else float(eps)
    if not x.type.size:
        return x, identity(x.type.update(shape=(*x.shape[:-2], *x.shape[-1:] * 2))), scalar(0, np.int32), scalar(True)
    u, least, steps = _scaled(x), rounding, 0
    for _ in range(10 if max_iterations is None else whole_number("qdwh: max_iterations", max_iterations)):
        if abs(1 - least) <= 5 * rounding:
            break
        a, b, c = _weights(least)
        u = _with_qr(u, a, b, c) if c > 100 else _with_cholesky(u, a, b, c)
        least, steps = min(1.0, least * (a + b * least**2) / (1 + c * least**2)), steps + 1
    for _ in range(2):  # Newton and Schulz: what rounding has left
        u = 1.5 * u - 0.5 * product(u, product(adjoint(u), u))
    h = hermitian_part(product(adjoint(u), x))
    error = absolute(product(adjoint(u), u) - identity(h.type))
    converged = reduce_max(error, tuple(range(x.ndim))) <= like(error, 10 * x.shape[-1] * rounding)
    return u, h, scalar(steps, np.int32), converged


def _scaled(x: Any) -> Any:
    """Matrices divided by an upper bound of their largest singular values: the root of the product of two norms."""
    size, last = absolute(x), x.ndim - 1
    rows, columns = (reduce_max(reduce_sum(size, (axis,)), (last - 1,)) for axis in (last, last - 1))
    bound = sqrt(rows * columns)
    bound = select_n(bound == 0, bound, like(bound, 1))
    return x / convert(broadcast_in_dim(bound, x.shape, tuple(range(last - 1))), x.dtype)


def _weights(least: float) -> tuple[float, float, float]:
    """The best a, b, c of a step s (a + b s^2) / (1 + c s^2) for singular values from ``least`` to 1."""
    square = least**2
    d = (4 * (1 - square) / square**2) ** (1 / 3)
    root = math.sqrt(1 + d)
    a = root + 0.5 * math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root))
    b = (a - 1) ** 2 / 4
    return a, b, a + b - 1


def _with_qr(u: Any, a: float, b: float, c: float) -> Any:
    """One step, by a QR decomposition of ``sqrt(c) u`` above the identity: accurate where ``c`` is large."""
    m, last = u.shape[-2], u.ndim - 1
    one = identity(u.type.update(shape=(*u.shape[:-2], *u.shape[-1:] * 2)))
    q, _ = qr(concatenate([like(u, math.sqrt(c)) * u, one], last - 1), full_matrices=False)
    above, below = slice_in_dim(q, 0, m, axis=last - 1), slice_in_dim(q, m, q.shape[-2], axis=last - 1)
    return like(u, b / c) * u + like(u, (a - b / c) / math.sqrt(c)) * product(above, adjoint(below))


def _with_cholesky(u: Any, a: float, b: float, c: float) -> Any:
    """One step, by a Cholesky decomposition of ``1 + c u^H u``: cheaper, and accurate where ``c`` is small."""
    one = identity(u.type.update(shape=(*u.shape[:-2], *u.shape[-1:] * 2)))
    l = cholesky(one + like(u, c) * product(adjoint(u), u))
    inner = triangular_solve(l, u, lower=True, transpose_a=True, conjugate_a=True)
    solved = triangular_solve(l, inner, lower=True)
    return like(u, b / c) * u + like(u, a - b / c) * solved
