"""Averages, variances and correlations: average, mean, std, var, cov, corrcoef."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.arithmetic import div, sqrt, sub
from ...effects.operations.elementwise.comparison import clamp, select_n
from ...effects.operations.elementwise.complex_parts import complex as _complex
from ...effects.operations.elementwise.complex_parts import conj, imag, real
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.half_precision import HALF
from ...effects.operations.manipulation.operand_promotion import together
from ...effects.operations.manipulation.slicing import concatenate
from ...effects.types import dtypes
from ...effects.types.dtypes import canonical, float32, is_complex, to_inexact
from ...effects.types.extent import Extent
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, axes_of, inexact, inexact_together, like, mask_for, no_out
from ..mathematics import reductions
from ..mathematics.arithmetic import conjugate
from ..mathematics.matrix_products import dot

__all__ = ["average", "corrcoef", "cov", "mean", "std", "var"]


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """``sum(weights * a) / sum(weights)`` along the axes; with ``returned`` the sum of the weights too.

    Shapes: ``weights`` has the shape of ``a``, or of the axes, in the order in which they are named.
    Raises: ShapeMismatch: it has another shape. Source: NumPy, ``average``.

    >>> from handlax.numpy import array
    >>> average(array([1.0, 3.0]), weights=array([3.0, 1.0]))
    Array(1.5, dtype=float32)
    """
    x = array_of(a)
    axes = axes_of(axis, len(x.type.shape), "average")
    if weights is None:
        y = mean(x, axes, keepdims=keepdims)
        total = shapes.broadcast(like(y, _count(x, axes)), y.type.shape)
    else:
        w = array_of(weights)
        if w.type.shape != x.type.shape:
            listed = () if axis is None else (axis,) if np.ndim(axis) == 0 else axis
            named = [shapes.canonical_axis(d, len(x.type.shape), "average") for d in listed]
            if axis is None or w.type.shape != tuple([x.type.shape[d] for d in named]):
                raise ShapeMismatch(
                    f"average: weights must have the shape of a, or of its axes in the order in which they are named, "
                    f"got {w.type} for {x.type}{f' along {axis}' if axis is not None else ''}."
                )
            order = tuple(sorted(range(len(named)), key=named.__getitem__))
            w = shapes.broadcast_in_dim(shapes.permute(w, order), x.type.shape, axes)
        x, w = inexact_together("average", x, w)
        total = reductions.sum(w, axes, keepdims=keepdims)
        y = reductions.sum(x * w, axes, keepdims=keepdims) / total
    return (y, total) if returned else y


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """``sum(a) / n``, n the number of elements along the axes; integers give floats, no elements NaN.

    >>> from handlax.numpy import array
    >>> mean(array([1, 2]))
    Array(1.5, dtype=float32)
    """
    no_out(out, "mean")
    x = array_of(a)
    made = to_inexact(x.type.dtype, x.type.weak) if dtype is None else canonical(dtype)
    axes = axes_of(axis, len(x.type.shape), "mean")
    where = None if where is None else mask_for(where, x.type.shape, "mean")
    return convert(_mean(x, axes, _accumulated(made), keepdims, where), made)


def _mean(x: Any, axes: tuple[int, ...], dtype: Any, keepdims: bool, where: Any) -> Any:
    """The mean over axes, summed in ``dtype``, which the result has; None: in that of a sum of ``x``."""
    total = reductions.sum(x, axes, dtype, None, keepdims, None, where)
    return total / _number(x, axes, keepdims, where, total)


def _accumulated(dtype: Any) -> Any:
    """The dtype in which elements of ``dtype`` are summed: float32 for 16-bit floats."""
    return float32 if dtype in HALF else dtype


def _count(x: Any, axes: tuple[int, ...]) -> int:
    """The number of elements along the axes."""
    return prod([x.type.shape[d] for d in axes])


def _number(x: Any, axes: tuple[int, ...], keepdims: bool, where: Any, total: Any) -> Any:
    """The number of elements along the axes, those where ``where`` is true, in the dtype of their sum ``total``."""
    if where is None:
        return like(total, _count(x, axes))
    counted = reductions.sum(where, axes, dtypes.to_real(total.type.dtype), None, keepdims)
    return convert(counted, total.type.dtype)


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:
    """The variance: ``sum(abs(a - mean(a))**2) / (n - ddof)``, real unless ``dtype`` is complex.

    ``correction`` is another name of ``ddof``; ``mean`` is the mean if it is known, with size 1 along the axes.
    NaN where ``n - ddof <= 0``. Source: NumPy, ``var``.

    >>> from handlax.numpy import array
    >>> var(array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    no_out(out, "var")
    y, made = _variance(a, axis, dtype, ddof, keepdims, where, mean, correction)
    return convert(y, made)


def _variance(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any, center: Any, correction: Any
) -> tuple[Any, Any]:
    """The variance, as ``var`` has it, in the dtype of its computation, and the dtype of the result."""
    if correction is not None:
        if ddof:
            raise BadArgument(f"var: ddof and correction mean the same, got ddof={ddof} and correction={correction}.")
        ddof = correction
    x = array_of(a)
    if dtype is not None and dtypes.is_complex(x.type.dtype) and not is_complex(canonical(dtype)):
        raise DTypeMismatch(f"var: complex numbers need a complex dtype, got {x.type} and dtype={dtype}.")
    made = to_inexact(dtypes.to_real(x.type.dtype), x.type.weak) if dtype is None else canonical(dtype)
    x = convert(x, _accumulated(to_inexact(x.type.dtype, x.type.weak) if dtype is None else made))
    axes = axes_of(axis, len(x.type.shape), "var")
    where = None if where is None else mask_for(where, x.type.shape, "var")
    middle = _mean(x, axes, None, True, where) if center is None else convert(center, x.type.dtype)
    away = sub(*together("var", x, middle if not middle.type.shape else shapes.broadcast(middle, x.type.shape)))
    squares = real(away * conj(away)) if is_complex(away.type.dtype) else away * away
    total = reductions.sum(squares, axes, None, None, keepdims, None, where)
    if where is None:
        free = _count(x, axes) - ddof if not isinstance(ddof, Array) else None
        if isinstance(free, (int, float)):
            return total / like(total, free if free > 0 else float("nan")), made
    free = sub(*together("var", _number(x, axes, keepdims, where, total), convert(ddof, total.type.dtype)))
    y = total / free
    return select_n(free > 0, like(y, float("nan")), y), made


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:
    """The standard deviation: ``sqrt(var(a))``. Source: NumPy, ``std``.

    >>> from handlax.numpy import array
    >>> std(array([1.0, 5.0]))
    Array(2., dtype=float32)
    """
    no_out(out, "std")
    y, made = _variance(a, axis, dtype, ddof, keepdims, where, mean, correction)
    return convert(sqrt(y), made)


def _observations(x: Any, rowvar: bool, dtype: Any) -> Any:
    """The data as a matrix with a variable in each row and an observation in each column."""
    x = inexact(x)
    if dtype is not None:
        x = convert(x, canonical(dtype))
    if len(x.type.shape) > 2:
        raise ShapeMismatch(f"cov: at most 2 dimensions are needed, got {x.type}.")
    rank = len(x.type.shape)
    if rank < 2:
        return shapes.reshape(x, (1, x.size))
    if not rowvar and type(x.type.shape[0]) is Extent:
        raise ShapeMismatch(
            f"cov: with rowvar=False one row is one variable, and lanes may have one, got {x.type}.",
            hint="the transposed matrix, with rowvar=True.",
        )
    return x if rowvar or x.type.shape[0] == 1 else shapes.permute(x, (1, 0))


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, dtype: Any = None,
) -> Array:
    """The covariances of variables, one in each row: ``sum((x - mean(x)) * conj(y - mean(y))) / (n - ddof)``.

    ``ddof`` is by default 1, or 0 with ``bias``; ``fweights`` are repeat counts of observations, ``aweights`` weights.
    Raises: DTypeMismatch: ``dtype`` is one of integers. Source: NumPy, ``cov``.

    >>> from handlax.numpy import array
    >>> cov(array([1.0, 3.0]))
    Array(2., dtype=float32)
    """
    kind = dtypes.result_type(*[array_of(v) for v in (m, y) if v is not None], return_weak_type_flag=True)
    made = to_inexact(*kind) if dtype is None else canonical(dtype)
    if not dtypes.is_inexact(made):
        raise DTypeMismatch(f"cov: dtype must be one of floats or complex numbers, got {dtype}.")
    x = _observations(m, rowvar, made)
    if y is not None:
        x = concatenate([x, _observations(y, rowvar or array_of(y).ndim < 2, made)], 0)
    x = convert(x, x.type.dtype)
    w = None
    for weights in (fweights, aweights):
        if weights is not None:
            part = convert(weights, dtypes.to_real(x.type.dtype))
            if part.type.shape != (x.type.shape[1],):
                raise ShapeMismatch(f"cov: there must be a weight for each observation, got {part.type} for {x.type}.")
            w = part if w is None else w * part
    free = ddof if ddof is not None else 0 if bias else 1
    if w is None:
        factor: Any = _positive_or_nan(x.type.shape[1] - free, x.type.dtype)
        center = mean(x, 1, keepdims=True)
    else:
        total = reductions.sum(w)
        wide = convert(shapes.broadcast(w, x.type.shape), x.type.dtype)
        center = div(*together("cov", reductions.sum(x * wide, 1, keepdims=True), convert(total, x.type.dtype)))
        taken = reductions.sum(w * convert(aweights, w.type.dtype)) if aweights is not None else total
        factor = total - like(total, free) * taken / total if free else total
    away = x - shapes.broadcast(center, x.type.shape)
    other = shapes.permute(conjugate(away), (1, 0))
    weighed = away if w is None else away * convert(shapes.broadcast(w, x.type.shape), x.type.dtype)
    z = dot(weighed, other)
    z = z / (convert(factor, z.type.dtype) if isinstance(factor, Array) else like(z, factor))
    return shapes.reshape(z, ()) if z.type.shape == (1, 1) else z


def _positive_or_nan(size: Any, dtype: Any) -> Any:
    """``size``, a number of degrees of freedom; NaN where it is not positive."""
    if isinstance(size, int):
        return size if size > 0 else np.nan
    number = convert(size, dtypes.to_real(dtype))
    return select_n(number > 0, like(number, np.nan), number)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Array:
    """Correlations: ``cov(x)[i, j] / sqrt(cov(x)[i, i] * cov(x)[j, j])``, within [-1, 1]. Source: NumPy, ``corrcoef``.

    >>> from handlax.numpy import array
    >>> corrcoef(array([[1.0, 2.0], [2.0, 4.0]])).shape
    (2, 2)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.type.shape:
        return c / c
    mask = convert(np.eye(c.type.shape[0], dtype=bool), dtypes.bool_)
    d = sqrt(reductions.sum(select_n(mask, like(c, 0), c), 1))
    c = c / shapes.broadcast_in_dim(d, c.type.shape, (0,)) / shapes.broadcast_in_dim(d, c.type.shape, (1,))
    if dtypes.is_complex(c.type.dtype):
        return _complex(*[clamp(-1.0, part, 1.0) for part in (real(c), imag(c))])
    return clamp(-1.0, c, 1.0)


programs(globals())
