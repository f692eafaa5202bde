"""Rows moved to other places, each at most once, with padding between them: the map whose adjoint moves them back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.columns import data_movement, linear_in
from ...core.operation import operation, shared
from ...types import dtypes
from ...types.array_type import array_type
from ..elementwise.bitwise import bitwise_not
from ..elementwise.comparison import lt, select
from ..foundations.half_precision import in_bytes
from ..foundations.shapes import broadcast_in_dim, move_axis, reshape
from ..foundations.shapes import zeros as zeros_of
from ..manipulation.creation import iota
from ..manipulation.slicing import axis_at, lane_count
from .gather_scatter import Gather
from .gather_windows import GatherDimensionNumbers, GatherScatterMode


# y[j] = x[index[j]] where index[j] >= 0; elsewhere 0, or with ``copies`` x[~index[j]], which has no cotangent.
# No row is met twice, and ``inverse`` is the index of the map back: y'[i] = y[inverse[i]].
@operation
class Relocate:
    copies: bool = False
    dtypes = dtypes.ANY

    def result_type(op, x, index, inverse):
        if not x.shape or len(index.shape) != 1 or inverse.shape != x.shape[:1]:
            raise ShapeMismatch(
                f"relocate: needs rows, an index vector, and an inverse with an element for each row, got {x}, {index} "
                f"and {inverse}."
            )
        if not dtypes.is_integer(index.dtype) or inverse.dtype != index.dtype:
            raise DTypeMismatch(f"relocate: indices must be integers of one dtype, got {index} and {inverse}.")
        return array_type((*index.shape, *x.shape[1:]), x.dtype, x.weak)

    @in_bytes
    def evaluate(op, x, index, inverse):
        y = x[np.where(index < 0, ~index, index)]
        if not op.copies:
            y[index < 0] = 0
        return y

    def batch(op, dims, x, index, inverse):
        d, *others = dims
        if others == [None, None]:  # the lanes are part of each row
            return perform(op, move_axis(x, d, 1), index, inverse), 1
        size = lane_count((x, index, inverse), dims)
        x, index, inverse = [axis_at(v, d, 0, size) for v, d in zip((x, index, inverse), dims)]
        count, rows = index.type.shape[1], x.type.shape[1]
        whole = reshape(x, (size * rows, *x.type.shape[2:]))
        y = perform(op, whole, _in_lanes(index, rows), _in_lanes(inverse, count))
        return reshape(y, (size, count, *y.type.shape[1:])), 0

    jvp = linear_in(0)

    def transpose(op, ct, x, index, inverse):
        return perform(shared(Relocate, False), ct, inverse, index)

    def lower(op, emit, x, index, inverse):
        return emit.decompose(lambda x, index: _gathered(op, x, index), x, index)

    flops = data_movement


def _in_lanes(index: Any, rows: int) -> Any:
    """The indices of all lanes into the rows of all lanes one after the other; negative ones remain so."""
    size, count = index.type.shape
    start = iota(index.type.dtype, size) * rows
    start = broadcast_in_dim(start, (size, count), (0,))
    return reshape(select(lt(index, 0), index - start, index + start), (size * count,))


def _gathered(op: Any, x: Any, index: Any) -> Any:
    """The result, performed by a gather."""
    none = lt(index, 0)
    rank = len(x.type.shape)
    at = reshape(select(none, bitwise_not(index), index), (*index.type.shape, 1))
    numbers = GatherDimensionNumbers(tuple(range(1, rank)), (0,), (0,))
    y = perform(Gather(numbers, (1, *x.type.shape[1:]), mode=GatherScatterMode.CLIP), x, at)
    return y if op.copies else select(broadcast_in_dim(none, y.type.shape, (0,)), zeros_of(y.type), y)


def relocate(x: Any, index: Any, inverse: Any, copies: bool = False) -> Any:
    """The rows of ``x`` at the places of ``index``, which meets each at most once; ``inverse`` is the index back.

    A negative index ``~i`` is padding: 0, or with ``copies`` row ``i``, whose cotangent is taken to be 0.
    """
    return perform(shared(Relocate, copies), x, index, inverse)
