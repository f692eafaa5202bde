"""Rows moved to other places, each at most once, with padding between them: the map whose adjoint moves them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import scalar
from ...core.columns import data_movement, linear_in
from ...core.operation import operation, shared
from ...sharding.sharding_rules import ShardingRule, numbered
from ...types import dtypes
from ...types.array_type import array_type
from ..elementwise.bitwise import bitwise_not
from ..elementwise.comparison import lt, select
from ..foundations.half_precision import in_bytes
from ..foundations.shapes import broadcast_in_dim, reshape
from ..foundations.shapes import zeros as zeros_of
from ..manipulation.creation import iota
from ..manipulation.slicing import axis_at, concatenate, lane_count, slice_in_dim, split
from .gather_scatter import Gather
from .gather_windows import GatherDimensionNumbers, GatherScatterMode


# y[j] = x[index[j]] where index[j] >= 0; elsewhere 0, or with ``copies`` x[~index[j]], which has no cotangent.
# No row is met twice, and ``inverse`` is the index of the map back: y'[i] = y[inverse[i]].
# x is the operands one after the other, and the results are y in pieces of these sizes.
@operation
class Relocate:
    sizes: tuple[int, ...]
    copies: bool = False
    dtypes = dtypes.ANY
    multiple_results = True

    def result_type(op, index, inverse, *xs):
        first = xs[0]
        if any([x.shape[1:] != first.shape[1:] or x.dtype != first.dtype or not x.shape for x in xs]):
            raise ShapeMismatch(f"relocate: rows have one type, got {', '.join(map(str, xs))}.")
        if index.shape != (sum(op.sizes),) or inverse.shape != (sum([x.shape[0] for x in xs]),):
            raise ShapeMismatch(
                f"relocate: needs an index for each of {sum(op.sizes)} results, and one back for each row of "
                f"{', '.join(map(str, xs))}, got {index} and {inverse}."
            )
        if not dtypes.is_integer(index.dtype) or inverse.dtype != index.dtype:
            raise DTypeMismatch(f"relocate: indices must be integers of one dtype, got {index} and {inverse}.")
        return tuple([array_type((size, *first.shape[1:]), first.dtype, first.weak) for size in op.sizes])

    def sharding_rule(op, operands, results):
        rows = lambda t: [0, *numbered(t)[1:]]
        return ShardingRule([*map(rows, operands)], [*map(rows, results)], whole={0})

    @in_bytes
    def evaluate(op, index, inverse, *xs):
        x = xs[0] if len(xs) == 1 else np.concatenate(xs)
        y = x[np.where(index < 0, ~index, index)] if len(x) else np.zeros((len(index), *x.shape[1:]), x.dtype)
        if not op.copies:
            y[index < 0] = 0
        return tuple(np.split(y, np.cumsum(op.sizes)[:-1])) if len(op.sizes) > 1 else (y,)

    def batch(op, dims, index, inverse, *xs):
        size = lane_count((index, inverse, *xs), dims)
        if dims[:2] == (None, None):  # the lanes are part of each row
            return perform(op, index, inverse, *[axis_at(x, d, 1, size) for x, d in zip(xs, dims[2:])]), 1
        index, inverse, *rows_of = [axis_at(v, d, 0, size) for v, d in zip((index, inverse, *xs), dims)]
        x = concatenate(rows_of, 1)
        count, rows = index.type.shape[1], x.type.shape[1]
        x = reshape(x, (size * rows, *x.type.shape[2:]))
        y = relocate(x, _in_lanes(index, rows), _in_lanes(inverse, count), op.copies)
        return split(reshape(y, (size, count, *y.type.shape[1:])), op.sizes, 1), 0

    def jvp(op, primals, tangents):
        return linear_in(*range(2, len(primals)))(op, primals, tangents)

    def transpose(op, cts, index, inverse, *xs, wrt):
        """The cotangent of one operand: from the results, by the part of ``inverse`` for its rows."""
        x = xs[wrt - 2]
        start, size = sum([x.shape[0] for x in xs[: wrt - 2]]), x.shape[0]
        if len(xs) > 1:
            inverse = slice_in_dim(inverse, start, start + size)
            zero, end = [scalar(i, index.type.dtype) for i in (0, size)]
            index = index - start
            index = select(lt(index, zero) | (index >= end), index * 0 - 1, index)
        cts = [zeros_of(x.update(shape=(n, *x.shape[1:]))) if ct is None else ct for ct, n in zip(cts, op.sizes)]
        return perform(shared(Relocate, (size,), False), inverse, index, *cts)[0]

    def decompose(op, index, inverse, *xs):
        return tuple(_gathered(op, index, concatenate(xs, 0)))

    flops = data_movement


def _in_lanes(index: Any, rows: int) -> Any:
    """Row indices of each lane as indices into the rows of all lanes, concatenated; negative ones stay negative."""
    size, count = index.type.shape
    start = iota(index.type.dtype, size) * rows
    start = broadcast_in_dim(start, (size, count), (0,))
    return reshape(select(lt(index, 0), index - start, index + start), (size * count,))


def _gathered(op: Any, index: Any, x: Any) -> list[Any]:
    """The result of each operand, by a gather of its own, so that XLA can fuse it with what uses the result."""
    if not x.type.shape[0]:  # all results are padding
        return [zeros_of(x.type.update(shape=(size, *x.type.shape[1:]))) for size in op.sizes]
    numbers = GatherDimensionNumbers(tuple(range(1, len(x.type.shape))), (0,), (0,))
    gather = Gather(numbers, (1, *x.type.shape[1:]), mode=GatherScatterMode.CLIP)
    results = []
    for at in split(index, op.sizes):
        none = lt(at, 0)
        y = perform(gather, x, reshape(select(none, bitwise_not(at), at), (*at.type.shape, 1)))
        mask = broadcast_in_dim(none, y.type.shape, (0,))
        results.append(y if op.copies else select(mask, zeros_of(y.type), y))
    return results


def relocate(x: Any, index: Any, inverse: Any, copies: bool = False) -> Any:
    """The rows of ``x`` at the places of ``index``, which meets each at most once; ``inverse`` is the index back.

    A negative index ``~i`` is padding: 0, or with ``copies`` row ``i``, whose cotangent is taken to be 0.
    """
    return relocated([x], index, inverse, index.type.shape, copies)[0]


def relocated(xs: Sequence[Any], index: Any, inverse: Any, sizes: Sequence[int], copies: bool = False) -> Any:
    """``relocate`` of the concatenation of arrays, the result cut into pieces of these sizes."""
    return perform(shared(Relocate, tuple(sizes), copies), index, inverse, *xs)


def take_rows(x: Any, index: Any, ordered: bool = True) -> Any:
    """``y[j] = x[index[j]]``, clamped, for an index that may meet a row several times; ``ordered``: it is sorted.

    The adjoint is a sum of rows, a sorted one of a sorted index.
    """
    rank = len(x.type.shape)
    numbers = GatherDimensionNumbers(tuple(range(1, rank)), (0,), (0,))
    window = (1, *x.type.shape[1:])
    return perform(Gather(numbers, window, False, ordered, GatherScatterMode.CLIP), x, index_column(index))


def index_column(index: Any) -> Any:
    """The index of rows as ``Gather`` and the scatter functions take it."""
    return reshape(index, (*index.type.shape, 1))
