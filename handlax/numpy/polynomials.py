"""Polynomials as vectors of coefficients, the highest power first: polyval, polyadd, polymul, polyder, roots, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..effects.base.errors import BadArgument, RankMismatch, ShapeMismatch, whole_number
from ..effects.base.lazy_module import LazyModule
from ..effects.control.loops import scan
from ..effects.core.arrays import Array, ConcreteArray, as_array
from ..effects.operations.elementwise.arithmetic import add, mul, sqrt, sub
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations import shapes
from ..effects.operations.manipulation.operand_promotion import broadcast_shape, promote, together
from ..effects.operations.manipulation.slicing import concatenate, index_in_dim, slice_in_dim
from ..effects.types.casting import cast
from ..effects.types.extent import positive
from ..interpreters.core.eager_programs import evaluated_at_once, programs
from .arrays.argument_conversion import array_of, inexact, strong, strong_beside_strong
from .arrays.building_matrices import diag, vander
from .arrays.creation import asarray, ones, zeros
from .arrays.shape_manipulation import expand_dims, transpose
from .mathematics.matrix_products import outer
from .mathematics.reductions import sum as _sum
from .signal_processing import convolve

if TYPE_CHECKING:
    from . import linalg
else:
    linalg = LazyModule("handlax.numpy.linalg")

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots"]


def _vector(name: str, p: Any) -> Any:
    """``p`` as a vector: a scalar is a polynomial of degree 0. Raises ShapeMismatch: a higher rank."""
    x = array_of(p)
    if x.ndim > 1:
        raise ShapeMismatch(f"{name}: coefficients are a vector, got {x.type}.")
    return shapes.reshape(x, (x.size,))


@strong_beside_strong
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """``p[0] * x**(n - 1) + ... + p[n - 1]``, by Horner's rule. Source: NumPy, ``polyval``.

    Args:
        unroll: up to so many steps are performed one by one; more are a loop that takes so many in an iteration.

    >>> from handlax.numpy import array
    >>> polyval(array([1, 2, 3]), 2)
    Array(11, dtype=int32)
    """
    p, x = promote(p, x)
    if not p.type.shape:
        raise ShapeMismatch(f"polyval: there must be coefficients, got {p.type}.")
    if not p.type.shape[0]:  # the polynomial is 0
        return shapes.full(x.type.update(shape=broadcast_shape("polyval", p.type.shape[1:], x.type.shape)), 0)

    def step(y: Any, c: Any) -> tuple[Any, None]:
        return add(*together("polyval", mul(*together("polyval", y, x)), c)), None

    size = p.type.shape[0]
    few = size if size <= unroll + 1 or evaluated_at_once() else 2
    y = index_in_dim(p, 0, 0, keepdims=False)
    for i in range(1, few):
        y, _ = step(y, index_in_dim(p, i, 0, keepdims=False))
    if few < size:
        y, _ = scan(step, y, slice_in_dim(p, few, size), unroll=max(unroll, 1))
    return y if y.type.shape or not x.type.shape else shapes.broadcast(y, x.type.shape)


def _padded(x: Any, size: Any) -> Any:
    """The vector ``x`` with leading zeros in front, so that it has at least ``size`` coefficients."""
    missing = positive(size - x.size)
    return concatenate([shapes.full(x.type.update(shape=(missing,)), 0), x], 0) if missing != 0 else x


def _of_one_size(name: str, a1: Any, a2: Any) -> list[Any]:
    """Both polynomials as vectors of one dtype and one size, the shorter one with leading zeros."""
    xs = [_vector(name, x) for x in promote(a1, a2)]
    size = max(x.size for x in xs)
    return [_padded(x, size) for x in xs]


def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials. Source: NumPy, ``polyadd``.

    >>> from handlax.numpy import array
    >>> polyadd(array([1, 2]), array([5]))
    Array([1, 7], dtype=int32)
    """
    return add(*_of_one_size("polyadd", a1, a2))


def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials. Source: NumPy, ``polysub``.

    >>> from handlax.numpy import array
    >>> polysub(array([1, 2]), array([5]))
    Array([ 1, -3], dtype=int32)
    """
    return sub(*_of_one_size("polysub", a1, a2))


def _trimmed(x: Any) -> Any:
    """A concrete vector without its leading zeros."""
    values = x.value if hasattr(x, "value") else None
    if values is None:
        raise BadArgument(f"polymul: leading zeros can be dropped of known values only, got {x.type}.")
    first = next((i for i, v in enumerate(values) if v != 0), max(0, x.size - 1))
    return slice_in_dim(x, first, None)


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials. Source: NumPy, ``polymul``.

    >>> from handlax.numpy import array
    >>> polymul(array([1.0, 1.0]), array([1.0, -1.0]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    x, y = (_vector("polymul", inexact(part)) for part in promote(a1, a2))
    if trim_leading_zeros and (x.size > 1 or y.size > 1):
        x, y = _trimmed(x), _trimmed(y)
    return convolve(_padded(x, 1), _padded(y, 1))


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder: ``u == polymul(quotient, v) + remainder``. Source: NumPy, ``polydiv``.

    >>> from handlax.numpy import array
    >>> [part.tolist() for part in polydiv(array([1.0, 0.0, -1.0]), array([1.0, 1.0]))]
    [[1.0, -1.0], [0.0, 0.0, 0.0]]
    """
    x, y = (_vector("polydiv", inexact(part)) for part in promote(u, v))
    m, n = x.size - 1, y.size - 1
    steps = max(m - n + 1, 1)
    scale = index_in_dim(y, 0, keepdims=False)
    parts = []
    for k in range(max(0, m - n + 1)):
        d = index_in_dim(x, k, keepdims=False) / scale
        parts.append(shapes.reshape(d, (1,)))
        taken = slice_in_dim(x, k, k + n + 1) - d * y
        x = concatenate([slice_in_dim(x, 0, k), taken, slice_in_dim(x, k + n + 1, None)], 0)
    q = concatenate(parts, 0) if parts else shapes.full(x.type.update(shape=(steps,)), 0)
    return q, _trimmed(x) if trim_leading_zeros else x


def polyder(p: Any, m: int = 1) -> Array:
    """The ``m``-th derivative of a polynomial. Source: NumPy, ``polyder``.

    >>> from handlax.numpy import array
    >>> polyder(array([1.0, 2.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    m = whole_number("polyder: m", m)
    if m < 0:
        raise BadArgument(f"polyder: the order must not be negative, got {m}.")
    x = inexact(_vector("polyder", p))
    for _ in range(m):
        x = mul(*together("polyder", slice_in_dim(x, 0, max(0, x.size - 1)), _exponents(x.size - 1, x)))
    return x


def _exponents(n: int, x: Any) -> Any:
    """The vector ``[n, n - 1, ..., 1]`` in the dtype of ``x``."""
    return convert(as_array(cast(np.arange(n, 0, -1.0), x.type.dtype)), x.type.dtype, x.type.weak)


def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The ``m``-th integral of a polynomial, with the constants ``k`` (0 by default). Source: NumPy, ``polyint``.

    >>> from handlax.numpy import array
    >>> polyint(array([2.0, 2.0]))
    Array([1., 2., 0.], dtype=float32)
    """
    m = whole_number("polyint: m", m)
    if m < 0:
        raise BadArgument(f"polyint: the order must not be negative, got {m}.")
    x = inexact(_vector("polyint", p))
    constants = convert(0 if k is None else k, x.type.dtype)
    constants = shapes.reshape(constants, (constants.size,))
    if constants.size not in (1, m) and m:
        raise ShapeMismatch(f"polyint: there must be one constant, or {m}, got {constants.type}.")
    for i in range(m):
        k = i % constants.size
        c = convert(slice_in_dim(constants, k, k + 1), x.type.dtype, x.type.weak)
        x = concatenate([x / _exponents(x.size, x), c], 0)
    return x


@strong
def poly(seq_of_zeros: Any) -> Array:
    """The polynomial with these zeros and leading coefficient 1; of no zeros the number 1. Source: NumPy, ``poly``.

    Of a square matrix its characteristic polynomial, whose zeros are the eigenvalues; its coefficients are complex.

    >>> from handlax.numpy import array
    >>> poly(array([1.0, -1.0]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    zeros = inexact(array_of(seq_of_zeros))
    zeros = linalg.eigvals(zeros) if zeros.ndim == 2 else _vector("poly", zeros)
    y = shapes.full(zeros.type.update(shape=(1,) if zeros.size else ()), 1)
    for i in range(zeros.size):
        z = slice_in_dim(zeros, i, i + 1)
        y = concatenate([y[:1], y[1:] - z * y[:-1], -z * y[-1:]], 0)  # no product with 0, as an infinite z has none
    return y


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
