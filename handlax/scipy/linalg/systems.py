"""Linear systems, Sylvester equations, inverses and determinants."""

from __future__ import annotations

from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import BadArgument, ShapeMismatch, need_one_of
from ...effects.control.loops import scan
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.arithmetic import stop_gradient
from ...effects.operations.linalg.lu import lu_pivots_to_permutation
from ...effects.operations.linalg.lu import lu_solve as _lu_solve
from ...effects.operations.linalg.matrices import adjoint, identity, product
from ...effects.operations.linalg.schur import schur
from ...effects.operations.linalg.triangular import triangular_solve
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.types import dtypes
from ...interpreters.core.eager_programs import programs
from ...interpreters.custom.implicit import custom_linear_solve
from ...numpy.arrays.argument_conversion import inexact
from ...numpy.linalg import decompositions, solutions

__all__ = ["cho_solve", "det", "inv", "lu_solve", "solve", "solve_sylvester", "solve_triangular"]


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices, ``a @ inv(a) == eye(n)``: ``numpy.linalg.inv``. Source: SciPy, ``linalg.inv``.

    >>> from handlax.numpy import array
    >>> inv(array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return solutions.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices, ``det(a @ b) == det(a) * det(b)``: ``numpy.linalg.det``. Source: SciPy.

    >>> from handlax.numpy import array
    >>> det(array([[2.0, 1.0], [0.0, 4.0]]))
    Array(8., dtype=float32)
    """
    return solutions.det(a)


def _sides(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """A matrix and right-hand sides with one dtype and equal leading dimensions, and whether ``b`` was a single vector.

    As in JAX, ``b`` with one dimension less than ``a`` is a stack of vectors.
    """
    x, y = (hnp.asarray(inexact(z)) for z in promote(a, b))
    x = decompositions.matrices(name, x, square=True)
    n = x.shape[-1]
    vector = y.ndim == 1 or (x.ndim == y.ndim + 1 and y.shape[-1] == n)
    y = y[..., None] if vector else y
    if y.ndim < 2 or y.shape[-2] != n:
        raise ShapeMismatch(f"{name}: the right side must have {n} rows, as the matrix has, got {x.type} and {y.type}.")
    lanes = hnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (hnp.broadcast_to(z, (*lanes, *z.shape[-2:])) for z in (x, y))
    return x, y.astype(x.dtype), vector


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, debug: bool = False,
    check_finite: bool = True, assume_a: str = "gen",
) -> Array:
    """The solution of linear systems: ``a @ solve(a, b) == b``.

    ``assume_a``: "gen", "sym" or "her" for any matrix, "pos" for a positive definite one, of which only one triangle,
    chosen by ``lower``, is read. Derivatives are by all elements of the matrix. Raises: BadArgument: another word.
    Source: SciPy, ``linalg.solve``.

    >>> from handlax.numpy import array
    >>> solve(array([[2.0, 0.0], [1.0, 4.0]]), array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    need_one_of("solve: assume_a", assume_a, ("gen", "sym", "her", "pos"))
    if assume_a != "pos":
        return solutions.solve(a, b)
    x, y, vector = _sides("solve", a, b)
    constant = stop_gradient(x if lower else adjoint(x))
    l = decompositions.cholesky(constant, symmetrize_input=False)
    by_factor, by_conjugate = lambda _, y: cho_solve((l, True), y), lambda _, y: cho_solve((l.conj(), True), y)
    z = custom_linear_solve(lambda z: product(x, z), y, by_factor, by_conjugate)
    return z[..., 0] if vector else z


def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    debug: Any = None, check_finite: bool = True,
) -> Array:
    """The solution of linear systems with a triangular matrix.

    ``trans``: 0 or "N" solves ``a @ x == b``, 1 or "T" that with the transpose of ``a``, 2 or "C" with the adjoint.
    Raises: BadArgument: another ``trans``. Source: SciPy, ``linalg.solve_triangular``.

    >>> from handlax.numpy import array
    >>> solve_triangular(array([[2.0, 0.0], [1.0, 4.0]]), array([2.0, 9.0]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    need_one_of("solve_triangular: trans", trans, (0, 1, 2, "N", "T", "C"))
    x, y, vector = _sides("solve_triangular", a, b)
    y = triangular_solve(
        x, y, left_side=True, lower=lower, transpose_a=trans not in (0, "N"), conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return y[..., 0] if vector else y


def _factor(name: str, pair: Any, what: str) -> tuple[Any, Any]:
    """The two components of a factorisation passed by the user. Raises BadArgument: it is no pair."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise BadArgument(f"{name}: the first argument must be a pair, {what}, got {type(pair).__name__}.")
    return pair[0], pair[1]


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution of linear systems from the Cholesky factor of the matrix, as ``cho_factor`` returns it.

    Source: SciPy, ``linalg.cho_solve``.

    >>> from handlax.numpy import array
    >>> cho_solve((array([[2.0, 0.0], [1.0, 2.0]]), True), array([4.0, 6.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    c, lower = _factor("cho_solve", c_and_lower, "the factor and whether it is lower")
    x, y, vector = _sides("cho_solve", c, b)
    for transpose in (not lower, bool(lower)):
        y = triangular_solve(x, y, left_side=True, lower=bool(lower), transpose_a=transpose, conjugate_a=transpose)
    return y[..., 0] if vector else y


def lu_solve(
    lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution of linear systems from the LU factors of the matrix, as ``lu_factor`` returns them.

    ``trans``: 0 for the matrix itself, 1 for its transpose, 2 for its adjoint.
    Raises: BadArgument: another ``trans``. Source: SciPy, ``linalg.lu_solve``.

    >>> from handlax.numpy import array
    >>> lu_solve((array([[2.0, 1.0], [0.5, 4.0]]), array([0, 1])), array([2.0, 9.0]))
    Array([0., 2.], dtype=float32)
    """
    need_one_of("lu_solve: trans", trans, (0, 1, 2))
    factors, pivots = _factor("lu_solve", lu_and_piv, "the factors and the pivots")
    x, y, vector = _sides("lu_solve", factors, b)
    order = lu_pivots_to_permutation(hnp.asarray(pivots).astype("int32"), x.shape[-1])
    z = _lu_solve(x, hnp.broadcast_to(order, x.shape[:-1]), y, trans > 0, trans == 2)
    return z[..., 0] if vector else z


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The solution of Sylvester's equation: ``A @ X + X @ B == C``.

    Shapes: ``A[*s, m, m], B[*s, n, n], C[*s, m, n] -> X[*s, m, n]``; leading dimensions broadcast. It is NaN where an
    eigenvalue of ``A`` and one of ``-B`` differ by less than ``tol``.
    ``method``: "schur", or "eigen", a synonym.
    Raises: BadArgument: another method. ShapeMismatch: other shapes. Source: Bartels & Stewart, Solution of the matrix
    equation AX + XB = C (1972).

    >>> from handlax.numpy import array
    >>> solve_sylvester(array([[2.0]]), array([[1.0]]), array([[6.0]])).round(4)
    Array([[2.]], dtype=float32)
    """
    need_one_of("solve_sylvester: the method", method, ("schur", "eigen"))
    a, b, c = (hnp.asarray(inexact(z)) for z in promote(A, B, C))
    if min(a.ndim, b.ndim, c.ndim) < 2 or a.shape[-2:] != c.shape[-2:-1] * 2 or b.shape[-2:] != c.shape[-1:] * 2:
        raise ShapeMismatch(
            f"solve_sylvester: the equation needs A[m, m], B[n, n] and C[m, n], got {a.type}, {b.type} and {c.type}."
        )
    lanes = hnp.broadcast_shapes(*[z.shape[:-2] for z in (a, b, c)])
    a, b, c = [hnp.broadcast_to(z, (*lanes, *z.shape[-2:])).astype(z.dtype) for z in (a, b, c)]
    equation = lambda x: product(a, x) + product(x, b)
    solve = lambda _, c: _by_schur_forms(a, b, c, tol)
    transposed = lambda _, c: _by_schur_forms(a.swapaxes(-2, -1), b.swapaxes(-2, -1), c, tol)
    return custom_linear_solve(equation, c, solve, transposed)


def _by_schur_forms(a: Any, b: Any, c: Any, tol: float) -> Any:
    """``solve_sylvester`` from the Schur forms of ``a`` and ``b``, in which the equation is triangular."""
    kind = dtypes.to_complex(c.dtype)
    (r, u), (s, v) = (schur(z.astype(kind)) for z in (a, b))
    y = triangular_sylvester(r, s, product(adjoint(u), product(c.astype(kind), v)))
    x = product(u, product(y, adjoint(v)))
    x = x if dtypes.is_complex(c.dtype) else x.real
    first, second = (hnp.diagonal(z, axis1=-2, axis2=-1) for z in (r, s))
    close = (abs(first[..., :, None] + second[..., None, :]) < tol).any((-2, -1))
    return hnp.where(close[..., None, None], hnp.nan, x).astype(c.dtype)


def triangular_sylvester(r: Any, s: Any, f: Any) -> Any:
    """The solution y of ``r y + y s = f`` for upper triangular r and s, column by column."""
    n = s.shape[-1]
    unit = identity(r.type)

    def column(y: Any, k: Any) -> tuple[Any, None]:
        own, weights = (hnp.take(z, k, axis=-1)[..., None] for z in (f, s))
        shift = hnp.take(weights, k, axis=-2)[..., None, :]
        solution = triangular_solve(r + shift * unit, own - product(y, weights), left_side=True)
        return hnp.where(hnp.arange(n) == k, solution, y), None

    return scan(column, hnp.zeros_like(f), hnp.arange(n))[0] if n else f


programs(globals())
