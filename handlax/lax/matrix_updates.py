"""Products and factors of matrices that are composed of other functions of ``lax``."""

from __future__ import annotations

from typing import Any

from ..effects.base.errors import ShapeMismatch
from ..effects.control.loops import scan
from ..effects.core.arrays import Array, as_arrays
from ..effects.operations.elementwise.arithmetic import abs, add, div, like, mul, sqrt, sub
from ..effects.operations.elementwise.comparison import eq, max, select
from ..effects.operations.foundations.shapes import broadcast
from ..effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ..effects.operations.linalg.matrices import flipped, product, triangle
from ..effects.operations.manipulation.creation import iota
from ..effects.types.dtypes import int32


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """``alpha * a @ a.T + beta * c``, of a symmetric ``c``.

    Shapes: ``a[*s, m, n], c[*s, m, m] -> [*s, m, m]``. With ``symmetrize_output`` the upper triangle is made of the
    lower one. Raises: ShapeMismatch: other shapes. Source: BLAS, ``syrk``.

    >>> from handlax.numpy import array
    >>> symmetric_product(array([[1.0], [2.0]]), array([[1.0, 0.0], [0.0, 1.0]]), beta=1.0)
    Array([[2., 2.],
           [2., 5.]], dtype=float32)
    """
    a, c = as_arrays(a_matrix, c_matrix)
    shape = a.type.shape
    if len(shape) < 2 or c.type.shape != (*shape[:-1], shape[-2]):
        raise ShapeMismatch(
            f"symmetric_product: matrices of shapes [m, n] and [m, m] are needed, got {a.type} and {c.type}."
        )
    y = product(a, flipped(a))
    y = add(mul(like(y, alpha), y), mul(like(c, beta), c))
    return add(triangle(y), flipped(triangle(y, 1))) if symmetrize_output else y


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangular factor of ``r.T @ r + outer(w, w)``, from the one of ``r.T @ r``, by n rotations.

    Shapes: ``r[n, n], w[n] -> [n, n]``. Raises: ShapeMismatch: other shapes.
    Source: Golub & Van Loan, Matrix Computations (4th ed., 2013), 6.5.4.

    >>> from handlax.numpy import array
    >>> cholesky_update(array([[3.0, 0.0], [0.0, 1.0]]), array([4.0, 0.0]))
    Array([[5., 0.],
           [0., 1.]], dtype=float32)
    """
    r, w = as_arrays(r_matrix, w_vector)
    n = r.type.shape[0] if r.type.shape else 0
    if r.type.shape != (n, n) or w.type.shape != (n,):
        raise ShapeMismatch(
            f"cholesky_update: a square matrix and a vector of its size are needed, got {r.type} and {w.type}."
        )
    if not n:
        return r

    def rotate(w: Any, step: Any) -> tuple[Any, Any]:
        row, k = step
        a, b = (dynamic_index_in_dim(x, k, 0, keepdims=False) for x in (row, w))
        size = max(abs(a), abs(b))
        none = eq(b, like(b, 0))  # nothing to turn
        scale = select(none, like(size, 1), size)
        a, b = select(none, like(a, 1), div(a, scale)), select(none, like(b, 0), div(b, scale))
        length = sqrt(add(mul(a, a), mul(b, b)))
        cosine, sine = (broadcast(div(x, length), (n,)) for x in (a, b))
        return sub(mul(cosine, w), mul(sine, row)), add(mul(cosine, row), mul(sine, w))

    return triangle(scan(rotate, w, (r, iota(int32, n)))[1], upper=True)
