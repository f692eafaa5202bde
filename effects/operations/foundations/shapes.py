"""Operations that move elements and change none: broadcast, reshape, transpose; and the sum, adjoint of broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from operator import methodcaller
from typing import Any, ClassVar

import numpy as np

from ...base.errors import (
    BadArgument,
    BadAxis,
    BadShape,
    ConcretizationError,
    DTypeMismatch,
    EscapedBox,
    ShapeMismatch,
    ShardingTypeError,
    TracerIntegerConversionError,
)
from ...base.later_layers import LaterLayers
from ...base.stack import BASE, current, perform
from ...core import columns
from ...core.arrays import Array, Box, as_array, concrete, scalar
from ...core.columns import data_movement, linear, per_operand
from ...core.operation import Operation, operation, shared
from ...core.varying import vary
from ...sharding.partition_spec import entry_axes
from ...sharding.sharding_rules import ANOTHER_WAY, ShardingRule, entries_of, numbered, reduced
from ...types import dtypes
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import FOUR_BITS, NUMERIC, ExtendedDType
from ...types.extent import SYMBOLIC, Extent, as_size, is_size, length, positive
from .half_precision import AS_ARRAY, HALF, in_bytes
from .sharding_constraint import reveal


def canonical_axis(axis: Any, rank: int, name: str, *, of_list: bool = False) -> int:
    """``axis`` counted from the front. Raises BadAxis, which names ``name``: there is no such axis.

    ``of_list``: the axis follows a list of arrays, so that an array in its place belongs into the list.
    """
    try:
        index = axis.__index__()
    except ConcretizationError:
        raise _traced(f"{name}: an axis must be known, got {axis.described}.") from None
    except (AttributeError, TypeError):
        if isinstance(axis, Array):
            two = "an axis is an integer; two arrays are combined by functions such as hx.numpy.maximum and add."
            hint = f"several arrays are one list, {name}([x, y])." if of_list else two
            raise BadAxis(f"{name}: an axis must be an integer, got {axis.type}.", hint=hint) from None
        raise BadAxis(f"{name}: an axis must be an integer, got {axis!r}.") from None
    if not -rank <= index < rank:
        hint = f"axes are counted from 0: its last one is {rank - 1}, or -1." if rank else "a scalar has no axes."
        raise BadAxis(f"{name}: axis {index} is out of range for an array of rank {rank}.", hint=hint)
    return index + rank if index < 0 else index


def _traced(message: str) -> TracerIntegerConversionError:
    """The error for a traced value where a Python integer is needed."""
    hint = "make the argument that it comes from static (static_argnums), or use x.shape, which is always known."
    return TracerIntegerConversionError(message, hint=hint)


def axes_listed(axes: Any) -> tuple[Any, ...]:
    """One axis, or any sequence or vector of them, as a tuple."""
    several = hasattr(axes, "__iter__") and not isinstance(axes, str) and getattr(axes, "shape", None) != ()
    return tuple(axes) if several else (axes,)


def canonical_axes(axes: Any, rank: int, name: str) -> tuple[int, ...]:
    """Sorted, distinct axes counted from the front; None is all of them, an int one."""
    if axes is None:
        return tuple(range(rank))
    result = tuple(sorted(canonical_axis(axis, rank, name) for axis in axes_listed(axes)))
    if len(set(result)) != len(result):
        raise BadArgument(f"{name}: axes must be distinct, got {axes}.")
    return result


def canonical_shape(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """A shape as a tuple of non-negative ints. Raises BadArgument: it is none."""
    if is_size(shape):
        shape = (shape,)
    try:
        sizes = tuple([positive(as_size(size)) if isinstance(size, SYMBOLIC) else as_size(size) for size in shape])
    except ConcretizationError:
        sizes = (shape,) if isinstance(shape, Array) else shape
        shown = tuple([x.type if isinstance(x, Array) else x for x in sizes])
        origin = next(x.origin for x in sizes if isinstance(x, Box))
        raise _traced(f"{name}: the sizes of a shape must be known, got {shown}{origin}.") from None
    except (AttributeError, TypeError):
        raise BadShape(f"{name}: a shape is a sequence of integers, got {shape!r}.") from None
    if any(size < 0 for size in sizes):
        raise BadArgument(f"{name}: sizes must not be negative, got {sizes}.")
    return sizes


# y[i] = x[i at dims], for every i in shape; a dimension of size 1 in x is repeated
@operation
class BroadcastInDim:
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    param_names = {"dims": "broadcast_dimensions"}
    fixed_params = {"sharding": None}
    cheap_to_recompute = True

    def result_type(op, x):
        ok = len(op.dims) == len(x.shape) and all(
            0 <= d < len(op.shape) and (n == op.shape[d] or n == 1) for d, n in zip(op.dims, x.shape)
        )
        if not ok or any(a >= b for a, b in zip(op.dims, op.dims[1:])):
            raise ShapeMismatch(
                f"broadcast_in_dim: {x} does not fit into {op.shape} at dimensions {op.dims}.",
                hint="dims are strictly increasing, one for each dimension of the operand, of equal size or size 1.",
            )
        return array_type(op.shape, x.dtype, x.weak)

    def sharding_rule(op, operands, results):  # what is repeated is whole
        (x,) = operands
        factors = {d: i for i, d in enumerate(op.dims) if x.shape[i] == op.shape[d]}
        return ShardingRule([numbered(x)], [[factors.get(d) for d in numbered(results[0])]])

    def evaluate(op, x):
        sizes = [1] * len(op.shape)
        for d, n in zip(op.dims, x.shape):
            sizes[d] = n
        tail = x.shape[len(op.dims) :]  # the key data
        return broadcast_data(x.reshape((*sizes, *tail)), (*op.shape, *tail))

    def batch(op, dims, x):
        x = move_axis(x, dims[0], 0)
        size = x.shape[0]
        return broadcast_in_dim(x, (size, *op.shape), (0, *[d + 1 for d in op.dims])), 0

    jvp = linear

    def transpose(op, ct, x):
        axes = [i for i in range(len(op.shape)) if i not in op.dims]
        repeated = [d for d, n in zip(op.dims, x.shape) if n == 1 and op.shape[d] != 1]
        y = reduce_sum(ct, (*axes, *repeated))
        return reshape(y, x.shape) if repeated else y

    def lower(op, emit, x):
        return emit.broadcast_in_dim(x, op.shape, op.dims)

    flops = data_movement


def batch_reduction(op: Any, dims: tuple[int, ...], x: Any) -> tuple[Any, int]:
    """The cell ``batch`` of a reduction: the same reduction with its axes renumbered."""
    (dim,) = dims
    axes = tuple([axis + (axis >= dim) for axis in op.axes])
    y = perform(type(op)(axes, *op.fields[1:]), x)
    return y, dim - sum(axis < dim for axis in axes)


class Reduction(Operation):
    """A reduction over the dimensions ``axes`` by an associative, commutative operation.

    ``ufunc`` and ``stablehlo`` are NumPy's and StableHLO's names of this operation; ``unit(dtype)`` is its identity.
    """

    __slots__ = ()
    axes: tuple[int, ...]
    ufunc: ClassVar[np.ufunc]
    stablehlo: ClassVar[str]
    unit: ClassVar[Any] = staticmethod(lambda dtype: 0)
    costly = True
    batch = batch_reduction
    sharding_rule = reduced
    flops = per_operand

    def result_type(self, x: ArrayType) -> ArrayType:
        return reduced_type(self, x)


class UfuncReduction(Reduction):
    """A reduction that is that of its ``ufunc``; sums and products of 16-bit floats are computed in float32."""

    __slots__ = ()
    dtypes = NUMERIC | FOUR_BITS

    def keywords(self, dtype: Any) -> dict[str, Any]:
        """The arguments of ``ufunc.reduce`` by keyword, for computing in this dtype."""
        return {"axis": self.axes, "dtype": dtype}

    @in_bytes
    def evaluate(op, x):
        return op.ufunc.reduce(x, **op.keywords(dtypes.float32 if x.dtype in HALF else x.dtype))

    def numpy_function(self, types: Sequence[ArrayType]) -> Callable[..., Any] | None:
        dtype = types[0].dtype
        if dtype in HALF or dtype in FOUR_BITS:
            return None
        return partial(self.ufunc.reduce, **self.keywords(dtype), **AS_ARRAY)

    def lower(op, emit, x):
        return emit.wide(x, lambda x: emit.reduce(op.stablehlo, x, op.unit(x.type.dtype), op.axes))


# y[j] = sum of x[i] over i along axes
@operation
class ReduceSum(UfuncReduction):
    axes: tuple[int, ...]
    fixed_params = {"out_sharding": None}
    ufunc, stablehlo = np.add, "add"
    jvp = linear

    @property
    def summed_dims(op):
        return (op.axes,)

    def of_parts(op, x):
        """The sums of each part of the dimensions summed over."""
        gone = sorted([k for d in op.axes for k in x.inner[d]])
        return reduce_sum(x.array, tuple(gone)), [k - sum([g < k for g in gone]) for k in x.lanes]

    def transpose(op, ct, x):
        return broadcast_along(ct, x.shape, op.axes)


# y = x in row-major order with another shape
@operation
class Reshape:
    shape: tuple[int, ...]
    param_names = {"shape": "new_sizes"}
    fixed_params = {"dimensions": None, "sharding": None}
    is_view = True

    def result_type(op, x):
        if prod(op.shape) != prod(x.shape):
            raise ShapeMismatch(
                f"reshape: sizes must agree, got {x} with {prod(x.shape)} elements "
                f"for {op.shape} with {prod(op.shape)}.",
                hint="one size may be -1: it follows from the others, whose product divides the number of elements.",
            )
        return array_type(op.shape, x.dtype, x.weak)

    def sharding_rule(op, operands, results):
        return [reshaped_entries(operands[0], op.shape)]

    def evaluate(op, x):
        key_data = x.shape[-1:] if prod(x.shape) != prod(op.shape) else ()
        return x.reshape((*op.shape, *key_data))

    def numpy_function(op, types):
        return None if isinstance(types[0].dtype, ExtendedDType) else methodcaller("reshape", op.shape)

    def batch(op, dims, x):
        x = move_axis(x, dims[0], 0)
        return reshape(x, (x.shape[0], *op.shape)), 0

    jvp = linear

    def transpose(op, ct, x):
        return reshape(ct, x.shape)

    def lower(op, emit, x):
        return emit.reshape(x, op.shape)

    flops = data_movement


def reshaped_entries(x: ArrayType, shape: tuple[int, ...]) -> list[Any]:
    """The entry of each dimension where ``x`` is reshaped to ``shape``: by runs of dimensions with equal products.

    The axes that cut a run, the major ones first, cut its new dimensions, where each must divide the size that it
    meets. Dimensions of size 1 come and go.

    Raises: ShardingTypeError: a dimension that is whole stands before one that is cut, or a size does not divide.
    """
    entries: list[Any] = [None] * len(shape)
    sizes = {} if x.cut is None else dict(x.cut.mesh.shape_tuple)
    for old, new in _runs(x.shape, shape):
        axes = [axis for d in old for axis in entry_axes(entries_of(x)[d]) or (None,)]
        while axes and axes[-1] is None:
            axes.pop()
        rest, taken = list(axes), []
        if None not in axes and not (len(old) > 1 and len(new) > 1):
            for d in new:
                size = shape[d]
                while rest and size % sizes[rest[0]] == 0:
                    size //= sizes[rest[0]]
                    taken.append((d, rest.pop(0)))
                if size > 1:
                    break
        if rest:
            raise ShardingTypeError(
                f"reshape: the result may be cut in several ways, got {x} for {shape}.", hint=ANOTHER_WAY)
        for d in new:
            own = tuple([axis for at, axis in taken if at == d])
            entries[d] = own if len(own) > 1 else own[0] if own else None
    return entries


def _runs(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The shortest runs of dimensions of both shapes, those of size 1 left out, whose products are equal.

    None where there is no element.
    """
    if 0 in old:
        return []
    before, after = ([d for d, n in enumerate(shape) if n != 1] for shape in (old, new))
    runs = []
    while before and after:
        a, b = [before.pop(0)], [after.pop(0)]
        while (m := prod([old[d] for d in a])) != (n := prod([new[d] for d in b])):
            (a if m < n else b).append((before if m < n else after).pop(0))
        runs.append((a, b))
    return runs


# y[i] = x[i permuted]: dimension d of y is dimension permutation[d] of x
@operation
class Transpose:
    permutation: tuple[int, ...]

    @property
    def is_view(op):
        return len(op.permutation) == 2  # what reads it takes either order of two dimensions

    def result_type(op, x):
        if sorted(op.permutation) != list(range(len(x.shape))):
            raise BadArgument(f"transpose: {op.permutation} is no permutation of the dimensions of {x}.")
        return array_type(tuple([x.shape[d] for d in op.permutation]), x.dtype, x.weak)

    def sharding_rule(op, operands, results):
        return ShardingRule([numbered(operands[0])], [op.permutation])

    def evaluate(op, x):
        rank = len(op.permutation)
        return np.transpose(x, (*op.permutation, *range(rank, x.ndim)))

    def numpy_function(op, types):
        return None if isinstance(types[0].dtype, ExtendedDType) else methodcaller("transpose", op.permutation)

    def batch(op, dims, x):
        (d,) = dims
        moved = [p + (p >= d) for p in op.permutation]
        return permute(x, (d, *moved)), 0

    jvp = linear

    def transpose(op, ct, x):
        return permute(ct, inverse_permutation(op.permutation))

    def lower(op, emit, x):
        return emit.transpose(x, op.permutation)

    flops = data_movement


def broadcast_data(x: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """NumPy's ``broadcast_to``; a small result is a new array, which is faster to make than a view."""
    if prod(shape) > 4096:
        return np.broadcast_to(x, shape)
    y = np.empty(shape, x.dtype)
    y[...] = x
    return y


def inverse_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """``inverse[permutation[i]] == i``."""
    inverse = [0] * len(permutation)
    for i, p in enumerate(permutation):
        inverse[p] = i
    return tuple(inverse)


def need_dtype(op: Any, x: ArrayType) -> None:
    """Raises DTypeMismatch: the operation declares the dtypes that it takes, and that of ``x`` is none of them."""
    if op.dtypes is not None and x.dtype not in op.dtypes:
        raise DTypeMismatch(f"{op.name}: does not take {x}.")


def reduced_type(op: Any, x: ArrayType) -> ArrayType:
    """The type of ``x`` without the dimensions ``op.axes``, which are checked, as is the dtype."""
    need_dtype(op, x)
    rank = len(x.shape)
    if any(not 0 <= axis < rank for axis in op.axes) or len(set(op.axes)) != len(op.axes):
        raise BadArgument(f"{op.name}: axes must be distinct dimensions of {x}, got {op.axes}.")
    return array_type(tuple([n for i, n in enumerate(x.shape) if i not in op.axes]), x.dtype, x.weak)


def broadcast_in_dim(x: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Array:
    """``y[i] = x[i[d] for d in broadcast_dimensions]``.

    Raises: ShapeMismatch: a size of ``x`` is neither 1 nor the size in ``shape``.
    """
    x = as_array(x)
    shape = tuple(shape)
    if shape == x.type.shape and len(broadcast_dimensions) == len(shape):
        return x
    return perform(shared(BroadcastInDim, shape, tuple(broadcast_dimensions)), x)


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """NumPy's broadcasting: dimensions of ``x`` are the last ones of ``shape``."""
    return broadcast_in_dim(x, shape, last_dims(x.type.shape, shape))


def broadcast_along(x: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Any:
    """A result of a reduction over ``axes`` of an array of this shape, repeated along them."""
    return broadcast_in_dim(x, shape, tuple([d for d in range(len(shape)) if d not in axes]))


def last_dims(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The last dimensions of ``shape``, as many as ``own`` has: those to which such an array is broadcast."""
    return tuple(range(len(shape) - len(own), len(shape)))


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """The sum of ``x`` over ``axes``."""
    return perform(shared(ReduceSum, tuple(sorted(axes))), x) if axes else x


def sum_all(x: Any) -> Any:
    """The sum of all elements."""
    return reduce_sum(x, tuple(range(len(x.type.shape))))


def reshape(x: Any, shape: tuple[int, ...]) -> Array:
    """``x`` in row-major order with another shape."""
    return x if x.type.shape == shape else perform(shared(Reshape, shape), x)


def permute(x: Any, permutation: Sequence[int]) -> Any:
    """Dimension ``d`` of the result is dimension ``permutation[d]`` of ``x``."""
    permutation = tuple(permutation)
    return x if permutation == tuple(range(len(x.type.shape))) else perform(shared(Transpose, permutation), x)


def move_axis(x: Any, source: int, target: int) -> Array:
    """One dimension moved, the others in order."""
    if source == target:
        return x
    order = [d for d in range(len(x.type.shape)) if d != source]
    order.insert(target, source)
    return permute(x, order)


def full(type: ArrayType, value: Any) -> Any:
    """The array of this type whose elements are all ``value``."""
    dtype = type.dtype
    if isinstance(dtype, ExtendedDType):
        single = concrete(type.update(shape=()), np.full(dtype.shape, value, dtype.base))
    else:
        single = scalar(value, dtype, type.weak)
    return perform(shared(BroadcastInDim, type.shape, ()), single) if type.shape else single


def zeros(type: ArrayType) -> Any:
    """Zeros of this type: the value of a symbolic zero."""
    return reveal(vary(full(type, 0), type.varying), type.cut)


columns.TangentArithmetic.zeros = zeros


# y = size, a number; of an extent the length of the lane, which the handler of the lanes knows
@operation
class SizeOf:
    size: int | Extent
    exempt = {"jvp": "it has no operands", "transpose": "it has no operands", "batch": "it has no operands"}

    def result_type(op):
        return array_type((), dtypes.default_int(), True)

    def evaluate(op):
        return np.int64(op.size)

    def lower(op, emit):
        return emit.constant(op.size, emit.made)

    flops = data_movement


def lane_length(size: Extent) -> Any:
    """The length of a lane as a number, weakly typed as ``x.shape[0]`` is elsewhere."""
    if current() is BASE:
        raise EscapedBox(
            f"shape: {size} is the length of a lane of a vmap that has ended.",
            hint="compute with it inside of the mapped function, and return the result.",
        )
    return size.at({n: perform(SizeOf(length(n))) for n in size.lengths})


LaterLayers.lane_length = staticmethod(lane_length)

