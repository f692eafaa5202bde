"""Products and powers of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import BadArgument, ShapeMismatch, whole_number
from ...effects.core.arrays import Array
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...interpreters.core.eager_programs import programs
from ..arrays import building_matrices
from ..arrays.argument_conversion import array_of
from ..arrays.shape_manipulation import matrix_transpose
from ..mathematics import matrix_products
from ..mathematics.einstein_summation import einsum
from ..mathematics.matrix_products import vecdot
from .solutions import inv

__all__ = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace",
    "vecdot",
]


def matrix_power(a: Any, n: int) -> Array:
    """The product of ``n`` square matrices, by squaring: ``matrix_power(a, 3) == a @ a @ a``.

    A negative power is that of the inverse. Source: NumPy, ``linalg.matrix_power``.

    >>> from handlax.numpy import array
    >>> matrix_power(array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    x = array_of(a)
    if len(x.type.shape) < 2 or x.type.shape[-1] != x.type.shape[-2]:
        raise ShapeMismatch(f"matrix_power: square matrices are needed, got {x.type}.")
    n = whole_number("matrix_power: n", n)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return shapes.broadcast(building_matrices.eye(x.type.shape[-1], dtype=x.type.dtype), x.type.shape)
    power = x
    for digit in f"{n:b}"[1:]:
        power = matrix_products.matmul(power, power)
        power = matrix_products.matmul(x, power) if digit == "1" else power
    return power


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
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
    axes = [[i, i + 1] for i in range(len(xs))]
    outer = [i for i, x in ((0, xs[0]), (len(xs), xs[-1])) if x.ndim == 2]
    axes[0], axes[-1] = axes[0][-xs[0].ndim :], axes[-1][: xs[-1].ndim]
    return einsum(*[part for pair in zip(xs, axes) for part in pair], outer, precision=precision)


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """``matmul(x, y) == x @ y``: ``numpy.matmul``. Source: the array API standard, ``linalg.matmul``.

    >>> from handlax.numpy import array
    >>> matmul(array([[1, 2], [3, 4]]), array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    return matrix_products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def outer(x1: Any, x2: Any, /) -> Array:
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
) -> Array:
    """Products summed over the last dimensions of one and the first of the other: ``numpy.tensordot``.

    Source: the array API standard, ``linalg.tensordot``.

    >>> from handlax.numpy import array
    >>> tensordot(array([[1, 2], [3, 4]]), array([[1, 1], [1, 0]]))
    Array(6, dtype=int32)
    """
    return matrix_products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The vector product along an axis of size 3. Source: the array API standard, ``linalg.cross``.

    Raises: ShapeMismatch: vectors have another size.

    >>> from handlax.numpy import array
    >>> cross(array([1, 0, 0]), array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x, y = array_of(x1), array_of(x2)
    for v in (x, y):
        if v.type.shape[canonical_axis(axis, v.ndim, "cross")] != 3:
            raise ShapeMismatch(f"cross: vectors must have 3 components along axis {axis}, got {x.type} and {y.type}.")
    return matrix_products.cross(x, y, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices, the last two dimensions. Source: the array API standard, ``linalg.diagonal``.

    >>> from handlax.numpy import array
    >>> diagonal(array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return building_matrices.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of matrices, the last two dimensions. Source: the array API standard, ``trace``.

    >>> from handlax.numpy import array
    >>> trace(array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return matrix_products.trace(x, offset, -2, -1, dtype)


programs(globals(), direct=("matmul",))
