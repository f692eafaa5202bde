"""Elements over and over: repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects import shapes
from ..effects.arrays import Array, ConcreteArray
from ..effects.conversion import convert
from ..effects.cumulative import cumsum
from ..effects.errors import BadArgument, ConcretizationError, ShapeMismatch
from ..effects.indexing import ScatterAdd
from ..effects.refusals import no_sharding
from ..effects.stack import perform
from ..effects.windows import ScatterDimensionNumbers
from .indexing import take
from .operands import rows_of
from .subscripts import FILL, INT32


def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Any:
    """Each slice of ``a`` along ``axis`` ``repeats`` times, one number or one for each; flattened for ``axis=None``.

    With ``total_repeat_length`` the result has that size, cut off, or filled up with the last slice; it is needed where
    the values of ``repeats`` are not known.

    >>> repeat(np.array([1, 2], "int32"), np.array([2, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    no_sharding("repeat", out_sharding)
    x, axis = rows_of(a, axis, "repeat", one=True)
    n = x.shape[axis]
    known = not isinstance(repeats, Array) or isinstance(repeats, ConcreteArray)
    if not known and total_repeat_length is None:
        raise ConcretizationError(
            f"repeat: the size of the result must be known, got repeats {repeats.type}.",
            hint="name it: total_repeat_length=n.",
        )
    counts: Any = np.atleast_1d(np.asarray(repeats)) if known else repeats
    if counts.ndim > 1 or (counts.size not in (1, n)):
        raise ShapeMismatch(f"repeat: one number, or {n} for axis {axis}, are needed, got shape {counts.shape}.")
    if known:
        if counts.size and counts.min() < 0:
            raise BadArgument("repeat: numbers of repeats must not be negative.")
        if counts.size == 1 and (total_repeat_length is None or total_repeat_length == n * int(counts[0])):
            return _evenly(x, int(counts[0]), axis)
        source = np.repeat(np.arange(n), counts)
        if total_repeat_length is not None:
            more = total_repeat_length - source.size
            source = np.pad(source, (0, max(more, 0)), constant_values=max(n - 1, 0))[:total_repeat_length]
        return take(x, source, axis, mode="clip", indices_are_sorted=True)
    counts = convert(shapes.broadcast(counts, (n,)) if counts.shape != (n,) else counts, INT32)
    source = _sources(counts, n, total_repeat_length)  # type: ignore[arg-type]
    return take(x, source, axis, mode="clip", indices_are_sorted=True)


def _evenly(x: Any, count: int, axis: int) -> Any:
    shape = x.shape
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    spread = shapes.broadcast_in_dim(x, wide, tuple([d + (d > axis) for d in range(x.ndim)]))
    return shapes.reshape(spread, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _sources(counts: Any, n: int, total: int) -> Any:
    """Position ``j`` of the result comes from the slice whose number is how many end at or before ``j``."""
    ends = shapes.reshape(cumsum(counts), (n, 1))
    one, none = shapes.full(counts.type, 1), shapes.full(counts.type.update(shape=(total,)), 0)
    op = ScatterAdd(ScatterDimensionNumbers((), (0,), (0,)), True, False, FILL)
    return cumsum(perform(op, none, ends, one))
