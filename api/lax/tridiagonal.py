"""Solutions of tridiagonal linear systems."""

from __future__ import annotations

from typing import Any

from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.control.loops import scan
from ..effects.core.arrays import as_array
from ..effects.operations.elementwise.arithmetic import abs
from ..effects.operations.elementwise.comparison import gt, select
from ..effects.operations.foundations.shapes import broadcast, move_axis, reshape, zeros
from ..effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ..effects.types.dtypes import INEXACT
from ..interpreters.custom.implicit import custom_linear_solve

__all__ = ["tridiagonal_solve"]


def _shifted(x: Any, by: int) -> Any:
    """The rows of ``x``, each in the place ``by`` after its own; zeros in the place of the first or last."""
    size = x.type.shape[0]
    gap = zeros(x.type.update(shape=(1, *x.type.shape[1:])))
    if by == 1:
        return concatenate([gap, slice_in_dim(x, 0, size - 1)], 0)
    return concatenate([slice_in_dim(x, 1, size), gap], 0)


def _multiply(lower: Any, diagonal: Any, upper: Any, x: Any) -> Any:
    return lower * _shifted(x, 1) + diagonal * x + upper * _shifted(x, -1)


def _eliminate(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    """The solution by elimination with exchange of neighbouring rows; the first dimension is that of the rows.

    Source: Golub & Van Loan, Matrix Computations (4th ed., 2013), 4.3.5; LAPACK, ``gtsv``.
    """
    nothing = zeros(b.type.update(shape=b.type.shape[1:]))
    shape = nothing.type.shape

    def eliminate(row: Any, below: Any) -> Any:
        """From a row with elements in two columns, and the one below: the pivot's row, and the next such row."""
        p, q, y = row
        low, mid, high, c = below
        swap = gt(abs(low), abs(p))
        pivot = [select(swap, a, b) for a, b in ((low, p), (mid, q), (high, nothing), (c, y))]
        other = [select(swap, a, b) for a, b in ((p, low), (q, mid), (nothing, high), (y, c))]
        factor = other[0] / pivot[0]
        rest = tuple([b - factor * a for a, b in zip(pivot[1:], other[1:])])
        return (rest[0], rest[1], rest[2]), tuple(pivot)

    def substitute(known: Any, pivot: Any) -> Any:
        p, q, r, y = pivot
        x = (y - q * known[0] - r * known[1]) / p
        return (x, known[0]), x

    rows = [broadcast(x, b.type.shape) for x in (lower, diagonal, upper)]
    first = [reshape(slice_in_dim(x, 0, 1), shape) for x in (*rows[1:], b)]
    rest = [slice_in_dim(x, 1, b.type.shape[0]) for x in (*rows, b)]
    (p, _, y), pivots = scan(eliminate, tuple(first), tuple(rest))
    last = y / p
    above = scan(substitute, (last, nothing), pivots, reverse=True)[1]
    return concatenate([above, reshape(last, (1, *shape))], 0)


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """The solution of a linear system whose matrix has three diagonals.

        dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] == b[i]        the first of dl and the last of du are not read

    Shapes: ``dl, d, du: a[*s, m], b: a[*s, m, k] -> a[*s, m, k]``.
    Raises: ShapeMismatch, DTypeMismatch: other shapes, or dtypes that differ or are no floats or complex numbers.
    BadArgument: ``perturb_singular``, as a singular matrix has no solution: its elements are infinite or NaN.

    >>> from handlax.numpy import array
    >>> tridiagonal_solve(array([0.0, 1.0]), array([2.0, 2.0]), array([1.0, 0.0]), array([[3.0], [3.0]]))
    Array([[1.],
           [1.]], dtype=float32)
    """
    if perturb_singular:
        raise BadArgument("tridiagonal_solve: perturb_singular must be False.", hint="add a multiple of eps to d.")
    dl, d, du, b = map(as_array, (dl, d, du, b))
    shape = d.type.shape
    if not shape or dl.type.shape != shape or du.type.shape != shape or b.type.shape[:-1] != shape:
        raise ShapeMismatch(
            f"tridiagonal_solve: diagonals of shape [*s, m] and a right side [*s, m, k] are needed, got {dl.type}, "
            f"{d.type}, {du.type} and {b.type}."
        )
    if len({x.type.dtype for x in (dl, d, du, b)}) > 1 or b.type.dtype not in INEXACT:
        raise DTypeMismatch(
            f"tridiagonal_solve: one dtype of floats or complex numbers is needed, got {dl.type}, {d.type}, {du.type} "
            f"and {b.type}."
        )
    if not shape[-1]:
        return b
    axis = len(shape) - 1
    lower, diagonal, upper = [reshape(move_axis(x, axis, 0), (shape[-1], *shape[:-1], 1)) for x in (dl, d, du)]
    right = move_axis(b, axis, 0)
    x = custom_linear_solve(
        lambda x: _multiply(lower, diagonal, upper, x),
        right,
        lambda _, c: _eliminate(lower, diagonal, upper, c),
        lambda _, c: _eliminate(_shifted(upper, 1), diagonal, _shifted(lower, -1), c),
    )
    return move_axis(x, 0, axis)
