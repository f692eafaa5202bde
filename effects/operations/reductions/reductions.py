"""Reductions by associative operations: product, max, min, bitwise operations, argmax, argmin.

``ReduceSum`` is defined in ``shapes`` beside its adjoint, the broadcast; ``generic_reduce`` reduces by any function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, ClassVar

import numpy as np

from ...base.errors import BadArgument, BadAxis, DTypeMismatch, ShapeMismatch
from ...base.later_layers import LaterLayers
from ...base.stack import perform
from ...core.arrays import Array, as_array, scalar
from ...core.columns import per_operand, zero
from ...core.operation import Operation, operation, shared
from ...functions.out_shardings import cuts_result
from ...sharding.sharding_rules import reduced
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import (
    ANY,
    BOOL,
    FOUR_BITS,
    INTEGER,
    ORDERED,
    DType,
    canonical,
    iinfo,
    is_complex,
    is_floating,
    is_integer,
)
from ...types.extent import Extent
from ..elementwise import comparison
from ..elementwise.arithmetic import add, div, like, mul
from ..elementwise.comparison import eq, has_zero, ne, select_n
from ..elementwise.conversion import convert
from ..foundations.half_precision import AS_ARRAY, HALF, in_bytes, silent, whole_bytes
from ..foundations.shapes import (
    Reduction,
    UfuncReduction,
    batch_reduction,
    broadcast_along,
    broadcast_in_dim,
    canonical_axes,
    canonical_axis,
    reduced_type,
    reshape,
)
from ..foundations.shapes import reduce_sum as _sum
from ..manipulation.slicing import pad, slice_in_dim

Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def lowest(dtype: Any) -> Any:
    """The least value of a dtype: the identity of max."""
    if is_complex(dtype):
        return complex(-np.inf, -np.inf)
    return -np.inf if is_floating(dtype) else iinfo(dtype).min if is_integer(dtype) else False


def highest(dtype: Any) -> Any:
    """The greatest value of a dtype: the identity of min."""
    if is_complex(dtype):
        return complex(np.inf, np.inf)
    return np.inf if is_floating(dtype) else iinfo(dtype).max if is_integer(dtype) else True


def all_ones(dtype: Any) -> Any:
    """The value whose bits are all one: the identity of and."""
    return True if dtype.kind == "b" else iinfo(dtype).max if dtype.kind == "u" else -1


def fold(combine: Combine, xs: Sequence[Any], units: Sequence[Any], axis: int) -> list[Any]:
    """The arrays reduced along ``axis``, by a tree: the first half is combined with the second until one slice is left.

    ``combine`` is associative and commutative on lists of arrays, ``units`` its identity. On (primal, tangent) pairs it
    computes the jvp of a reduction.
    """
    size = xs[0].type.shape[axis]
    if size == 0:
        remaining = [x.type.update(shape=x.type.shape[:axis] + x.type.shape[axis + 1 :]) for x in xs]
        return [broadcast_in_dim(unit, t.shape, ()) if t.shape else unit for unit, t in zip(units, remaining)]
    if type(size) is Extent:
        one = [x.type.update(shape=(*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :])) for x in xs]
        first = [broadcast_in_dim(unit, t.shape, ()) for unit, t in zip(units, one)]
        xs, size = LaterLayers.scan_along_lane(combine, first, xs, axis)[0], 1
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


def product_rule(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
    """The product of two (primal, tangent) pairs."""
    (a, da), (b, db) = left, right
    return [mul(a, b), add(mul(da, b), mul(a, db))]


# y[j] = product of x[i] over i along axes
@operation
class ReduceProd(UfuncReduction):
    axes: tuple[int, ...]
    ufunc, stablehlo, unit = np.multiply, "multiply", staticmethod(lambda dtype: 1)

    def jvp(op, primals, tangents):
        pair, kind = [*primals, *tangents], primals[0].type
        units = [scalar(1, kind.dtype, kind.weak), scalar(0, kind.dtype, kind.weak)]
        for axis in sorted(op.axes, reverse=True):
            pair = fold(product_rule, pair, units, axis)
        return perform(op, *primals), pair[1]


def whole_nan(z: np.ndarray[Any, Any]) -> Any:
    """Complex numbers with both parts NaN if either is, so that the result of a reduction does not depend on its order.
    """
    return np.where(np.isnan(z), z.dtype.type(complex(np.nan, np.nan)), z)


def performed_whole_nan(z: Any) -> Any:
    """``whole_nan`` composed of operations."""
    return select_n(ne(z, z), z, like(z, complex(np.nan, np.nan)))


def with_signed_zeros(x: Any, y: Any, larger: bool, some: Callable[[Any, Any], Any], along: Any) -> Any:
    """``y``, the maxima (``larger``) or minima of elements of the NumPy array ``x``, where NumPy takes -0 == +0, with
    -0 < +0.

    ``some(mask, along)``: for each element of ``y``, whether the mask is true at an element that it was reduced from.
    """
    if x.dtype.kind not in "fV" or not has_zero(y, larger):
        return y
    preferred = some((x == 0) & (np.signbit(x) != larger), along)
    return np.where((y == 0) & preferred, x.dtype.type(0.0 if larger else -0.0), y)


class ExtremeReduction(Reduction):
    """A reduction by max or min, ``choose``, with -0 < +0; complex numbers are ordered by real, then imaginary part.

    Without ``keeps_nan``, NaN elements may be ignored, which compiles to faster code; for uses where NaN reaches the
    final result otherwise, such as the maximum in a logsumexp.
    """

    __slots__ = ()
    dtypes = ANY | FOUR_BITS
    keeps_nan: bool
    choose: ClassVar[Any]
    larger: ClassVar[bool]  # it is max

    @silent
    def evaluate(op, x):
        if x.size and x.dtype.kind != "c":  # without the identity, whose construction takes as long as a small max
            return with_signed_zeros(x, op.ufunc.reduce(x, axis=op.axes, **AS_ARRAY), op.larger, np.any, op.axes)
        y = op.ufunc.reduce(x, axis=op.axes, initial=np.asarray(op.unit(x.dtype)).astype(x.dtype)[()])
        return whole_nan(y) if x.dtype.kind == "c" else y

    def jvp(op, primals, tangents):
        """The mean of the tangents of the elements equal to the result, 0 if it is NaN."""
        (x,), (dx,) = primals, tangents
        y = perform(op, x)
        if not x.type.size:  # the result is the identity, a constant
            return y, None
        mask = convert(eq(x, broadcast_along(y, x.type.shape, op.axes)), x.type.dtype)
        count = _sum(mask, op.axes)  # 0 where the result is NaN
        return y, div(_sum(mul(dx, mask), op.axes), comparison.max(count, scalar(1, x.type.dtype)))

    def lower(op, emit, x):
        unit = op.unit(x.type.dtype)
        if not is_complex(x.type.dtype):
            return emit.reduce(op.stablehlo, x, unit, op.axes, op.keeps_nan)
        choose = lambda a, b: emit.decompose(lambda a, b: [op.choose(a, b)], a, b)
        y = emit.fold([x], [emit.constant(unit, x.type.update(shape=()))], op.axes, choose)[0]
        return emit.decompose(performed_whole_nan, y)


# y[j] = the largest x[i], i along axes; NaN where one is NaN
@operation
class ReduceMax(ExtremeReduction):
    axes: tuple[int, ...]
    keeps_nan: bool = True
    param_names = {"keeps_nan": None}
    fixed_params = {"out_sharding": None}
    ufunc, stablehlo, larger = np.maximum, "maximum", True
    choose, unit = staticmethod(comparison.max), staticmethod(lowest)


# y[j] = the smallest x[i], i along axes; NaN where one is NaN
@operation
class ReduceMin(ExtremeReduction):
    axes: tuple[int, ...]
    keeps_nan: bool = True
    param_names = {"keeps_nan": None}
    fixed_params = {"out_sharding": None}
    ufunc, stablehlo, larger = np.minimum, "minimum", False
    choose, unit = staticmethod(comparison.min), staticmethod(highest)


class BitwiseReduction(UfuncReduction):
    """A reduction by a bitwise operation, which is the logical one for booleans."""

    __slots__ = ()
    dtypes = BOOL | INTEGER | FOUR_BITS
    jvp = zero

    def sharding_rule(op, operands, results):  # between devices there are "and" and "or" of booleans alone
        logical = operands[0].dtype in BOOL and op.stablehlo != "xor"
        return reduced(op, operands, results)._replace(whole=() if logical else op.axes)

    def keywords(self, dtype: Any) -> dict[str, Any]:
        return {"axis": self.axes, "initial": self.unit(dtype)}


# y[j] = the bits set in all x[i]
@operation
class ReduceAnd(BitwiseReduction):
    axes: tuple[int, ...]
    ufunc, stablehlo, unit = np.bitwise_and, "and", staticmethod(all_ones)


# y[j] = the bits set in some x[i]
@operation
class ReduceOr(BitwiseReduction):
    axes: tuple[int, ...]
    ufunc, stablehlo = np.bitwise_or, "or"


# y[j] = the bits set in an odd number of x[i]
@operation
class ReduceXor(BitwiseReduction):
    axes: tuple[int, ...]
    ufunc, stablehlo = np.bitwise_xor, "xor"


class ArgExtreme(Operation):
    """The index of a maximum or minimum along one dimension, the only one of ``axes``."""

    __slots__ = ()
    axes: tuple[int, ...]
    index_dtype: DType
    dtypes = ORDERED | FOUR_BITS
    direction: ClassVar[str]  # how a better element compares with another, in StableHLO
    extreme: ClassVar[Any]  # the reduction to the element itself
    unit: ClassVar[Any]
    batch = batch_reduction
    jvp = zero
    sharding_rule = reduced
    flops = per_operand

    def result_type(self, x: ArrayType) -> ArrayType:
        result = reduced_type(self, x)
        if len(self.axes) != 1:
            raise BadArgument(f"{self.name}: takes one axis, got {self.axes}.")
        if x.shape[self.axes[0]] == 0:
            raise ShapeMismatch(f"{self.name}: the dimension must not be empty, got {x} along {self.axes}.")
        return array_type(result.shape, self.index_dtype)

    def numpy_function(self, types: Sequence[ArrayType]) -> Callable[..., Any] | None:
        dtype = types[0].dtype
        return None if dtype in HALF or dtype in FOUR_BITS else methodcaller(self.name, self.axes[0])

    @in_bytes
    def evaluate(op, x):
        return methodcaller(op.name, op.axes[0])(x.astype(np.float32) if x.dtype in HALF else x)

    def lower(op, emit, x):
        """A reduction of (value, index) pairs; of equal values the first, NaN before any number."""
        (axis,) = op.axes
        x = emit.convert(x, whole_bytes(x.type.dtype))  # for GPUs XLA reduces no packed elements beside indices
        element, index = x.type.update(shape=()), array_type((), op.index_dtype)
        indices = emit.iota(x.type.update(dtype=op.index_dtype, weak=False), axis)
        starts = [emit.constant(op.unit(x.type.dtype), element), emit.constant(0, index)]

        def body(a, i, b, j):
            better = emit.binary("or", emit.compare(op.direction, a, b), emit.compare("NE", a, a))
            tied = emit.binary("and", emit.compare("EQ", a, b), emit.compare("LT", i, j))
            first = emit.binary("or", better, tied)
            return [emit.select(better, a, b), emit.select(first, i, j)]

        return emit.fold([x, indices], starts, op.axes, body)[1]


# y[j] = the i along the axis at which x[i] is largest; the first of several, the first NaN before all
@operation
class Argmax(ArgExtreme):
    axes: tuple[int, ...]
    index_dtype: DType
    direction, extreme, unit = "GT", ReduceMax, staticmethod(lowest)


# y[j] = the i along the axis at which x[i] is smallest; the first of several, the first NaN before all
@operation
class Argmin(ArgExtreme):
    axes: tuple[int, ...]
    index_dtype: DType
    direction, extreme, unit = "LT", ReduceMin, staticmethod(highest)


def _reduce(kind: Any, operand: Any, axes: Any) -> Any:
    """Perform the reduction of this class."""
    x = as_array(operand)
    return perform(shared(kind, canonical_axes(axes, len(x.type.shape), kind.name)), x)


@cuts_result
def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over ``axes``; 0 over no element.

    >>> reduce_sum(np.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int64)
    """
    x = as_array(operand)
    return _sum(x, canonical_axes(axes, len(x.type.shape), "reduce_sum"))


def reduce_prod(operand: Any, axes: Sequence[int]) -> Array:
    """The product over ``axes``; 1 over no element.

    >>> reduce_prod(np.array([[1, 2], [3, 4]]), (1,))
    Array([ 2, 12], dtype=int64)
    """
    return _reduce(ReduceProd, operand, axes)


@cuts_result
def reduce_max(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The largest element over ``axes``, NaN if one is NaN; the least value of the dtype over no element.

    Complex numbers are ordered by their real, then by their imaginary parts.
    The derivative is the mean of those of the elements that are largest.

    >>> reduce_max(np.array([[1, 5], [3, 4]]), (0, 1))
    Array(5, dtype=int64)
    """
    return _reduce(ReduceMax, operand, axes)


@cuts_result
def reduce_min(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The smallest element over ``axes``, NaN if one is NaN; the greatest value of the dtype over no element.

    >>> reduce_min(np.array([[1, 5], [3, 4]]), (0,))
    Array([1, 4], dtype=int64)
    """
    return _reduce(ReduceMin, operand, axes)


def reduce_and(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans, logical) and over ``axes``.

    >>> reduce_and(np.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return _reduce(ReduceAnd, operand, axes)


def reduce_or(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans, logical) or over ``axes``.

    >>> reduce_or(np.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return _reduce(ReduceOr, operand, axes)


def reduce_xor(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans, logical) exclusive or over ``axes``.

    >>> reduce_xor(np.array([5, 3]), (0,))
    Array(6, dtype=int64)
    """
    return _reduce(ReduceXor, operand, axes)


def _arg_extreme(kind: Any, operand: Any, axis: Any, index_dtype: Any) -> Any:
    """Perform the argmax or argmin of this class."""
    x, dtype = as_array(operand), canonical(index_dtype)
    if not is_integer(dtype):
        raise DTypeMismatch(f"{kind.name}: index_dtype must be an integer dtype, got {dtype}.")
    if isinstance(axis, int) and axis < 0:
        raise BadAxis(
            f"{kind.name}: the axis is counted from the front, got {axis} for {x.type}.",
            hint=f"hx.numpy.{kind.name} counts from the end too.",
        )
    return perform(shared(kind, (canonical_axis(axis, len(x.type.shape), kind.name),), dtype), x)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The index of the largest element along ``axis``: of equal ones the first, and of NaNs the first.

    Raises: ShapeMismatch: the dimension is empty. DTypeMismatch: ``index_dtype`` is not an integer one.

    >>> argmax(np.array([3, 7, 7]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _arg_extreme(Argmax, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The index of the smallest element along ``axis``: of equal ones the first, and of NaNs the first.

    Raises: ShapeMismatch: the dimension is empty. DTypeMismatch: ``index_dtype`` is not an integer one.

    >>> argmin(np.array([3, 1, 1]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _arg_extreme(Argmin, operand, axis, index_dtype)
