"""Solutions of linear systems, inverses, and determinants."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.linalg import determinant
from ...effects.operations.linalg import solve as systems
from ...effects.operations.linalg.matrices import identity
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, promote
from ..arrays.argument_conversion import array_of, inexact
from ..arrays.shape_manipulation import moveaxis
from .decompositions import matrices

__all__ = ["det", "inv", "slogdet", "solve", "tensorinv", "tensorsolve"]


class SlogdetResult(NamedTuple):
    """The sign, or phase, of determinants, and the logarithm of their size."""

    sign: Any
    logabsdet: Any


def solve(a: Any, b: Any) -> Any:
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
    y = shapes.reshape(y, (n, 1)) if vector else y
    found = solution(x, y)
    return shapes.reshape(found, found.type.shape[:-1]) if vector else found


def solution(x: Any, y: Any) -> Any:
    """``solve`` for matrices on both sides; where ``x`` is one matrix it is factorised once."""
    lanes, n = y.type.shape[:-2], x.type.shape[-1]
    if lanes and x.ndim == 2:
        columns = moveaxis(y, -2, 0)
        wide = systems.solve(x, shapes.reshape(columns, (n, math.prod(columns.type.shape[1:]))))
        return moveaxis(shapes.reshape(wide, columns.type.shape), 0, -2)
    lanes = broadcast_shape("solve", x.type.shape[:-2], lanes)
    return systems.solve(*[shapes.broadcast(z, (*lanes, *z.type.shape[-2:])) for z in (x, y)])


def inv(a: Any) -> Any:
    """The inverses of square matrices: ``inv(a) @ a`` is the identity.

    That of a singular matrix is infinite or NaN. Source: NumPy, ``linalg.inv``.

    >>> from handlax.numpy import array
    >>> inv(array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = matrices("inv", a, square=True)
    return systems.solve(x, identity(x.type))


def det(a: Any) -> Any:
    """The determinants of square matrices. They have derivatives where they are 0 too.

    Source: NumPy, ``linalg.det``; the derivative is Jacobi's formula.

    >>> from handlax.numpy import array
    >>> det(array([[2.0, 1.0], [1.0, 4.0]]))
    Array(7., dtype=float32)
    """
    return determinant.det(matrices("det", a, square=True))


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The sign, or phase, of determinants and the logarithm of their size: ``det(a) == sign * exp(logabsdet)``.

    ``method``, "lu" or "qr", is how JAX computes them; here both are the former.
    Raises: BadArgument: another method. Source: NumPy, ``linalg.slogdet``.

    >>> from handlax.numpy import array
    >>> slogdet(array([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise BadArgument(f"slogdet: the method must be 'lu' or 'qr', got {method!r}.")
    return SlogdetResult(*determinant.slogdet(matrices("slogdet", a, square=True)))


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of a map from tensors to tensors, whose results have the first ``ind`` dimensions of ``a``.

        tensordot(tensorinv(a), a, ind)        is the identity, as a matrix

    Raises: ShapeMismatch: the two products of sizes differ. BadArgument: ``ind`` is no positive number.
    Source: NumPy, ``linalg.tensorinv``.

    >>> from handlax.numpy import eye
    >>> tensorinv(eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    x = inexact(a)
    if ind <= 0:
        raise BadArgument(f"tensorinv: ind must be positive, got {ind}.")
    first, last = x.type.shape[:ind], x.type.shape[ind:]
    rows, columns = math.prod(first), math.prod(last)
    if rows != columns:
        raise ShapeMismatch(f"tensorinv: dimensions before and from {ind} on must have equal products, got {x.type}.")
    return shapes.reshape(inv(shapes.reshape(x, (rows, columns))), (*last, *first))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The tensor that a map of tensors takes to another: ``tensordot(a, x, x.ndim) == b``.

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
