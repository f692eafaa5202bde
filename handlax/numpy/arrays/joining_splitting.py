"""Joining and splitting arrays: concatenate, stack, block, split, unstack, atleast_1d and their kin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ...effects.base.errors import BadArgument, NotAnArray, ShapeMismatch, whole_number
from ...effects.base.stack import perform
from ...effects.core.arrays import Array, as_array
from ...effects.core.operation import shared
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.manipulation import slicing
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.operations.manipulation.slicing import Concatenate
from ...effects.types import dtypes
from ...effects.types.extent import Extent, floor_divided, positive
from ...effects.types.parts_of_axes import smaller
from ...interpreters.core.eager_programs import programs
from .argument_conversion import no_out

__all__ = [
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack", "concat", "concatenate", "dsplit",
    "dstack", "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack",
]


def operands(arrays: Any, where: str, dtype: Any = None) -> list[Any]:
    """The items of a sequence of arrays, as arrays of one dtype."""
    if not hasattr(arrays, "__iter__"):
        raise BadArgument(f"{where}: a sequence of arrays is needed, got {type(arrays).__name__}.")
    xs = list(arrays)
    if not xs:
        raise BadArgument(f"{where}: at least one array is needed, got none.")
    return promote(*xs) if dtype is None else [convert(x, dtypes.canonical(dtype)) for x in xs]


def _sliced(arrays: Any, where: str, dtype: Any = None) -> Any:
    """The one array that stands for the sequence of its slices along the first axis; None for another sequence."""
    if not isinstance(arrays, (Array, np.ndarray)):
        return None
    x = as_array(arrays) if dtype is None else convert(arrays, dtypes.canonical(dtype))
    if not x.ndim or not x.type.shape[0]:
        raise BadArgument(f"{where}: at least one array is needed, got {x.type}.")
    return x


def _widened(arrays: Any, where: str, wide: Callable[[Any], Any], dtype: Any = None) -> Any:
    """The arrays with the shape ``wide(shape)`` each, as a list, or as one array that stands for its slices."""
    x = _sliced(arrays, where, dtype)
    if x is None:
        return [shapes.reshape(x, wide(x.type.shape)) for x in operands(arrays, where, dtype)]
    return shapes.reshape(x, (x.type.shape[0], *wide(x.type.shape[1:])))


def joined_along(xs: list[Any], axis: int) -> Any:
    """The arrays, which have one dtype, one after another along ``axis``, which counts from the front."""
    return xs[0] if len(xs) == 1 else perform(shared(Concatenate, int(axis)), *xs)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """The arrays one after another along ``axis``, promoted to one dtype; ``axis=None`` flattens them first.

    Shapes: ``a[n, *s], a[m, *s] -> a[n + m, *s]`` for ``axis=0``.
    Raises: ShapeMismatch: they differ in another size, or have rank 0.

    >>> concatenate([np.zeros(2, "float32"), np.ones(1, "float32")])
    Array([0., 0., 1.], dtype=float32)
    """
    whole = _sliced(arrays, "concatenate", dtype)
    xs = operands(arrays, "concatenate", dtype) if whole is None else [whole]
    if axis is None:
        xs, axis, whole = [shapes.reshape(x, (x.size,)) for x in xs], 0, None
    rank = len(xs[0].type.shape) - (whole is not None)
    if not rank:
        found = ", ".join(str(x.type) for x in xs) if whole is None else f"the elements of {whole.type}"
        raise ShapeMismatch(
            f"concatenate: arrays must have at least rank 1, got {found}.",
            hint="the arrays are one list, concatenate([x, y]); stack puts scalars into an array.",
        )
    if not (axis.__class__ is int and 0 <= axis < rank):
        axis = canonical_axis(axis, rank, "concatenate", of_list=True)
    if whole is None:
        return joined_along(xs, axis)
    shape = whole.type.shape[1:]
    return shapes.reshape(
        shapes.move_axis(whole, 0, axis), (*shape[:axis], whole.type.shape[0] * shape[axis], *shape[axis + 1 :])
    )


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """``concatenate`` under its name in the array API standard.

    >>> concat([np.zeros(2, "int8"), np.ones(1, "int8")])
    Array([0, 0, 1], dtype=int8)
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """``stack(xs)[k] == xs[k]``: arrays of one shape along a new dimension ``axis``, promoted to one dtype.

    Shapes: ``k`` times ``a[*s]`` gives ``a[k, *s]`` for ``axis=0``.
    Raises: ShapeMismatch: the shapes differ.

    >>> stack([1.0, 2.0])
    Array([1., 2.], dtype=float32, weak_type=True)
    """
    no_out(out, "stack")
    whole = _sliced(arrays, "stack", dtype)
    if whole is not None:
        return shapes.move_axis(whole, 0, canonical_axis(axis, whole.ndim, "stack", of_list=True))
    xs = operands(arrays, "stack", dtype)
    shape = xs[0].type.shape
    if any([x.type.shape != shape for x in xs]):
        raise ShapeMismatch(f"stack: arrays must have one shape, got {', '.join(str(x.type) for x in xs)}.")
    if not (axis.__class__ is int and 0 <= axis <= len(shape)):
        axis = canonical_axis(axis, len(shape) + 1, "stack", of_list=True)
    wide = (*shape[:axis], 1, *shape[axis:])
    return joined_along([shapes.reshape(x, wide) for x in xs], axis)


def atleast_1d(*arys: Any) -> Array:
    """Each argument as an array of rank 1 at least; a tuple where there are several.

    >>> atleast_1d(2.0).shape
    (1,)
    """
    return _each(arys, _at_least_1d)


def atleast_2d(*arys: Any) -> Array:
    """Each argument as an array of rank 2 at least, a vector as a row; a tuple where there are several.

    >>> atleast_2d(np.zeros(3)).shape
    (1, 3)
    """
    return _each(arys, _at_least_2d)


def atleast_3d(*arys: Any) -> Array:
    """Each argument as an array of rank 3 at least, ``[n]`` as ``[1, n, 1]``; a tuple where there are several.

    >>> atleast_3d(np.zeros((2, 3))).shape
    (2, 3, 1)
    """
    return _each(arys, _at_least_3d)


def _at_least_1d(shape: Any) -> Any:
    return shape or (1,)


def _at_least_2d(shape: Any) -> Any:
    return (1,) * (2 - len(shape)) + shape


def _at_least_3d(shape: Any) -> Any:
    return (*shape, 1) if len(shape) == 2 else shape if len(shape) > 2 else (1, *_at_least_1d(shape), 1)


def _each(arys: tuple[Any, ...], wide: Callable[[Any], Any]) -> Any:
    """Each argument as an array of shape ``wide(shape)``: one result, or a tuple of several."""
    made = tuple([shapes.reshape(x, wide(x.type.shape)) for x in map(as_array, arys)])
    return made[0] if len(made) == 1 else made


def vstack(tup: Any, dtype: Any = None) -> Array:
    """The arrays concatenated along the first axis, vectors as rows.

    >>> vstack([np.zeros(3), np.ones((2, 3))]).shape
    (3, 3)
    """
    return concatenate(_widened(tup, "vstack", _at_least_2d, dtype))


def hstack(tup: Any, dtype: Any = None) -> Array:
    """The arrays concatenated along the second axis, vectors along their only one.

    >>> hstack([np.zeros((2, 1)), np.ones((2, 3))]).shape
    (2, 4)
    """
    xs = _widened(tup, "hstack", _at_least_1d, dtype)
    rank = xs[0].ndim if isinstance(xs, list) else xs.ndim - 1
    return concatenate(xs, 0 if rank == 1 else 1)


def dstack(tup: Any, dtype: Any = None) -> Array:
    """The arrays concatenated along the third axis, with the shapes of ``atleast_3d``.

    >>> dstack([np.zeros(3), np.ones(3)]).shape
    (1, 3, 2)
    """
    return concatenate(_widened(tup, "dstack", _at_least_3d, dtype), 2)


def column_stack(tup: Any) -> Array:
    """The arrays concatenated along the second axis, vectors as columns.

    >>> column_stack([np.zeros(3), np.ones((3, 2))]).shape
    (3, 3)
    """
    return concatenate(_widened(tup, "column_stack", lambda shape: shape + (1,) * (2 - len(shape))), 1)


_Nested: TypeAlias = type[Sequence[Any]] | tuple[type[Sequence[Any]], ...]


def block(arrays: Any) -> Array:
    """A block matrix: the innermost lists are joined along the last axis, the next along the one before it.

    >>> block([[np.ones((2, 2)), np.zeros((2, 1))]]).shape
    (2, 3)
    """
    items, depth = leaves(arrays, "block", list), _depth(arrays)
    xs = promote(*items)
    return _block(arrays, iter(xs), max(depth, *[x.ndim for x in xs]), depth)


def leaves(items: Any, name: str = "array", nested: _Nested = (list, tuple)) -> list[Any]:
    """The items of nested lists and tuples, from left to right.

    Raises: NotAnArray: they are nested too deeply, or contain themselves.
    """
    try:
        return _leaves(items, nested)
    except RecursionError:
        raise endless_list(name) from None


def _leaves(items: Any, nested: _Nested) -> list[Any]:
    return [leaf for item in items for leaf in _leaves(item, nested)] if isinstance(items, nested) else [items]


def endless_list(name: str) -> NotAnArray:
    """The error of nested lists whose end is not found."""
    return NotAnArray(f"{name}: the list is nested too deeply, or contains itself.")


def _depth(arrays: Any) -> int:
    """How deep the lists are nested. Raises ShapeMismatch: not equally deep everywhere, or a list is empty."""
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(item) for item in arrays}
    if len(depths) != 1:
        raise ShapeMismatch("block: lists must be nested equally deep and not be empty.")
    return 1 + depths.pop()


def _block(arrays: Any, leaves: Iterator[Any], rank: int, depth: int) -> Any:
    """``block`` of nested lists, ``depth`` deep, whose arrays are replaced by those that ``leaves`` gives in order."""
    if isinstance(arrays, list):
        return concatenate([_block(item, leaves, rank, depth - 1) for item in arrays], -depth)
    x = next(leaves)
    return shapes.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of ``x`` along ``axis``: ``stack(unstack(x)) == x``.

    >>> unstack(np.arange(2, dtype="int32"))
    (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    x = as_array(x)
    shape = x.type.shape
    axis = canonical_axis(axis, len(shape), "unstack")
    rest = (*shape[:axis], *shape[axis + 1 :])
    if not shape[axis]:
        return ()
    return tuple([shapes.reshape(part, rest) for part in slicing.split(x, (1,) * shape[axis], axis)])


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The pieces of ``ary`` along ``axis``: cut at these indices, or into n of nearly equal size, larger ones first.

    >>> [part.shape for part in array_split(np.zeros(5), 2)]
    [(3,), (2,)]
    """
    return _split(ary, indices_or_sections, axis, "array_split")


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The pieces of ``ary`` along ``axis``: cut at these indices, or into n of equal size.

    Raises: ShapeMismatch: the size is not a multiple of the number of pieces.

    >>> [part.shape for part in split(np.zeros(5), [2, 3])]
    [(2,), (1,), (2,)]
    """
    return _split(ary, indices_or_sections, axis, "split")


def _split(ary: Any, where_to: Any, axis: int, where: str) -> list[Any]:
    """``split``, or ``array_split``, which ``where`` names, by indices or a number of pieces."""
    x = as_array(ary)
    axis = canonical_axis(axis, x.ndim, where)
    size = x.shape[axis]
    if isinstance(where_to, (list, tuple)) or np.ndim(where_to) > 0:
        cuts = [positive(i + size) if i < 0 else smaller(i, size) for i in [int(i) for i in where_to]]
        edges = [0, *cuts, size]
        if not isinstance(size, Extent) and all(a <= b for a, b in pairwise(edges)):
            return slicing.split(x, [b - a for a, b in pairwise(edges)], axis)
        return [slicing.slice_in_dim(x, a, a + positive(b - a), axis=axis) for a, b in pairwise(edges)]
    count = whole_number(f"{where}: the number of pieces", where_to)
    if count < 1:
        raise BadArgument(f"{where}: the number of pieces must be at least 1, got {count}.")
    part, more = divmod(size, count)
    if more and where != "array_split":
        raise ShapeMismatch(
            f"{where}: {count} equal pieces were asked for, got size {size} along axis {axis} of {x.type}.",
            hint="array_split gives pieces of nearly equal size.",
        )
    if isinstance(more, Extent):
        edges = [sum([floor_divided(size + count - 1 - i, count) for i in range(k)]) for k in range(count)]
        return [slicing.slice_in_dim(x, a, b, axis=axis) for a, b in pairwise([*edges, size])]
    return slicing.split(x, [part + 1] * more + [part] * (count - more), axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """``split`` along the first axis.

    >>> [part.shape for part in vsplit(np.zeros((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split(ary, indices_or_sections, 0, "vsplit")


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """``split`` along the second axis, of a vector along its only one.

    >>> [part.shape for part in hsplit(np.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = as_array(ary)
    return _split(x, indices_or_sections, 0 if x.ndim == 1 else 1, "hsplit")


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """``split`` along the third axis.

    >>> [part.shape for part in dsplit(np.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split(ary, indices_or_sections, 2, "dsplit")


programs(globals())
