"""Ragged rules of operations that mix along the ragged axis: reductions, cumulative operations, sorts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...effects.base.stack import perform
from ...effects.control.callbacks import PureCallback
from ...effects.core.arrays import scalar
from ...effects.core.operation import shared
from ...effects.operations.elementwise.bitwise import bitwise_not, bitwise_or
from ...effects.operations.elementwise.comparison import eq, lt, ne, select
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import Reduction, broadcast_in_dim, full, move_axis
from ...effects.operations.manipulation.last_axes import OnLastAxes
from ...effects.operations.manipulation.slicing import pad
from ...effects.operations.reductions.cumulative import Cumulative
from ...effects.operations.reductions.generic_reduce import Reduce
from ...effects.operations.reductions.reductions import ArgExtreme, lowest
from ...effects.operations.reductions.row_folds import (
    AndRows,
    MaxRows,
    MinRows,
    OnRows,
    OrRows,
    SumRows,
    XorRows,
)
from ...effects.operations.reductions.softmax import Softmax
from ...effects.operations.reductions.sorting import OrderStatistics, Sort, TopK
from ...effects.operations.windows.convolution import ConvGeneralDilated
from ...effects.operations.windows.generic_window import ReduceWindow
from ...effects.operations.windows.window_reductions import WindowExtremeIndex, WindowReduction
from ...effects.types.array_type import array_type
from .lane_lengths import INT32, EnteredRows
from .ragged_batch import RAGGED, RaggedBatch, ResultTypes, RowsMark, equal_lengths
from .row_rules import beside, mixing


@mixing(lambda op, x: op.axes)
def folding(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """The rule of a reduction: pad lanes with its identity, which is also the result of an empty lane."""
    return run.by_bucket(op, types, [run.filled(x, dict.fromkeys(op.axes, op.unit(x.type.dtype)))], zeros=())


# reduction -> the fold of packed rows that computes it
FOLDS = {fold.reduction: fold for fold in (SumRows(), MaxRows(), MinRows(), AndRows(), OrRows(), XorRows())}


@RAGGED.rule(Reduction)
def folding_rows(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """The rule of a reduction: the fold of packed rows; where there is none, or with several ragged axes, ``folding``.
    """
    fold = FOLDS.get(type(op))
    if fold is None or not _folds_rows(op, x) or x.type.dtype not in fold.dtypes:
        return folding(op, run, types, x)
    axis, extent = x.dim
    others = tuple([a for a in op.axes if a != axis])
    rows = perform(type(op)(others), _entered(x)) if others else _entered(x)
    rows = move_axis(rows, axis - sum([a < axis for a in others]), 0)
    return run.box(0, (run.folded(fold, rows, extent),))


def _folds_rows(op: Any, x: Any) -> bool:
    return type(x.dim) is RowsMark and x.dim.axis in op.axes


def _entered(x: Any) -> Any:
    """The packed rows of an operation that ignores padding, with arbitrary padding."""
    return x.entered if type(x) is EnteredRows else x.value


@RAGGED.rule(ArgExtreme)
def index_of_extreme(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """The rule of argmin and argmax: the first index in the lane of a row that equals the extreme, or is NaN; 0 if
    empty.
    """
    if not _folds_rows(op, x):
        return folding(op, run, types, x)
    axis, extent = x.dim
    n, rows = run.lanes.of(extent), move_axis(_entered(x), axis, 0)
    is_extreme = bitwise_or(eq(rows, n.repeated(run.folded(FOLDS[op.extreme], rows, extent))), ne(rows, rows))
    kind, most = array_type(is_extreme.type.shape, INT32), np.iinfo(INT32).max
    candidate = select(is_extreme, broadcast_in_dim(n.within, kind.shape, (0,)), full(kind, most))
    first = run.folded(MinRows(), candidate, extent)
    first = select(lt(first, full(first.type, most)), first, full(first.type, 0))
    return run.box(0, (convert(first, op.index_dtype),))


RAGGED.rule(OnRows)(mixing(lambda op, x, *index: (0,))(equal_lengths))


@RAGGED.rule(Reduce)
def fold_of_function(op: Any, run: RaggedBatch, types: ResultTypes, *operands: Any) -> Any:
    """Reduce lanes padded with the initial value, an identity of the reduction."""
    starts, padded = operands[: op.carry], list(operands[op.carry :])
    for i, (start, x) in enumerate(zip(starts, padded)):
        axes = [(axis, extent) for axis, extent in run.ragged_axes(x.type.shape) if axis in op.axes]
        if axes:
            padded[i] = run.padded(x, run.lanes.rounded)
            for k, first in enumerate(run.padded(start, run.lanes.rounded)):
                wide = broadcast_in_dim(first, padded[i][k].type.shape, (0,))
                for axis, extent in axes:
                    padded[i][k] = run.masked(padded[i][k], axis, extent, k, wide)
    return run.by_bucket(op, types, [*starts, *padded])


@RAGGED.rule(Softmax)
@mixing(lambda op, x: op.axes)
def softmax_in_lane(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """Softmax over lanes padded with -inf, whose result, and so whose gradient, is 0.

    An empty lane is padded with 0 and its result set to 0, since softmax over nothing but -inf is NaN.
    """
    given = run.padded(x, run.lanes.rounded, unread=op.axes)
    given = [_shared_out(run, part, x, op.axes, k) for k, part in enumerate(given)]
    y = run.by_bucket(op, types, [given], zeros=op.axes)
    if type(y.dim) is RowsMark:
        return y
    parts = y.value
    for axis, extent in y.dim.axes:
        if axis in op.axes and not run.lanes.of(extent).no_empty:
            parts = [run.masked(part, axis, extent, k, full(part.type, 0)) for k, part in enumerate(parts)]
    return run.box(y.dim, parts)


def _shared_out(run: RaggedBatch, part: Any, x: Any, axes: Any, k: int) -> Any:
    """Bucket ``k`` of the operand of a softmax, its padding along these axes replaced by -inf."""
    for axis, extent in run.ragged_axes(x.type.shape):
        if axis in axes:
            padding = full(part.type, -float("inf"))
            if not run.lanes.of(extent).no_empty:
                some = run.lanes.counts(extent, run.lanes.rounded, k) > 0
                padding = select(broadcast_in_dim(some, part.type.shape, (0,)), padding, full(part.type, 0))
            part = run.masked(part, axis, extent, k, padding)
    return part


@RAGGED.rule(Cumulative)
@mixing(lambda op, x: (op.axis,))
def running(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """The rule of a cumulative operation: a forward one never reaches padding; for a reverse one padding is its
    identity.
    """
    operand = run.filled(x, {op.axis: op.unit(x.type.dtype)}) if op.reverse else x
    return run.by_bucket(op, types, [operand])


@RAGGED.rule(Sort)
@mixing(lambda op, *xs: (op.dimension,))
def order(op: Any, run: RaggedBatch, types: ResultTypes, *xs: Any) -> Any:
    """Sort: packed rows with the lane as first key; padded lanes with a first key that puts padding last."""
    axes, at = run.ragged_axes(xs[0].type.shape), op.dimension
    if len(axes) == 1:
        values = [run.rows(x) for x in xs]
        lane = broadcast_in_dim(run.lanes.of(axes[0][1]).segment, values[0].type.shape, (at,))
        _, *ys = perform(shared(Sort, at, op.is_stable, op.num_keys + 1), lane, *values)
        return tuple([run.box(RowsMark(*axes[0]), (y,)) for y in ys])
    partition, sorted_buckets = run.lanes.rounded, []
    for k, parts in enumerate(zip(*[run.padded(x, partition) for x in xs])):
        mask = run.lanes.mask(dict(axes)[at], partition, k)
        behind = broadcast_in_dim(convert(bitwise_not(mask), INT32), parts[0].type.shape, (0, 1 + at))
        sorted_buckets.append(perform(shared(Sort, 1 + at, op.is_stable, op.num_keys + 1), behind, *parts)[1:])
    return tuple([run.from_buckets(column, t.shape, partition) for t, column in zip(types, zip(*sorted_buckets))])


@RAGGED.rule(TopK)
@mixing(lambda op, x: (op.axis,))
def largest(op: Any, run: RaggedBatch, types: ResultTypes, x: Any) -> Any:
    """Top-k of padded lanes; a lane with fewer than k rows is padded with the least value of the dtype."""
    kind, at = x.type.dtype, 1 + op.axis
    parts = []
    for part in run.filled(x, {op.axis: lowest(kind)}):
        more = max(op.k - part.type.shape[at], 0)
        widths = [(0, more if d == at else 0, 0) for d in range(part.ndim)]
        parts.append(pad(part, scalar(lowest(kind), kind), widths))
    return run.by_bucket(op, types, [parts])


def _last_axes(op: Any, x: Any, *others: Any) -> range:
    """The axes of a matrix function or transform: the last ones."""
    return range(x.ndim - op.last_axes, x.ndim)


def _windowed(op: Any, x: Any) -> list[int]:
    """The dimensions along which a window reduction does more than keep each element."""
    return [d for d, along in enumerate(zip(*op.window[:4])) if along != (1, 1, (0, 0), 1)]


RAGGED.rule(OrderStatistics)(mixing(lambda op, x: (op.dimension,))(equal_lengths))
RAGGED.rule(OnLastAxes)(mixing(_last_axes)(equal_lengths))
RAGGED.rule(WindowReduction)(mixing(_windowed)(equal_lengths))
RAGGED.rule(ReduceWindow)(equal_lengths)
RAGGED.rule(PureCallback)(equal_lengths)  # the function takes arrays of one shape
RAGGED.rule(WindowExtremeIndex)(equal_lengths)  # its results are indices into the whole array


@RAGGED.rule(ConvGeneralDilated)
def convolved(op: Any, run: RaggedBatch, types: ResultTypes, x: Any, kernel: Any) -> Any:
    """Convolution: packed rows as a batch dimension if all lanes share the kernel; else windows along the ragged axis.
    """
    signals = op.dimension_numbers.lhs_spec[0]
    apart = kernel.run is not run and op.batch_group_count == 1
    apart = apart and all([axis == signals for axis, _ in run.ragged_axes(x.type.shape)])
    return (beside if apart else equal_lengths)(op, run, types, x, kernel)
