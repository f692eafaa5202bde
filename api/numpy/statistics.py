"""Statistics: medians and quantiles, averages, covariance and correlation."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..effects import dtypes, shapes, sorting
from ..effects.arithmetic import add, ceil, div, floor, mul, sqrt, sub
from ..effects.arrays import Array, ConcreteArray
from ..effects.comparison import clamp, eq, le, lt, ne, select_n
from ..effects.comparison import max as _max
from ..effects.complexes import complex as _complex
from ..effects.complexes import conj, imag, real
from ..effects.conversion import convert
from ..effects.cumulative import cumsum
from ..effects.dtypes import canonical, default_int, to_inexact
from ..effects.errors import BadArgument, ShapeMismatch
from ..effects.refusals import no_sharding
from ..effects.slicing import concatenate, index_in_dim
from . import reductions
from .indexing import take_along_axis
from .operands import array_of, axes_of, inexact, inexact_together, kept_shape, like, no_out, together
from .products import dot

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """The value below which a part ``q`` of the elements lies: of n sorted ones the one at ``q * (n - 1)``.

    Shapes: the dimensions of ``q``, a scalar or vector, come first. NaN where an element is NaN.

    Args:
        method: what to take between two: "linear", "lower", "higher", "midpoint", "nearest"; or "inverted_cdf",
            the least element such that a part ``q`` of the weight lies at or below it.
        weights: of the elements, for "inverted_cdf".
    Source: NumPy, ``quantile``.

    >>> from handlax.numpy import array
    >>> quantile(array([1.0, 2.0, 4.0]), 0.75)
    Array(3., dtype=float32)
    """
    no_out(out, "quantile")
    return _quantile("quantile", a, q, axis, method, keepdims, False, weights)


def nanquantile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``quantile`` of the elements that are not NaN; NaN where there is none. Source: NumPy, ``nanquantile``.

    >>> from handlax.numpy import array
    >>> nanquantile(array([1.0, float("nan"), 3.0]), 0.5)
    Array(2., dtype=float32)
    """
    no_out(out, "nanquantile")
    return _quantile("nanquantile", a, q, axis, method, keepdims, True, weights)


def _hundredth(q: Any) -> Any:
    if isinstance(q, (bool, int, float, np.ndarray, np.generic)):
        return np.asarray(q) / 100
    q = inexact(q)
    return div(q, like(q, 100))


def percentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """``quantile(a, q / 100)``. Source: NumPy, ``percentile``.

    >>> from handlax.numpy import array
    >>> percentile(array([1.0, 2.0, 3.0]), 50)
    Array(2., dtype=float32)
    """
    no_sharding("percentile", out_sharding)
    return quantile(a, _hundredth(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``nanquantile(a, q / 100)``. Source: NumPy, ``nanpercentile``.

    >>> from handlax.numpy import array
    >>> nanpercentile(array([1.0, float("nan"), 3.0]), 50)
    Array(2., dtype=float32)
    """
    return nanquantile(a, _hundredth(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The element in the middle of the sorted ones, or the mean of the two there. Source: NumPy, ``median``.

    >>> from handlax.numpy import array
    >>> median(array([5, 1, 2, 3]))
    Array(2.5, dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The median of the elements that are not NaN. Source: NumPy, ``nanmedian``.

    >>> from handlax.numpy import array
    >>> nanmedian(array([5.0, float("nan"), 2.0, 3.0]))
    Array(3., dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _quantile(name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, ignore_nan: bool, weights: Any) -> Any:
    if method not in _METHODS:
        raise BadArgument(f"{name}: method must be one of {', '.join(_METHODS)}, got {method!r}.")
    if weights is not None and method != "inverted_cdf":
        raise BadArgument(f"{name}: weights are for method='inverted_cdf', got method={method!r}.")
    x = inexact(a)
    x = convert(x, x.type.dtype)
    axes = axes_of(axis, len(x.type.shape), name)
    shape = x.type.shape
    rows = _in_one(x, axes)
    part = np.asarray(q, np.float64) if not isinstance(q, Array) or isinstance(q, ConcreteArray) else inexact(q)
    if len(part.shape) > 1:
        raise ShapeMismatch(f"{name}: q must be a scalar or a vector, got shape {part.shape}.")
    if not rows.type.shape[-1]:
        raise ShapeMismatch(f"{name}: of no elements there is none, got {x.type} along {axes}.")
    if method == "inverted_cdf":
        y = _by_weight(name, rows, part, _row_weights(name, weights, x, axes), ignore_nan)
    else:
        y = _between(sorting.sort(rows), part, method, ignore_nan)
    if keepdims:
        y = shapes.reshape(y, (*part.shape, *kept_shape(shape, axes)))
    return y


def _in_one(x: Any, axes: tuple[int, ...]) -> Any:
    """The axes brought to the end and made one."""
    kept = [d for d in range(len(x.type.shape)) if d not in axes]
    lead = tuple([x.type.shape[d] for d in kept])
    return shapes.reshape(shapes.permute(x, (*kept, *axes)), (*lead, prod([x.type.shape[d] for d in axes])))


def _between(x: Any, q: Any, method: str, ignore_nan: bool) -> Any:
    """The quantile of sorted rows: the two elements about its position, joined."""
    size = x.type.shape[-1]
    if isinstance(q, np.ndarray) and not ignore_nan:
        y = _known_places(x, q * (size - 1), method)
    else:
        y = _places_by_row(x, q, method, ignore_nan)
    if ignore_nan:
        return y
    last = index_in_dim(x, size - 1, -1, keepdims=False)  # NaN comes last
    last = shapes.broadcast(last, y.type.shape)
    return select_n(ne(last, last), y, last)


def _known_places(x: Any, places: np.ndarray[Any, Any], method: str) -> Any:
    """Positions that are known: static slices."""
    size = x.type.shape[-1]
    if places.ndim:
        parts = [_known_places(x, place, method) for place in places]
        return concatenate([shapes.reshape(part, (1, *part.type.shape)) for part in parts], 0)
    if np.isnan(places):
        return shapes.full(x.type.update(shape=x.type.shape[:-1]), np.nan)
    low = int(np.clip(np.floor(places), 0, size - 1))
    high = int(np.clip(np.ceil(places), 0, size - 1))
    weight = float(places - np.floor(places))
    if method == "nearest":
        low = high = high if weight > 0.5 else low
    below = index_in_dim(x, low if method != "higher" else high, -1, keepdims=False)
    if low == high or method in ("lower", "higher"):
        return below
    above = index_in_dim(x, high, -1, keepdims=False)
    weight = 0.5 if method == "midpoint" else weight
    return add(mul(below, like(below, 1 - weight)), mul(above, like(above, weight)))


def _places_by_row(x: Any, q: Any, method: str, ignore_nan: bool) -> Any:
    """Positions that depend on values: one gather for the lower, one for the upper element."""
    lead, size = x.type.shape[:-1], x.type.shape[-1]
    kind = x.type.dtype
    shape = (*q.shape, *lead)
    part = convert(array_of(q), kind)
    part = shapes.broadcast_in_dim(part, shape, (0,)) if part.type.shape else part
    if ignore_nan:
        count = shapes.broadcast(reductions.sum(eq(x, x), -1, dtype=kind), shape)
        last = sub(count, like(count, 1))
    else:
        last = shapes.full(x.type.update(shape=shape), size - 1)
    place = mul(part, last)
    low, high = floor(place), ceil(place)
    weight = sub(place, low)
    if method == "nearest":
        low = high = select_n(le(weight, like(weight, 0.5)), high, low)
    if method == "midpoint":
        weight = select_n(eq(low, high), like(weight, 0.5), like(weight, 0))
    lower, upper = (_row_elements(x, clamp(like(i, 0), i, _max(last, like(last, 0)))) for i in (low, high))
    if method in ("lower", "nearest"):
        return lower
    if method == "higher":
        return upper
    return add(mul(lower, sub(like(weight, 1), weight)), mul(upper, weight))


def _row_elements(x: Any, places: Any) -> Any:
    """``y[j, i] = x[i, places[j, i]]``: places have the leading dimensions of x last."""
    lead = x.type.shape[:-1]
    extra = places.type.shape[: len(places.type.shape) - len(lead)]
    index = convert(places, default_int())
    if extra:
        index = shapes.move_axis(index, 0, len(lead))
        return shapes.move_axis(take_along_axis(x, index, -1, mode="clip"), len(lead), 0)
    y = take_along_axis(x, shapes.reshape(index, (*lead, 1)), -1, mode="clip")
    return shapes.reshape(y, lead)


def _row_weights(name: str, weights: Any, x: Any, axes: tuple[int, ...]) -> Any:
    if weights is None:
        return shapes.full(_in_one(x, axes).type, 1)
    w = convert(array_of(weights), x.type.dtype)
    if w.type.shape != x.type.shape:
        if len(axes) != 1 or w.type.shape != (x.type.shape[axes[0]],):
            raise ShapeMismatch(f"{name}: weights must have the shape of a, or of one axis, got {w.type} for {x.type}.")
        w = shapes.broadcast_in_dim(w, x.type.shape, axes)
    return _in_one(w, axes)


def _by_weight(name: str, x: Any, q: Any, weights: Any, ignore_nan: bool) -> Any:
    """The first sorted element up to which a part q of the weight lies."""
    x, w = sorting.sort_key_val(x, weights, -1)
    if ignore_nan:
        w = select_n(eq(x, x), like(w, 0), w)
    sums = cumsum(w, len(w.type.shape) - 1)
    lead, size = x.type.shape[:-1], x.type.shape[-1]
    total = index_in_dim(sums, size - 1, -1, keepdims=False)
    shape = (*q.shape, *lead)
    part = convert(array_of(q), x.type.dtype)
    part = shapes.broadcast_in_dim(part, shape, (0,)) if part.type.shape else part
    goal = mul(part, shapes.broadcast(total, shape))
    below = lt(
        shapes.broadcast(sums, (*shape, size)), shapes.broadcast_in_dim(goal, (*shape, size), tuple(range(len(shape))))
    )
    y = _row_elements(x, clamp(0, reductions.sum(below, -1, dtype=default_int()), size - 1))
    if ignore_nan:
        return y
    last = shapes.broadcast(index_in_dim(x, size - 1, -1, keepdims=False), y.type.shape)
    return select_n(ne(last, last), y, last)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """``sum(weights * a) / sum(weights)`` along the axes; with ``returned`` the sum of the weights too.

    Shapes: ``weights`` has the shape of ``a``, or of the axis.
    Raises: ShapeMismatch: it has another shape. Source: NumPy, ``average``.

    >>> from handlax.numpy import array
    >>> average(array([1.0, 3.0]), weights=array([3.0, 1.0]))
    Array(1.5, dtype=float32)
    """
    x = array_of(a)
    axes = axes_of(axis, len(x.type.shape), "average")
    if weights is None:
        y = reductions.mean(x, axes, keepdims=keepdims)
        total = shapes.full(y.type, int(np.prod([x.type.shape[d] for d in axes], dtype=int)))
    else:
        w = array_of(weights)
        if w.type.shape != x.type.shape:
            if axis is None or w.type.shape != tuple([x.type.shape[d] for d in axes]):
                raise ShapeMismatch(
                    f"average: weights must have the shape of a, or of its axis, got {w.type} for {x.type}."
                )
            w = shapes.broadcast_in_dim(w, x.type.shape, axes)
        x, w = inexact_together("average", x, w)
        total = reductions.sum(w, axes, keepdims=keepdims)
        y = div(reductions.sum(mul(x, w), axes, keepdims=keepdims), total)
    return (y, total) if returned else y


def _observations(x: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """A variable in each row, an observation in each column."""
    x = inexact(x) if y is None else inexact_together("cov", array_of(x), array_of(y))[0]
    if dtype is not None:
        x = convert(x, canonical(dtype))
    if len(x.type.shape) > 2:
        raise ShapeMismatch(f"cov: at most 2 dimensions are needed, got {x.type}.")
    rank = len(x.type.shape)
    if rank < 2:
        return shapes.reshape(x, (1, x.size))
    return x if rowvar or x.type.shape[0] == 1 else shapes.permute(x, (1, 0))


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """The covariances of variables, one in each row: ``sum((x - mean(x)) * conj(y - mean(y))) / (n - ddof)``.

    ``ddof`` is 1, with ``bias`` 0; ``fweights`` count observations, ``aweights`` weigh them. Source: NumPy, ``cov``.

    >>> from handlax.numpy import array
    >>> cov(array([1.0, 3.0]))
    Array(2., dtype=float32)
    """
    made = to_inexact(dtypes.result_type(*[array_of(v) for v in (m, y) if v is not None])) if dtype is None else dtype
    x = _observations(m, None, rowvar, made)
    if y is not None:
        x = concatenate([x, _observations(y, None, rowvar or array_of(y).ndim < 2, made)], 0)
    x = convert(x, x.type.dtype)
    w = None
    for weights in (fweights, aweights):
        if weights is not None:
            part = convert(array_of(weights), dtypes.to_real(x.type.dtype))
            if part.type.shape != (x.type.shape[1],):
                raise ShapeMismatch(f"cov: there must be a weight for each observation, got {part.type} for {x.type}.")
            w = part if w is None else mul(w, part)
    free = ddof if ddof is not None else 0 if bias else 1
    if w is None:
        factor: Any = x.type.shape[1] - free
        center = reductions.mean(x, 1, keepdims=True)
    else:
        total = reductions.sum(w)
        wide = convert(shapes.broadcast(w, x.type.shape), x.type.dtype)
        center = div(*together("cov", reductions.sum(mul(x, wide), 1, keepdims=True), convert(total, x.type.dtype)))
        taken = reductions.sum(mul(w, convert(array_of(aweights), w.type.dtype))) if aweights is not None else total
        factor = sub(total, div(mul(like(total, free), taken), total)) if free else total
    away = sub(x, shapes.broadcast(center, x.type.shape))
    other = shapes.permute(conj(away) if dtypes.is_complex(x.type.dtype) else away, (1, 0))
    weighed = away if w is None else mul(away, convert(shapes.broadcast(w, x.type.shape), x.type.dtype))
    z = dot(weighed, other)
    z = div(
        z, convert(factor, z.type.dtype) if isinstance(factor, Array) else like(z, factor if factor > 0 else np.nan)
    )
    return shapes.reshape(z, ()) if z.type.shape == (1, 1) else z


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """Correlations: ``cov(x)[i, j] / sqrt(cov(x)[i, i] * cov(x)[j, j])``, within [-1, 1]. Source: NumPy, ``corrcoef``.

    >>> from handlax.numpy import array
    >>> corrcoef(array([[1.0, 2.0], [2.0, 4.0]])).shape
    (2, 2)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.type.shape:
        return div(c, c)
    size = c.type.shape[0]
    mask = convert(array_of(np.eye(size, dtype=bool)), dtypes.bool_)
    d = sqrt(reductions.sum(select_n(mask, like(c, 0), c), 1))
    c = div(c, shapes.broadcast_in_dim(d, c.type.shape, (0,)))
    c = div(c, shapes.broadcast_in_dim(d, c.type.shape, (1,)))
    if dtypes.is_complex(c.type.dtype):
        return _complex(*[clamp(-1.0, part, 1.0) for part in (real(c), imag(c))])
    return clamp(-1.0, c, 1.0)
