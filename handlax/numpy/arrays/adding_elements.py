"""Tiling arrays, adding and removing elements: tile, repeat, append, insert, delete, resize, trim_zeros."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, ConcretizationError, ShapeMismatch
from ...effects.base.stack import perform
from ...effects.core.arrays import Array, Box, as_array
from ...effects.functions.out_shardings import cuts_result
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axes, canonical_axis
from ...effects.operations.indexing.gather_scatter import ScatterAdd
from ...effects.operations.indexing.gather_windows import ScatterDimensionNumbers
from ...effects.operations.manipulation import rearranging, slicing
from ...effects.operations.manipulation.creation import broadcasted_iota, iota
from ...effects.operations.manipulation.slicing import Concatenate
from ...effects.operations.reductions.cumulative import cumsum
from ...effects.operations.reductions.sorting import sort
from ...effects.types import dtypes
from ...effects.types.extent import Extent, as_size, positive, unbound
from ...effects.types.lengths import of_lanes
from ...effects.types.sized import extents_in
from ...interpreters.core.eager_programs import programs
from .argument_conversion import rows_of
from .creation import shape_of
from .index_arrays import known, need_known
from .index_reading import FILL, INT32, wrapped
from .indexing_operations import take
from .joining_splitting import concatenate, joined_along
from .shape_manipulation import broadcast_to, ravel

__all__ = ["append", "delete", "insert", "repeat", "resize", "tile", "trim_zeros"]

_MOST_SLICES = 8  # ``pieces`` joins at most so many slices


def tile(A: Any, reps: Any) -> Array:
    """``A`` repeated ``reps[d]`` times along axis ``d``: ``tile(x, k)[i] == x[i % n]``.

    >>> tile(np.array([1, 2], "int32"), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    x = as_array(A)
    counts = shape_of(reps, "tile")
    shape = (*(1,) * (len(counts) - x.ndim), *x.shape)
    counts = (*(1,) * (len(shape) - len(counts)), *counts)
    return rearranging.tile(shapes.reshape(x, shape), counts)


@cuts_result
def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Array:
    """Each slice of ``a`` along ``axis``, ``repeats`` times: a number, or one for each; flattened for ``axis=None``.

    With ``total_repeat_length`` the result has that size: truncated, or padded with the last slice. It is needed if
    ``repeats`` is traced.

    >>> repeat(np.array([1, 2], "int32"), np.array([2, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    x, axis = rows_of(a, axis, "repeat", one=True)
    n, repeats = x.shape[axis], unbound(repeats)
    if total_repeat_length is not None:
        total_repeat_length = as_size(total_repeat_length, "repeat: total_repeat_length")
    if type(repeats) is Extent and total_repeat_length is None:
        return _evenly(x, positive(repeats), axis)
    repeats = as_array(repeats) if type(repeats) is Extent else repeats
    if not known(repeats) and total_repeat_length is None:
        raise ConcretizationError(
            f"repeat: the size of the result must be known, got repeats {repeats.type}.",
            hint="name it: total_repeat_length=n.",
        )
    counts: Any = np.atleast_1d(np.asarray(repeats)) if known(repeats) else repeats
    if counts.ndim > 1 or (counts.size not in (1, n)):
        raise ShapeMismatch(f"repeat: one number, or {n} for axis {axis}, are needed, got shape {counts.shape}.")
    if known(repeats):
        if counts.size and counts.min() < 0:
            raise BadArgument("repeat: numbers of repeats must not be negative.")
        if counts.size == 1 and (total_repeat_length is None or total_repeat_length == n * int(counts[0])):
            return _evenly(x, int(counts[0]), axis)
    source: Any
    if known(repeats) and not extents_in((n, total_repeat_length)):
        source = np.repeat(np.arange(n), counts.astype(np.int64) if counts.dtype.kind == "u" else counts)
        if total_repeat_length is not None:
            more = total_repeat_length - source.size
            source = np.pad(source, (0, max(more, 0)), constant_values=max(n - 1, 0))[:total_repeat_length]
    else:
        source = _sources(convert(broadcast_to(counts, (n,)), INT32), n, total_repeat_length)  # type: ignore[arg-type]
    return take(x, source, axis, mode="clip", indices_are_sorted=True)


def _evenly(x: Any, count: int, axis: int) -> Any:
    """Each slice of ``x`` along ``axis`` repeated ``count`` times, by a broadcast and a reshape."""
    shape = x.shape
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    spread = shapes.broadcast_in_dim(x, wide, tuple([d + (d > axis) for d in range(x.ndim)]))
    return shapes.reshape(spread, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _sources(counts: Any, n: int, total: int) -> Any:
    """The index of the slice at each position of ``repeat``'s result: how many slices' repeats end at or before it."""
    ends = shapes.reshape(cumsum(counts), (n, 1))
    one, none = shapes.full(counts.type, 1), shapes.full(counts.type.update(shape=(total,)), 0)
    op = ScatterAdd(ScatterDimensionNumbers((), (0,), (0,)), True, False, FILL)
    return cumsum(perform(op, none, ends, one))


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """``values`` after ``arr`` along ``axis``, or both flattened.

    >>> append(np.zeros(2, "int32"), 1)
    Array([0, 0, 1], dtype=int32)
    """
    return concatenate([arr, values], axis)


def static_positions(obj: Any, size: int, where: str, hint: str | None = None) -> np.ndarray[Any, Any]:
    """The positions that a slice, an integer, a mask or a list of integers names along an axis, from the front.

    Raises: ConcretizationError: they are traced. ShapeMismatch: the mask has another size. BadArgument: no integers.
    """
    if isinstance(obj, Box):
        raise ConcretizationError(f"{where}: the positions must be known, got {obj.described}.", hint=hint)
    if isinstance(obj, slice):
        return np.arange(size)[obj]
    positions = np.asarray(obj)
    if positions.dtype == bool:
        if positions.shape != (size,):
            raise ShapeMismatch(f"{where}: a mask must have the size {size} of the axis, got {positions.shape}.")
        return np.flatnonzero(positions)
    if positions.size and positions.dtype.kind not in "iu":
        raise BadArgument(f"{where}: positions must be integers, got {positions.dtype}.")
    return positions.astype(np.int64)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """``arr`` with ``values``, in its dtype, before the positions ``obj``, concrete integers; flattened if no ``axis``.

    >>> insert(np.zeros(2, "int32"), 1, 7)
    Array([0, 7, 0], dtype=int32)
    """
    x = as_array(arr)
    values = convert(values, x.type.dtype, x.type.weak)
    if axis is None:
        x, axis = shapes.reshape(x, (x.size,)), 0
        values = shapes.reshape(values, (values.size,))
    axis = canonical_axis(axis, x.ndim, "insert")
    size = x.shape[axis]
    positions = static_positions(obj, size, "insert")
    if positions.size and not (of_lanes(size) or (-size <= int(positions.min()) and int(positions.max()) <= size)):
        raise BadArgument(f"insert: positions must lie in [-{size}, {size}], got {positions.tolist()}.")
    single, positions = positions.ndim == 0, np.atleast_1d(positions)
    if single and values.ndim == x.ndim and x.ndim > 1:  # one position, a piece of any length
        positions = np.repeat(positions, values.shape[axis])
    elif single and values.ndim == 1 and x.ndim == 1:
        positions = np.repeat(positions, max(values.size, 1))
    elif single and values.ndim and values.ndim < x.ndim:  # NumPy's rule: values stand for one slice
        wide = shapes.reshape(values, (*(1,) * (x.ndim - 1 - values.ndim), *values.shape, 1))
        values = shapes.move_axis(wide, x.ndim - 1, axis)
    values = shapes.broadcast(values, (*x.shape[:axis], positions.size, *x.shape[axis + 1 :]))
    if not isinstance(size, int):
        order = np.argsort(positions, kind="stable")
        news = [slicing.slice_in_dim(values, int(k), int(k) + 1, axis=axis) for k in order]
        return _around(x, [(int(at), int(at)) for at in positions[order]], news, axis)
    source = np.insert(np.arange(size), positions, size + np.arange(positions.size))
    return pieces(perform(Concatenate(axis), x, values), source, axis)


def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """``arr`` without the positions ``obj`` along ``axis``; flattened for ``axis=None``.

    The positions must be concrete, unless ``assume_unique_indices`` promises that they are distinct, so that their
    number tells how many elements remain.

    >>> delete(np.arange(4, dtype="int32"), [1, 2])
    Array([0, 3], dtype=int32)
    """
    x, axis = rows_of(arr, axis, "delete")
    size = x.shape[axis]
    if assume_unique_indices and isinstance(obj, Box) and dtypes.is_integer(obj.type.dtype):
        return take(x, _remaining(obj, size), axis)
    gone = static_positions(obj, size, "delete", "distinct integers may be traced with assume_unique_indices=True.")
    if gone.size and not (of_lanes(size) or (-size <= int(gone.min()) and int(gone.max()) < size)):
        raise BadArgument(f"delete: positions must lie in [-{size}, {size}), got {gone.tolist()}.")
    if not isinstance(size, int):
        ends = [(int(at), None if at == -1 else int(at) + 1) for at in np.unique(gone)]
        return _around(x, ends, [slicing.slice_in_dim(x, 0, 0, axis=axis)] * len(ends), axis)
    return pieces(x, np.delete(np.arange(size), gone), axis)


def _around(x: Any, ends: list[Any], news: list[Any], axis: int) -> Any:
    """``x``, ragged along ``axis``, with the slice between each pair of ``ends`` replaced by the array in ``news``."""
    if len({first < 0 for first, _ in ends}) > 1:
        raise BadArgument(f"insert, delete: positions must count from one end of a lane, got {[a for a, _ in ends]}.")
    parts, start = [], 0
    for (first, behind), new in zip(ends, news):
        parts += [x[(*(slice(None),) * axis, slice(start, first))], new]
        start = behind
    rest = [] if start is None else [x[(*(slice(None),) * axis, slice(start, None))]]
    return concatenate([*parts, *rest], axis)


def _remaining(gone: Any, size: int) -> Any:
    """The positions below ``size`` that are not in ``gone``, whose elements are distinct."""
    gone = sort(ravel(wrapped(gone, size)))
    i = broadcasted_iota(INT32, (size - gone.size, gone.size), 0)
    before = convert(gone, INT32) - iota(INT32, gone.size)  # how many positions remain before each that goes
    passed = i >= shapes.broadcast(before, i.shape)
    return iota(INT32, size - gone.size) + shapes.reduce_sum(convert(passed, INT32), (1,))


def pieces(x: Any, source: Sequence[int] | np.ndarray[Any, Any], axis: int) -> Any:
    """``take`` at concrete positions along ``axis``: joined slices of consecutive ones, or a gather if many."""
    where = np.asarray(source)
    if not where.size:
        return slicing.slice_in_dim(x, 0, 0, axis=axis)
    cuts = np.flatnonzero(np.diff(where) != 1) + 1
    if cuts.size >= _MOST_SLICES:
        return take(x, where.astype(np.int32), axis, mode="clip", unique_indices=True)
    parts = [slicing.slice_in_dim(x, int(run[0]), int(run[-1]) + 1, axis=axis) for run in np.split(where, cuts)]
    return joined_along(parts, axis)


def resize(a: Any, new_shape: Any) -> Array:
    """The elements of ``a``, repeated as often as needed, in a new shape.

    >>> resize(np.arange(3, dtype="int32"), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    sizes = shape_of(new_shape, "resize")
    x = ravel(a)
    wanted = prod(sizes)
    if not x.size:
        return shapes.full(x.type.update(shape=sizes), 0)
    if wanted > x.size:
        x = tile(x, -(-wanted // x.size))
    return shapes.reshape(slicing.slice_in_dim(x, 0, wanted), sizes)


def trim_zeros(filt: Any, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """``filt`` without the zeros at its front (``f``) and back (``b``), along these axes; ``filt`` must be concrete.

    >>> trim_zeros(np.array([0, 1, 0, 2, 0], "int32"))
    Array([1, 0, 2], dtype=int32)
    """
    x = as_array(filt)
    ends = trim.lower()
    if set(ends) - {"f", "b"}:
        raise BadArgument(f"trim_zeros: trim must be of 'f' and 'b', got {trim!r}.")
    need_known("trim_zeros", "filt", x, hint="trim it outside of the transformed function.")
    filled = np.argwhere(np.asarray(x))
    lows, highs = [0] * x.ndim, list(x.shape)
    for d in canonical_axes(axis, x.ndim, "trim_zeros"):
        column = filled[:, d]
        if "f" in ends:
            lows[d] = int(column.min()) if column.size else x.shape[d]
        if "b" in ends:
            highs[d] = int(column.max()) + 1 if column.size else lows[d]
    return slicing.slice(x, lows, highs)


programs(globals())
