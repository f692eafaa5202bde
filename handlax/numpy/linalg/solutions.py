"""Solutions of linear systems, inverses, and determinants."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...effects.base.errors import BadArgument, ShapeMismatch, need_one_of, whole_number
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.arithmetic import abs as _abs
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.linalg.determinant import det as _det
from ...effects.operations.linalg.determinant import slogdet as _slogdet
from ...effects.operations.linalg.matrices import adjoint, flipped, identity, product
from ...effects.operations.linalg.solve import solve as _solve
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, promote
from ...effects.types import dtypes
from ...effects.types.sized import larger
from ...interpreters.core.eager_programs import programs
from ...interpreters.custom.custom_jvp import custom_jvp
from ...interpreters.transformations.derivatives import jvp
from ..arrays.argument_conversion import array_of, inexact
from ..arrays.creation import zeros
from ..arrays.index_arrays import where
from ..arrays.shape_manipulation import moveaxis
from ..mathematics import reductions
from .decompositions import matrices, svd, svdvals

__all__ = ["det", "inv", "lstsq", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve"]


class SlogdetResult(NamedTuple):
    """The sign, or phase, of determinants, and the logarithm of their size."""

    sign: Array
    logabsdet: Array


def solve(a: Any, b: Any) -> Array:
    """The solution of linear systems: ``a @ solve(a, b) == b``.

    Shapes: ``a[*s, n, n], b[*s, n, k] -> [*s, n, k]``, or ``b[n] -> [*s, n]``; leading dimensions broadcast. The
    solution of a singular system is infinite or NaN.
    Raises: ShapeMismatch: other shapes. Source: NumPy, ``linalg.solve``.

    >>> from handlax.numpy import array
    >>> solve(array([[2.0, 0.0], [1.0, 4.0]]), array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    x, y = promote(a, b)
    x, y = matrices("solve", x, square=True), inexact(y)
    y = convert(y, y.type.dtype)
    shape, n = y.type.shape, x.type.shape[-1]
    vector = len(shape) == 1
    if not shape or shape[-1 if vector else -2] != n:
        raise ShapeMismatch(
            f"solve: the right side must have {n} rows, as the matrix has, got {x.type} and {y.type}.",
            hint="vectors for each of several matrices are columns: solve(a, b[..., None])[..., 0].",
        )
    solved = solution(x, shapes.reshape(y, (n, 1)) if vector else y)
    return shapes.reshape(solved, solved.type.shape[:-1]) if vector else solved


def solution(x: Any, y: Any) -> Any:
    """``solve`` for matrices on both sides; where ``x`` is one matrix it is factorised once."""
    lead, n = y.type.shape[:-2], x.type.shape[-1]
    if lead and x.ndim == 2:
        columns = moveaxis(y, -2, 0)
        wide = _solve(x, shapes.reshape(columns, (n, math.prod(columns.type.shape[1:]))))
        return moveaxis(shapes.reshape(wide, columns.type.shape), 0, -2)
    lead = broadcast_shape("solve", x.type.shape[:-2], lead)
    return _solve(*[shapes.broadcast(z, (*lead, *z.type.shape[-2:])) for z in (x, y)])


def inv(a: Any) -> Array:
    """The inverses of square matrices: ``inv(a) @ a`` is the identity.

    That of a singular matrix is infinite or NaN. Source: NumPy, ``linalg.inv``.

    >>> from handlax.numpy import array
    >>> inv(array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = matrices("inv", a, square=True)
    return _solve(x, identity(x.type))


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Array:
    """The pseudo-inverses of matrices, of Moore and Penrose: ``a @ pinv(a) @ a == a``, and both products are Hermitian.

    Args:
        rtol: singular values up to this, relative to the largest, count as 0; by default ten times the larger size
            times the epsilon of the dtype. ``rcond`` is another name for it.
        hermitian: the matrices are Hermitian.
    The derivative is that of matrices of constant rank.
    Raises: BadArgument: both names are given. Source: NumPy, ``linalg.pinv``; Golub & Pereyra, The differentiation of
    pseudo-inverses (1973).

    >>> from handlax.numpy import array
    >>> pinv(array([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise BadArgument("pinv: one of rtol and rcond can be given, got both.")
    x = matrices("pinv", a, square=hermitian)
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 10 * larger(*x.type.shape[-2:]) * float(dtypes.finfo(x.type.dtype).eps)
    return _pseudo_inverse(x, array_of(rtol), bool(hermitian))


def _inverted(x: Any, rtol: Any, hermitian: bool) -> Any:
    """``pinv``, from singular values and vectors."""
    if not x.type.size:
        return flipped(x)
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    cutoff = shapes.reshape(rtol, (*[1] * (s.ndim - rtol.ndim - 1), *rtol.shape, 1)) * s[..., :1]
    inverse = convert(where(s > cutoff, 1 / s, 0), u.type.dtype)
    return product(adjoint(vh), inverse[..., None] * adjoint(u))


_pseudo_inverse = custom_jvp(_inverted, nondiff_argnums=(2,))


@_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(hermitian: bool, primals: Any, tangents: Any) -> Any:
    """dp = p p^H dx^H (1 - x p) + (1 - p x) dx^H p^H p - p dx p"""
    (x, rtol), (dx, _) = primals, tangents
    p = _pseudo_inverse(x, rtol, hermitian)
    if hermitian:
        x, dx = ((z + adjoint(z)) / 2 for z in (x, dx))
    inner = product(p, product(dx, p))
    rows = product(product(p, adjoint(p)), adjoint(dx))
    columns = product(adjoint(dx), product(adjoint(p), p))
    return p, (rows - product(rows, product(x, p))) + (columns - product(product(p, x), columns)) - inner


def _is_nonzero(s: Any, bound: Any) -> Any:
    """The mask of the singular values that count as nonzero: at least ``bound`` times the largest."""
    return (s > 0) & (s >= bound * s[:1])


def _inverse_maps(x: Any, bound: Any) -> tuple[Any, Any, Any]:
    """The singular values of a matrix, and the products by its pseudo-inverse and by the adjoint of that."""
    u, s, vh = svd(x, full_matrices=False)
    nonzero = _is_nonzero(s, bound)
    inverse = convert(where(nonzero, 1 / where(nonzero, s, 1), 0), x.type.dtype)[:, None]
    left, right = adjoint(u), adjoint(vh)
    return s, lambda y: product(right, inverse * product(left, y)), lambda y: product(u, inverse * product(vh, y))


@custom_jvp
def _least_squares(x: Any, y: Any, bound: Any) -> tuple[Any, Any]:
    """The shortest solution for each column of ``y``, and the singular values of ``x``."""
    s, inverted, _ = _inverse_maps(x, bound)
    return inverted(y), s


@_least_squares.defjvp
def _least_squares_jvp(primals: Any, tangents: Any) -> Any:
    """da = p (dy - dx a) + p p^H dx^H (y - x a) + (1 - p x) dx^H p^H a, where a = p y"""
    (x, y, bound), (dx, dy, _) = primals, tangents
    s, inverted, adjoint_inverted = _inverse_maps(x, bound)
    a, back = inverted(y), adjoint(dx)
    rows = inverted(adjoint_inverted(product(back, y - product(x, a))))
    columns = product(back, adjoint_inverted(a))
    da = inverted(dy - product(dx, a)) + rows + (columns - inverted(product(x, columns)))
    return (a, s), (da, jvp(svdvals, (x,), (dx,))[1])


class LstsqResult(NamedTuple):
    """A solution of least squares, the squared errors, the rank of the matrix and its singular values."""

    x: Array
    residuals: Array
    rank: Array
    s: Array


def lstsq(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> LstsqResult:
    """The vector of least length for which ``norm(b - a @ x)`` is least: ``x, residuals, rank, s``.

    Shapes: ``a[m, n], b[m] or b[m, k]``; ``residuals`` has the squared error of each column. With ``numpy_resid`` it is
    empty, as NumPy's is, where there are no more rows than columns or the rank is less: its shape depends on values.

    Args:
        rcond: singular values up to this, relative to the largest, count as 0; by default the larger size times the
            epsilon of the dtype, and for a negative number the epsilon.
    The derivative is that of matrices of constant rank.
    Raises: ShapeMismatch: other shapes. Source: NumPy, ``linalg.lstsq``; Golub & Pereyra (1973), as ``pinv``.

    >>> from handlax.numpy import array
    >>> lstsq(array([[1.0], [1.0]]), array([1.0, 3.0])).x.round(3)
    Array([2.], dtype=float32)
    """
    x, y = (convert(z, z.type.dtype) for z in map(inexact, promote(a, b)))
    if x.ndim != 2 or y.ndim not in (1, 2) or x.type.shape[0] != y.type.shape[0]:
        raise ShapeMismatch(
            f"lstsq: a matrix and as many rows on the right side are needed, got {x.type} and {y.type}."
        )
    m, n = x.type.shape
    columns = shapes.reshape(y, (m, 1)) if y.ndim == 1 else y
    eps = float(dtypes.finfo(x.type.dtype).eps)
    bound = eps * larger(m, n) if rcond is None else where(array_of(rcond) < 0, eps, rcond)
    bound = convert(array_of(bound), dtypes.to_real(x.type.dtype))
    solved, s = _least_squares(x, columns, bound)
    rank = _is_nonzero(s, bound).sum()
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = zeros((0,), s.type.dtype)
    else:
        residuals = reductions.sum(_abs(columns - product(x, solved)) ** 2, 0)
    return LstsqResult(shapes.reshape(solved, (n,)) if y.ndim == 1 else solved, residuals, rank, s)


def det(a: Any) -> Array:
    """The determinants of square matrices. They have derivatives where they are 0 too.

    Source: NumPy, ``linalg.det``; the derivative is Jacobi's formula.

    >>> from handlax.numpy import array
    >>> det(array([[2.0, 1.0], [1.0, 4.0]]))
    Array(7., dtype=float32)
    """
    return _det(matrices("det", a, square=True))


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The sign, or phase, of determinants and the logarithm of their size: ``det(a) == sign * exp(logabsdet)``.

    ``method``, "lu" or "qr", is how JAX computes them; here both are the former.
    Raises: BadArgument: another method. Source: NumPy, ``linalg.slogdet``.

    >>> from handlax.numpy import array
    >>> slogdet(array([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    need_one_of("slogdet: the method", method, (None, "lu", "qr"))
    return SlogdetResult(*_slogdet(matrices("slogdet", a, square=True)))


def tensorinv(a: Any, ind: int = 2) -> Array:
    """The inverse of a map from tensors to tensors, whose results have the first ``ind`` dimensions of ``a``.

        tensordot(tensorinv(a), a, ind)        is the identity, as a matrix

    Raises: ShapeMismatch: the two products of sizes differ. BadArgument: ``ind`` is no positive number.
    Source: NumPy, ``linalg.tensorinv``.

    >>> from handlax.numpy import eye
    >>> tensorinv(eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    x, ind = inexact(a), whole_number("tensorinv: ind", ind)
    if ind <= 0:
        raise BadArgument(f"tensorinv: ind must be positive, got {ind}.")
    first, last = x.type.shape[:ind], x.type.shape[ind:]
    rows, columns = math.prod(first), math.prod(last)
    if rows != columns:
        raise ShapeMismatch(f"tensorinv: dimensions before and from {ind} on must have equal products, got {x.type}.")
    return shapes.reshape(inv(shapes.reshape(x, (rows, columns))), (*last, *first))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """The solution ``x`` of the linear system ``tensordot(a, x, x.ndim) == b`` of tensors.

    ``axes``: dimensions of ``a`` that are moved to the end first.
    Raises: ShapeMismatch: the first dimensions of ``a`` are not those of ``b``, or the products of sizes differ.
    Source: NumPy, ``linalg.tensorsolve``.

    >>> from handlax.numpy import eye, ones
    >>> tensorsolve(eye(6).reshape(2, 3, 6), ones((2, 3))).shape
    (6,)
    """
    x, y = array_of(a), array_of(b)
    if axes is not None:
        x = moveaxis(x, axes, (x.ndim - 1,) * len(axes))
    lead, out = x.type.shape[: y.ndim], x.type.shape[y.ndim :]
    size = math.prod(lead)
    if lead != y.type.shape or size != math.prod(out):
        raise ShapeMismatch(
            f"tensorsolve: the first dimensions of a must be those of b, and their product that of the others, got "
            f"{x.type} and {y.type}."
        )
    return shapes.reshape(solve(shapes.reshape(x, (size, size)), shapes.reshape(y, (size,))), out)


programs(globals())
