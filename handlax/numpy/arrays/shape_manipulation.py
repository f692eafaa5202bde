"""Changing the shape and the order of axes, and rearranging elements: reshape, transpose, squeeze, flip, roll, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, DTypeMismatch, NotAnArray, ShapeMismatch
from ...effects.base.source_locations import warn_user
from ...effects.base.stack import current, perform
from ...effects.core.arrays import Array, ConcreteArray, as_array, duplicate, scalar
from ...effects.core.operation import shared
from ...effects.functions.out_shardings import cuts_result
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.indexing.dynamic_slicing import dynamic_slice_in_dim, index_holding
from ...effects.operations.manipulation import slicing
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, broadcast_shapes
from ...effects.operations.manipulation.rearranging import completed
from ...effects.operations.manipulation.slicing import Concatenate, Rev
from ...effects.sharding.sharding_rules import entries_of
from ...effects.types.dtypes import is_bool, is_integer
from ...effects.types.extent import Extent
from ...effects.types.lengths import read
from ...effects.types.sized import extents_in
from ...interpreters.core.eager_programs import programs
from .creation import asarray, shape_of
from .joining_splitting import unstack

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims", "flip", "fliplr", "flipud",
    "matrix_transpose", "moveaxis", "ndim", "permute_dims", "ravel", "reshape", "roll", "rollaxis", "rot90", "shape",
    "size", "squeeze", "swapaxes", "transpose",
]

INT32 = np.dtype("int32")


def ndim(a: Any) -> int:
    """The number of dimensions of ``a``, an array, a number or a nested list.

    >>> ndim(3.0), ndim([[1, 2]])
    (0, 2)
    """
    return a.ndim if hasattr(a, "ndim") else len(_shape_of("ndim", a))


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions of ``a``, an array, a number or a nested list.

    >>> shape(3.0), shape([[1, 2]])
    ((), (1, 2))
    """
    return read(*_shape_of("shape", a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements of ``a``, an array, a number or a nested list, or along the axes.

    >>> size(3.0), size([[1, 2]], 1)
    (1, 2)
    """
    sizes = _shape_of("size", a)
    if axis is not None:
        sizes = tuple([sizes[d] for d in shapes.canonical_axes(axis, len(sizes), "size")])
    return read(math.prod(sizes))[0]


def _shape_of(where: str, a: Any) -> tuple[Any, ...]:
    """The shape of ``a``; ``()`` of what is no array or list, with a warning: JAX will refuse it, but libraries ask it.

    Raises: NotAnArray: a list of what is no array.
    """
    if hasattr(a, "shape"):
        return a.shape
    try:
        return asarray(a).type.shape
    except NotAnArray:
        if isinstance(a, (list, tuple)):
            raise
        text = f"{where}: a number, an array or a list is needed, got {type(a).__name__}, which counts as a scalar."
        warn_user(text, DeprecationWarning)
        return ()


@cuts_result
def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Array:
    """The elements of ``a``, read in row-major order (``order="F"``: column-major), with another shape.

    One size may be -1: it is what remains.
    Raises: ShapeMismatch: the numbers of elements differ.

    >>> reshape(np.arange(6, dtype="int32"), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if not isinstance(order, str):
        hint = "the sizes of a shape are one tuple, reshape(x, (2, 3)); x.reshape(2, 3) takes them one by one."
        raise BadArgument(f"reshape: order must be 'C' or 'F', got {order!r}.", hint=hint)
    x = a if isinstance(a, Array) else as_array(a)
    sizes = completed(shape, x.type)
    if order == "C":
        if sizes != x.type.shape:
            return current().answer(shapes.Reshape(sizes), (x,))
        return duplicate(x) if copy else x
    if order != "F":
        raise BadArgument(f"reshape: order must be 'C' or 'F', got {order!r}.")
    return transpose(shapes.reshape(transpose(x), sizes[::-1]))


@cuts_result
def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements of ``a`` in row-major order (``order="F"``: column-major), as a vector.

    >>> ravel(np.array([[1, 2], [3, 4]], "int32"), "F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    x = a if isinstance(a, Array) else as_array(a)
    return shapes.reshape(x, (x.type.size,)) if order in ("C", "A", "K") else reshape(x, (x.type.size,), order)


def transpose(a: Any, axes: Any = None) -> Array:
    """Axis ``d`` of the result is axis ``axes[d]`` of ``a``; ``axes=None`` reverses their order.

    Shapes: ``a[s[0], s[1], ...] -> a[s[axes[0]], s[axes[1]], ...]``.

    >>> transpose(np.zeros((2, 3))).shape
    (3, 2)
    """
    x = a if isinstance(a, Array) else as_array(a)
    rank = len(x.type.shape)
    if axes is None:
        return x if rank < 2 else current().answer(shapes.Transpose(tuple(range(rank))[::-1]), (x,))
    order = [shapes.canonical_axis(axis, rank, "transpose") for axis in shapes.axes_listed(axes)]
    return shapes.permute(x, tuple(order))


def permute_dims(a: Any, /, axes: Sequence[int]) -> Array:
    """``transpose`` under its name in the array API standard.

    >>> permute_dims(np.zeros((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Array:
    """``x`` with its last two axes exchanged.

    >>> matrix_transpose(np.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = as_array(x)
    if x.ndim < 2:
        raise ShapeMismatch(f"matrix_transpose: a matrix is needed, got {x.type} of rank {x.ndim}.")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """``a`` with two axes exchanged.

    >>> swapaxes(np.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_array(a)
    order = list(range(x.ndim))
    first, second = shapes.canonical_axis(axis1, x.ndim, "swapaxes"), shapes.canonical_axis(axis2, x.ndim, "swapaxes")
    order[first], order[second] = second, first
    return shapes.permute(x, order)


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """``a`` with the axes ``source`` moved to ``destination``, the others in order.

    >>> moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(a)
    rank = x.ndim
    if isinstance(source, int) and isinstance(destination, int):
        first, last = [shapes.canonical_axis(axis, rank, "moveaxis") for axis in (source, destination)]
        return shapes.move_axis(x, first, last)
    sources, targets = (
        [shapes.canonical_axis(axis, rank, "moveaxis") for axis in (axes if hasattr(axes, "__iter__") else (axes,))]
        for axes in (source, destination)
    )
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise BadArgument(f"moveaxis: as many distinct axes must go as come, got {source} and {destination}.")
    order = [axis for axis in range(rank) if axis not in sources]
    for target, origin in sorted(zip(targets, sources)):
        order.insert(target, origin)
    return shapes.permute(x, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """``a`` with ``axis`` moved back until it lies before ``start``.

    >>> rollaxis(np.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_array(a)
    axis = shapes.canonical_axis(axis, x.ndim, "rollaxis")
    start = shapes.canonical_axis(start, x.ndim + (start >= 0), "rollaxis")
    return shapes.move_axis(x, axis, start - (axis < start))


def expand_dims(a: Any, axis: int | Sequence[int]) -> Array:
    """``a`` with axes of size 1 inserted, at these positions of the result.

    >>> expand_dims(np.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = a if isinstance(a, Array) else as_array(a)
    listed = shapes.axes_listed(axis)
    rank = len(x.type.shape) + len(listed)
    new = shapes.canonical_axes(listed, rank, "expand_dims")
    sizes = iter(x.type.shape)
    return shapes.reshape(x, tuple([1 if d in new else next(sizes) for d in range(rank)]))


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Array:
    """``a`` without the given axes, which must have size 1; without all axes of size 1 for ``axis=None``.

    Raises: ShapeMismatch: one of them has another size.

    >>> squeeze(np.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """
    x = a if isinstance(a, Array) else as_array(a)
    shape = x.type.shape
    if axis is None:
        if any([n.least <= 1 for n in extents_in(shape)]):
            raise ShapeMismatch(
                f"squeeze: which axes have size 1 must be the same in all lanes, got {x.type}.",
                hint="name the axes that go: axis=1.",
            )
        return shapes.reshape(x, tuple([n for n in shape if n != 1]))
    gone = shapes.canonical_axes(axis, len(shape), "squeeze")
    if any([shape[d] != 1 for d in gone]):
        raise ShapeMismatch(f"squeeze: axes that go must have size 1, got axes {gone} of {x.type}.")
    return shapes.reshape(x, tuple([n for d, n in enumerate(shape) if d not in gone]))


@cuts_result
def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Array:
    """``array`` broadcast to ``shape``: from the last axis on, sizes must be equal, or 1 in ``array``.

    Raises: ShapeMismatch: they are not.

    >>> broadcast_to(np.arange(2, dtype="int32"), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    x = array if isinstance(array, Array) else as_array(array)
    sizes = shape_of(shape, "broadcast_to")
    own = x.type.shape
    if own == sizes:
        return x
    if len(own) > len(sizes) or any([n != m and n != 1 for n, m in zip(own[::-1], sizes[::-1])]):
        raise ShapeMismatch(
            f"broadcast_to: {x.type} does not broadcast to {sizes}.",
            hint="sizes are compared from the last axis on: they must be equal, or 1 in the array.",
        )
    return shapes.broadcast(x, sizes)


def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    """All arguments broadcast to their common shape.

    >>> [x.shape for x in broadcast_arrays(np.zeros((2, 1)), np.zeros(3))]
    [(2, 3), (2, 3)]
    """
    xs = [as_array(x) for x in args]
    shape = broadcast_shape("broadcast_arrays", *[x.shape for x in xs])
    return tuple([broadcast_to(x, shape) for x in xs])


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Array:
    """``m`` with the order of elements along these axes reversed; along all axes for ``axis=None``.

    >>> flip(np.arange(3, dtype="int32"))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_array(m)
    axes = shapes.canonical_axes(axis, x.ndim, "flip")
    return perform(shared(Rev, axes), x) if axes else x


def fliplr(m: Any) -> Array:
    """``m`` with its second axis reversed.

    >>> fliplr(np.array([[1, 2]], "int32"))
    Array([[2, 1]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: Any) -> Array:
    """``m`` with its first axis reversed.

    >>> flipud(np.array([1, 2], "int32"))
    Array([2, 1], dtype=int32)
    """
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """``m`` turned ``k`` times by 90 degrees, from the first of two axes towards the second.

    >>> rot90(np.array([[1, 2], [3, 4]], "int32"))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = as_array(m)
    first, second = (shapes.canonical_axis(axis, x.ndim, "rot90") for axis in axes)
    if first == second:
        raise BadArgument(f"rot90: two different axes are needed, got {axes}.")
    match k % 4:
        case 0:
            return x
        case 1:
            return swapaxes(flip(x, second), first, second)
        case 2:
            return flip(x, (first, second))
    return flip(swapaxes(x, first, second), second)


def roll(a: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """``roll(x, k)[i] == x[(i - k) % n]`` along each of the axes; of the flattened array for ``axis=None``.

    ``shift`` may be a traced array. Raises: DTypeMismatch: one of neither integers nor booleans.

    >>> roll(np.arange(4, dtype="int32"), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    x = as_array(a)
    if axis is None:
        return shapes.reshape(roll(shapes.reshape(x, (x.size,)), shift, 0), x.shape)
    axes = shapes.axes_listed(axis)
    steps = list(_steps(shift))
    if len(steps) == 1:
        steps = steps * len(axes)
    elif len(axes) == 1:
        axes = axes * len(steps)
    if len(steps) != len(axes):
        raise ShapeMismatch(f"roll: one shift, or one for each axis, is needed, got {len(steps)} for axes {axis}.")
    for step, along in zip(steps, axes):
        x = _roll(x, step, shapes.canonical_axis(along, x.ndim, "roll"))
    return x


def _steps(shift: Any) -> list[Any]:
    """The shifts of ``roll`` as a list: Python numbers, or traced integers of rank 0."""
    parts = shift if isinstance(shift, (tuple, list)) else (shift,)
    return [step for part in parts for step in _steps_of(part)]


def _steps_of(shift: Any) -> Any:
    """Those of an array or a number."""
    if isinstance(shift, Array) and not isinstance(shift, ConcreteArray):
        if not (is_integer(shift.dtype) or is_bool(shift.dtype)):
            raise DTypeMismatch(f"roll: shift must be integers, got {shift.type}.", hint="shift.astype(int).")
        counts = convert(shift, INT32) if is_bool(shift.dtype) else shift
        return unstack(counts) if shift.ndim else [counts]
    return np.ravel(np.asarray(shift)).tolist()


def _roll(x: Any, step: Any, axis: int) -> Any:
    """``x`` rolled by ``step``, an integer or a traced scalar, along one axis."""
    size: Any = x.shape[axis]
    if not size:
        return x
    if isinstance(size, Extent):
        count = maximum(convert(size, INT32), scalar(1, INT32))
        source = (iota(INT32, shapes.canonical_shape(size)[0]) - convert(step, INT32)) % count
        return x[(*(slice(None),) * axis, source)]
    if isinstance(step, Array) and not isinstance(step, ConcreteArray):
        step = index_holding(step, 2 * size) % size
    else:
        step = int(step) % size
        if not step:
            return x
        if entries_of(x.type)[axis] is None:
            return perform(Concatenate(axis), *slicing.split(x, (size - step, step), axis)[::-1])
    return dynamic_slice_in_dim(perform(Concatenate(axis), x, x), size - step, size, axis)


programs(globals(), direct=("ndim", "ravel", "shape", "size"))
