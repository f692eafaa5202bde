"""Sorting of arrays by keys, and the k largest elements along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, ShapeMismatch, whole_number
from ...base.stack import perform
from ...core.arrays import Array, as_array
from ...core.operation import operation, shared
from ...sharding.sharding_rules import alike
from ...types.array_type import array_type
from ...types.dtypes import (
    ANY,
    ANY_FLOATING,
    EVERY,
    FOUR_BITS,
    ORDERED,
    SMALL_FLOATING,
    float32,
    int8,
    int32,
    is_complex,
)
from ...types.extent import as_size, fits
from ..elementwise.comparison import has_zero, total_order
from ..foundations.half_precision import HALF, whole_bytes
from ..foundations.shapes import canonical_axis, reshape
from ..indexing.gather_scatter import gather
from ..indexing.gather_windows import GatherDimensionNumbers
from ..manipulation.creation import broadcasted_iota
from ..manipulation.slicing import concatenate, lanes_first, slice_in_dim


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """``y[.., k, ..] = x[.., indices[.., k, ..], ..]`` for distinct indices; None, a symbolic zero, if ``x`` is empty.
    """
    if not x.type.size:
        return None
    rank = len(x.type.shape)
    others = tuple([d for d in range(rank) if d != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    column = reshape(indices, (*indices.type.shape, 1))
    return gather(x, column, numbers, (1,) * rank, unique_indices=True)


def _numpy_keys(x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The arrays, most significant first, by which NumPy's lexsort has the order of ``Sort``: real before imaginary
    parts.
    """
    if x.dtype.kind == "c":
        return [x.real, x.imag]
    return [x.astype(float32) if x.dtype in _NARROW else x.astype(int8) if x.dtype in FOUR_BITS else x]


_NARROW = HALF | SMALL_FLOATING


def _order(keys: list[np.ndarray[Any, Any]], axis: int) -> np.ndarray[Any, Any]:
    """The indices of the elements in stable order along an axis."""
    key = keys[0]
    if len(keys) > 1:
        return np.lexsort(keys[::-1], axis=axis)
    if key.itemsize != 4 or key.shape[axis] < _SHORT:
        return np.argsort(key, axis=axis, kind="stable")
    # key and index in one 64-bit number, which NumPy sorts with vector instructions
    index = np.arange(key.shape[axis], dtype=np.uint64).reshape([-1 if d == axis else 1 for d in range(key.ndim)])
    packed = (_ordered_bits(key).astype(np.uint64) << np.uint64(32)) | index
    packed.sort(axis=axis)
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.intp)


def _sorted(x: np.ndarray[Any, Any], axis: int, positions: Sequence[int] = ()) -> np.ndarray[Any, Any]:
    """The array sorted along an axis; if positions are given, at these alone."""
    keys = _numpy_keys(x)
    if len(keys) > 1:
        return np.take_along_axis(x, _order(keys, axis), axis)
    # equal elements that differ are zeros alone; NumPy's stable sort takes ten times as long
    if keys[0].dtype.kind == "f" and has_zero(keys[0], negative=True):
        return np.sort(keys[0], axis=axis, kind="stable")
    return np.partition(keys[0], positions, axis) if positions else np.sort(keys[0], axis=axis)


_SHORT = 200  # along axes of fewer elements NumPy's argsort is as fast as packed keys


def _ordered_bits(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Unsigned integers in the order of 32-bit floats: zeros are equal, all NaN are equal and largest."""
    if x.dtype.kind == "u":
        return x
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.float32(np.nan), x + np.float32(0))
    return total_order(x).view(np.uint32) ^ np.uint32(1 << 31)


def comparisons(op, operands, results):
    """About n log n comparisons."""
    size = operands[0].size
    return size * max(size.bit_length(), 1)


# (y, ...) = (x, ...) under one permutation along a dimension that puts the first num_keys of them in order
@operation
class Sort:
    dimension: int
    is_stable: bool
    num_keys: int
    multiple_results = True
    dtypes = ANY | FOUR_BITS | SMALL_FLOATING

    def result_type(op, *types):
        if not types or not 1 <= op.num_keys <= len(types):
            raise BadArgument(f"sort: of {len(types)} operands 1 to all must be keys, got num_keys={op.num_keys}.")
        shape = types[0].shape
        if any(t.shape != shape for t in types):
            raise ShapeMismatch(f"sort: operands must have one shape, got {', '.join(map(str, types))}.")
        if not 0 <= op.dimension < len(shape):
            raise BadArgument(f"sort: {op.dimension} is no dimension of {types[0]}.")
        for i, t in enumerate(types):
            if t.dtype not in (op.dtypes if i < op.num_keys else EVERY):
                raise DTypeMismatch(f"sort: operand {i} cannot be of dtype {t.dtype}.")
        return types

    def sharding_rule(op, operands, results):
        return alike(op, operands, results)._replace(whole={op.dimension})

    def evaluate(op, *xs):
        if len(xs) == 1:
            return (_sorted(xs[0], op.dimension),)
        order = _order([part for x in xs[: op.num_keys] for part in _numpy_keys(x)], op.dimension)
        return tuple([np.take_along_axis(x, order, op.dimension) for x in xs])

    def batch(op, dims, *xs):
        return perform(shared(Sort, op.dimension + 1, op.is_stable, op.num_keys), *lanes_first(xs, dims)), 0

    def jvp(op, primals, tangents):
        *ys, order = perform(op, *primals, broadcasted_iota("uint32", primals[0].type.shape, op.dimension))
        return ys, [None if dx is None else take_along_axis(dx, order, op.dimension) for dx in tangents]

    def lower(op, emit, *packed):
        xs = [emit.convert(x, whole_bytes(x.type.dtype)) for x in packed]  # for GPUs XLA sorts no packed elements
        elements = [x.type.update(shape=()) for x in xs for _ in (0, 1)]
        region = emit.region(elements, lambda *pairs: [_precedes(emit, pairs[: 2 * op.num_keys])])
        stable = "true" if op.is_stable else "false"
        attributes = f"dimension = {op.dimension} : i64, is_stable = {stable}"
        ys = emit.ops("sort", *xs, types=[x.type for x in xs], attributes=attributes, regions=region)
        return [emit.convert(y, x.type.dtype) for x, y in zip(packed, ys)]

    flops = comparisons


def _precedes(emit: Any, pairs: Sequence[Any]) -> Any:
    """Whether the first of each pair comes before the second, in lexicographic order of the pairs."""
    sides = [[part for v in pairs[side::2] for part in _comparable(emit, v)] for side in (0, 1)]

    def decide(later: Any, pair: tuple[Any, Any]) -> Any:
        a, b = pair
        less = emit.compare("LT", a, b, True)
        if later is None:
            return less
        return emit.binary("or", less, emit.binary("and", emit.compare("EQ", a, b, True), later))

    return reduce(decide, reversed(list(zip(*sides))), None)


def _comparable(emit: Any, x: Any) -> list[Any]:
    """The components of ``x`` to compare in total order: zeros without sign, all NaN equal and last."""
    dtype = x.type.dtype
    if is_complex(dtype):
        return [part for half in emit.parts(x) for part in _comparable(emit, half)]
    if dtype not in ANY_FLOATING:
        return [x]
    if dtype in SMALL_FLOATING:  # some have neither NaN nor zero
        return _comparable(emit, emit.convert(x, float32))
    zero, nan = emit.constant(0, x.type), emit.constant(np.nan, x.type)
    unsigned = emit.select(emit.compare("EQ", x, zero), zero, x)
    return [emit.select(emit.compare("NE", x, x), nan, unsigned)]


# y[.., k, ..] = sort(x)[.., positions[k], ..]
@operation
class OrderStatistics:
    positions: tuple[int, ...]
    dimension: int
    dtypes = ANY

    def result_type(op, x):
        if x.dtype not in op.dtypes:
            raise DTypeMismatch(f"order_statistics: elements must be numbers or bools, got {x}.")
        if not 0 <= op.dimension < len(x.shape):
            raise BadArgument(f"order_statistics: {op.dimension} is no dimension of {x}.")
        size = x.shape[op.dimension]
        if not op.positions or any([i < 0 or not fits(i + 1, size) for i in op.positions]):
            raise BadArgument(f"order_statistics: some positions below {size} are needed, got {op.positions} for {x}.")
        return x.update(shape=(*x.shape[: op.dimension], len(op.positions), *x.shape[op.dimension + 1 :]))

    def sharding_rule(op, operands, results):
        return alike(op, operands, results)._replace(whole={op.dimension})

    def evaluate(op, x):
        y = np.take(_sorted(x, op.dimension, op.positions), op.positions, op.dimension)
        return y.astype(x.dtype, copy=False)

    def batch(op, dims, x):
        return perform(shared(OrderStatistics, op.positions, op.dimension + 1), *lanes_first((x,), dims)), 0

    def jvp(op, primals, tangents):
        index = broadcasted_iota("uint32", primals[0].type.shape, op.dimension)
        y, order = [op.of_sorted(v) for v in perform(shared(Sort, op.dimension, True, 2), primals[0], index)]
        return y, take_along_axis(tangents[0], order, op.dimension)

    def decompose(op, x):
        return op.of_sorted(sort(x, op.dimension))

    def of_sorted(op, y):
        """The elements at the positions."""
        return concatenate([slice_in_dim(y, i, i + 1, axis=op.dimension) for i in op.positions], op.dimension)

    flops = comparisons


# (values, indices): the k largest elements along an axis in descending order, of equal ones the first
@operation
class TopK:
    k: int
    axis: int
    fixed_params = {"is_stable": True}
    multiple_results = True
    name = "top_k"
    dtypes = ORDERED

    def result_type(op, x):
        if x.dtype not in ORDERED:
            raise DTypeMismatch(f"top_k: elements must be ordered, got {x}.")
        if not 0 <= op.axis < len(x.shape):
            raise BadArgument(f"top_k: {op.axis} is no axis of {x}.")
        if op.k < 0 or not fits(op.k, x.shape[op.axis]):
            raise BadArgument(f"top_k: k must be from 0 to the size of axis {op.axis}, got {op.k} for {x}.")
        if not fits(x.shape[op.axis], 2**31 - 1):
            raise BadArgument(f"top_k: indices must fit into i32, got an axis of size {x.shape[op.axis]}.")
        shape = (*x.shape[: op.axis], op.k, *x.shape[op.axis + 1 :])
        return array_type(shape, x.dtype, x.weak), array_type(shape, int32)

    def sharding_rule(op, operands, results):
        return alike(op, operands, results)._replace(whole={op.axis})

    def evaluate(op, x):
        order = np.argsort(~total_order(x), axis=op.axis, kind="stable")
        indices = np.take(order, range(op.k), axis=op.axis)
        return np.take_along_axis(x, indices, op.axis), indices

    def batch(op, dims, x):
        (d,) = dims
        return perform(shared(TopK, op.k, op.axis + int(d <= op.axis)), x), d

    def jvp(op, primals, tangents):
        values, indices = perform(op, *primals)
        return (values, indices), (take_along_axis(tangents[0], indices, op.axis), None)

    def lower(op, emit, x):
        rank = len(x.type.shape)
        order = [d for d in range(rank) if d != op.axis] + [op.axis]
        back = [order.index(d) for d in range(rank)]
        last = op.axis == rank - 1
        both = emit.top_k(x if last else emit.transpose(x, order), op.k)
        return both if last else [emit.transpose(y, back) for y in both]

    flops = comparisons


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """``operand`` in ascending order along ``dimension``; several arrays by one permutation.

    The first ``num_keys`` arrays are the keys, in lexicographic order. NaN is last; zeros of both signs are equal;
    complex numbers are ordered by their real, then by their imaginary parts. Tangents are permuted alike.

    Args:
        is_stable: whether elements with equal keys keep their order.
    Raises: ShapeMismatch: shapes differ. BadArgument: there is no such dimension, or ``num_keys`` is out of range.
    Source: the StableHLO specification, ``sort``.

    >>> sort(np.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int64)
    >>> sort((np.array([2, 1]), np.array([10, 20])))
    (Array([1, 2], dtype=int64), Array([20, 10], dtype=int64))
    """
    several = isinstance(operand, Sequence)
    xs = [as_array(x) for x in operand] if several else [as_array(operand)]
    if not xs:
        raise BadArgument("sort: there must be at least one array, got none.")
    axis = canonical_axis(dimension, len(xs[0].type.shape), "sort")
    results = perform(shared(Sort, axis, bool(is_stable), whole_number("sort: num_keys", num_keys)), *xs)
    return tuple(results) if several else results[0]


def order_statistics(x: Any, positions: Sequence[int], dimension: int = -1) -> Array:
    """The elements at these positions of the array sorted along a dimension, without sorting where that takes longer.

    Shapes: ``a[n] -> a[len(positions)]``.

    >>> order_statistics(np.array([3.0, 1.0, 2.0]), (0, 2))
    Array([1., 3.], dtype=float64)
    """
    x = as_array(x)
    axis = canonical_axis(dimension, len(x.type.shape), "order_statistics")
    y: Array = perform(shared(OrderStatistics, tuple(positions), axis), x)
    return y


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """``keys`` in ascending order along ``dimension``, and ``values`` by the same permutation.

    >>> sort_key_val(np.array([2, 1]), np.array([10, 20]))
    (Array([1, 2], dtype=int64), Array([20, 10], dtype=int64))
    """
    k, v = sort((keys, values), dimension, is_stable, 1)
    return k, v


def top_k(operand: Any, k: int, *, axis: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """The ``k`` largest elements along ``axis`` in descending order, and their indices.

    Of equal elements the first comes first. Floats are in IEEE 754's total order: NaN is the largest, 0 above -0.

    Shapes: ``a[n] -> (a[k], i32[k])``.
    Raises: BadArgument: ``k`` exceeds the size of the axis. DTypeMismatch: complex numbers.

    >>> top_k(np.array([1, 3, 2]), 2)
    (Array([3, 2], dtype=int64), Array([1, 2], dtype=int32))
    """
    x = as_array(operand)
    op = shared(TopK, as_size(k, "top_k: k"), canonical_axis(axis, len(x.type.shape), "top_k"))
    values, indices = perform(op, x)
    return values, indices
