"""``handlax.scipy.sparse.linalg``: Krylov methods for linear systems whose matrix is given by its product with vectors.

    x, _ = cg(A, b):  A @ x == b,  where A is a square matrix, or a function of trees of arrays as b is

Solutions are differentiated implicitly, by another solve, with respect to ``b`` and to all that the product depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import BadArgument, NotAFunction, ShapeMismatch, TreeMismatch, whole_number
from ...effects.control.loops import fori_loop, while_loop
from ...effects.operations.manipulation.raveled_trees import ravel_pytree
from ...effects.trees.pytrees import flatten, tree_map
from ...effects.types.dtypes import is_complex
from ...interpreters.custom.implicit import linear_solve_as
from ...lax import linalg
from ...numpy.arrays.argument_conversion import inexact
from ...numpy.arrays.solver_arguments import need_at_least, result_like
from ...numpy.dtype_routines import finfo

__all__ = ["bicgstab", "cg", "gmres"]

Product = Callable[[Any], Any]
Solver = Callable[..., Any]


def _product(name: str, a: Any) -> Product:
    """The linear map given by a function, a matrix, or an object with ``@``."""
    if callable(a):
        return a
    shape = getattr(a, "shape", None)
    if shape is None or not hasattr(type(a), "__matmul__"):
        raise NotAFunction(f"{name}: the linear operator must be a function or a matrix, got {type(a).__name__}.")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeMismatch(f"{name}: the linear operator must be a square matrix, got the shape {tuple(shape)}.")
    matrix = hnp.asarray(a) if hasattr(a, "__array__") else a
    return lambda x: matrix @ x


def _check(name: str, b: Any, x0: Any) -> None:
    """Check that the initial vector has the structure of the right-hand side. Raises: TreeMismatch, ShapeMismatch."""
    (bs, tree), (xs, other) = flatten(b), flatten(x0)
    if tree != other:
        raise TreeMismatch(f"{name}: x0 and b must have the same structure, got {other} and {tree}.")
    shapes = [[hnp.shape(v) for v in vs] for vs in (xs, bs)]
    if shapes[0] != shapes[1]:
        raise ShapeMismatch(f"{name}: x0 and b must have the same shapes, got {shapes[0]} and {shapes[1]}.")


def _solved(
    name: str, solver: Solver, a: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any, m: Any,
    symmetric: bool = False,
) -> tuple[Any, None]:
    """The solution by ``solver(product, b, x0, preconditioner, iterate)``, differentiated implicitly."""
    need_at_least(0, name, tol=tol, atol=atol, maxiter=maxiter)
    b = tree_map(lambda v: inexact(hnp.asarray(v)), b)
    if x0 is None:
        x0 = tree_map(hnp.zeros_like, b)
    _check(name, b, x0)
    x0 = tree_map(lambda v, like: hnp.asarray(v).astype(like.dtype), x0, b)
    if maxiter is None:
        maxiter = 10 * sum(v.size for v in flatten(b)[0])
    approximate = (lambda r: r) if m is None else _product(name, m)
    preconditioner = lambda r: result_like(f"{name}: the preconditioner", approximate(r), r)
    real = not any(is_complex(v.dtype) for v in flatten(b)[0])

    def solve(product: Product, b: Any) -> Any:
        limit = hnp.maximum(tol**2 * _square(b), hnp.asarray(atol) ** 2)
        return solver(product, b, x0, preconditioner, partial(_iterate, limit=limit, maxiter=maxiter))

    x = linear_solve_as(name, _product(name, a), b, solve, solve, symmetric=symmetric and real)
    return x, None


def _iterate(
    step: Callable[..., Any], x: Any, r: Any, *rest: Any, limit: Any, maxiter: Any, broken: Any = lambda *rest: False
) -> Any:
    """``x`` after steps ``x, r, *rest = step(x, r, *rest)``, at most ``maxiter``, while ``|r|**2 > limit`` and not
    ``broken(*rest)``.
    """

    def more(state: Any) -> Any:
        (_, r, *rest), k = state
        return (_square(r) > limit) & (k < maxiter) & hnp.logical_not(broken(*rest))

    return while_loop(more, lambda state: (step(*state[0]), state[1] + 1), ((x, r, *rest), 0))[0][0]


# Vectors are trees of arrays.


def _dot(x: Any, y: Any) -> Any:
    """The inner product, conjugate in the first."""
    return sum(hnp.vdot(a, b) for a, b in zip(flatten(x)[0], flatten(y)[0]))


def _square(x: Any) -> Any:
    return hnp.real(_dot(x, x))


def _plus(x: Any, factor: Any, y: Any) -> Any:
    """x + factor y."""
    return tree_map(lambda a, b: a + (factor * b).astype(a.dtype), x, y)


def _minus(x: Any, y: Any) -> Any:
    return tree_map(lambda a, b: a - b, x, y)


def _over(x: Any, y: Any) -> Any:
    """x / y, and 0 where y is 0: a method whose residual has vanished stays where it is."""
    return hnp.where(y == 0, 0, x / hnp.where(y == 0, 1, y))


def _cg(a: Product, b: Any, x0: Any, m: Product, iterate: Any) -> Any:
    def step(x: Any, r: Any, gamma: Any, p: Any) -> Any:
        product = a(p)
        alpha = _over(gamma, _dot(p, product))
        x, r = _plus(x, alpha, p), _plus(r, -alpha, product)
        z = m(r)
        after = _dot(r, z)
        return x, r, after, _plus(z, _over(after, gamma), p)

    r = _minus(b, a(x0))
    z = m(r)
    return iterate(step, x0, r, _dot(r, z), z)


def _bicgstab(a: Product, b: Any, x0: Any, m: Product, iterate: Any) -> Any:
    r0 = _minus(b, a(x0))

    def step(x: Any, r: Any, p: Any, v: Any, alpha: Any, omega: Any, rho: Any) -> Any:
        after = _dot(r0, r)
        beta = _over(after, rho) * _over(alpha, omega)
        p = _plus(r, beta, _plus(p, -omega, v))
        direction = m(p)
        v = a(direction)
        alpha = _over(after, _dot(r0, v))
        s = _plus(r, -alpha, v)
        second = m(s)
        t = a(second)
        omega = _over(_dot(t, s), _dot(t, t))
        x = _plus(_plus(x, alpha, direction), omega, second)
        return x, _plus(s, -omega, t), p, v, alpha, omega, after

    def broken(p: Any, v: Any, alpha: Any, omega: Any, rho: Any) -> Any:
        return (rho == 0) | (alpha == 0)

    zeros = tree_map(hnp.zeros_like, r0)
    one = hnp.ones_like(_dot(r0, r0))
    return iterate(step, x0, r0, zeros, zeros, one, one, one, broken=broken)


def _rotated(k: Any, state: Any) -> Any:
    """Apply a Givens rotation of rows k and k + 1 that makes the element below the diagonal 0."""
    h, rhs = state
    a, b = h[k, k], h[k + 1, k]
    r = hnp.sqrt(hnp.real(a * a.conj() + b * b.conj())).astype(a.dtype)
    c, s = hnp.where(r == 0, 1, _over(a.conj(), r)), _over(b, r)

    def rotate(m: Any) -> Any:
        upper, lower = m[k], m[k + 1]
        return m.at[k].set(c * upper + s.conj() * lower).at[k + 1].set(c.conj() * lower - s * upper)

    return rotate(h), rotate(rhs)


def _arnoldi(a: Product, start: Any, size: int) -> tuple[Any, Any]:
    """Arnoldi's iteration: orthonormal rows V and H with ``A V[:-1].T == V.T H``; rows after a breakdown are 0."""
    rows = hnp.zeros((size + 1, len(start)), start.dtype).at[0].set(start)
    h = hnp.zeros((size + 1, size), start.dtype)

    def extend(k: Any, state: Any) -> Any:
        rows, h = state
        w = a(rows[k])
        before = hnp.sqrt(_square(w))
        column = hnp.zeros((size + 1,), start.dtype)
        for _ in range(2):  # twice is enough
            parts = rows.conj() @ w
            w, column = w - parts @ rows, column + parts
        norm = hnp.sqrt(_square(w))
        gone = norm <= before * float(finfo(norm.dtype).eps)
        norm = hnp.where(gone, 0, norm).astype(w.dtype)
        return rows.at[k + 1].set(_over(w, norm)), h.at[:, k].set(column.at[k + 1].set(norm))

    return fori_loop(0, size, extend, (rows, h))


def _gmres(restart: int, a: Product, b: Any, x0: Any, m: Product, iterate: Any) -> Any:
    """GMRES with restarts: each step minimises the preconditioned residual over a Krylov space of size ``restart``."""
    vector, tree_of = ravel_pytree(b)
    join = lambda x: ravel_pytree(x)[0].astype(vector.dtype)
    product = lambda v: join(m(a(tree_of(v))))
    size = min(restart, vector.size)

    def residual(x: Any) -> Any:
        return _minus(b, a(tree_of(x)))

    def step(x: Any, r: Any) -> Any:
        z = join(m(r))
        norm = hnp.sqrt(_square(z)).astype(z.dtype)
        rows, h = _arnoldi(product, _over(z, norm), size)
        rhs = hnp.zeros((size + 1,), z.dtype).at[0].set(norm)
        h, rhs = fori_loop(0, size, _rotated, (h, rhs))
        upper, rhs = h[:size], rhs[:size]
        singular = hnp.diagonal(upper) == 0
        upper = hnp.where(hnp.diag(singular), 1, upper)
        y = linalg.triangular_solve(upper, hnp.where(singular, 0, rhs)[:, None], left_side=True, lower=False)[:, 0]
        x = x + y @ rows[:size]
        return x, residual(x)

    start = join(x0)
    return tree_of(iterate(step, start, residual(start)))


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None, M: Any = None
) -> tuple[Any, None]:
    """``(x, None)`` with ``A(x) == b`` by conjugate gradients, for a Hermitian positive definite ``A``.

    Args:
        x0: where to start; by default 0.
        tol, atol: the iteration ends when ``norm(b - A(x)) <= max(tol * norm(b), atol)``.
        maxiter: the greatest number of steps; by default ten times the number of unknowns.
        M: a preconditioner, nearly the inverse of ``A``: a function or a matrix, Hermitian positive definite.

    Raises: ShapeMismatch, TreeMismatch: ``x0`` or what ``A`` or ``M`` gives has not the shapes or the structure of
        ``b``. DTypeMismatch: it is complex, and ``b`` real. BadArgument: a tolerance or ``maxiter`` is negative or NaN.

    >>> x, _ = cg(hnp.array([[2.0, 0.0], [0.0, 2.0]]), hnp.array([1.0, 4.0]))
    >>> x.tolist()
    [0.5, 2.0]
    """
    return _solved("cg", _cg, A, b, x0, tol, atol, maxiter, M, symmetric=True)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None, M: Any = None
) -> tuple[Any, None]:
    """``(x, None)`` with ``A(x) == b`` by stabilised biconjugate gradients (van der Vorst 1992); arguments as ``cg``.

    ``A`` is any square linear map.

    >>> x, _ = bicgstab(hnp.array([[2.0, 0.0], [0.0, 2.0]]), hnp.array([1.0, 4.0]))
    >>> x.tolist()
    [0.5, 2.0]
    """
    return _solved("bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M)


def gmres(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, restart: int = 20, maxiter: Any = None,
    M: Any = None, solve_method: str = "batched",
) -> tuple[Any, None]:
    """``(x, None)`` with ``A(x) == b`` by generalised minimal residuals (Saad & Schultz 1986); arguments as ``cg``.

    Args:
        restart: the dimension of the Krylov spaces; ``maxiter`` counts spaces.
        solve_method: "batched" or "incremental", which are synonyms here: Givens rotations after each Krylov space.

    Raises: BadArgument: another ``solve_method``, or ``restart`` is not positive.

    >>> x, _ = gmres(hnp.array([[2.0, 0.0], [0.0, 2.0]]), hnp.array([1.0, 4.0]))
    >>> x.tolist()
    [0.5, 2.0]
    """
    if solve_method not in ("batched", "incremental"):
        raise BadArgument(f'gmres: solve_method must be "batched" or "incremental", got {solve_method!r}.')
    size = whole_number("gmres: restart", restart)
    need_at_least(1, "gmres", restart=size)
    return _solved("gmres", partial(_gmres, size), A, b, x0, tol, atol, maxiter, M)
