"""Polynomials by linear algebra: ``roots`` gives the zeros, ``polyfit`` the least-squares fit to points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..effects.base.errors import BadArgument, RankMismatch, ShapeMismatch, whole_number
from ..effects.base.lazy_module import LazyModule
from ..effects.core.arrays import Array, ConcreteArray
from ..effects.operations.elementwise.arithmetic import sqrt
from ..effects.operations.manipulation.operand_promotion import promote
from ..effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ..interpreters.core.eager_programs import programs
from .arrays.argument_conversion import array_of, inexact
from .arrays.building_matrices import diag, vander
from .arrays.creation import asarray, ones, zeros
from .arrays.shape_manipulation import expand_dims, transpose
from .mathematics.matrix_products import outer
from .mathematics.reductions import sum as _sum

if TYPE_CHECKING:
    from . import linalg
else:
    linalg = LazyModule("handlax.numpy.linalg")

__all__ = ["polyfit", "roots"]


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, whose highest power comes first: the eigenvalues of its companion matrix.

    Shapes: ``p[n] -> zeros[n - 1]``, one less for each leading zero of ``p``, which must be concrete. For a traced
    ``p`` pass ``strip_zeros=False``; a leading zero then gives NaN. Source: NumPy, ``roots``.

    Raises: RankMismatch: ``p`` is no vector. BadArgument: leading zeros of traced values are to be dropped.

    >>> from handlax.numpy import array
    >>> roots(array([1.0, 0.0, 4.0])).imag.round(3)
    Array([ 2., -2.], dtype=float32)
    """
    x = inexact(array_of(p))
    if x.ndim != 1:
        raise RankMismatch(f"roots: coefficients are a vector, got {x.type}.")
    at_zero = 0
    if strip_zeros:
        if not isinstance(x, ConcreteArray):
            raise BadArgument(
                f"roots: leading zeros can be dropped of known values only, got {x.type}.",
                hint="roots(p, strip_zeros=False) takes the first coefficient as it is.",
            )
        nonzero = np.flatnonzero(x.value)
        first, last = (int(nonzero[0]), int(nonzero[-1]) + 1) if nonzero.size else (x.size, x.size)
        at_zero, x = x.size - last, slice_in_dim(x, first, last)
    if x.size < 2:
        return zeros((at_zero,), linalg.eigvals(zeros((0, 0), x.type.dtype)).dtype)
    top = -(slice_in_dim(x, 1, None) / slice_in_dim(x, 0, 1))
    companion = concatenate(
        [expand_dims(top, 0), slice_in_dim(diag(ones(x.size - 1, x.type.dtype)), 0, x.size - 2)], 0
    )
    eigenvalues = linalg.eigvals(companion)
    return concatenate([eigenvalues, zeros((at_zero,), eigenvalues.dtype)], 0) if at_zero else eigenvalues


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """The polynomial of degree ``deg`` for which ``sum((w * (y - p(x)))**2)`` is least, the highest power first.

    Shapes: ``x[m], y[m] or y[m, k] -> p[deg + 1] or p[deg + 1, k]``.

    Args:
        rcond: singular values below this share of the largest count as 0; by default m times the dtype's precision.
        full: give residuals, rank, singular values and ``rcond`` too. cov: give the covariance of the coefficients
            too, scaled by the variance of the residuals unless it is "unscaled".
    Raises: BadArgument: a negative degree, or too few points for ``cov``. ShapeMismatch: shapes do not fit.
    Source: NumPy, ``polyfit``.

    >>> from handlax.numpy import array
    >>> polyfit(array([0.0, 1.0, 2.0]), array([1.0, 3.0, 5.0]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    x, y = (inexact(v) for v in promote(x, y))
    order = whole_number("polyfit: deg", deg) + 1
    if deg < 0:
        raise BadArgument(f"polyfit: the degree must not be negative, got {deg}.")
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise ShapeMismatch(f"polyfit: a vector of points and a value for each are needed, got {x.type} and {y.type}.")
    rcond = x.size * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    left, right = vander(x, order), y
    if w is not None:
        weights = asarray(w, x.dtype)
        if weights.shape != x.shape:
            raise ShapeMismatch(f"polyfit: a weight for each point is needed, got {weights.type} for {x.type}.")
        left = left * expand_dims(weights, 1)
        right = right * (weights if y.ndim == 1 else expand_dims(weights, 1))
    scale = sqrt(_sum(left * left, 0))
    left = left / expand_dims(scale, 0)
    c, residuals, rank, singular = linalg.lstsq(left, right, rcond)
    c = c / (scale if c.ndim == 1 else expand_dims(scale, 1))
    if full:
        return c, residuals, rank, singular, asarray(rcond)
    if not cov:
        return c
    spread = linalg.inv(transpose(left) @ left) / outer(scale, scale)
    spread = spread if y.ndim == 1 else expand_dims(spread, 2)
    if cov == "unscaled":
        return c, spread
    if x.size <= order:
        raise BadArgument(f"polyfit: a covariance needs more than {order} points, got {x.size}.")
    scatter = residuals / (x.size - order)
    return c, spread * scatter.reshape(*(1,) * (spread.ndim - scatter.ndim), *scatter.shape)


programs(globals(), direct=("roots",))
