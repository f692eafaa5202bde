"""Histograms: bincount, histogram, histogram2d, histogramdd, histogram_bin_edges."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import prod
from typing import Any

from ...effects.base.errors import BadArgument, ConcretizationError, ShapeMismatch, whole_number
from ...effects.core.arrays import Array
from ...effects.functions.out_shardings import cuts_result
from ...effects.operations.elementwise.comparison import eq, select_n
from ...effects.operations.elementwise.comparison import max as _max
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.half_precision import HALF
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.operations.manipulation.slicing import concatenate, index_in_dim, slice_in_dim
from ...effects.types import dtypes
from ...effects.types.array_type import array_type
from ...effects.types.dtypes import default_int, float32
from ...effects.types.extent import Extent, as_size, positive
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, inexact, inexact_together, like
from ..arrays.index_arrays import known
from ..arrays.numerical_ranges import linspace
from ..mathematics import reductions
from ..mathematics.differences import diff
from .sorting_searching import searchsorted

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def _counted(indices: Any, weights: Any, length: int, dtype: Any) -> Any:
    """``y[k] == sum(weights[indices == k])`` for ``k < length``, rounded once; larger indices are ignored."""
    if dtype in HALF:
        return convert(_counted(indices, convert(weights, float32), length, float32), dtype)
    start = shapes.full(indices.type.update(shape=(length,), dtype=dtype, weak=False), 0)
    return start.at[indices].add(weights, mode="drop")


@cuts_result
def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None, out_sharding: Any = None
) -> Array:
    """``bincount(x)[k]`` is how often ``k`` occurs, or the sum of its weights; negative numbers are treated as 0.

    Args:
        length: of the result; larger numbers are ignored. Needed if ``x`` is traced.
    Raises: ConcretizationError: ``x`` is traced, and ``length`` is not given. Source: NumPy, ``bincount``.

    >>> from handlax.numpy import array
    >>> bincount(array([0, 2, 2]))
    Array([1, 0, 2], dtype=int32)
    """
    x, minlength = array_of(x), whole_number("bincount: minlength", minlength)
    if x.ndim != 1 or not (dtypes.is_integer(x.type.dtype) or dtypes.is_bool(x.type.dtype)):
        raise ShapeMismatch(f"bincount: a vector of integers is needed, got {x.type}.")
    if dtypes.is_bool(x.type.dtype):
        x = convert(x, default_int())
    if length is None:
        if not known(x):
            raise ConcretizationError(
                f"bincount: the largest number must be known, got {x.type}.",
                hint="name the length of the result: length=n.",
            )
        length = builtins.max(
            minlength, int(reductions.max(x, initial=-1 if dtypes.is_signed(x.type.dtype) else 0)) + 1 if x.size else 0
        )
    else:
        length = positive(as_size(length, "bincount: length") - minlength) + minlength
    indices = x if dtypes.is_unsigned(x.type.dtype) else _max(x, like(x, 0))
    if weights is None:
        return _counted(indices, 1, length, default_int())
    w = array_of(weights)
    if w.type.shape != x.type.shape:
        raise ShapeMismatch(f"bincount: there must be a weight for each number, got {w.type} for {x.type}.")
    return _counted(indices, w, length, w.type.dtype)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """The edges of ``bins`` equal bins over the range of ``a``, or over ``range``; an array of edges is returned.

    >>> from handlax.numpy import array
    >>> histogram_bin_edges(array([0.0, 4.0]), 2)
    Array([0., 2., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise BadArgument(
            f"histogram_bin_edges: bins are a number or edges, got {bins!r}.", hint="NumPy's rules need known values."
        )
    x = inexact(a)
    edges = array_of(bins)
    if edges.type.shape:
        if edges.ndim != 1:
            raise ShapeMismatch(f"histogram_bin_edges: edges must be a vector, got {edges.type}.")
        return inexact(edges)
    count = whole_number("histogram_bin_edges: bins", bins)
    if range is None:
        low, high = (reductions.min(x), reductions.max(x)) if x.size else (like(x, 0), like(x, 1))
        if isinstance(x.size, Extent):
            some = x.size.value != 0
            low, high = select_n(some, like(x, 0), low), select_n(some, like(x, 1), high)
    else:
        low, high = (convert(end, x.type.dtype) for end in range)
    flat = low == high
    half = like(low, 0.5)
    low, high = select_n(flat, low, low - half), select_n(flat, high, high + half)
    return convert(linspace(low, high, count + 1), x.type.dtype)


def _bins_of(x: Any, edges: Any) -> Any:
    """The number of each element's bin, from 1; 0 below the first edge. The last bin includes its upper edge."""
    count = edges.type.shape[0]
    last = index_in_dim(edges, count - 1, keepdims=False)
    bins = searchsorted(edges, x, side="right")
    return select_n(eq(x, shapes.broadcast(last, x.type.shape)), bins, like(bins, count - 1))


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Array, Array]:
    """``(counts, edges)``: the number or total weight of elements in each bin; the last bin includes its upper edge.

    With ``density`` the counts are divided so that the integral is 1. Source: NumPy, ``histogram``.

    >>> from handlax.numpy import array
    >>> histogram(array([0.0, 1.0, 4.0]), 2)[0]
    Array([2., 1.], dtype=float32)
    """
    x = inexact(a)
    w = shapes.full(x.type.strong(), 1) if weights is None else array_of(weights)
    if w.type.shape != x.type.shape:
        raise ShapeMismatch(f"histogram: there must be a weight for each element, got {w.type} for {x.type}.")
    edges = histogram_bin_edges(x, bins, range)
    x, edges = (inexact(part) for part in promote(shapes.reshape(x, (x.size,)), convert(edges, edges.type.dtype)))
    w = shapes.reshape(w, (w.size,))
    count = edges.type.shape[0]
    counts = slice_in_dim(_counted(_bins_of(x, edges), w, count, w.type.dtype), 1, count)
    if density:
        widths, counts = inexact_together("histogram", diff(edges), inexact(counts))
        counts = counts / (widths * shapes.broadcast(reductions.sum(counts), widths.type.shape))
    return counts, edges


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """``(counts, edges)`` of points, one in each row: a histogram with a dimension for each column.

    >>> from handlax.numpy import array
    >>> histogramdd(array([[0.0, 0.0], [1.0, 1.0]]), 2)[0].shape
    (2, 2)
    """
    points = inexact(sample)
    if points.ndim != 2:
        raise ShapeMismatch(f"histogramdd: points must be rows of a matrix, got {points.type}.")
    total, rank = points.type.shape
    several = isinstance(bins, (list, tuple)) or (isinstance(bins, Array) and bins.ndim > 0)
    given: Any = bins
    each = list(given) if several else [given] * rank
    spans = [None] * rank if range is None else list(range)
    if len(each) != rank or len(spans) != rank:
        raise ShapeMismatch(
            f"histogramdd: bins and range are one for each of {rank} columns, got {len(each)} and {len(spans)}."
        )
    columns = [index_in_dim(points, d, 1, keepdims=False) for d in builtins.range(rank)]
    edges = [convert(histogram_bin_edges(x, b, span), points.type.dtype) for x, b, span in zip(columns, each, spans)]
    sizes = tuple([edge.type.shape[0] + 1 for edge in edges])
    flat: Any = None
    for x, edge, size in zip(columns, edges, sizes):
        index = _bins_of(x, edge)
        flat = index if flat is None else flat * like(flat, size) + index
    w = shapes.full(array_type((total,), default_int()), 1) if weights is None else array_of(weights)
    counts = shapes.reshape(_counted(flat, w, prod(sizes), w.type.dtype), sizes)
    for d, size in enumerate(sizes):
        counts = slice_in_dim(counts, 1, size - 1, axis=d)
    if density:
        counts = convert(counts, points.type.dtype) if weights is None else inexact(counts)
        volume = reductions.sum(counts)
        for d, edge in enumerate(edges):
            counts = counts / shapes.broadcast_in_dim(convert(diff(edge), counts.type.dtype), counts.type.shape, (d,))
        counts = counts / volume
    return counts, edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Array, Array, Array]:
    """``(counts, x edges, y edges)`` of the points ``(x[i], y[i])``; ``bins`` are a number or edges, or a pair.

    >>> from handlax.numpy import array
    >>> histogram2d(array([0.0, 1.0]), array([0.0, 1.0]), 2)[0].shape
    (2, 2)
    """
    columns = [shapes.reshape(part, (*part.type.shape, 1)) for part in inexact_together("histogram2d", x, y)]
    pair = isinstance(bins, Sequence) and len(bins) == 2
    counts, (first, second) = histogramdd(
        concatenate(columns, 1), list(bins) if pair else [bins, bins], range, weights, density
    )
    return counts, first, second


programs(globals())
