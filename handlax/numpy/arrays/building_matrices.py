"""Building matrices and taking their diagonals: eye, identity, diag, diagonal, tri, tril, triu, vander."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, ShapeMismatch, whole_number
from ...effects.core.arrays import Array, Box, as_array
from ...effects.core.columns import zeros_like
from ...effects.operations.elementwise.comparison import eq, ge, select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.foundations.sharding_constraint import reveal
from ...effects.operations.manipulation import slicing
from ...effects.operations.manipulation.creation import broadcasted_iota, iota
from ...effects.types import dtypes
from ...effects.types.extent import Extent, as_size, fits, positive
from ...effects.types.parts_of_axes import smaller
from ...interpreters.core.eager_programs import programs
from .argument_conversion import strong
from .creation import placed
from .numerical_ranges import arange
from .shape_manipulation import moveaxis

__all__ = ["diag", "diagflat", "diagonal", "eye", "identity", "tri", "tril", "triu", "vander"]


_INDEX = np.dtype("int32")


def _compared(compare: Callable[..., Any], shape: tuple[int, ...], k: Any) -> Any:
    """``compare(i + k, j)`` for every index ``i, j`` of a matrix."""
    if k.__class__ is int and shape[0].__class__ is shape[1].__class__ is int:
        k = max(-shape[0], min(k, shape[1]))  # diagonals beyond are alike, and ``i + k`` does not overflow
    rows, columns = broadcasted_iota(_INDEX, shape, 0), broadcasted_iota(_INDEX, shape, 1)
    return compare(rows if k.__class__ is int and not k else rows + k, columns)


def _offset(k: Any, where: str) -> Any:
    """The offset ``k`` of a diagonal as an int, or as an int32 scalar if it is a traced integer."""
    if isinstance(k, Box) and dtypes.is_integer(k.type.dtype) and not k.type.shape:
        return convert(k, _INDEX)
    return whole_number(f"{where}: k", k)


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """``eye(n, m, k)[i, j] == (i + k == j)``: ones on the ``k``-th diagonal, zeros elsewhere.

    >>> eye(2, 3, 1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    shape = shapes.canonical_shape((N, N if M is None else M), "eye")
    kind = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    return placed(convert(_compared(eq, shape, _offset(k, "eye")), kind), device)


def identity(n: Any, dtype: Any = None) -> Array:
    """The matrix with ones on its diagonal: ``identity(n) @ x == x``.

    >>> identity(2, int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Array:
    """``tri(n, m, k)[i, j] == (j <= i + k)``: ones at and below the ``k``-th diagonal.

    >>> tri(2, dtype=int)
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    shape = shapes.canonical_shape((N, N if M is None else M), "tri")
    kind = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    return convert(_compared(ge, shape, _offset(k, "tri")), kind)


def _part(m: Any, k: int, lower: bool, where: str) -> Any:
    """The elements of each matrix at and below its ``k``-th diagonal, or at and above it, zeros elsewhere."""
    x = as_array(m)
    shape = x.type.shape
    if len(shape) < 2:
        raise ShapeMismatch(f"{where}: a matrix is needed, got {x.type} of rank {len(shape)}.")
    k = _offset(k, where)
    mask = _compared(ge, shape[-2:], k if lower else k - 1)
    if len(shape) > 2:
        mask = shapes.broadcast(mask, shape)
    mask, zeros = reveal(mask, x.type.cut and x.type.cut.whole), zeros_like(x)
    return select_n(mask, zeros, x) if lower else select_n(mask, x, zeros)


def tril(m: Any, k: int = 0) -> Array:
    """The elements of each matrix at and below its ``k``-th diagonal, zeros elsewhere.

    >>> tril(np.ones((2, 2), "int32"))
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    return _part(m, k, True, "tril")


def triu(m: Any, k: int = 0) -> Array:
    """The elements of each matrix at and above its ``k``-th diagonal, zeros elsewhere.

    >>> triu(np.ones((2, 2), "int32"), 1)
    Array([[0, 1],
           [0, 0]], dtype=int32)
    """
    return _part(m, k, False, "triu")


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """``diagonal(x, k)[..., i] == x[i, i + k, ...]``: two axes become one, the last.

    >>> diagonal(np.array([[1, 2], [3, 4]], "int32"))
    Array([1, 4], dtype=int32)
    """
    x = as_array(a)
    if x.ndim < 2:
        raise ShapeMismatch(f"diagonal: rank 2 at least is needed, got {x.type}.")
    first, second = canonical_axis(axis1, x.ndim, "diagonal"), canonical_axis(axis2, x.ndim, "diagonal")
    if first == second:
        raise BadArgument(f"diagonal: two different axes are needed, got {axis1} and {axis2}.")
    x = moveaxis(x, (first, second), (-2, -1))
    *front, rows, columns = x.shape
    offset = whole_number("diagonal: offset", offset)
    size = positive(smaller(rows + min(offset, 0), columns - max(offset, 0)))
    if not isinstance(rows, int) or not isinstance(columns, int):
        i = iota(_INDEX, size)
        return x[..., i + max(-offset, 0), i + max(offset, 0)]
    # in row-major order a diagonal is every (columns + 1)-th element
    start = offset if offset >= 0 else -offset * columns
    flat = shapes.reshape(x, (*front, rows * columns))
    if not size:
        return slicing.slice_in_dim(flat, 0, 0, axis=len(front))
    return slicing.slice_in_dim(flat, start, start + (size - 1) * (columns + 1) + 1, columns + 1, len(front))


def diag(v: Any, k: int = 0) -> Array:
    """The ``k``-th diagonal of a matrix, or the matrix with a vector as its ``k``-th diagonal and zeros elsewhere.

    >>> diag(np.array([1, 2], "int32"))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeMismatch(f"diag: a vector or a matrix is needed, got {x.type}.")
    k = whole_number("diag: k", k)
    n = x.shape[0]
    side = n + abs(k)
    # the elements with `side` zeros behind each, read in rows of `side`, lie one further right in each row
    zero = shapes.full(x.type.update(shape=()), 0)
    if isinstance(n, Extent):
        columns = shapes.broadcast(slicing.pad(x, zero, [(max(k, 0), max(-k, 0), 0)]), (side, side))
        return select_n(eye(side, k=k, dtype=bool), shapes.full(columns.type, 0), columns)
    if not n:
        return shapes.full(x.type.update(shape=(side, side)), 0)
    start = k if k >= 0 else -k * side
    covered = (n - 1) * (side + 1) + 1
    return shapes.reshape(slicing.pad(x, zero, [(start, side * side - start - covered, side)]), (side, side))


@strong
def diagflat(v: Any, k: int = 0) -> Array:
    """``diag`` of the flattened array.

    >>> diagflat(np.array([[1, 2]], "int32"))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_array(v)
    return diag(shapes.reshape(x, (x.size,)), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """``vander(x, n)[i, j] == x[i] ** (n - 1 - j)``, ``x[i] ** j`` where ``increasing``.

    >>> vander(np.array([2, 3], "int32"), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = as_array(x)
    if x.ndim != 1:
        raise ShapeMismatch(f"vander: a vector is needed, got {x.type}.")
    n = x.size if N is None else as_size(N, "vander: N")
    if not fits(0, n):
        raise BadArgument(f"vander: the number of columns must not be negative, got {n}.")
    exponents = arange(n, dtype=x.dtype) if increasing else arange(n - 1, -1, -1, dtype=x.dtype)
    return shapes.reshape(x, (x.size, 1)) ** shapes.reshape(exponents, (1, n))


programs(globals())
