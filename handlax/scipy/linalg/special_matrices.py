"""Structured matrices, from vectors or from a size: toeplitz, circulant, companion, hilbert, pascal, dft, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.base.errors import BadArgument, ShapeMismatch, need_one_of, whole_number
from ...effects.base.wrapping import errors_ignored
from ...effects.core.arrays import Array
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.types import dtypes
from ...interpreters.core.eager_programs import programs
from ...numpy.arrays.argument_conversion import inexact

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
    "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]


def block_diag(*arrs: Any) -> Array:
    """The block diagonal matrix of these matrices, with zeros elsewhere.

    Vectors are matrices of one row. Raises: ShapeMismatch: an array of more than two dimensions. Source: SciPy,
    ``linalg.block_diag``.

    >>> block_diag(hnp.ones((1, 2)), hnp.full((1, 1), 5.0))
    Array([[1., 1., 0.],
           [0., 0., 5.]], dtype=float32)
    """
    if not arrs:
        return hnp.zeros((1, 0))
    blocks = [hnp.atleast_2d(x) for x in promote(*arrs)]
    for x in blocks:
        if x.ndim > 2:
            raise ShapeMismatch(f"block_diag: arrays must have at most two dimensions, got {x.type}.")
    ends = np.cumsum([x.shape[1] for x in blocks])
    rows = [hnp.pad(x, ((0, 0), (end - x.shape[1], ends[-1] - end))) for x, end in zip(blocks, ends.tolist())]
    return hnp.concatenate(rows)


def _vectors(name: str, a: Any, least: int = 0) -> Any:
    """``a`` as vectors along the last axis. Raises ShapeMismatch: they have fewer than ``least`` elements."""
    x = hnp.atleast_1d(a)
    if x.shape[-1] < least:
        raise ShapeMismatch(f"{name}: vectors must have {least} elements at least, got {x.type}.")
    return x


def _pattern(x: Any, index: Any) -> Any:
    """The matrices ``y[i, j] = x[index[i, j]]``."""
    return hnp.take(x, index.astype(np.int32), axis=-1)


def toeplitz(c: Any, r: Any = None) -> Array:
    """The Toeplitz matrix, constant along diagonals: ``y[i, j] == c[i - j]``, or ``r[j - i]`` above the main diagonal.

    Without ``r`` it is Hermitian. Leading dimensions broadcast. Source: SciPy, ``linalg.toeplitz``.

    >>> toeplitz(hnp.array([1, 2, 3]), hnp.array([1, 4]))
    Array([[1, 4],
           [2, 1],
           [3, 2]], dtype=int32)
    """
    column = _vectors("toeplitz", c)
    row = hnp.conj(column) if r is None else _vectors("toeplitz", r)
    return _banded(column[..., ::-1], row, lambda i, j, m: m - 1 - i + j)


def hankel(c: Any, r: Any = None) -> Array:
    """The Hankel matrix, constant along antidiagonals, from its first column ``c`` and its last row ``r``.

    Without ``r`` it is zero below the antidiagonal. Leading dimensions broadcast. Raises: ShapeMismatch: a scalar.
    Source: SciPy, ``linalg.hankel``.

    >>> hankel(hnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    column = hnp.asarray(c)
    row = hnp.zeros_like(column) if r is None else hnp.asarray(r)
    if not column.ndim or not row.ndim:
        raise ShapeMismatch(f"hankel: vectors are needed, got {column.type} and {row.type}.")
    return _banded(column, row, lambda i, j, m: i + j)


def _banded(column: Any, row: Any, index: Any) -> Any:
    """The matrices ``y[i, j] = x[index(i, j, m)]``, where ``x`` is ``column``, of size ``m``, then ``row[1:]``."""
    column, row = promote(column, row)
    lanes = hnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    m, n = column.shape[-1], row.shape[-1]
    if not m or not n:
        return hnp.zeros((*lanes, m, n), column.dtype)
    parts = [hnp.broadcast_to(x, (*lanes, x.shape[-1])) for x in (column, row[..., 1:])]
    return _pattern(hnp.concatenate(parts, -1), index(hnp.arange(m)[:, None], hnp.arange(n), m))


def circulant(c: Any) -> Array:
    """The circulant matrix, whose columns are cyclic shifts of ``c``: ``y[i, j] == c[(i - j) % n]``. Source: SciPy.

    >>> circulant(hnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    x = _vectors("circulant", c)
    n = x.shape[-1]
    return _pattern(x, np.subtract.outer(np.arange(n), np.arange(n)) % n) if n else hnp.zeros((*x.shape, 0), x.dtype)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Array:
    """The matrix that convolves with ``a``: ``convolution_matrix(a, n, mode) @ v == convolve(a, v, mode)``.

    ``n`` is the size of ``v``.

    Raises: BadArgument: another mode, or no positive size. ShapeMismatch: no vector. Source: SciPy.

    >>> convolution_matrix(hnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    x, n = hnp.asarray(a), whole_number("convolution_matrix: n", n)
    if n <= 0 or mode not in ("full", "valid", "same"):
        raise BadArgument(
            f"convolution_matrix: n must be positive and the mode 'full', 'valid' or 'same', got {n} and {mode!r}."
        )
    if not x.ndim or not x.shape[-1]:
        raise ShapeMismatch(f"convolution_matrix: vectors that are not empty are needed, got {x.type}.")
    m = x.shape[-1]
    trim = {"full": 0, "same": min(n, m) - 1, "valid": 2 * (min(n, m) - 1)}[mode]
    first = trim // 2
    index = np.subtract.outer(np.arange(first, m + n - 1 - (trim - first)), np.arange(n))
    padded = hnp.concatenate([x, hnp.zeros((*x.shape[:-1], 1), x.dtype)], -1)
    return _pattern(padded, np.where((index >= 0) & (index < m), index, m))


def companion(a: Any) -> Array:
    """The companion matrix of a polynomial, whose eigenvalues are its roots; the highest coefficient comes first.

    Raises: ShapeMismatch: less than two coefficients. Source: SciPy, ``linalg.companion``.

    >>> companion(hnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    x = _vectors("companion", inexact(a), 2)
    n = x.shape[-1] - 1
    return hnp.broadcast_to(hnp.eye(n, k=-1, dtype=x.dtype), (*x.shape[:-1], n, n)).at[..., 0, :].set(
        -x[..., 1:] / x[..., :1]
    )


def fiedler(a: Any) -> Array:
    """``fiedler(a)[i, j] == abs(a[i] - a[j])``. Source: SciPy, ``linalg.fiedler``.

    >>> fiedler(hnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    x = _vectors("fiedler", a)
    return abs(x[..., :, None] - x[..., None, :])


def fiedler_companion(a: Any) -> Array:
    """A pentadiagonal companion matrix of a polynomial, whose eigenvalues are its roots.

    Raises: ShapeMismatch: no coefficients. Source: M. Fiedler, A note on companion matrices (2003).

    >>> fiedler_companion(hnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    x = _vectors("fiedler_companion", inexact(a), 1)
    n = x.shape[-1] - 1
    if n < 1:
        return hnp.zeros((*x.shape[:-1], 0, 0), x.dtype)
    ratios = -x / x[..., :1]
    numbers = hnp.broadcast_to(hnp.array([0, 1], x.dtype), (*x.shape[:-1], 2))
    vector = hnp.concatenate([ratios, numbers], -1)
    zero, one = n + 1, n + 2
    even, odd = np.arange(0, n, 2), np.arange(1, n, 2)
    index = np.full((n, n + 2), zero)
    index[even, even + 1], index[even, even + 2] = even + 2, one  # even rows have coefficients beside the diagonal
    index[even[1:], even[1:] - 1] = even[1:] + 1
    index[odd, np.maximum(odd - 2, 0)] = one
    index[0, 0] = 1
    return _pattern(vector, index[:, :n])


def leslie(f: Any, s: Any) -> Array:
    """The Leslie matrix of a population: birth rates in the first row, survival rates below the diagonal.

    Raises: ShapeMismatch: there must be one survival rate fewer than birth rates. Source: SciPy, ``linalg.leslie``.

    >>> leslie(hnp.array([0.1, 2.0]), hnp.array([0.5]))
    Array([[0.1, 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    births, survival = (_vectors("leslie", x) for x in promote(f, s))
    n = births.shape[-1]
    if n < 2 or survival.shape[-1] != n - 1:
        raise ShapeMismatch(
            f"leslie: one rate of survival less than of births is needed, got {births.type} and {survival.type}."
        )
    lanes = hnp.broadcast_shapes(births.shape[:-1], survival.shape[:-1])
    below = hnp.broadcast_to(hnp.eye(n - 1, n, dtype=births.dtype), (*lanes, n - 1, n))
    below = hnp.broadcast_to(survival, (*lanes, n - 1))[..., :, None] * below
    return hnp.concatenate([hnp.broadcast_to(births, (*lanes, n))[..., None, :], below], -2)


def _positive(name: str, n: Any) -> int:
    """A size as an int. Raises BadArgument: it is not positive."""
    n = whole_number(f"{name}: n", n)
    if n < 1:
        raise BadArgument(f"{name}: the size must be positive, got {n}.")
    return n


def hilbert(n: int) -> Array:
    """``hilbert(n)[i, j] == 1 / (i + j + 1)``. Source: SciPy, ``linalg.hilbert``.

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = np.arange(whole_number("hilbert: n", n))
    return _of_default(1 / (i[:, None] + i + 1))


def _of_default(x: Any) -> Any:
    """NumPy's array as an array of the default float dtype."""
    return hnp.asarray(errors_ignored(np.asarray(x).astype, dtypes.default_float()))


def invhilbert(n: int) -> Array:
    """The inverse of ``hilbert(n)``, whose elements are integers, as rounded floats. Source: SciPy,
    ``linalg.invhilbert``.

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    c, n = math.comb, whole_number("invhilbert: n", n)
    element = lambda i, j: (-1) ** (i + j) * (i + j + 1) * c(n + i, n - j - 1) * c(n + j, n - i - 1) * c(i + j, i) ** 2
    return _exact(n, element)


def _exact(n: int, element: Any) -> Any:
    """The square matrix of the Python integers ``element(i, j)``, rounded to floats."""
    rows = [[element(i, j) for j in range(n)] for i in range(n)]
    largest = float(np.finfo(np.float64).max)
    return _of_default(np.array([[float(max(min(x, largest), -largest)) for x in row] for row in rows]).reshape(n, n))


def _of_kind(name: str, n: Any, kind: str | None, symmetric: Any, lower: Any) -> Any:
    """The matrix of the integers ``symmetric(i, j)``, or by ``kind`` the triangular one of ``lower(i, j)``, transposed
    for "upper". Raises BadArgument: another kind.
    """
    elements = {None: symmetric, "symmetric": symmetric, "lower": lower, "upper": lambda i, j: lower(j, i)}
    need_one_of(f"{name}: the kind", kind, elements)
    return _exact(n, elements[kind])


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix: ``comb(i + j, i)``; "lower" ``comb(i, j)``; "upper" its transpose. Source: SciPy.

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    return _of_kind("pascal", whole_number("pascal: n", n), kind, lambda i, j: math.comb(i + j, i), math.comb)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of ``pascal(n, kind)``, whose elements are integers. Source: SciPy, ``linalg.invpascal``.

    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    n = whole_number("invpascal: n", n)
    lower = lambda i, j: (-1) ** (i - j) * math.comb(i, j) if i >= j else 0
    symmetric = lambda i, j: sum(lower(k, i) * lower(k, j) for k in range(max(i, j), n))
    return _of_kind("invpascal", n, kind, symmetric, lower)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's orthogonal matrix of order ``n`` without its constant first row, or with it. Source: SciPy.

    >>> helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = _positive("helmert", n)
    k = np.arange(1, n)[:, None]
    j = np.arange(n)
    rows = np.where(j < k, 1.0, np.where(j == k, -k, 0.0)) / np.sqrt(k * (k + 1))
    return _of_default(np.concatenate([np.full((1, n), n**-0.5), rows]) if full else rows)


def hadamard(n: int, dtype: Any = int) -> Array:
    """Sylvester's Hadamard matrix: orthogonal rows of ones and minus ones, for a size that is a power of 2.

    Raises: BadArgument: another size. Source: SciPy, ``linalg.hadamard``.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = _positive("hadamard", n)
    if n & (n - 1):
        raise BadArgument(f"hadamard: the size must be a power of 2, got {n}.")
    y = np.ones((1, 1), np.int8)
    while len(y) < n:
        y = np.block([[y, y], [y, -y]])
    return hnp.asarray(y).astype(dtypes.canonical(dtype))


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """The matrix of the Fourier transform: ``dft(n) @ x == fft(x)``.

    ``scale``: "n" divides by ``n``, "sqrtn" by its root. Raises: BadArgument: another word, or no complex dtype.
    Source: SciPy, ``linalg.dft``.

    >>> dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    kind = dtypes.default_complex() if dtype is None else dtypes.canonical(dtype)
    if scale not in (None, "n", "sqrtn") or not dtypes.is_complex(kind):
        raise BadArgument(f"dft: the scale must be 'n' or 'sqrtn', and the dtype complex, got {scale!r} and {kind}.")
    k = np.arange(whole_number("dft: n", n))
    y = np.exp(-2j * np.pi * (k[:, None] * k % max(n, 1)) / max(n, 1))
    return hnp.asarray((y / {None: 1, "n": n, "sqrtn": math.sqrt(n)}[scale]).astype(kind))


programs(globals())
