"""Windows: what gather and scatter share. Dimension numbers, modes, and windows as NumPy indices.

An index vector says where a window starts in the operand; a window runs over the operand's remaining dimensions.
The names are those of the StableHLO specification (gather, scatter) as JAX has them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from . import dtypes
from .errors import BadArgument, DTypeMismatch, ShapeMismatch
from .types import ArrayType

Shape = tuple[int, ...]
Data = np.ndarray[Any, Any]


class GatherDimensionNumbers(NamedTuple):
    """How dimensions of operand, start indices and result of ``gather`` belong together.

    Attributes:
        offset_dims: dimensions of the result that run over a window, in order.
        collapsed_slice_dims: dimensions of the operand that have size 1 in a window and are left out.
        start_index_map: the operand's dimension that each entry of an index vector is for.
        operand_batching_dims, start_indices_batching_dims: pairs of dimensions that run together.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How dimensions of operand, scatter indices and updates of ``scatter`` belong together.

    Attributes:
        update_window_dims: dimensions of the updates that run over a window, in order.
        inserted_window_dims: dimensions of the operand that have size 1 in a window and that updates lack.
        scatter_dims_to_operand_dims: the operand's dimension that each entry of an index vector is for.
        operand_batching_dims, scatter_indices_batching_dims: pairs of dimensions that run together.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """What becomes of a window that is not wholly inside the operand.

    ``CLIP`` moves it inside; ``FILL_OR_DROP`` gathers a fill value for all of it, or scatters nothing of it;
    ``PROMISE_IN_BOUNDS`` says that there is none: it would be clipped by gather and dropped by scatter; ``ONE_HOT``
    gathers as a product with one-hot vectors does: zeros.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: Any) -> GatherScatterMode:
        """The mode of this name: ``clip``, ``fill`` or ``drop`` or None, ``promise_in_bounds``, ``one_hot``.

        >>> GatherScatterMode.from_any("drop").name
        'FILL_OR_DROP'
        """
        if isinstance(s, GatherScatterMode):
            return s
        mode = _MODES.get(s) if s is None or isinstance(s, str) else None
        if mode is None:
            raise BadArgument(f"mode: must be one of {', '.join(filter(None, _MODES))}, got {s!r}.")
        return mode


_MODES = {
    "clip": GatherScatterMode.CLIP, "fill": GatherScatterMode.FILL_OR_DROP, "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS, "one_hot": GatherScatterMode.ONE_HOT,
    None: GatherScatterMode.FILL_OR_DROP,
}  # fmt: skip


def gathering(dims: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The numbers by which gather reads the windows that scatter writes."""
    return GatherDimensionNumbers(*dims)


def scattering(dims: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The numbers by which scatter writes the windows that gather reads."""
    return ScatterDimensionNumbers(*dims)


def window_dims(dims: Sequence[Any], rank: int) -> list[int]:
    """Dimensions of the operand that a window keeps."""
    return [d for d in range(rank) if d not in dims[1] and d not in dims[3]]


def outer_dims(dims: Sequence[Any], rank: int) -> list[int]:
    """Dimensions of a gather's result, or a scatter's updates, that run over the index vectors."""
    return [d for d in range(rank) if d not in dims[0]]


def window_sizes(dims: ScatterDimensionNumbers, operand: Shape, updates: Shape) -> Shape:
    """The sizes of a scattered window in every dimension of the operand."""
    sizes = iter([updates[d] for d in dims[0]])
    kept = window_dims(dims, len(operand))
    return tuple([next(sizes) if d in kept else min(1, n) for d, n in enumerate(operand)])


def check(name: str, dims: Sequence[Any], operand: ArrayType, indices: ArrayType, window: Shape) -> None:
    """Raises where dimension numbers and shapes don't fit together."""
    inner, dropped, index_map, operand_batch, indices_batch = dims
    rank = len(operand.shape)
    if not dtypes.is_integer(indices.dtype):
        raise DTypeMismatch(f"{name}: indices must be integers, got {indices}.")
    if not indices.shape or indices.shape[-1] != len(index_map):
        raise ShapeMismatch(
            f"{name}: the last dimension of the indices must have size {len(index_map)}, got {indices}.",
            hint="it holds index vectors, one entry for each dimension that is indexed.",
        )
    for what, listed in (("inner", inner), ("dropped", dropped), ("operand batching", operand_batch)):
        if any(a >= b for a, b in pairwise(listed)):
            raise BadArgument(f"{name}: {what} dimensions must be sorted and distinct, got {listed} in {dims}.")
    apart = (*dropped, *operand_batch)
    if len({*apart}) != len(apart) or len({*index_map, *operand_batch}) != len(index_map) + len(operand_batch):
        raise BadArgument(f"{name}: dimensions of the operand must not be named twice, got {dims}.")
    if any(not 0 <= d < rank for d in (*apart, *index_map)) or len(window) != rank:
        raise BadArgument(f"{name}: dimension numbers and window {window} must fit {operand}, got {dims}.")
    if any(not 0 <= w <= n for w, n in zip(window, operand.shape)) or any(window[d] > 1 for d in apart):
        raise ShapeMismatch(
            f"{name}: a window must fit into the operand, and have size 1 in a dropped dimension;"
            f" got {window} for {operand}."
        )
    if len(inner) != rank - len(apart):
        raise BadArgument(f"{name}: a window has {rank - len(apart)} dimensions, got {inner} for them.")
    if len(operand_batch) != len(indices_batch) or any(not 0 <= d < len(indices.shape) - 1 for d in indices_batch):
        raise BadArgument(f"{name}: batching dimensions must come in pairs, got {dims}.")
    if any(operand.shape[a] != indices.shape[b] for a, b in zip(operand_batch, indices_batch)):
        raise ShapeMismatch(
            f"{name}: batching dimensions must have equal sizes, got {dims} for {operand} and {indices}."
        )


def gathered_shape(dims: GatherDimensionNumbers, indices: Shape, window: Shape) -> Shape:
    """The shape of a gather's result: windows at the offset dimensions, index vectors elsewhere."""
    inner = iter([window[d] for d in window_dims(dims, len(window))])
    outer = iter(indices[:-1])
    rank = len(indices) - 1 + len(dims[0])
    return tuple([next(inner) if d in dims[0] else next(outer) for d in range(rank)])


class Windows(NamedTuple):
    """Windows as NumPy sees them: the operand, its dimensions in another order, indexed along the first of them.

    ``order`` puts the dimensions that are indexed first; ``places`` are arrays for these, of the shape of the index
    vectors, then of the window along these. Dimensions that a window covers wholly follow and take no index.
    ``valid`` tells which windows lie inside; ``axes[k]`` is where the window's k-th dimension stands.
    """

    order: list[int]
    places: list[Data]
    valid: Data
    axes: list[int]


def windows(dims: Sequence[Any], shape: Shape, indices: Data, window: Shape) -> Windows:
    """Where the windows lie; those that don't lie inside are clipped."""
    index_map, operand_batch, indices_batch = dims[2:]
    batch = indices.shape[:-1]
    starts: dict[int, Data] = {}
    valid = np.ones(batch, bool)
    for k, d in enumerate(index_map):
        start, last = indices[..., k], shape[d] - window[d]
        if start.dtype == np.uint64:  # its largest numbers would become negative
            start = np.minimum(start, np.uint64(2**62))
        start = start.astype(np.int64)
        valid &= (start >= 0) & (start <= last)
        starts[d] = np.clip(start, 0, last)
    for d, b in zip(operand_batch, indices_batch):
        line = np.arange(batch[b]).reshape([-1 if i == b else 1 for i in range(len(batch))])
        starts[d] = np.broadcast_to(line, batch)
    kept = window_dims(dims, len(shape))
    whole = [d for d in kept if d not in starts and window[d] == shape[d]]
    indexed = [d for d in range(len(shape)) if d not in whole]
    inner = [d for d in indexed if d in kept]
    index = []
    for d in indexed:
        start = starts.get(d, np.zeros(batch, np.int64)).reshape((*batch, *(1,) * len(inner)))
        if d in inner:
            start = start + np.arange(window[d]).reshape([-1 if e == d else 1 for e in inner])
        index.append(np.broadcast_to(start, (*batch, *[window[e] for e in inner])))
    axes = [(inner + whole).index(d) for d in kept]
    return Windows(indexed + whole, index, valid, axes)


def _only_axis(dims: GatherDimensionNumbers, shape: Shape, indices: Data, window: Shape) -> int | None:
    """The axis ``d`` where the windows are ``x[.., i, ..]`` for one ``i`` on it, and its place is the indices'."""
    inner, dropped, index_map, *batching = dims
    if len(index_map) != 1 or dropped != index_map or batching != [(), ()] or indices.dtype == np.uint64:
        return None
    axis, count = index_map[0], len(indices.shape) - 1
    if not shape[axis] or window != (*shape[:axis], 1, *shape[axis + 1 :]):
        return None
    return axis if inner == (*range(axis), *range(axis + count, len(shape) - 1 + count)) else None


def _rows(x: Data, places: Data, axis: int, fill: Any) -> Data:
    """``x[.., places, ..]``, what most gathers are; NumPy brings the places inside itself."""
    y = x.take(places, axis, mode="clip")
    if fill is None:
        return y
    valid = (places >= 0) & (places < x.shape[axis])
    if valid.all():
        return y
    return np.where(valid.reshape((*valid.shape, *(1,) * (x.ndim - axis - 1))), y, np.asarray(fill).astype(x.dtype))


def take(dims: GatherDimensionNumbers, x: Data, indices: Data, window: Shape, fill: Any = None) -> Data:
    """Windows of ``x``; with ``fill``, this in place of windows that do not lie inside."""
    rank = len(window)
    axis = _only_axis(dims, x.shape[:rank], indices, window)
    if axis is not None:
        return _rows(x, indices[..., 0], axis, fill)
    order, index, valid, axes = windows(dims, x.shape[:rank], indices, window)
    x = x.transpose((*order, *range(rank, x.ndim)))
    count = len(indices.shape) - 1
    y = x[tuple(index)] if index else np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    if fill is not None and not valid.all():
        y = np.where(valid.reshape((*valid.shape, *(1,) * (y.ndim - count))), y, np.asarray(fill).astype(x.dtype))
    inner = iter([count + axis for axis in axes])
    outer = iter(range(count))
    made = [next(inner) if d in dims[0] else next(outer) for d in range(count + len(axes))]
    return y.transpose((*made, *range(len(made), y.ndim)))


def put(
    dims: ScatterDimensionNumbers, x: Data, indices: Data, updates: Data, combine: np.ufunc | None, drop: bool
) -> Data:
    """A copy of ``x``, its windows combined with the updates in row-major order of the index vectors.

    Where ``combine`` is None, the last update at a place stays. ``drop`` leaves out windows that do not lie inside.
    """
    rank = len(dims[0]) + len(dims[1]) + len(dims[3])
    shape, words = x.shape[:rank], x.shape[rank:]
    if x.size == 0 or updates.size == 0:
        return x
    window = window_sizes(dims, shape, updates.shape)
    order, index, valid, axes = windows(dims, shape, indices, window)
    outer = outer_dims(dims, updates.ndim - len(words))
    inner = [dims[0][axes.index(k)] for k in range(len(axes))]
    updates = updates.transpose((*outer, *inner, *range(updates.ndim - len(words), updates.ndim)))
    y = np.array(x.transpose((*order, *range(rank, x.ndim))), order="C")
    sizes = y.shape[: len(index)]
    # one number for each place: a single index is what ufunc.at is fast for
    flat = np.ravel_multi_index(tuple(index), sizes) if index else np.zeros(indices.shape[:-1], np.int64)
    if drop and not valid.all():
        flat, updates = flat[valid], updates[valid]
    rows = y.reshape((prod(sizes), *y.shape[len(index) :]))
    places = flat.reshape(-1)
    parts = updates.reshape((places.size, *rows.shape[1:]))
    if combine is None:
        rows[places] = parts
    else:
        combine.at(rows, places, parts)
    back = np.argsort([*order, *range(rank, x.ndim)])
    return rows.reshape(y.shape).transpose(back)
