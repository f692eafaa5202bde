"""Arrays as sets: distinct elements, unions, intersections, differences.

The size of a result depends on values: for traced arrays ``size`` must be given.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from ...effects.base.errors import BadArgument
from ...effects.core.arrays import Array, as_arrays
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.operations.manipulation.slicing import concatenate, index_in_dim, slice_in_dim
from ...effects.operations.reductions import sorting
from ...effects.operations.reductions.cumulative import cumsum
from ...effects.types import dtypes
from ...effects.types.dtypes import default_int
from ...effects.types.extent import as_size, single
from ...effects.types.sized import surely_at_most
from ..arrays.argument_conversion import array_of, like
from ..arrays.index_arrays import flatnonzero, need_known, where
from ..arrays.indexing_operations import take
from ..mathematics import reductions
from .sorting_searching import argsort, isin, lexsort, searchsorted

__all__ = [
    "intersect1d", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """The result of ``unique_all``."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of ``unique_counts``."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of ``unique_inverse``."""

    values: Array
    inverse_indices: Array


def _flat(x: Any) -> Any:
    """The elements of ``x`` as a vector."""
    return shapes.reshape(x, (x.size,))


def _first(x: Any, equal_nan: bool = True) -> Any:
    """The mask of elements, or rows, of a sorted array that differ from the one before."""
    size = x.type.shape[0]
    head = shapes.full(x.type.update(shape=(single(size),), dtype=dtypes.bool_, weak=False), True)
    if surely_at_most(size, 1):
        return head
    a, b = slice_in_dim(x, 1, size), slice_in_dim(x, 0, size - 1)
    new = a != b
    if equal_nan and dtypes.is_inexact(x.type.dtype):
        new = new & ((a == a) | (b == b))
    return concatenate([head, reductions.any(new, tuple(range(1, len(x.type.shape))))], 0)


@overload
def unique(
    ar: Any, return_index: Literal[False] = False, return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: Any = None, sorted: bool = True,
) -> Array: ...
@overload
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: Any = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: Any = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The distinct elements sorted, or the distinct slices along ``axis``.

    With the flags also: the index at which each first occurs; the inverse, for every element its index in the result;
    the number of times each occurs.

    Args:
        size: of the result, which is truncated, or padded with ``fill_value``, by default the least element.
            Needed if ``ar`` is traced.
    Raises: ConcretizationError: ``ar`` is traced, and ``size`` is not given. Source: NumPy, ``unique``.

    >>> from handlax.numpy import array
    >>> unique(array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    flags = return_index, return_inverse, return_counts
    return _unique("unique", "ar", ar, *flags, axis, equal_nan=equal_nan, size=size, fill_value=fill_value)


def _unique(
    name: str, argument: str, ar: Any, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = False, size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """``unique`` for the function ``name``, whose argument ``argument`` is ``ar``."""
    whole = array_of(ar)
    size = None if size is None else as_size(size, f"{name}: size")
    if equal_nan and dtypes.is_complex(whole.type.dtype):  # NaN in either part is one value
        whole = select_n(whole != whole, whole, like(whole, float("nan")))
    x = _flat(whole) if axis is None else shapes.move_axis(whole, canonical_axis(axis, whole.ndim, name), 0)
    shape = whole.type.shape if axis is None else x.type.shape[:1]
    order, rows = _in_order(x, return_index or return_inverse)
    if x.type.shape[0]:
        need_known(name, argument, whole, size)
        mask = _first(rows, equal_nan)
        values, starts, counts = _groups(rows, mask, size, fill_value)
        indices = lambda: take(order, starts, mode="clip")
        inverse = lambda: _inverse(mask, order, shape)
    else:
        values, counts = _fill_rows(rows, size, fill_value) if size else rows, order
        indices, inverse = lambda: order, lambda: shapes.reshape(order, shape)
    results = [values if axis is None else shapes.move_axis(values, 0, canonical_axis(axis, whole.ndim, name))]
    if return_index:
        results.append(indices())
    if return_inverse:
        results.append(inverse())
    if return_counts:
        results.append(counts)
    return results[0] if len(results) == 1 else tuple(results)


def _groups(rows: Any, mask: Any, size: int | None, fill_value: Any) -> tuple[Any, Any, Any]:
    """The first row of each group of equal ones, the groups' starts and sizes; ``mask`` is true where a group starts.

    With ``size`` there are so many, filled with ``fill_value``, by default the first row.
    """
    total = rows.type.shape[0]
    # the end of each group is the start of the next: one more than ``size`` is computed, or the end of the array added
    if size is None:
        starts = flatnonzero(mask)
        ends = concatenate([starts, shapes.full(starts.type.update(shape=(1,)), total)], 0)
    else:
        ends = flatnonzero(mask, size=size + 1, fill_value=total)
    count = ends.type.shape[0] - 1
    starts = slice_in_dim(ends, 0, count)
    missing = None if size is None else starts >= like(starts, total)
    indices = starts if missing is None else select_n(missing, starts, like(starts, 0))
    values = take(rows, indices, 0, mode="clip")
    if missing is not None and fill_value is not None:
        gone = shapes.broadcast_in_dim(missing, values.type.shape, (0,))
        values = select_n(gone, values, _fill_rows(values, count, fill_value))
    return values, indices, slice_in_dim(ends, 1, count + 1) - starts


def _fill_rows(rows: Any, size: int, fill_value: Any) -> Any:
    """``size`` rows of the fill value, of the type of ``rows``. Raises BadArgument: there is no fill value."""
    if fill_value is None:
        raise BadArgument(f"unique: of no elements there is none to fill size={size} with.", hint="give fill_value=.")
    return shapes.broadcast(convert(fill_value, rows.type.dtype, rows.type.weak), (size, *rows.type.shape[1:]))


def _in_order(x: Any, with_indices: bool) -> tuple[Any, Any]:
    """The indices that sort the slices along the first axis, None where vectors need none, and the sorted slices."""
    if x.ndim == 1:
        return argsort(x) if with_indices or not x.size else None, sorting.sort(x)
    columns = shapes.reshape(x, (x.type.shape[0], x.size // max(1, x.type.shape[0])))
    width = columns.type.shape[1]
    keys = [_flat(slice_in_dim(columns, d, d + 1, axis=1)) for d in reversed(range(width))]
    order = lexsort(keys) if keys else iota(default_int(), x.type.shape[0])
    return order, take(x, order, 0, mode="clip") if x.size else x


def _inverse(mask: Any, order: Any, shape: tuple[int, ...]) -> Any:
    """For every element its index among the distinct ones; ``mask`` marks their first among the sorted elements."""
    rank = cumsum(convert(mask, default_int())) - 1 if mask.size else order
    return shapes.reshape(take(rank, argsort(order), mode="clip") if mask.size else rank, shape)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """``unique`` with indices, inverse and counts. Source: the array API standard, ``unique_all``.

    >>> from handlax.numpy import array
    >>> unique_all(array([3, 1, 3])).values
    Array([1, 3], dtype=int32)
    """
    return UniqueAll(*_unique("unique_all", "x", x, True, True, True, size=size, fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """``unique`` with counts. Source: the array API standard, ``unique_counts``.

    >>> from handlax.numpy import array
    >>> unique_counts(array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueCounts(*_unique("unique_counts", "x", x, return_counts=True, size=size, fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """``unique`` with the inverse. Source: the array API standard, ``unique_inverse``.

    >>> from handlax.numpy import array
    >>> unique_inverse(array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverse(*_unique("unique_inverse", "x", x, return_inverse=True, size=size, fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """``unique``. Source: the array API standard, ``unique_values``.

    >>> from handlax.numpy import array
    >>> unique_values(array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return _unique("unique_values", "x", x, size=size, fill_value=fill_value)


def _need_both(name: str, x: Any, y: Any, size: int | None) -> None:
    """Check that the two arrays ``ar1`` and ``ar2`` of ``name`` are concrete, or that ``size`` is given."""
    need_known(name, "ar1", x, size)
    need_known(name, "ar2", y, size)


def _chosen(name: str, x: Any, mask: Any, size: int | None, fill_value: Any) -> Any:
    """The elements where a mask is true, sorted; padded to ``size``, by default with the least of them."""
    if size is None:
        return sorting.sort(take(x, flatnonzero(mask), mode="clip"))
    _, y = sorting.sort((~mask, x), 0, True, 2)
    count = reductions.sum(mask, dtype=default_int())
    size = as_size(size, f"{name}: size")
    if size < 0:
        raise BadArgument(f"{name}: size must not be negative, got {size}.")
    total = y.type.shape[0]
    fill = fill_value if fill_value is not None else index_in_dim(y, 0, keepdims=False) if total else 0
    fill = convert(fill, y.type.dtype)
    fill = shapes.broadcast(shapes.reshape(fill, ()) if fill.type.shape else fill, (size,))
    if total < size:
        y = concatenate([convert(y, y.type.dtype), slice_in_dim(fill, 0, size - total)], 0)
    index = iota(default_int(), size)
    return select_n(index < shapes.broadcast(count, (size,)), fill, convert(slice_in_dim(y, 0, size), y.type.dtype))


def _distinct(x: Any, assume_unique: bool, other: Any, invert: bool) -> tuple[Any, Any]:
    """The elements sorted, and the mask of those in ``other`` (``invert``: not in it), of equal ones the first only."""
    y = sorting.sort(x) if x.size else x
    mask = shapes.full(y.type.update(dtype=dtypes.bool_, weak=False), True) if assume_unique else _first(y)
    return y, mask & isin(y, other, invert=invert) if x.size else mask


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The distinct elements of either, sorted. Source: NumPy, ``union1d``.

    >>> from handlax.numpy import array
    >>> union1d(array([3, 1]), array([1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, y = map(_flat, promote(ar1, ar2))
    both = concatenate([x, y], 0)
    return _unique("union1d", "ar1 and ar2", both, equal_nan=True, size=size, fill_value=fill_value)


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False, *, size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements of both, sorted; with ``return_indices`` also the first index of each in either array.

    ``size`` pads the elements with ``fill_value``, and the indices with the size of the array.

    >>> from handlax.numpy import array
    >>> intersect1d(array([3, 1, 1]), array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    x, y = map(_flat, promote(ar1, ar2))
    _need_both("intersect1d", x, y, size)
    a, mask = _distinct(x, assume_unique, y, False)
    common = _chosen("intersect1d", a, mask, size, fill_value)
    if not return_indices:
        return common
    indices = [_first_indices(z, common) for z in (x, y)]
    if size is not None:
        missing = iota(default_int(), size) >= shapes.broadcast(reductions.sum(mask, dtype=default_int()), (size,))
        indices = [where(missing, z.size, i) for z, i in zip((x, y), indices)]
    return common, *indices


def _first_indices(x: Any, values: Any) -> Any:
    """The index of the first occurrence of each value in ``x``."""
    order = argsort(x)
    return take(order, searchsorted(take(x, order), values), mode="clip")


def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """The distinct elements of ``ar1`` not in ``ar2``, sorted; in their order if ``assume_unique``.

    >>> from handlax.numpy import array
    >>> setdiff1d(array([3, 1, 2]), array([1]))
    Array([2, 3], dtype=int32)
    """
    x, y = as_arrays(ar1, ar2)
    own = array_of(ar1)  # a weakly typed operand takes the width of the other, not its kind
    x, y = _flat(x if x.type.dtype.kind == own.type.dtype.kind else own), _flat(y)
    _need_both("setdiff1d", x, y, size)
    if assume_unique and size is None:
        return take(x, flatnonzero(isin(x, y, invert=True)), mode="clip")
    return _chosen("setdiff1d", *_distinct(x, assume_unique, y, True), size, 0 if fill_value is None else fill_value)


def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """The distinct elements of exactly one of the two, sorted. Source: NumPy, ``setxor1d``.

    >>> from handlax.numpy import array
    >>> setxor1d(array([3, 1]), array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    x, y = map(_flat, promote(ar1, ar2))
    _need_both("setxor1d", x, y, size)
    sides = _distinct(x, assume_unique, y, True), _distinct(y, assume_unique, x, True)
    values, masks = (concatenate(list(parts), 0) for parts in zip(*sides))
    return _chosen("setxor1d", values, masks, size, fill_value)
