"""Norms of vectors and matrices, and what singular values say of a matrix."""

from __future__ import annotations

from typing import Any

from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.arithmetic import abs as _abs
from ...effects.operations.elementwise.arithmetic import sqrt
from ...effects.operations.elementwise.complex_parts import conj, real
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import axes_listed, canonical_axis
from ...effects.types import dtypes
from ...effects.types.sized import larger
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, axes_of, inexact, kept_shape, like
from ..arrays.index_arrays import where
from ..arrays.shape_manipulation import moveaxis
from ..mathematics import reductions
from ..mathematics.arithmetic import power
from ..mathematics.logic import greater
from .decompositions import matrices, svd, svdvals
from .solutions import inv

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of vectors or matrices along an axis or two; ``sqrt(sum(abs(x)**2))`` unless ``ord`` says otherwise.

    ``ord`` of vectors is a number (0 counts nonzero elements, ``inf`` and ``-inf`` give the largest and smallest
    magnitude); of matrices "fro", 1, -1, ``inf``, ``-inf``, or of singular values the sum, "nuc", the largest, 2, and
    the smallest, -2.
    Raises: BadArgument: another order. Source: NumPy, ``linalg.norm``.

    >>> from handlax.numpy import array
    >>> norm(array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    x = inexact(x)
    rank = len(x.type.shape)
    axes = tuple([canonical_axis(d, rank, "norm") for d in (range(rank) if axis is None else axes_listed(axis))])
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


def _kept(y: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """``y``, a norm of ``x`` over axes, which come back with size 1 for ``keepdims``."""
    return shapes.reshape(y, kept_shape(x.type.shape, axes)) if keepdims else y


def _root(x: Any, axes: tuple[int, ...]) -> Any:
    """``sqrt(sum(abs(x)**2))`` over axes."""
    squares = real(x * conj(x)) if dtypes.is_complex(x.type.dtype) else x * x
    return sqrt(reductions.sum(squares, axes))


def _vector(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    """The norm of order ``ord`` over all ``axes`` together. Raises BadArgument: the order is a string."""
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
        return reductions.sum(x != 0, axes, dtype=size.type.dtype)
    if ord == 1:
        return reductions.sum(size, axes)
    return convert(power(reductions.sum(power(size, ord), axes), 1.0 / ord), size.type.dtype)


def _matrix(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    """The norm of order ``ord`` of the matrices along two axes. Raises BadArgument: there is no such order."""
    row, column = axes
    if row == column:
        raise BadArgument(f"norm: the axes of a matrix must differ, got {axes}.")
    if ord == "fro":
        return _root(x, tuple(sorted(axes)))
    if ord in ("nuc", 2, -2):
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        if ord == "nuc":
            return reductions.sum(values, -1)
        return reductions.max(values, -1, initial=0) if ord == 2 else reductions.min(values, -1)
    if ord not in (1, -1, float("inf"), -float("inf")):
        raise BadArgument(f"norm: the order of a matrix norm is fro, nuc, 1, -1, 2, -2, inf or -inf, got {ord!r}.")
    summed, left = (row, column) if abs(ord) == 1 else (column, row)
    totals = reductions.sum(_abs(x), summed)
    rest = left - (left > summed)
    return reductions.max(totals, rest, initial=0) if ord > 0 else reductions.min(totals, rest)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of all elements, or of vectors along the axes. Source: the array API standard, ``vector_norm``.

    >>> from handlax.numpy import array
    >>> vector_norm(array([3.0, 4.0]), ord=1)
    Array(7., dtype=float32)
    """
    x = inexact(x)
    axes = axes_of(axis, len(x.type.shape), "vector_norm")
    return _kept(_vector(x, ord, axes), x, axes, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of matrices, the last two dimensions. Source: the array API standard, ``matrix_norm``.

    >>> from handlax.numpy import eye
    >>> matrix_norm(eye(4))
    Array(2., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)




def cond(x: Any, p: Any = None) -> Array:
    """How much a matrix enlarges relative errors: ``norm(x, p) * norm(inv(x), p)``.

    For None and 2, the quotient of the largest and the smallest singular value, also of matrices that are not square;
    for -2 its reciprocal. Infinite for a singular matrix.
    Raises: ShapeMismatch: empty matrices, or ones that are not square for another norm. Source: NumPy, ``linalg.cond``.

    >>> from handlax.numpy import array
    >>> cond(array([[2.0, 0.0], [0.0, 8.0]]))
    Array(4., dtype=float32)
    """
    x = matrices("cond", x, square=p not in (None, 2, -2))
    if 0 in x.type.shape[-2:]:
        raise ShapeMismatch(f"cond: matrices must not be empty, got {x.type}.")
    if p in (None, 2, -2):
        values = svdvals(x)
        first, last = values[..., 0], values[..., -1]
        ratio = last / first if p == -2 else first / last
    else:
        ratio = norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
    spoilt = reductions.any(x != x, (-2, -1))  # by NaN in the matrix itself
    return where((ratio != ratio) & ~spoilt, like(ratio, float("inf")), ratio)


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Array:
    """The number of singular values of each matrix that exceed a bound, which tells them from rounding errors.

    Args:
        rtol: the bound relative to the largest one; by default the larger size times the epsilon of the dtype.
        hermitian: the matrices are Hermitian, which is faster.
        tol: the bound itself.
    Raises: BadArgument: both are given. Source: NumPy and the array API standard, ``linalg.matrix_rank``.

    >>> from handlax.numpy import ones
    >>> matrix_rank(ones((3, 2)))
    Array(1, dtype=int32)
    """
    if tol is not None and rtol is not None:
        raise BadArgument("matrix_rank: one of rtol and tol can be given, got both.")
    x = inexact(M)
    if x.ndim < 2:
        return convert(reductions.any(x != 0), dtypes.int32)
    values = svd(x, compute_uv=False, hermitian=hermitian)
    bound = tol
    if bound is None:
        eps = larger(*x.type.shape[-2:]) * float(dtypes.finfo(values.type.dtype).eps)
        bound = reductions.max(values, -1, initial=0) * (eps if rtol is None else array_of(rtol))
    bound = array_of(bound)
    return reductions.sum(greater(values, shapes.reshape(bound, (*bound.type.shape, 1))), -1)


programs(globals())
