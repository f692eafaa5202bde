"""``handlax.numpy.linalg``: norms, products and factors of matrices, under JAX's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.base.errors import BadArgument, ShapeMismatch
from ..effects.operations.elementwise.arithmetic import abs as _abs
from ..effects.operations.elementwise.arithmetic import mul, sqrt
from ..effects.operations.elementwise.comparison import ne
from ..effects.operations.elementwise.complex_parts import conj, real
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations import shapes
from ..effects.operations.foundations.shapes import axes_listed, canonical_axis
from ..effects.operations.linalg import cholesky as factors
from ..effects.types import dtypes
from ..interpreters.core.eager_programs import eager_program
from .arrays import building_matrices, shape_manipulation
from .arrays.argument_conversion import array_of, axes_of, inexact, kept_shape, like
from .mathematics import matrix_products, reductions
from .mathematics.arithmetic import power
from .mathematics.einstein_summation import einsum

__all__ = [
    "cholesky", "cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "multi_dot", "norm",
    "outer", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


_SINGULAR = ("nuc", 2, -2)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices along an axis or two; ``sqrt(sum(abs(x)**2))`` unless ``ord`` says otherwise.

    ``ord`` of vectors is a number (0 counts nonzero elements, ``inf`` and ``-inf`` give the largest and smallest
    magnitude); of matrices "fro", 1, -1, ``inf`` or ``-inf``.
    Raises: BadArgument: another order. Source: NumPy, ``linalg.norm``.

    >>> from handlax.numpy import array
    >>> norm(array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    x = inexact(x)
    rank = len(x.type.shape)
    axes = tuple(range(rank)) if axis is None else _given(axis, rank)
    if axis is None and ord is None:
        return _kept(_root(x, axes), x, axes, keepdims)
    if axis is None and rank not in (1, 2):
        raise ShapeMismatch(
            f"norm: an order without axes is for vectors and matrices, got {x.type}.", hint="name the axes."
        )
    if len(axes) == 1:
        return _kept(_vector(x, 2 if ord is None else ord, axes), x, axes, keepdims)
    if len(axes) == 2:
        return _kept(_matrix(x, "fro" if ord is None else ord, axes), x, tuple(sorted(axes)), keepdims)
    raise BadArgument(f"norm: one axis or two are needed, got {axis}.")


def _given(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in the order in which they are given."""
    return tuple([canonical_axis(d, rank, "norm") for d in axes_listed(axis)])


def _kept(y: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return shapes.reshape(y, kept_shape(x.type.shape, axes)) if keepdims else y


def _squares(x: Any) -> Any:
    return real(mul(x, conj(x))) if dtypes.is_complex(x.type.dtype) else mul(x, x)


def _root(x: Any, axes: tuple[int, ...]) -> Any:
    return sqrt(reductions.sum(_squares(x), axes))


def _vector(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    if isinstance(ord, str):
        raise BadArgument(f"norm: the order of a vector norm is a number, got {ord!r}.")
    if ord == 2:
        return _root(x, axes)
    size = _abs(x)
    if ord == float("inf"):
        return reductions.max(size, axes, initial=0)
    if ord == -float("inf"):
        return reductions.min(size, axes)
    if ord == 0:
        return reductions.sum(ne(x, like(x, 0)), axes, dtype=size.type.dtype)
    if ord == 1:
        return reductions.sum(size, axes)
    y = power(reductions.sum(power(size, ord), axes), 1.0 / ord)
    return convert(y, size.type.dtype)


def _matrix(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    row, column = axes
    if row == column:
        raise BadArgument(f"norm: the axes of a matrix must differ, got {axes}.")
    if ord == "fro":
        return _root(x, tuple(sorted(axes)))
    if ord in _SINGULAR:
        raise BadArgument(
            f"norm: the order {ord!r} is made of singular values.", hint="orders fro, 1, -1, inf and -inf are sums."
        )
    if ord not in (1, -1, float("inf"), -float("inf")):
        raise BadArgument(f"norm: the order of a matrix norm is fro, 1, -1, inf or -inf, got {ord!r}.")
    summed, left = (row, column) if abs(ord) == 1 else (column, row)
    totals = reductions.sum(_abs(x), summed)
    rest = left - (left > summed)
    return reductions.max(totals, rest, initial=0) if ord > 0 else reductions.min(totals, rest)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of all elements, or of vectors along the axes. Source: the array API standard, ``vector_norm``.

    >>> from handlax.numpy import array
    >>> vector_norm(array([3.0, 4.0]), ord=1)
    Array(7., dtype=float32)
    """
    x = inexact(x)
    axes = axes_of(axis, len(x.type.shape), "vector_norm")
    return _kept(_vector(x, ord, axes), x, axes, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of matrices, the last two dimensions. Source: the array API standard, ``matrix_norm``.

    >>> from handlax.numpy import eye
    >>> matrix_norm(eye(4))
    Array(2., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with ``L @ conj(L).T == a``, or the upper U with ``conj(U).T @ U == a``.

    Shapes: ``[*s, n, n]``, Hermitian and positive definite; else NaN. Source: NumPy, ``linalg.cholesky``.

    >>> from handlax.numpy import eye
    >>> cholesky(4 * eye(2))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    x = inexact(a)
    if len(x.type.shape) < 2 or x.type.shape[-1] != x.type.shape[-2]:
        raise ShapeMismatch(f"cholesky: square matrices are needed, got {x.type}.")
    factor = factors.cholesky(convert(x, x.type.dtype), symmetrize_input=symmetrize_input)
    if not upper:
        return factor
    turned = shape_manipulation.matrix_transpose(factor)
    return conj(turned) if dtypes.is_complex(turned.type.dtype) else turned


def matrix_power(a: Any, n: int) -> Any:
    """The product of ``n`` square matrices, by squaring: ``matrix_power(a, 3) == a @ a @ a``.

    Raises: BadArgument: a negative power. Source: NumPy, ``linalg.matrix_power``.

    >>> from handlax.numpy import array
    >>> matrix_power(array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    x = array_of(a)
    if len(x.type.shape) < 2 or x.type.shape[-1] != x.type.shape[-2]:
        raise ShapeMismatch(f"matrix_power: square matrices are needed, got {x.type}.")
    n = n.__index__()
    if n < 0:
        raise BadArgument(
            f"matrix_power: the power must not be negative, got {n}.", hint="a negative one needs an inverse."
        )
    if n == 0:
        return shapes.broadcast(building_matrices.eye(x.type.shape[-1], dtype=x.type.dtype), x.type.shape)
    found = None
    while True:
        if n & 1:
            found = x if found is None else matrix_products.matmul(found, x)
        n >>= 1
        if not n:
            return found
        x = matrix_products.matmul(x, x)


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """The product of several matrices in a cheap order; the first and last may be vectors.

    >>> from handlax.numpy import ones
    >>> multi_dot([ones((2, 9)), ones((9, 9)), ones((9, 1))]).shape
    (2, 1)
    """
    xs = [array_of(x) for x in arrays]
    if len(xs) < 2:
        raise BadArgument(f"multi_dot: at least two arrays are needed, got {len(xs)}.")
    if any(x.ndim != 2 for x in xs[1:-1]) or not {xs[0].ndim, xs[-1].ndim} <= {1, 2}:
        raise ShapeMismatch(f"multi_dot: operands must be matrices, got {', '.join(str(x.type) for x in xs)}.")
    if len(xs) == 2:
        return matrix_products.matmul(*xs, precision=precision)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    words = [letters[i : i + 2] for i in range(len(xs))]
    words[0] = words[0] if xs[0].ndim == 2 else words[0][1]
    words[-1] = words[-1] if xs[-1].ndim == 2 else words[-1][0]
    result = (letters[0] if xs[0].ndim == 2 else "") + (letters[len(xs)] if xs[-1].ndim == 2 else "")
    return einsum(f"{','.join(words)}->{result}", *xs, precision=precision)


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``numpy.matmul``. Source: the array API standard, ``linalg.matmul``."""
    return matrix_products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def matrix_transpose(x: Any, /) -> Any:
    """The last two dimensions exchanged. Source: the array API standard, ``matrix_transpose``."""
    return shape_manipulation.matrix_transpose(x)


@eager_program
def outer(x1: Any, x2: Any, /) -> Any:
    """``outer(x, y)[i, j] == x[i] * y[j]``, of vectors. Source: the array API standard, ``linalg.outer``.

    Raises: ShapeMismatch: an operand is no vector.

    >>> from handlax.numpy import ones
    >>> outer(ones(2), ones(3)).shape
    (2, 3)
    """
    x, y = array_of(x1), array_of(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeMismatch(f"outer: vectors are needed, got {x.type} and {y.type}.")
    return matrix_products.outer(x, y)


def tensordot(
    x1: Any, x2: Any, /, *, axes: Any = 2, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """``numpy.tensordot``. Source: the array API standard, ``linalg.tensordot``."""
    return matrix_products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``numpy.vecdot``. Source: the array API standard, ``linalg.vecdot``."""
    return matrix_products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


@eager_program
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product along an axis of size 3. Source: the array API standard, ``linalg.cross``.

    Raises: ShapeMismatch: vectors have another size.
    """
    x, y = array_of(x1), array_of(x2)
    for v in (x, y):
        if v.type.shape[canonical_axis(axis, v.ndim, "cross")] != 3:
            raise ShapeMismatch(f"cross: vectors must have 3 components along axis {axis}, got {x.type} and {y.type}.")
    return matrix_products.cross(x, y, axis=axis)


@eager_program
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices, the last two dimensions. Source: the array API standard, ``linalg.diagonal``."""
    return building_matrices.diagonal(x, offset, -2, -1)


@eager_program
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices, the last two dimensions. Source: the array API standard, ``trace``."""
    return matrix_products.trace(x, offset, -2, -1, dtype)
