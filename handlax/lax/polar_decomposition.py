"""The polar decomposition by dynamically weighted Halley steps, which need products and triangular factors alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, ShapeMismatch, whole_number
from ..effects.core.arrays import as_array, scalar
from ..effects.operations.elementwise.arithmetic import abs as absolute
from ..effects.operations.elementwise.arithmetic import like, sqrt
from ..effects.operations.elementwise.comparison import select_n
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations.shapes import broadcast_in_dim, reduce_sum
from ..effects.operations.linalg.cholesky import cholesky
from ..effects.operations.linalg.eigh import hermitian_part
from ..effects.operations.linalg.matrices import adjoint, check_matrices, identity, product
from ..effects.operations.linalg.qr import qr
from ..effects.operations.linalg.triangular import triangular_solve
from ..effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ..effects.operations.reductions.reductions import reduce_max
from ..effects.types import dtypes


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
