"""Selecting elements by functions: take, take_along_axis, choose, compress, extract, select."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...effects.base.errors import (
    BadArgument,
    BadIndex,
    ConcretizationError,
    DTypeMismatch,
    ShapeMismatch,
    as_tuple,
    need_one_of,
)
from ...effects.base.stack import perform
from ...effects.core.arrays import Array, as_array
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.indexing.gather_windows import GatherDimensionNumbers
from ...effects.operations.manipulation import slicing
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, promote
from ...interpreters.core.eager_programs import programs
from ...lowering.arrays.device_put import put_like
from .argument_conversion import no_out, rows_of
from .index_arrays import flatnonzero, known, need_known, where
from .index_reading import FILL, INT32, gathered, limited, mode_of, on_host, positions, reader, wrapped
from .shape_manipulation import broadcast_to, ravel

__all__ = ["choose", "compress", "extract", "select", "take", "take_along_axis"]


def take(
    a: Any, indices: Any, axis: int | None = None, out: None = None, mode: Any = None, unique_indices: bool = False,
    indices_are_sorted: bool = False, fill_value: Any = None,
) -> Array:
    """``take(x, i, axis=0)[j] == x[i[j]]``; of the flattened array for ``axis=None``.

    Indices out of bounds read ``fill_value`` (``mode="fill"``, the default; NaN, or the dtype's least number, unless
    given), the nearest element (``clip``), or wrap around (``wrap``).

    >>> take(np.array([1.0, 2.0, 3.0], "float32"), np.array([0, -1, 5]))
    Array([ 1.,  3., nan], dtype=float32)
    """
    no_out(out, "take")
    x, axis = rows_of(a, axis, "take")
    n = x.type.shape[axis]
    i, left = limited(positions(indices, "take"), n, mode, "take")
    if not n and i.size:
        raise BadIndex(f"take: there is nothing to take on an axis of size 0, got {x.type}, axis {axis}.")
    return gathered(x, [i], [n], [axis], i.shape, axis, left, fill_value, indices_are_sorted, unique_indices)


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, fill_value: Any = None, *,
    wrap_negative_indices: bool = True,
) -> Array:
    """``take_along_axis(x, i, axis=1)[a, b] == x[a, i[a, b]]``; all other axes broadcast.

    Negative indices count from the end in every mode, unless ``wrap_negative_indices`` is false.

    >>> take_along_axis(np.array([[3, 4], [5, 6]], "int32"), np.array([[1], [0]]), axis=1)
    Array([[4],
           [5]], dtype=int32)
    """
    x = as_array(arr)
    i = positions(indices, "take_along_axis")
    if axis is None:
        x, axis = shapes.reshape(x, (x.size,)), 0
        if i.ndim != 1:
            raise ShapeMismatch(f"take_along_axis: axis=None needs a vector of indices, got shape {i.shape}.")
    rank = x.ndim
    if i.ndim != rank:
        raise ShapeMismatch(f"take_along_axis: array and indices must have one rank, got {x.type} and shape {i.shape}.")
    axis = canonical_axis(axis, rank, "take_along_axis")
    n = x.shape[axis]
    if wrap_negative_indices and mode == "clip":
        i = wrapped(i, n)
    if mode in ("wrap", "clip") or wrap_negative_indices:
        i, left = limited(i, n, mode, "take_along_axis")
    else:
        left = mode_of(mode, FILL)
    made = broadcast_shape("take_along_axis", (*x.shape[:axis], 1, *x.shape[axis + 1 :]), i.shape)
    if not prod(made):
        return put_like(shapes.full(x.type.update(shape=made), 0), x)
    return _along(x, as_array(i), axis, left, fill_value)


def _along(x: Any, i: Any, axis: int, mode: Any, fill: Any) -> Any:
    """``take_along_axis`` as one gather.

    An axis of equal size in ``x`` and ``i`` is a batch axis; where ``i`` has size 1 the whole axis of ``x`` is read.
    """
    pairs, windows, single, outer = [], [], [axis], []
    sizes = [1] * x.ndim
    for d, (n, m) in enumerate(zip(x.shape, i.shape)):
        if d == axis:
            outer.append(d)
        elif m == 1 and n != 1:
            windows.append(d)
            sizes[d] = n
        else:
            outer.append(d)
            if n == m:
                pairs.append(d)
            else:
                single.append(d)
    index = shapes.reshape(i, (*[i.shape[d] for d in outer], 1))
    numbers = GatherDimensionNumbers(
        tuple(windows), tuple(sorted(single)), (axis,), tuple(pairs), tuple([outer.index(d) for d in pairs])
    )
    return perform(reader(x, numbers, tuple(sizes), False, False, mode, fill), x, index)


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: int | None = None, fill_value: Any = 0, out: None = None
) -> Array:
    """The slices of ``a`` along ``axis`` where ``condition`` is true; ``size`` pads with ``fill_value``.

    >>> compress(np.array([True, False, True]), np.array([1, 2, 3], "int32"))
    Array([1, 3], dtype=int32)
    """
    no_out(out, "compress")
    flags = as_array(condition)
    if flags.ndim != 1:
        raise ShapeMismatch(f"compress: the condition must be a vector, got {flags.type}.")
    x, axis = rows_of(a, axis, "compress")
    n = x.shape[axis]
    within = slicing.slice_in_dim(flags, 0, n) if flags.size > n else flags
    need_known("compress", "condition", flags, size)
    chosen = flatnonzero(within, size=size, fill_value=None if size is None else n)
    if size is None:
        if flags.size > n and slicing.slice_in_dim(flags, n, None).any():
            raise BadArgument(f"compress: the condition must not hold beyond the {n} slices, got {flags.type}.")
        return take(x, chosen, axis, mode="clip", indices_are_sorted=True, unique_indices=True)
    made = take(x, chosen, axis, mode="clip", indices_are_sorted=True)
    row = tuple([size if d == axis else 1 for d in range(x.ndim)])
    filled = shapes.reshape(chosen == convert(n, chosen.dtype), row)
    return where(filled, convert(fill_value, x.dtype, x.weak_type), made)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Array:
    """The elements of ``arr`` where ``condition`` is true, as a vector; see ``compress`` for ``size``.

    >>> extract(np.array([[True, False]]), np.array([[1, 2]], "int32"))
    Array([1], dtype=int32)
    """
    flags = as_array(condition)
    need_known("extract", "condition", flags, size)
    return compress(ravel(flags), ravel(arr), size=size, fill_value=fill_value)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """``choose(a, xs)[i] == xs[a[i]][i]``, all broadcast together.

    ``mode`` is what happens to indices out of bounds: ``raise`` (which needs concrete indices), ``clip`` or ``wrap``.

    >>> choose(np.array([1, 0]), [np.array([1, 2], "int32"), np.array([3, 4], "int32")])
    Array([3, 2], dtype=int32)
    """
    no_out(out, "choose")
    i, cases = as_array(positions(a, "choose")), promote(*as_tuple(choices, "choose", "choices"))
    n = len(cases)
    need_one_of("choose: mode", mode, ("raise", "clip", "wrap"))
    if mode == "raise":
        if not known(i):
            raise ConcretizationError(
                f"choose: indices must be known to be refused, got {i.type}.",
                hint="mode='clip' or 'wrap' takes unknown ones.",
            )
        values = np.asarray(i)
        if values.size and not ((values >= 0) & (values < n)).all():
            raise BadArgument(f"choose: indices must lie in [0, {n}).", hint="mode='clip' or 'wrap' allows others.")
    else:
        i = as_array(limited(on_host(i), n, mode, "choose")[0])
    made = broadcast_shape("choose", i.shape, *[x.shape for x in cases])
    return select_n(convert(broadcast_to(i, made), INT32), *[broadcast_to(x, made) for x in cases])


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """``x[i]`` of the first condition that holds at ``i``, else ``default``; all broadcast and promoted together.

    >>> select([np.array([True, False])], [np.array([1, 2], "int32")], 9)
    Array([1, 9], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ShapeMismatch(f"select: as many choices as conditions, got {len(choicelist)} and {len(condlist)}.")
    *choices, result = promote(*choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1]):
        c = as_array(condition)
        if c.dtype.kind != "b":
            raise DTypeMismatch(f"select: conditions must be boolean, got {c.type}.")
        result = where(c, choice, result)
    return result


programs(globals(), direct=("choose", "compress", "extract"))
