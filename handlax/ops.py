"""``handlax.ops``: reductions of segments of an array, whose elements say to which segment they belong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .effects.base.errors import BadArgument, ConcretizationError, ShapeMismatch
from .effects.core.arrays import Array, Box
from .effects.functions.out_shardings import cuts_result
from .effects.operations.elementwise.conversion import convert
from .effects.operations.foundations import shapes
from .effects.operations.manipulation.creation import iota
from .effects.operations.reductions.reductions import highest, lowest
from .effects.types.extent import as_size, fits
from .interpreters.core.eager_programs import programs
from .numpy.arrays.argument_conversion import array_of
from .numpy.arrays.index_updates import IndexUpdateHelper
from .numpy.mathematics import reductions

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segments(segment_ids: Any, num_segments: Any) -> int:
    """The number of segments, by default the largest id plus 1. Raises ConcretizationError: that id is not known."""
    if num_segments is None:
        if isinstance(segment_ids, Box):
            raise ConcretizationError(
                f"segment: the number of segments must be known, got the unknown {segment_ids.type}.",
                hint="num_segments=.",
            )
        ids = np.asarray(segment_ids)
        return max(int(ids.max()), -1) + 1 if ids.size else 0
    count: int = as_size(num_segments, "segment: num_segments")
    if not fits(0, count):
        raise BadArgument(f"segment: num_segments must not be negative, got {count}.")
    return count


def _reduced(
    update: str, unit: Callable[[Any], Any], fold: Callable[..., Any], data: Any, segment_ids: Any, num_segments: Any,
    indices_are_sorted: bool, unique_indices: bool, bucket_size: int | None, mode: Any,
) -> Any:
    """The segments' elements combined by the method ``update`` of ``x.at``, whose identity for a dtype is ``unit``.

    ``fold`` combines the buckets.
    """
    x, i = array_of(data), array_of(segment_ids)
    if x.type.shape[: len(i.type.shape)] != i.type.shape:
        raise ShapeMismatch(f"segment: the shape of data must begin with that of segment_ids, got {x.type}, {i.type}.")
    rows: tuple[int, ...] = (_segments(i, num_segments), *x.type.shape[len(i.type.shape) :])
    index: Any = i
    if bucket_size is not None:
        rows = (-(-i.size // bucket_size), *rows)
        index = (iota(np.dtype("int32"), i.size) // bucket_size, i)
    start = shapes.full(x.type.update(shape=rows, weak=False), unit(x.type.dtype))
    y = getattr(IndexUpdateHelper(start)[index], update)(
        convert(x, x.type.dtype), indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
        mode="drop" if mode is None else mode, wrap_negative_indices=False,
    )
    return y if bucket_size is None else convert(fold(y, 0), x.type.dtype)


@cuts_result
def segment_sum(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Array:
    """``segment_sum(x, i)[k] == sum of x[j] for all j where i[j] == k``; 0 for a segment without elements.

    Shapes: ``data: a[n, *s]``, ``segment_ids: i32[n]`` give ``a[num_segments, *s]``.
    Elements whose segment is none of ``0, ..., num_segments - 1`` take no part, unless ``mode`` says otherwise.
    ``num_segments`` is by default the largest id plus 1; the ids must be concrete then.
    With ``bucket_size`` the sums of buckets of so many elements are added up, which rounds less.

    >>> segment_sum(np.array([5, 1, 7, 2], "int32"), np.array([0, 0, 1, 1]))
    Array([6, 9], dtype=int32)
    """
    return _reduced(
        "add", lambda dtype: 0, reductions.sum, data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode,
    )


@cuts_result
def segment_prod(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Array:
    """The product of each segment, 1 for one without elements; see ``segment_sum``.

    >>> segment_prod(np.array([5, 1, 7, 2], "int32"), np.array([0, 0, 1, 1]))
    Array([ 5, 14], dtype=int32)
    """
    return _reduced(
        "multiply", lambda dtype: 1, reductions.prod, data, segment_ids, num_segments, indices_are_sorted,
        unique_indices, bucket_size, mode,
    )


@cuts_result
def segment_max(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Array:
    """The largest element of each segment, the lowest number of the dtype for one without; see ``segment_sum``.

    >>> segment_max(np.array([5, 1, 7, 2], "int32"), np.array([0, 0, 1, 1]))
    Array([5, 7], dtype=int32)
    """
    return _reduced(
        "max", lowest, reductions.max, data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode,
    )


@cuts_result
def segment_min(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Array:
    """The smallest element of each segment, the highest number of the dtype for one without; see ``segment_sum``.

    >>> segment_min(np.array([5, 1, 7, 2], "int32"), np.array([0, 0, 1, 1]))
    Array([1, 2], dtype=int32)
    """
    return _reduced(
        "min", highest, reductions.min, data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode,
    )


programs(globals())
