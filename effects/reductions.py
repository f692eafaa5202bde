"""Reductions: what is left of an array when some of its dimensions are folded by an associative operation.

The sum stands in ``shapes``, with its adjoint; the fold by any function in ``folding``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import comparison
from .arithmetic import add, div, mul
from .arrays import lift, scalar
from .columns import zero
from .comparison import eq
from .conversion import convert
from .dtypes import ANY, BOOL, INTEGER, NUMERIC, ORDERED, canonical, iinfo, is_complex, is_floating, is_integer
from .errors import BadArgument, DTypeMismatch, ShapeMismatch
from .operations import Operation, operation, shared
from .precise import HALF, wide
from .refusals import no_sharding
from .shapes import batch_reduction, broadcast_in_dim, canonical_axes, canonical_axis, reduced, reshape
from .shapes import reduce_sum as _sum
from .slicing import pad, slice_in_dim
from .stack import perform
from .types import ArrayType, array_type

Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def lowest(dtype: Any) -> Any:
    """The least value of a dtype: the unit of max."""
    if is_complex(dtype):
        return complex(-np.inf, 0)
    return -np.inf if is_floating(dtype) else iinfo(dtype).min if is_integer(dtype) else False


def highest(dtype: Any) -> Any:
    """The greatest value of a dtype: the unit of min."""
    if is_complex(dtype):
        return complex(np.inf, 0)
    return np.inf if is_floating(dtype) else iinfo(dtype).max if is_integer(dtype) else True


def ones(dtype: Any) -> Any:
    """The value whose bits are all set: the unit of and."""
    return True if dtype.kind == "b" else iinfo(dtype).max if dtype.kind == "u" else -1


def fold(combine: Combine, xs: Sequence[Any], units: Sequence[Any], axis: int) -> list[Any]:
    """Combine the first half of arrays with the second until one slice is left, and drop the dimension.

    A derivative of a reduction is the derivative of this, for any associative ``combine`` of lists of arrays.
    """
    size = xs[0].type.shape[axis]
    if size == 0:
        kept = [x.type.update(shape=x.type.shape[:axis] + x.type.shape[axis + 1 :]) for x in xs]
        return [broadcast_in_dim(unit, t.shape, ()) if t.shape else unit for unit, t in zip(units, kept)]
    while size > 1:
        half = (size + 1) // 2
        left = [slice_in_dim(x, 0, half, axis=axis) for x in xs]
        right = [slice_in_dim(x, half, size, axis=axis) for x in xs]
        if size % 2:
            widths = [(0, int(d == axis), 0) for d in range(len(xs[0].type.shape))]
            right = [pad(x, unit, widths) for x, unit in zip(right, units)]
        xs = combine(left, right)
        size = half
    shape = xs[0].type.shape
    return [reshape(x, shape[:axis] + shape[axis + 1 :]) for x in xs]


class Reduction(Operation):
    """Folds the dimensions ``axes`` by an operation that is associative, commutative and has a unit."""

    __slots__ = ()

    def result_type(self, x: ArrayType) -> ArrayType:
        return reduced(self, x)


# y[j] = product of x[i] over i along axes
@operation
class ReduceProd(Reduction):
    axes: tuple[int, ...]
    dtypes = NUMERIC

    def evaluate(op, x):
        return wide(lambda v: np.prod(v, axis=op.axes, dtype=v.dtype))(x)

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    def jvp(op, primals, tangents):
        pair, kind = [*primals, *tangents], primals[0].type
        units = [scalar(1, kind.dtype, kind.weak), scalar(0, kind.dtype, kind.weak)]

        def combine(left, right):
            (a, da), (b, db) = left, right
            return [mul(a, b), add(mul(da, b), mul(a, db))]

        for axis in sorted(op.axes, reverse=True):
            pair = fold(combine, pair, units, axis)
        return perform(op, *primals), pair[1]

    def lower(op, emit, x):
        return emit.reduce("multiply", x, 1, op.axes)


def _chosen(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The derivative of max and min: that of the chosen element, the mean of them where several are equal."""
    (x,), (dx,) = primals, tangents
    y = perform(op, x)
    if not x.type.size:  # the unit, which nobody chose
        return y, None
    kept = tuple([d for d in range(len(x.type.shape)) if d not in op.axes])
    mask = convert(eq(x, broadcast_in_dim(y, x.type.shape, kept)), x.type.dtype)
    return y, div(_sum(mul(dx, mask), op.axes), _sum(mask, op.axes))


def _lower_extreme(op: Any, emit: Any, x: Any, name: str, unit: Any, larger: Callable[..., Any]) -> Any:
    if not is_complex(x.type.dtype):
        return emit.reduce(name, x, unit, op.axes)
    element = x.type.update(shape=())
    return emit.fold([x], [emit.constant(unit, element)], op.axes, lambda a, b: emit.decompose(larger, a, b))[0]


def _number(value: Any, dtype: Any) -> Any:
    return np.asarray(value).astype(dtype)[()]


# y[j] = the largest x[i], i along axes; NaN where one is NaN
@operation
class ReduceMax(Reduction):
    axes: tuple[int, ...]
    dtypes = ANY

    def evaluate(op, x):
        return np.max(x, axis=op.axes, initial=_number(lowest(x.dtype), x.dtype))

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    jvp = _chosen

    def lower(op, emit, x):
        return _lower_extreme(op, emit, x, "maximum", lowest(x.type.dtype), lambda a, b: [comparison.max(a, b)])


# y[j] = the smallest x[i], i along axes; NaN where one is NaN
@operation
class ReduceMin(Reduction):
    axes: tuple[int, ...]
    dtypes = ANY

    def evaluate(op, x):
        return np.min(x, axis=op.axes, initial=_number(highest(x.dtype), x.dtype))

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    jvp = _chosen

    def lower(op, emit, x):
        return _lower_extreme(op, emit, x, "minimum", highest(x.type.dtype), lambda a, b: [comparison.min(a, b)])


# y[j] = the bits set in all x[i]
@operation
class ReduceAnd(Reduction):
    axes: tuple[int, ...]
    dtypes = BOOL | INTEGER

    def evaluate(op, x):
        return np.bitwise_and.reduce(x, axis=op.axes, initial=ones(x.dtype))

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    jvp = zero

    def lower(op, emit, x):
        return emit.reduce("and", x, ones(x.type.dtype), op.axes)


# y[j] = the bits set in some x[i]
@operation
class ReduceOr(Reduction):
    axes: tuple[int, ...]
    dtypes = BOOL | INTEGER

    def evaluate(op, x):
        return np.bitwise_or.reduce(x, axis=op.axes, initial=0)

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    jvp = zero

    def lower(op, emit, x):
        return emit.reduce("or", x, 0, op.axes)


# y[j] = the bits set in an odd number of x[i]
@operation
class ReduceXor(Reduction):
    axes: tuple[int, ...]
    dtypes = BOOL | INTEGER

    def evaluate(op, x):
        return np.bitwise_xor.reduce(x, axis=op.axes, initial=0)

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    jvp = zero

    def lower(op, emit, x):
        return emit.reduce("xor", x, 0, op.axes)


class Place(Operation):
    """The index of an extreme element along one dimension."""

    __slots__ = ()
    axes: tuple[int, ...]
    index_dtype: Any

    def result_type(self, x: ArrayType) -> ArrayType:
        made = reduced(self, x)
        if len(self.axes) != 1:
            raise BadArgument(f"{self.name}: takes one axis, got {self.axes}.")
        if x.shape[self.axes[0]] == 0:
            raise ShapeMismatch(f"{self.name}: an empty dimension has no such element, got {x} along {self.axes}.")
        return array_type(made.shape, self.index_dtype)


def _lower_place(op: Any, emit: Any, x: Any, direction: str, unit: Any) -> Any:
    """A reduction of pairs of value and index; of equal ones the first, and the first NaN before all else."""
    (axis,) = op.axes
    element, index = x.type.update(shape=()), array_type((), op.index_dtype)
    places = emit.iota(x.type.update(dtype=op.index_dtype, weak=False), axis)

    def body(a, i, b, j):
        better = emit.binary("or", emit.compare(direction, a, b), emit.compare("NE", a, a))
        tied = emit.binary("and", emit.compare("EQ", a, b), emit.compare("LT", i, j))
        first = emit.binary("or", better, tied)
        return [emit.select(better, a, b), emit.select(first, i, j)]

    starts = [emit.constant(unit, element), emit.constant(0, index)]
    return emit.fold([x, places], starts, op.axes, body)[1]


def _place(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda op, x: f(x.astype(np.float32) if x.dtype in HALF else x, axis=op.axes[0])


# y[j] = the i along the axis at which x[i] is largest; the first of several, the first NaN before all
@operation
class Argmax(Place):
    axes: tuple[int, ...]
    index_dtype: Any
    dtypes = ORDERED

    evaluate = _place(np.argmax)

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    jvp = zero

    def lower(op, emit, x):
        return _lower_place(op, emit, x, "GT", lowest(x.type.dtype))


# y[j] = the i along the axis at which x[i] is smallest; the first of several, the first NaN before all
@operation
class Argmin(Place):
    axes: tuple[int, ...]
    index_dtype: Any
    dtypes = ORDERED

    evaluate = _place(np.argmin)

    def batch(op, dims, x):
        return batch_reduction(op, dims[0], x)

    jvp = zero

    def lower(op, emit, x):
        return _lower_place(op, emit, x, "LT", highest(x.type.dtype))


def _reduce(kind: Any, operand: Any, axes: Any) -> Any:
    x = lift(operand)
    return perform(shared(kind, canonical_axes(axes, len(x.type.shape), kind.name)), x)


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """The sum over ``axes``; 0 of nothing.

    >>> reduce_sum(np.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int64)
    """
    no_sharding("reduce_sum", out_sharding)
    x = lift(operand)
    return _sum(x, canonical_axes(axes, len(x.type.shape), "reduce_sum"))


def reduce_prod(operand: Any, axes: Sequence[int]) -> Any:
    """The product over ``axes``; 1 of nothing.

    >>> reduce_prod(np.array([[1, 2], [3, 4]]), (1,))
    Array([ 2, 12], dtype=int64)
    """
    return _reduce(ReduceProd, operand, axes)


def reduce_max(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """The largest element over ``axes``, NaN where there is one; the dtype's least value of nothing.

    Complex numbers are ordered by their real, then by their imaginary parts.
    The derivative is the mean of those of the elements that are largest.

    >>> reduce_max(np.array([[1, 5], [3, 4]]), (0, 1))
    Array(5, dtype=int64)
    """
    no_sharding("reduce_max", out_sharding)
    return _reduce(ReduceMax, operand, axes)


def reduce_min(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """The smallest element over ``axes``, NaN where there is one; the dtype's greatest value of nothing.

    >>> reduce_min(np.array([[1, 5], [3, 4]]), (0,))
    Array([1, 4], dtype=int64)
    """
    no_sharding("reduce_min", out_sharding)
    return _reduce(ReduceMin, operand, axes)


def reduce_and(operand: Any, axes: Sequence[int]) -> Any:
    """The bitwise (of booleans, logical) and over ``axes``.

    >>> reduce_and(np.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return _reduce(ReduceAnd, operand, axes)


def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    """The bitwise (of booleans, logical) or over ``axes``.

    >>> reduce_or(np.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return _reduce(ReduceOr, operand, axes)


def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    """The bitwise (of booleans, logical) exclusive or over ``axes``.

    >>> reduce_xor(np.array([5, 3]), (0,))
    Array(6, dtype=int64)
    """
    return _reduce(ReduceXor, operand, axes)


def _index(kind: Any, operand: Any, axis: Any, index_dtype: Any) -> Any:
    x, dtype = lift(operand), canonical(index_dtype)
    if not is_integer(dtype):
        raise DTypeMismatch(f"{kind.name}: index_dtype must be an integer dtype, got {dtype}.")
    return perform(shared(kind, (canonical_axis(axis, len(x.type.shape), kind.name),), dtype), x)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the largest element along ``axis``: of equal ones the first, and of NaNs the first.

    Raises: ShapeMismatch: the dimension is empty. DTypeMismatch: ``index_dtype`` is not an integer one.

    >>> argmax(np.array([3, 7, 7]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _index(Argmax, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the smallest element along ``axis``: of equal ones the first, and of NaNs the first.

    Raises: ShapeMismatch: the dimension is empty. DTypeMismatch: ``index_dtype`` is not an integer one.

    >>> argmin(np.array([3, 1, 1]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _index(Argmin, operand, axis, index_dtype)
