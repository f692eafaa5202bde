"""Matrices by their diagonals: eye, diag, diagonal, tri, tril, triu, and the indices of such parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..effects import dtypes, shapes, slicing
from ..effects.arrays import from_numpy, lift
from ..effects.comparison import eq, ge, select_n
from ..effects.conversion import convert
from ..effects.creation import broadcasted_iota
from ..effects.errors import BadArgument, ShapeMismatch
from ..effects.shapes import canonical_axis
from .creation import placed
from .shaping import moveaxis

_INDEX = np.dtype("int32")


def _compared(compare: Callable[..., Any], shape: tuple[int, ...], k: int) -> Any:
    """``compare(i + k, j)`` for every index ``i, j`` of a matrix."""
    rows, columns = broadcasted_iota(_INDEX, shape, 0), broadcasted_iota(_INDEX, shape, 1)
    return compare(rows + k if k else rows, columns)


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """``eye(n, m, k)[i, j] == (i + k == j)``: ones on the ``k``-th diagonal, zeros elsewhere.

    >>> eye(2, 3, 1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    shape = shapes.canonical_shape((N, N if M is None else M), "eye")
    kind = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    return placed(convert(_compared(eq, shape, k.__index__()), kind), device)


def identity(n: Any, dtype: Any = None) -> Any:
    """The matrix with ones on its diagonal: ``identity(n) @ x == x``.

    >>> identity(2, int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    """``tri(n, m, k)[i, j] == (j <= i + k)``: ones at and below the ``k``-th diagonal.

    >>> tri(2, dtype=int)
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    shape = shapes.canonical_shape((N, N if M is None else M), "tri")
    kind = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    return convert(_compared(ge, shape, k.__index__()), kind)


def _part(m: Any, k: int, lower: bool, where: str) -> Any:
    x = lift(m)
    shape = x.type.shape
    if len(shape) < 2:
        raise ShapeMismatch(f"{where}: a matrix is needed, got {x.type} of rank {len(shape)}.")
    k = k.__index__()
    mask = _compared(ge, shape[-2:], k if lower else k - 1)
    if len(shape) > 2:
        mask = shapes.broadcast(mask, shape)
    zeros = shapes.full(x.type, 0)
    return select_n(mask, zeros, x) if lower else select_n(mask, x, zeros)


def tril(m: Any, k: int = 0) -> Any:
    """The elements of each matrix at and below its ``k``-th diagonal, zeros elsewhere.

    >>> tril(np.ones((2, 2), "int32"))
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    return _part(m, k, True, "tril")


def triu(m: Any, k: int = 0) -> Any:
    """The elements of each matrix at and above its ``k``-th diagonal, zeros elsewhere.

    >>> triu(np.ones((2, 2), "int32"), 1)
    Array([[0, 1],
           [0, 0]], dtype=int32)
    """
    return _part(m, k, False, "triu")


def _positions(found: Any) -> tuple[Any, ...]:
    return tuple([from_numpy(part.astype(dtypes.default_int()), copy=False) for part in found])


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, ...]:
    """The rows and columns of the elements at and below the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    >>> tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _positions(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, ...]:
    """The rows and columns of the elements at and above the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    >>> triu_indices(2, 1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    return _positions(np.triu_indices(n, k, m))


def _sides(arr: Any, where: str) -> tuple[int, int]:
    shape = arr.shape if hasattr(arr, "shape") else lift(arr).shape
    if len(shape) != 2:
        raise ShapeMismatch(f"{where}: a matrix is needed, got shape {shape}.")
    return shape[0], shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    """``tril_indices`` of the shape of a matrix.

    >>> tril_indices_from(np.zeros((1, 2)))
    (Array([0], dtype=int32), Array([0], dtype=int32))
    """
    rows, columns = _sides(arr, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    """``triu_indices`` of the shape of a matrix.

    >>> triu_indices_from(np.zeros((1, 2)))
    (Array([0, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    rows, columns = _sides(arr, "triu_indices_from")
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array with ``ndim`` axes of size ``n``.

    >>> diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    if n < 0 or ndim < 0:
        raise BadArgument(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}.")
    return _positions([np.arange(n)] * ndim)


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """``diag_indices`` of an array whose sizes are all equal.

    >>> diag_indices_from(np.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = lift(arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ShapeMismatch(f"diag_indices_from: rank 2 at least and equal sizes are needed, got shape {shape}.")
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0, *, size: int | None = None) -> tuple[Any, ...]:
    """The rows and columns where ``mask_func(ones((n, n)), k)`` is not zero; ``size`` of them, filled up with 0.

    >>> mask_indices(2, triu, 1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    found = np.nonzero(np.asarray(mask_func(shapes.full(lift(True).type.update(shape=(n, n)), True), k)))
    if size is None:
        return _positions(found)
    return _positions([np.concatenate([part[:size], np.zeros(max(0, size - part.size), int)]) for part in found])


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """``diagonal(x, k)[..., i] == x[i, i + k, ...]``: two axes become one, the last.

    >>> diagonal(np.array([[1, 2], [3, 4]], "int32"))
    Array([1, 4], dtype=int32)
    """
    x = lift(a)
    if x.ndim < 2:
        raise ShapeMismatch(f"diagonal: rank 2 at least is needed, got {x.type}.")
    first, second = canonical_axis(axis1, x.ndim, "diagonal"), canonical_axis(axis2, x.ndim, "diagonal")
    if first == second:
        raise BadArgument(f"diagonal: two different axes are needed, got {axis1} and {axis2}.")
    x = moveaxis(x, (first, second), (-2, -1))
    *front, rows, columns = x.shape
    offset = offset.__index__()
    size = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    # in row-major order a diagonal is every (columns + 1)-th element
    start = offset if offset >= 0 else -offset * columns
    flat = shapes.reshape(x, (*front, rows * columns))
    if not size:
        return slicing.slice_in_dim(flat, 0, 0, axis=len(front))
    stop = start + (size - 1) * (columns + 1) + 1
    return slicing.slice_in_dim(flat, start, stop, columns + 1, len(front))


def diag(v: Any, k: int = 0) -> Any:
    """The ``k``-th diagonal of a matrix, or the matrix with a vector as its ``k``-th diagonal and zeros elsewhere.

    >>> diag(np.array([1, 2], "int32"))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = lift(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeMismatch(f"diag: a vector or a matrix is needed, got {x.type}.")
    k = k.__index__()
    n = x.shape[0]
    side = n + abs(k)
    # the elements with `side` zeros behind each, read in rows of `side`, lie one further right in each row
    zero = shapes.full(x.type.update(shape=()), 0)
    if not n:
        return shapes.full(x.type.update(shape=(side, side)), 0)
    start = k if k >= 0 else -k * side
    covered = (n - 1) * (side + 1) + 1
    flat = slicing.pad(x, zero, [(start, side * side - start - covered, side)])
    return shapes.reshape(flat, (side, side))


def diagflat(v: Any, k: int = 0) -> Any:
    """``diag`` of the flattened array.

    >>> diagflat(np.array([[1, 2]], "int32"))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = lift(v)
    return diag(shapes.reshape(x, (x.size,)), k)
