"""Order statistics: ptp, quantile, percentile, median, and those that leave out NaN."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ...effects.core.arrays import Array, ConcreteArray, as_array
from ...effects.functions.out_shardings import cuts_result
from ...effects.operations.elementwise.arithmetic import RoundingMethod, ceil, floor, round
from ...effects.operations.elementwise.comparison import clamp, select_n
from ...effects.operations.elementwise.comparison import max as _max
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.half_precision import HALF
from ...effects.operations.manipulation.slicing import index_in_dim
from ...effects.operations.reductions import sorting
from ...effects.operations.reductions.cumulative import cumsum
from ...effects.types.casting import cast
from ...effects.types.dtypes import default_int, float32, is_complex, to_real
from ...interpreters.core.eager_programs import eager_program, programs
from ..arrays.argument_conversion import array_of, axes_of, inexact, kept_shape, like, no_out
from ..arrays.indexing_operations import take, take_along_axis
from ..mathematics import reductions

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "ptp", "quantile"]


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Array:
    """``max(a) - min(a)`` along the axes. Source: NumPy, ``ptp``.

    >>> from handlax.numpy import array
    >>> ptp(array([1, 5, 3]))
    Array(4, dtype=int32)
    """
    x = array_of(a)
    return reductions.max(x, axis, out, keepdims) - reductions.min(x, axis, out, keepdims)


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Array:
    """The ``q``-quantile: of n sorted elements the one at position ``q * (n - 1)``, interpolated by ``method``.

    Shapes: the dimensions of ``q``, a scalar or vector, come first. NaN where an element is NaN, and of no elements.

    Args:
        method: the interpolation: "linear", "lower", "higher", "midpoint", "nearest"; or "inverted_cdf", the least
            element such that at least a fraction ``q`` of the total weight is at or below it.
        weights: of the elements, for "inverted_cdf".
    Source: NumPy, ``quantile``.

    >>> from handlax.numpy import array
    >>> quantile(array([1.0, 2.0, 4.0]), 0.75)
    Array(3., dtype=float32)
    """
    no_out(out, "quantile")
    return _quantile("quantile", a, _numbers(q), axis, method, keepdims, False, weights)


def nanquantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Array:
    """``quantile`` of the elements that are not NaN; NaN where there is none. Source: NumPy, ``nanquantile``.

    >>> from handlax.numpy import array
    >>> nanquantile(array([1.0, float("nan"), 3.0]), 0.5)
    Array(2., dtype=float32)
    """
    no_out(out, "nanquantile")
    return _quantile("nanquantile", a, _numbers(q), axis, method, keepdims, True, weights)


def _hundredth(q: Any) -> Any:
    """``q / 100``, in float64 where ``q`` is a number or a NumPy array."""
    return (np.asarray(q) if isinstance(q, (bool, int, float, np.ndarray, np.generic)) else inexact(q)) / 100


@cuts_result
def percentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, out_sharding: Any = None,
) -> Array:
    """``quantile(a, q / 100)``. Source: NumPy, ``percentile``.

    >>> from handlax.numpy import array
    >>> percentile(array([1.0, 2.0, 3.0]), 50)
    Array(2., dtype=float32)
    """
    no_out(out, "percentile")
    return _quantile("percentile", a, _numbers(_hundredth(q)), axis, method, keepdims, False, weights)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Array:
    """``nanquantile(a, q / 100)``. Source: NumPy, ``nanpercentile``.

    >>> from handlax.numpy import array
    >>> nanpercentile(array([1.0, float("nan"), 3.0]), 50)
    Array(2., dtype=float32)
    """
    no_out(out, "nanpercentile")
    return _quantile("nanpercentile", a, _numbers(_hundredth(q)), axis, method, keepdims, True, weights)


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The middle one of the sorted elements, or the mean of the two middle ones; NaN of none. Source: NumPy.

    Complex numbers are ordered as by ``sort``.

    >>> from handlax.numpy import array
    >>> median(array([5, 1, 2, 3]))
    Array(2.5, dtype=float32)
    """
    no_out(out, "median")
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, False, None)


def nanmedian(
    a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median of the elements that are not NaN. Source: NumPy, ``nanmedian``.

    >>> from handlax.numpy import array
    >>> nanmedian(array([5.0, float("nan"), 2.0, 3.0]))
    Array(3., dtype=float32)
    """
    no_out(out, "nanmedian")
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, True, None)


def _numbers(q: Any) -> Any:
    """Concrete levels as Python numbers, since the elements to read depend on them; traced ones stay an array."""
    return np.asarray(q, np.float64).tolist() if not isinstance(q, Array) or isinstance(q, ConcreteArray) else q


@eager_program
def _quantile(name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, ignore_nan: bool, weights: Any) -> Any:
    """``quantile``, or ``nanquantile`` if ``ignore_nan``, of levels ``q`` in [0, 1], for the function ``name``.

    Raises: DTypeMismatch: the elements are complex, and the level is not that of a median, which NumPy has for them.
    """
    if method not in _METHODS:
        raise BadArgument(f"{name}: method must be one of {', '.join(_METHODS)}, got {method!r}.")
    if weights is not None and method != "inverted_cdf":
        raise BadArgument(f"{name}: weights are for method='inverted_cdf', got method={method!r}.")
    x = inexact(a)
    dtype = x.type.dtype
    if is_complex(dtype) and name not in ("median", "nanmedian"):
        raise DTypeMismatch(f"{name}: complex numbers have no quantiles, got {x.type}.", hint="median orders by parts.")
    x = convert(x, float32 if dtype in HALF else dtype)  # 16 bits do not hold the positions of many elements
    axes = axes_of(axis, len(x.type.shape), name)
    shape = x.type.shape
    rows = _in_one(x, axes)
    part = inexact(q) if isinstance(q, Array) else np.asarray(q, np.float64)
    if len(part.shape) > 1:
        raise ShapeMismatch(f"{name}: q must be a scalar or a vector, got shape {part.shape}.")
    if not rows.type.shape[-1]:
        rows = shapes.full(rows.type.update(shape=(*rows.type.shape[:-1], 1)), np.nan)
    if is_complex(dtype):  # they are sorted by their real parts first
        rows = select_n(rows != rows, rows, shapes.full(rows.type.strong(), np.nan))
    if method == "inverted_cdf":
        rows, row_weights = sorting.sort_key_val(rows, _row_weights(name, weights, x, axes), -1)
        y = _by_weight(rows, part, row_weights, ignore_nan)
    else:
        rows, y = _between(rows, part, method, ignore_nan)
    if not ignore_nan:
        last = shapes.broadcast(rows[..., -1], y.type.shape)  # NaN is sorted to the end
        y = select_n(last != last, y, last)
    if keepdims:
        y = shapes.reshape(y, (*part.shape, *kept_shape(shape, axes)))
    return convert(y, dtype)


def _in_one(x: Any, axes: tuple[int, ...]) -> Any:
    """``x`` with the axes ``axes`` moved to the end and merged into one."""
    kept = [d for d in range(len(x.type.shape)) if d not in axes]
    lead = tuple([x.type.shape[d] for d in kept])
    return shapes.reshape(shapes.permute(x, (*kept, *axes)), (*lead, prod([x.type.shape[d] for d in axes])))


def _between(x: Any, q: Any, method: str, ignore_nan: bool) -> tuple[Any, Any]:
    """Rows in order, or those elements of them that are read, the last one among them; and the quantile of the rows:
    the elements on both sides of its position, interpolated; NaN of no elements.
    """
    size = x.type.shape[-1]
    if isinstance(q, np.ndarray) and not ignore_nan and isinstance(size, int):
        return _at_concrete(x, q * (size - 1), method)
    x = sorting.sort(x)
    y = _at_traced(x, q, method, ignore_nan)
    if isinstance(size, int):
        return x, y
    count = shapes.broadcast(convert(size, y.type.dtype), y.type.shape)
    return x, select_n(count > 0, like(y, np.nan), y)


def _at_concrete(x: Any, positions: np.ndarray[Any, Any], method: str) -> tuple[Any, Any]:
    """``_between`` at concrete positions."""
    size = x.type.shape[-1]
    missing = np.isnan(positions)
    weight = positions - np.floor(positions)
    ends = [np.where(missing, 0, side(positions)) for side in (np.floor, np.ceil)]
    low, high = (np.clip(end, 0, size - 1).astype(np.int32) for end in ends)
    if method == "nearest":
        low = high = np.where((weight > 0.5) | ((weight == 0.5) & (low % 2 == 1)), high, low)  # NumPy's np.around
    read = np.unique(np.concatenate([low.ravel(), high.ravel(), [size - 1]])).astype(np.int32)
    x = sorting.order_statistics(x, read.tolist())
    low, high = (np.searchsorted(read, end).astype(np.int32) for end in (low, high))
    y = _elements_at(x, high if method == "higher" else low)
    exact = ~missing & ((low == high) | (method in ("lower", "higher")))
    if exact.all():
        return x, y
    weight = np.where(missing, np.nan, 0.5) if method == "midpoint" else weight
    between = y * _along_front(1 - weight, y) + _elements_at(x, high) * _along_front(weight, y)
    if not exact.any():
        return x, between
    return x, select_n(shapes.broadcast_in_dim(as_array(exact), y.type.shape, (0,)), between, y)


def _elements_at(x: Any, positions: np.ndarray[Any, Any]) -> Any:
    """``y[j, i] = x[i, positions[j]]``; for a single position ``y[i] = x[i, positions]``."""
    if not positions.ndim:
        return index_in_dim(x, int(positions), -1, keepdims=False)
    return shapes.move_axis(take(x, positions, -1, mode="clip"), len(x.type.shape) - 1, 0)


def _along_front(numbers: np.ndarray[Any, Any], y: Any) -> Any:
    """A vector broadcast to the shape of ``y`` along its first axis, in the dtype of ``y``; a number as a scalar."""
    if not numbers.ndim:
        return like(y, float(numbers))
    return shapes.broadcast_in_dim(as_array(cast(numbers, y.type.dtype)), y.type.shape, (0,))


def _levels(q: Any, kind: Any, shape: tuple[int, ...]) -> Any:
    """``q`` in the dtype ``kind``: a scalar, or a vector broadcast to ``shape`` along its first axis."""
    part = convert(q, kind)
    return shapes.broadcast_in_dim(part, shape, (0,)) if part.type.shape else part


def _at_traced(x: Any, q: Any, method: str, ignore_nan: bool) -> Any:
    """The quantile of sorted rows, or of their elements that are not NaN, at traced levels, by two gathers."""
    kind = to_real(x.type.dtype)
    shape = (*q.shape, *x.type.shape[:-1])
    last = reductions.sum(x == x, -1, dtype=kind) - 1 if ignore_nan else convert(x.type.shape[-1] - 1, kind)
    last = shapes.broadcast(last, shape)
    position = _levels(q, kind, shape) * last
    low, high = floor(position), ceil(position)
    weight = position - low
    if method == "nearest":
        low = high = round(position, RoundingMethod.TO_NEAREST_EVEN)
    if method == "midpoint":
        weight = select_n(low == high, like(weight, 0.5), like(weight, 0))
    lower, upper = (_row_elements(x, clamp(like(i, 0), i, _max(last, like(last, 0)))) for i in (low, high))
    if method in ("lower", "nearest"):
        return lower
    if method == "higher":
        return upper
    upper = select_n(weight == 0, upper, like(upper, 0))  # it may be infinite
    weight = convert(weight, x.type.dtype)
    return lower * (1 - weight) + upper * weight


def _row_elements(x: Any, positions: Any) -> Any:
    """``y[j, i] = x[i, positions[j, i]]``, or ``y[i] = x[i, positions[i]]``."""
    lead = x.type.shape[:-1]
    index = convert(positions, default_int())
    if len(index.type.shape) > len(lead):
        index = shapes.move_axis(index, 0, len(lead))
        return shapes.move_axis(take_along_axis(x, index, -1, mode="clip"), len(lead), 0)
    return shapes.reshape(take_along_axis(x, shapes.reshape(index, (*lead, 1)), -1, mode="clip"), lead)


def _row_weights(name: str, weights: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """The weights of the elements of ``_in_one(x, axes)``, ones for None. Raises ShapeMismatch."""
    if weights is None:
        return shapes.full(_in_one(x, axes).type, 1)
    w = convert(weights, x.type.dtype)
    if w.type.shape != x.type.shape:
        if len(axes) != 1 or w.type.shape != (x.type.shape[axes[0]],):
            raise ShapeMismatch(f"{name}: weights must have the shape of a, or of one axis, got {w.type} for {x.type}.")
        w = shapes.broadcast_in_dim(w, x.type.shape, axes)
    return _in_one(w, axes)


def _by_weight(x: Any, q: Any, weights: Any, ignore_nan: bool) -> Any:
    """The first element of sorted rows at which the cumulative weight reaches the fraction ``q`` of the total."""
    if ignore_nan:
        weights = select_n(x == x, like(weights, 0), weights)
    sums = cumsum(weights, len(weights.type.shape) - 1)
    lead, size = x.type.shape[:-1], x.type.shape[-1]
    total = index_in_dim(sums, size - 1, -1, keepdims=False)
    shape = (*q.shape, *lead)
    goal = _levels(q, x.type.dtype, shape) * shapes.broadcast(total, shape)
    spread = shapes.broadcast_in_dim(goal, (*shape, size), tuple(range(len(shape))))
    below = shapes.broadcast(sums, (*shape, size)) < spread
    return _row_elements(x, clamp(0, reductions.sum(below, -1, dtype=default_int()), size - 1))


programs(globals(), direct=("nanpercentile", "nanquantile", "percentile", "quantile"))
