"""Statistics of samples: the most frequent value, ranks, the standard error of the mean."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ... import numpy as hnp
from ...effects.base.errors import BadArgument
from ...effects.core.arrays import Array
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.types.dtypes import default_float, default_int, is_floating
from ...interpreters.core.eager_programs import programs
from ...interpreters.transformations.vmap import vmap
from ...numpy.arrays.argument_conversion import inexact
from ..special import formulas

__all__ = ["mode", "rankdata", "sem"]

RANKS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The result of ``mode``: the most frequent values, and their counts."""

    mode: Array
    count: Array  # type: ignore[assignment]  # as in JAX, in place of the tuple's method


def _row_mode(row: Any) -> tuple[Any, Any]:
    """The least of the most frequent values of a vector, and its count; NaNs count as one value, the largest."""
    row = hnp.sort(row)
    counts = hnp.searchsorted(row, row, side="right") - hnp.searchsorted(row, row, side="left")
    index = hnp.argmax(counts)
    return row[index], counts[index]


def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, the least if several are, and its count; of all values if axis is None.

    Raises: BadArgument: ``nan_policy`` is not "propagate".

    >>> mode([3, 1, 3, 2]).mode.tolist(), mode([3, 1, 3, 2]).count.tolist()
    (3, 2)
    """
    if nan_policy != "propagate":
        raise BadArgument(f'mode: nan_policy must be "propagate", got {nan_policy!r}.')
    a = hnp.asarray(a)
    rank = a.ndim
    if axis is None or not rank:
        a, axis, rank = a.reshape(-1), 0, rank if keepdims else 1
        shape: tuple[int, ...] = (1,) * rank if keepdims else ()
    else:
        axis = canonical_axis(axis, rank, "mode")
        shape = tuple([1 if d == axis else n for d, n in enumerate(a.shape) if keepdims or d != axis])
    if not a.shape[axis]:
        dtype = hnp.promote_types(inexact(a).dtype, default_float())
        return ModeResult(hnp.full(shape, math.nan, dtype), hnp.zeros(shape, dtype))
    rows = hnp.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])
    values, counts = vmap(_row_mode)(rows)
    return ModeResult(values.reshape(shape), counts.reshape(shape).astype(default_int()))


def _row_ranks(row: Any, method: str) -> Any:
    """The ranks of the values of a vector without NaN, from 1 on, by one of the methods of ``rankdata``."""
    order = hnp.argsort(row)
    ordinal = hnp.argsort(order) + 1
    if method == "ordinal":
        return ordinal
    ordered = row[order]
    first = hnp.concatenate([hnp.ones(1, bool), ordered[1:] != ordered[:-1]])
    dense = hnp.cumsum(first)[ordinal - 1]
    if method == "dense":
        return dense
    low, high = hnp.searchsorted(ordered, row, side="left") + 1, hnp.searchsorted(ordered, row, side="right")
    return low if method == "min" else high if method == "max" else (low + high) / 2


def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The ranks of values along an axis, from 1 on, or among all values if axis is None; NaN beside a NaN.

    Args:
        method: the rank of equal values: the "average", "min" or "max" of their positions in sorted order; "dense":
            the next integer after the rank of the next smaller value; "ordinal": all ranks differ, in the given order.

    Raises: BadArgument: another method; ``nan_policy`` is not "propagate".

    >>> rankdata([0, 2, 3, 2]).tolist()
    [1.0, 2.5, 4.0, 2.5]
    """
    if nan_policy != "propagate" or method not in RANKS:
        raise BadArgument(
            f'rankdata: nan_policy must be "propagate", method of {", ".join(RANKS)}, got {nan_policy!r}, {method!r}.'
        )
    a = hnp.asarray(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    dtype = hnp.promote_types(inexact(a).dtype, default_float())
    if not a.size:
        return hnp.zeros(a.shape, dtype)
    rows = hnp.moveaxis(a, axis, -1)
    ranks = vmap(lambda row: _row_ranks(row, method))(rows.reshape(-1, rows.shape[-1]))
    ranks = ranks.reshape(rows.shape).astype(dtype)
    if is_floating(a.dtype):
        ranks = hnp.where(hnp.isnan(rows).any(-1, keepdims=True), hnp.nan, ranks)
    return hnp.moveaxis(ranks, -1, axis)


@formulas.free_promotion
def sem(
    a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: ``std(a, ddof=ddof) / sqrt(n)`` along an axis, without NaNs if policy is "omit".

    >>> sem([1.0, 3.0])
    Array(1., dtype=float32)
    """
    a = hnp.asarray(a)
    a = a.astype(hnp.result_type(a, float))
    size = a.size if axis is None else a.shape[canonical_axis(axis, a.ndim, "sem")]
    if nan_policy == "omit":
        count = hnp.sum(~hnp.isnan(a), axis, keepdims=keepdims)
        return hnp.nanstd(a, axis, ddof=ddof, keepdims=keepdims) / hnp.sqrt(count.astype(a.dtype))
    if nan_policy != "propagate":
        raise BadArgument(f'sem: nan_policy must be "propagate" or "omit", got {nan_policy!r}.')
    return hnp.std(a, axis, ddof=ddof, keepdims=keepdims) / math.sqrt(size)


programs(globals())
