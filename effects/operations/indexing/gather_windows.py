"""What gather and scatter share: dimension numbers, out-of-bounds modes, and their meaning in NumPy.

Both access windows of an operand. An index vector is the start of a window in the operand's dimensions that are
indexed. The names are those of the StableHLO specification (gather, scatter) as JAX has them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ...types import dtypes
from ...types.array_type import ArrayType, Shape
from ...types.extent import fits, single

Data = np.ndarray[Any, Any]


class GatherDimensionNumbers(NamedTuple):
    """How the dimensions of operand, start indices and result of ``gather`` correspond.

    Attributes:
        offset_dims: dimensions of the result that are those of a window, in order.
        collapsed_slice_dims: dimensions of the operand that have size 1 in a window and are left out.
        start_index_map: the operand's dimension that each entry of an index vector is for.
        operand_batching_dims, start_indices_batching_dims: pairs of batch dimensions.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the dimensions of operand, scatter indices and updates of ``scatter`` correspond.

    Attributes:
        update_window_dims: dimensions of the updates that are those of a window, in order.
        inserted_window_dims: dimensions of the operand that have size 1 in a window and that updates lack.
        scatter_dims_to_operand_dims: the operand's dimension that each entry of an index vector is for.
        operand_batching_dims, scatter_indices_batching_dims: pairs of batch dimensions.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """How a window that is partly outside the operand is treated.

    ``CLIP`` clamps its start; ``FILL_OR_DROP`` gathers a fill value for all of it, or scatters nothing of it;
    ``PROMISE_IN_BOUNDS`` is a promise that there is none: gather would clip it, scatter drop it; ``ONE_HOT`` gathers
    zeros, as a product with one-hot vectors does. ``MARKED`` is ``FILL_OR_DROP`` with marks: the places one before the
    first window and one behind the last say that there is none, and are not out of bounds.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()
    MARKED = enum.auto()

    @property
    def fills(self) -> bool:
        """Whether a gather has the fill value in place of a window that is partly outside."""
        return self in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.MARKED)

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
}


def gathering(dims: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The dimension numbers by which gather reads the windows that scatter writes."""
    return GatherDimensionNumbers(*dims)


def scattering(dims: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The dimension numbers by which scatter writes the windows that gather reads."""
    return ScatterDimensionNumbers(*dims)


def window_dims(dims: Sequence[Any], rank: int) -> list[int]:
    """The dimensions of the operand that a window has: those neither dropped nor batched."""
    return [d for d in range(rank) if d not in dims[1] and d not in dims[3]]


def outer_dims(dims: Sequence[Any], rank: int) -> list[int]:
    """The dimensions of a gather's result, or a scatter's updates, that are those of the array of index vectors."""
    return [d for d in range(rank) if d not in dims[0]]


def window_sizes(dims: ScatterDimensionNumbers, operand: Shape, updates: Shape) -> Shape:
    """The sizes of a scattered window in every dimension of the operand."""
    sizes = iter([updates[d] for d in dims[0]])
    in_window = window_dims(dims, len(operand))
    return tuple([next(sizes) if d in in_window else single(n) for d, n in enumerate(operand)])


def check_dimension_numbers(
    name: str, dims: Sequence[Any], operand: ArrayType, indices: ArrayType, window: Shape
) -> None:
    """Raise ShapeMismatch, BadArgument or DTypeMismatch unless dimension numbers, types and window agree."""
    inner, dropped, index_map, operand_batch, indices_batch = dims
    rank = len(operand.shape)
    if not dtypes.is_integer(indices.dtype):
        raise DTypeMismatch(f"{name}: indices must be integers, got {indices}.")
    if not indices.shape or indices.shape[-1] != len(index_map):
        raise ShapeMismatch(
            f"{name}: the last dimension of the indices must have size {len(index_map)}, got {indices}.",
            hint="an index vector has one entry for each dimension that is indexed.",
        )
    for what, listed in (("inner", inner), ("dropped", dropped), ("operand batching", operand_batch)):
        if any(a >= b for a, b in pairwise(listed)):
            raise ShapeMismatch(f"{name}: {what} dimensions must be sorted and distinct, got {listed} in {dims}.")
    excluded = (*dropped, *operand_batch)
    if len({*excluded}) != len(excluded) or len({*index_map, *operand_batch}) != len(index_map) + len(operand_batch):
        raise ShapeMismatch(f"{name}: dimensions of the operand must not be named twice, got {dims}.")
    if any(not 0 <= d < rank for d in (*excluded, *index_map)) or len(window) != rank:
        raise ShapeMismatch(f"{name}: dimension numbers and window {window} must fit {operand}, got {dims}.")
    if any(not (w >= 0 and fits(w, n)) for w, n in zip(window, operand.shape)) or any(window[d] > 1 for d in excluded):
        raise ShapeMismatch(
            f"{name}: a window must fit into the operand, and have size 1 in a dropped dimension;"
            f" got {window} for {operand}."
        )
    if len(inner) != rank - len(excluded):
        raise ShapeMismatch(f"{name}: a window has {rank - len(excluded)} dimensions, got {inner} for them.")
    if len(operand_batch) != len(indices_batch) or any(not 0 <= d < len(indices.shape) - 1 for d in indices_batch):
        raise ShapeMismatch(f"{name}: batching dimensions must come in pairs, got {dims}.")
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


class WindowIndices(NamedTuple):
    """Windows as index arrays for NumPy: ``operand.transpose(order)[tuple(indices)]``.

    ``order`` has the indexed dimensions of the operand first, then those that every window covers completely.
    ``indices`` has an array for each indexed dimension, of the shape of the array of index vectors followed by the
    sizes of a window in the indexed dimensions. ``valid``: which windows lie inside the operand. ``axes[k]``: the
    position of the window's k-th dimension among the dimensions that follow those of the index vectors.
    """

    order: list[int]
    indices: list[Data]
    valid: Data
    axes: list[int]


def window_indices(dims: Sequence[Any], shape: Shape, indices: Data, window: Shape) -> WindowIndices:
    """The indices of all windows, those that are not inside the operand clipped to it."""
    index_map, operand_batch, indices_batch = dims[2:]
    batch = indices.shape[:-1]
    starts: dict[int, Data] = {}
    valid = np.ones(batch, bool)
    for k, d in enumerate(index_map):
        start, last = indices[..., k], shape[d] - window[d]
        if start.dtype == np.uint64:  # its largest values would become negative as int64
            start = np.minimum(start, np.uint64(2**62))
        start = start.astype(np.int64)
        valid &= (start >= 0) & (start <= last)
        starts[d] = np.clip(start, 0, last)
    for d, b in zip(operand_batch, indices_batch):
        line = np.arange(batch[b]).reshape([-1 if i == b else 1 for i in range(len(batch))])
        starts[d] = np.broadcast_to(line, batch)
    in_window = window_dims(dims, len(shape))
    covered = [d for d in in_window if d not in starts and window[d] == shape[d]]
    indexed = [d for d in range(len(shape)) if d not in covered]
    inner = [d for d in indexed if d in in_window]
    index = []
    for d in indexed:
        start = starts.get(d, np.zeros(batch, np.int64)).reshape((*batch, *(1,) * len(inner)))
        if d in inner:
            start = start + np.arange(window[d]).reshape([-1 if e == d else 1 for e in inner])
        index.append(np.broadcast_to(start, (*batch, *[window[e] for e in inner])))
    axes = [(inner + covered).index(d) for d in in_window]
    return WindowIndices(indexed + covered, index, valid, axes)


def _take_axis(dims: GatherDimensionNumbers, shape: Shape, indices: Data, window: Shape) -> int | None:
    """The axis for which the gather is ``x.take(indices, axis)``, or None."""
    inner, dropped, index_map, *batching = dims
    if len(index_map) != 1 or dropped != index_map or batching != [(), ()] or indices.dtype == np.uint64:
        return None
    axis, count = index_map[0], len(indices.shape) - 1
    if not shape[axis] or window != (*shape[:axis], 1, *shape[axis + 1 :]):
        return None
    return axis if inner == (*range(axis), *range(axis + count, len(shape) - 1 + count)) else None


def _rows(x: Data, index: Data, axis: int, fill: Any) -> Data:
    """``x.take(index, axis)`` clipped, with ``fill`` (None: no) where the index is out of bounds."""
    y = x.take(index, axis, mode="clip")
    if fill is None:
        return y
    valid = (index >= 0) & (index < x.shape[axis])
    if valid.all():
        return y
    return np.where(valid.reshape((*valid.shape, *(1,) * (x.ndim - axis - 1))), y, np.asarray(fill).astype(x.dtype))


def evaluate_gather(dims: GatherDimensionNumbers, x: Data, indices: Data, window: Shape, fill: Any = None) -> Data:
    """The NumPy meaning of gather: windows of ``x``; with ``fill``, that value for windows that are not inside."""
    rank = len(window)
    if not x.size:
        shape = (*gathered_shape(dims, indices.shape, window), *x.shape[rank:])
        return np.full(shape, 0 if fill is None else fill).astype(x.dtype)
    axis = _take_axis(dims, x.shape[:rank], indices, window)
    if axis is not None:
        return _rows(x, indices[..., 0], axis, fill)
    order, index, valid, axes = window_indices(dims, x.shape[:rank], indices, window)
    x = x.transpose((*order, *range(rank, x.ndim)))
    count = len(indices.shape) - 1
    y = x[tuple(index)] if index else np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    if fill is not None and not valid.all():
        y = np.where(valid.reshape((*valid.shape, *(1,) * (y.ndim - count))), y, np.asarray(fill).astype(x.dtype))
    inner = iter([count + axis for axis in axes])
    outer = iter(range(count))
    back = [next(inner) if d in dims[0] else next(outer) for d in range(count + len(axes))]
    return y.transpose((*back, *range(len(back), y.ndim)))


def evaluate_scatter(
    dims: ScatterDimensionNumbers, x: Data, indices: Data, updates: Data, combine: np.ufunc | None, drop: bool
) -> Data:
    """The NumPy meaning of scatter: ``x`` with windows combined with updates, in row-major order of the index vectors.

    Where ``combine`` is None, the last update of an element wins. ``drop``: windows that are not inside are left out.
    """
    rank = len(dims[0]) + len(dims[1]) + len(dims[3])
    shape, key_data = x.shape[:rank], x.shape[rank:]
    if x.size == 0 or updates.size == 0:
        return x
    window = window_sizes(dims, shape, updates.shape)
    order, index, valid, axes = window_indices(dims, shape, indices, window)
    outer = outer_dims(dims, updates.ndim - len(key_data))
    inner = [dims[0][axes.index(k)] for k in range(len(axes))]
    updates = updates.transpose((*outer, *inner, *range(updates.ndim - len(key_data), updates.ndim)))
    y = np.array(x.transpose((*order, *range(rank, x.ndim))), order="C")
    sizes = y.shape[: len(index)]
    # flat indices, as ufunc.at is fast for a single index array only
    flat = np.ravel_multi_index(tuple(index), sizes) if index else np.zeros(indices.shape[:-1], np.int64)
    if drop and not valid.all():
        flat, updates = flat[valid], updates[valid]
    rows = y.reshape((prod(sizes), *y.shape[len(index) :]))
    flat = flat.reshape(-1)
    updates = updates.reshape((flat.size, *rows.shape[1:]))
    if combine is None:
        rows[flat] = updates
    else:
        combine.at(rows, flat, updates)
    back = np.argsort([*order, *range(rank, x.ndim)])
    return rows.reshape(y.shape).transpose(back)
