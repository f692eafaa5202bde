"""Reductions over windows by operations with an identity, which pads the array: sum, max, min.

    y[j] = x[i] o x[k] o ...        over the elements that window j reads

The derivative of a maximum or minimum is that of the element that attains it, the first one of several.
Source: the StableHLO specification, ``reduce_window``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from ...base.stack import perform
from ...core.columns import EVALUATE, linear, zero
from ...core.operation import Operation, operation, shared
from ...sharding.sharding_rules import alike
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import FOUR_BITS, NUMERIC, ORDERED, bool_, float32, int32, int64, is_inexact
from ...types.sized import surely_at_most
from ..elementwise.arithmetic import Add, like, rem
from ..elementwise.bitwise import bitwise_and, bitwise_or
from ..elementwise.comparison import Max, Min, lt, select
from ..elementwise.conversion import convert
from ..foundations.half_precision import HALF, in_bytes
from ..foundations.shapes import broadcast_in_dim, full, move_axis, need_dtype, reshape
from ..indexing.gather_scatter import FILL, Gather
from ..indexing.gather_windows import GatherDimensionNumbers
from ..manipulation.slicing import pad, padded, slice_in_dim, spread
from ..manipulation.slicing import slice as _slice
from ..reductions.reductions import Combine, highest, lowest
from .geometry import Window, need_each


def fold_windows(
    combine: Combine, starts: Sequence[Any], xs: Sequence[Any], window: Window, starting: bool = True
) -> list[Any]:
    """``starts`` combined with the elements of each window in row-major order; ``starts`` are the padding, too.

    ``starts`` have rank 0, or are vectors along the first dimension of the arrays, along which windows are single
    elements. Windows are folded axis after axis, the last one first, so that ``combine`` must be associative.
    If not ``starting``, ``starts`` are the padding alone.
    """
    count = window.over(xs[0].type.shape)
    xs = [_padded(x, start, window.config) for x, start in zip(xs, starts)]
    for axis in reversed(range(len(count))):
        sizes = window.sizes[axis], window.strides[axis], window.window_dilation[axis]
        xs = _along(combine, xs, axis, count[axis], *sizes, slice_in_dim)
    return list(combine(_spread_starts(starts, count), xs)) if starting else list(xs)


_FEW = 64  # windows of up to so many elements are folded sequentially


def fold_elements(combine: Combine, starts: Sequence[Any], xs: Sequence[Any], window: Window) -> list[Any]:
    """``fold_windows`` with ``starts`` that need not be identities: padding is left out of the fold.

    Small windows are folded sequentially, as compiled programs do, so that ``combine`` need not be associative.
    """
    padding = any([low > 0 or high > 0 or interior for low, high, interior in window.config])
    if surely_at_most(prod(window.sizes), _FEW):
        return _in_order(combine, starts, xs, window, padding)
    if not padding:
        return fold_windows(combine, starts, xs, window)

    def combine_real(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
        (*a, real), (*b, other) = left, right
        both = bitwise_and(real, other)
        ys = [select(both, y, select(real, v, w)) for y, v, w in zip(combine(a, b), a, b)]
        return [*ys, bitwise_or(real, other)]

    flag = full(array_type((), bool_), False)
    *ys, some = fold_windows(combine_real, [*starts, flag], [*xs, _all_true(xs[0])], window, starting=False)
    firsts = _spread_starts(starts, some.type.shape)
    return [select(some, y, first) for y, first in zip(combine(firsts, ys), firsts)]


def _in_order(
    combine: Combine, starts: Sequence[Any], xs: Sequence[Any], window: Window, padding: bool
) -> list[Any]:
    """Windows folded sequentially, from the first element to the last."""
    count = window.over(xs[0].type.shape)
    if not prod(count):
        return _spread_starts(starts, count)
    real = pad(_all_true(xs[0]), False, window.config)
    xs = [_padded(x, start, window.config) for x, start in zip(xs, starts)]
    ys = _spread_starts(starts, count)
    for offsets in np.ndindex(*window.sizes):
        first = [k * dilation for k, dilation in zip(offsets, window.window_dilation)]
        limit = [k + spread(n, stride) for k, n, stride in zip(first, count, window.strides)]
        parts = [_slice(x, first, limit, window.strides) for x in xs]
        folded = combine(ys, parts)
        if padding:
            mask = _slice(real, first, limit, window.strides)
            folded = [select(mask, new, old) for new, old in zip(folded, ys)]
        ys = list(folded)
    return ys


def _all_true(x: Any) -> Any:
    """True at every index of ``x``."""
    return full(array_type(x.type.shape, bool_), True)


def _spread_starts(starts: Sequence[Any], shape: tuple[Any, ...]) -> list[Any]:
    """The initial values, scalars or vectors along the first dimension, broadcast to ``shape``."""
    return [broadcast_in_dim(start, shape, tuple(range(len(start.type.shape)))) for start in starts]


def _padded(x: Any, start: Any, config: Sequence[tuple[int, int, int]]) -> Any:
    """``x`` padded with its initial value, which may differ for each index of the first dimension."""
    if not start.type.shape:
        return pad(x, start, config)
    inside = pad(_all_true(x), False, config)
    starts = broadcast_in_dim(start, inside.type.shape, (0,))
    return select(inside, pad(x, full(start.type.update(shape=()), 0), config), starts)


def _along(
    combine: Combine, xs: Any, axis: int, count: int, size: int, stride: int, dilation: int, cut: Callable[..., Any]
) -> list[Any]:
    """The reductions of ``count`` windows along one axis; ``cut`` is ``slice_in_dim`` or its NumPy equivalent.

    Element by element; or, for long windows, by doubling: windows of 1, 2, 4, ... elements are combined.
    """

    def parts(xs: Sequence[Any], first: int, count: int, stride: int = 1) -> list[Any]:
        limit = first + spread(count, stride)
        return [cut(x, first, limit, stride, axis) for x in xs]

    if count == 0:
        return parts(xs, 0, 0)
    if size - 1 <= stride * size.bit_length():
        folded = parts(xs, 0, count, stride)
        for k in range(1, size):
            folded = list(combine(folded, parts(xs, k * dilation, count, stride)))
        return folded
    length, read, power = xs[0].shape[axis], 0, 1
    whole: Any = None
    while True:
        if size & power:
            piece = parts(xs, read * dilation, count, stride)
            whole = piece if whole is None else list(combine(whole, piece))
            read += power
        if read == size:
            return list(whole)
        length -= power * dilation
        xs = combine(parts(xs, 0, length), parts(xs, power * dilation, length))
        power *= 2


def _cut(x: Any, first: int, limit: int, stride: int, axis: int) -> Any:
    """``slice_in_dim`` of a NumPy array."""
    return x[(slice(None),) * axis + (slice(first, limit, stride),)]


def _fold_on_host(combine: Combine, units: Sequence[Any], xs: Sequence[Any], window: Window) -> Sequence[Any]:
    """``fold_windows`` of NumPy arrays without initial values; 16-bit floats are widened, and ``units`` are the
    padding.
    """
    count = window.over(xs[0].shape)
    xs = [x.astype(float32) if x.dtype in HALF else x for x in xs]
    if any(map(any, window.config)):
        xs = [padded(x, unit, window.config) for x, unit in zip(xs, units)]
    for axis in reversed(range(len(count))):
        sizes = window.sizes[axis], window.strides[axis], window.window_dilation[axis]
        xs = _along(combine, xs, axis, count[axis], *sizes, _cut)
    return xs


_WINDOW_PARAMS = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


class WindowReduction(Operation):
    """A reduction over the windows of an array by the elementwise operation ``by``, with identity ``unit``."""

    __slots__ = ()
    window: Window
    by: ClassVar[Any]
    unit: ClassVar[Any]
    stablehlo: ClassVar[str]

    sharding_rule = alike

    def as_params(self) -> dict[str, Any]:
        return dict(zip(_WINDOW_PARAMS, self.window))

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        return super().from_params({"window": Window(*[params[name] for name in _WINDOW_PARAMS])})

    @classmethod
    def has_param(cls, name: str) -> bool:
        return name in _WINDOW_PARAMS

    def result_type(op: Any, x: ArrayType) -> ArrayType:
        need_dtype(op, x)
        return x.update(shape=shape_over(op.name, op.window, x))

    @in_bytes
    def evaluate(op: Any, x: Any) -> Any:
        rule: Any = EVALUATE.registered(op.by)
        (y,) = _fold_on_host(lambda a, b: [rule(op.by(), a[0], b[0])], [op.unit(x.dtype)], [x], op.window)
        unit = np.asarray(op.unit(x.dtype)).astype(y.dtype)
        return np.asarray(rule(op.by(), unit, y)).astype(x.dtype, copy=False)

    def batch(op: Any, dims: tuple[int], x: Any) -> tuple[Any, int]:
        (d,) = dims
        return perform(shared(type(op), op.window.with_lanes(d)), x), d

    def lower(op: Any, emit: Any, x: Any) -> Any:
        def reduced(x: Any) -> Any:
            unit = emit.constant(op.unit(x.type.dtype), x.type.update(shape=()))
            out = x.type.update(shape=emit.made.shape)
            return emit.reduce_window([x], [unit], op.window, [out], lambda a, b: [emit.binary(op.stablehlo, a, b)])[0]

        return emit.wide(x, reduced)

    def flops(op: Any, operands: Any, results: Any) -> int:
        return int(op.workload_size(*operands))

    def workload_size(op: Any, x: ArrayType) -> Any:
        """The number of elements that all windows read."""
        return prod(op.window.over(x.shape)) * prod(op.window.sizes)


def shape_over(name: str, window: Window, x: ArrayType) -> tuple[Any, ...]:
    """The shape of the windows over ``x``. Raises ShapeMismatch: the window has not one entry for each dimension."""
    need_each(name, x.shape, window._asdict())
    return window.over(x.shape)


# y[j] = the sum of the elements of window j
@operation
class ReduceWindowSum(WindowReduction):
    window: Window
    dtypes = NUMERIC | FOUR_BITS
    by, unit, stablehlo = Add, staticmethod(lambda dtype: 0), "add"
    jvp = linear

    def transpose(op, ct, x):
        """The adjoint: a sum over the windows that read each element, which is a window reduction with reversed
        geometry.
        """
        if not ct.type.size or not x.size:
            return full(x, 0)
        window, rank = op.window, len(x.shape)
        rows = zip(x.shape, ct.shape, window.reach, window.strides, window.padding, window.base_dilation)
        config = [
            (reach - 1 - low, spread(n, base) + low - spread(m, stride), stride - 1)
            for n, m, reach, stride, (low, _), base in rows
        ]
        back = Window(window.sizes, window.base_dilation, ((0, 0),) * rank, (1,) * rank, window.window_dilation)
        return perform(shared(ReduceWindowSum, back), pad(ct, 0, config))


class WindowExtreme(WindowReduction):
    """The maximum or minimum of each window; ``index`` is the operation that computes its index."""

    __slots__ = ()
    dtypes = ORDERED | FOUR_BITS
    index: ClassVar[Any]

    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        if not is_inexact(x.type.dtype) or not x.type.size:
            return zero(op, primals, tangents)
        i = perform(shared(op.index, op.window), x)
        numbers = GatherDimensionNumbers((), (0,), (0,))
        gather = shared(Gather, numbers, (1,), False, False, FILL, 0)
        return perform(op, x), perform(gather, reshape(dx, (x.type.size,)), reshape(i, (*i.type.shape, 1)))


class WindowExtremeIndex(Operation):
    """The row-major index, in the whole array, of each window's maximum or minimum; -1 for a window of padding alone.

    It is the first one of several that are equal, and the first NaN where there is one.
    """

    __slots__ = ()
    window: Window
    as_good: ClassVar[Any]
    unit: ClassVar[Any]
    dtypes = ORDERED | FOUR_BITS
    sharding_rule = alike
    jvp = zero

    def result_type(op: Any, x: ArrayType) -> ArrayType:
        need_dtype(op, x)
        return array_type(shape_over(op.name, op.window, x), _index_dtype(x))

    @in_bytes
    def evaluate(op: Any, x: Any) -> Any:
        index = np.arange(x.size, dtype=_index_dtype(x)).reshape(x.shape)
        combine = partial(op.combine, select=np.where)
        return _fold_on_host(combine, [op.unit(x.dtype), -1], [x, index], op.window)[1]

    def batch(op: Any, dims: tuple[int], x: Any) -> tuple[Any, int]:
        """The batch rule: lanes become the first axis, and indices are taken relative to the own lane."""
        x = move_axis(x, dims[0], 0)
        i = perform(shared(type(op), op.window.with_lanes(0)), x)
        lane = x.type.update(shape=x.type.shape[1:])
        if lane.size:
            i = select(lt(i, like(i, 0)), i, rem(i, like(i, lane.size)))
        return convert(i, _index_dtype(lane)), 0

    def lower(op: Any, emit: Any, x: Any) -> Any:
        flat, out = emit.made.update(shape=(x.type.size,)), emit.made
        xs = [x, emit.reshape(emit.iota(flat, 0), x.type.shape)]
        kinds = [x.type.update(shape=()), out.update(shape=())]
        starts = [emit.constant(value, kind) for value, kind in zip((op.unit(x.type.dtype), -1), kinds)]
        body = lambda *values: emit.decompose(lambda *v: list(op.combine(v[:2], v[2:])), *values)
        return emit.reduce_window(xs, starts, op.window, [x.type.update(shape=out.shape), out], body)[1]

    def combine(
        op: Any, left: Sequence[Any], right: Sequence[Any], select: Callable[..., Any] = select
    ) -> Sequence[Any]:
        """The better of two (value, index) pairs, the first of equal ones, and NaN before numbers; padding never wins.

        ``select`` is ``np.where`` for NumPy arrays.
        """
        (a, i), (b, j) = left, right
        second = ~op.as_good(a, b)
        if is_inexact(a.dtype):
            second &= a == a
        second |= i < 0
        return select(second, b, a), select(second, j, i)


def _index_dtype(x: Any) -> Any:
    """The dtype of indices into ``x``: int32, or int64 where it is too narrow."""
    return int64 if isinstance(x.size, int) and x.size >= 2**31 else int32  # indices within a lane are int32


# i[j] = the index of the largest element of window j
@operation
class WindowArgmax(WindowExtremeIndex):
    window: Window
    as_good, unit = staticmethod(operator.ge), staticmethod(lowest)


# i[j] = the index of the smallest element of window j
@operation
class WindowArgmin(WindowExtremeIndex):
    window: Window
    as_good, unit = staticmethod(operator.le), staticmethod(highest)


# y[j] = the largest element of window j
@operation
class ReduceWindowMax(WindowExtreme):
    window: Window
    by, unit, stablehlo, index = Max, staticmethod(lowest), "maximum", WindowArgmax


# y[j] = the smallest element of window j
@operation
class ReduceWindowMin(WindowExtreme):
    window: Window
    by, unit, stablehlo, index = Min, staticmethod(highest), "minimum", WindowArgmin
