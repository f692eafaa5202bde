"""Array creation from a shape or a value, and from existing data: zeros, full, array, asarray, frombuffer, ..."""

from __future__ import annotations

from array import array as python_array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.errors import BadArgument, IntegerOverflow, NotAnArray, ShapeMismatch, whole_number
from ...effects.base.source_locations import warn_user
from ...effects.base.tracebacks import boundary
from ...effects.core.arrays import (
    PYTHON_NUMBERS,
    Array,
    as_array,
    concrete,
    duplicate,
    from_numpy,
    is_number,
    scalar,
    type_of,
    without_subclass,
)
from ...effects.functions.out_shardings import cut, cuts_result
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_shape
from ...effects.operations.manipulation.creation import iota
from ...effects.types import dtypes
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.casting import cast
from ...interpreters.transformations.vmap import vmap
from ...lowering.arrays.device_put import device_put, put_like
from ...lowering.arrays.imported_arrays import imported
from .joining_splitting import endless_list, leaves, stack

__all__ = [
    "array", "asarray", "astype", "copy", "empty", "empty_like", "from_dlpack", "frombuffer", "fromfile",
    "fromfunction", "fromiter", "fromstring", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
]


_BUFFERS = (memoryview, bytearray, python_array)  # Python's own arrays of numbers
_ARRAYS = (np.generic, np.ndarray, Array)


def shape_of(shape: Any, where: str) -> tuple[int, ...]:
    """A shape given as NumPy takes it: one integer, or a sequence of integers."""
    if shape.__class__ is not tuple and (isinstance(shape, int) or (isinstance(shape, _ARRAYS) and not shape.shape)):
        shape = (shape,)
    return canonical_shape(shape, where)


def placed(x: Any, device: Any) -> Any:
    """``x`` on ``device``; unchanged for None."""
    return x if device is None else device_put(x, device)


@cuts_result
def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """``a`` as an array: arrays are returned as they are, NumPy arrays are copied unless ``copy=False``.

    A Python scalar gives a weakly typed array; a list has its items' promoted dtype, unless ``dtype`` is given.

    Raises: NotAnArray: ``a`` cannot be converted. IntegerOverflow: the dtype cannot hold an integer.

    >>> asarray([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    if dtype is None and device is None and isinstance(a, Array) and not copy:
        return a
    return placed(_made(a, None if dtype is None else dtypes.canonical(dtype), copy), device)


@cuts_result
def array(
    object: Any, dtype: Any = None, *, copy: bool = True, order: str | None = "K", ndmin: int = 0, device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """``object``, a number, nested lists or an array, as a new array.

    With ``ndmin``, axes of size 1 are prepended until there are at least that many.

    >>> array([[1, 2], [3, 4]], dtype="float32", ndmin=3).shape
    (1, 2, 2)
    """
    if order not in (None, "K", "A", "C"):
        raise BadArgument(f"array: arrays have no memory order here, got order={order!r}.", hint="leave order out.")
    x = _made(object, None if dtype is None else dtypes.canonical(dtype), copy)
    ndmin = whole_number("array: ndmin", ndmin)
    if ndmin > x.ndim:
        x = shapes.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)
    return placed(x, device)


def _made(x: Any, dtype: Any, copy: bool | None) -> Any:
    """``x`` as an array of ``dtype``, or of its own for None; ``copy`` as ``asarray`` takes it."""
    kind = x.__class__
    if isinstance(x, Array):
        if dtype is not None and (dtype != x.type.dtype or x.type.weak):
            return convert(x, dtype)
        return duplicate(x) if copy else x
    if kind in PYTHON_NUMBERS or isinstance(x, np.generic):
        target, weak = dtypes.scalar_type(x, dtype) if dtype is None or kind is not float else (dtype, False)
        number = scalar(x if kind in PYTHON_NUMBERS else x.item(), target, weak)
        return concrete(number.type, number.value) if copy else number
    if isinstance(x, np.ndarray):
        if dtype is not None and dtype != x.dtype:
            return from_numpy(cast(x, dtype), copy=False)
        return from_numpy(_memory_of(x), copy=False) if copy is False else from_numpy(x)
    if isinstance(x, (list, tuple, range)):
        return _from_sequence(x, dtype)
    if x is None:
        raise NotAnArray("array: a number, an array or a list is needed, got None.")
    if isinstance(x, _BUFFERS):
        return _made(np.asarray(memoryview(x)), dtype, copy)
    y = as_array(x)
    return y if dtype is None else convert(y, dtype)


def _memory_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view of the memory of ``x`` without a base: an array made from a view makes the view's base read-only."""
    return np.lib.stride_tricks.as_strided(without_subclass(x))


def _from_sequence(items: Sequence[Any], dtype: Any) -> Any:
    """Nested lists of numbers and arrays as an array of ``dtype``, or of the dtype to which their leaves promote."""
    kinds: set[type] = set()
    try:
        _collect(items, kinds.update)
    except RecursionError:
        raise endless_list("array") from None
    if kinds <= PYTHON_NUMBERS:
        return from_numpy(_of_numbers(items, dtype, bool(kinds)), copy=False)
    if any(map(_is_whole, kinds)):
        return _from_sequence(_with_arrays(items), dtype)
    if any(issubclass(kind, Array) or hasattr(kind, "__handlax_array__") for kind in kinds):
        common = dtypes.result_type(*leaves(items)) if dtype is None else dtype
        return convert(stack([_made(item, common, False) for item in items]), common)
    if any(issubclass(kind, (str, bytes)) or kind is type(None) for kind in kinds):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise NotAnArray(f"array: lists must hold numbers or arrays, got {names}.")
    return from_numpy(_numpy(items, dtypes.result_type(*leaves(items)) if dtype is None else dtype), copy=False)


def _is_whole(kind: type) -> bool:
    """Whether a list's item becomes an array by itself: a range, a buffer, an instance of a subclass of ``ndarray``."""
    return issubclass(kind, (range, *_BUFFERS)) or (kind is not np.ndarray and issubclass(kind, np.ndarray))


def _with_arrays(items: Sequence[Any]) -> list[Any]:
    """The nested lists with each item for which ``_is_whole`` holds replaced by its array."""
    return [
        _with_arrays(item)
        if isinstance(item, (list, tuple))
        else _made(item, None, None)
        if _is_whole(type(item))
        else item
        for item in items
    ]


def _collect(items: Sequence[Any], update: Callable[[Any], None]) -> None:
    """Call ``update`` with the set of classes of the leaves of each nested list."""
    kinds = set(map(type, items))
    if not (list in kinds or tuple in kinds):
        update(kinds)
        return
    update(kinds - {list, tuple})
    for item in items:
        if item.__class__ is list or item.__class__ is tuple:
            _collect(item, update)


def array_beside(x: Any, values: Any) -> Any:
    """Nested lists of numbers as an array of the dtype to which they and ``x`` promote; other values as they are.

    ``x`` may be nested lists too.
    """
    if not isinstance(values, (list, tuple)):
        return values
    numbers = [*leaves(x), *leaves(values)]
    return array(values, dtypes.result_type(*numbers) if numbers else None)


def _numpy(items: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """``np.array(items, dtype)``. Raises IntegerOverflow, or ShapeMismatch: nested lists differ in length."""
    try:
        return np.array(items, dtype)
    except OverflowError as error:
        raise IntegerOverflow(f"array: every integer must fit its dtype {dtype}, got {error}.") from None
    except ValueError as error:
        raise ShapeMismatch(
            f"array: nested lists must have equal lengths ({error}).",
            hint="pad the shorter ones, or keep all elements in one vector: hx.Ragged(data, lengths).",
        ) from None


def _of_numbers(items: Sequence[Any], dtype: Any, any_leaf: bool) -> np.ndarray[Any, Any]:
    """Nested lists of Python numbers as a NumPy array, of the default dtype of their kind unless ``dtype`` is given."""
    data = _numpy(items)
    kind = data.dtype.kind
    if dtype is None:
        settings = config.current()
        if not any_leaf or kind == "f":
            dtype = settings.default_float
        else:
            dtype = data.dtype if kind == "b" else settings.default_int if kind in "iuO" else dtypes.default_complex()
    if kind in "iuO" and data.size and dtype.kind in "iu":
        dtypes.scalar_type(int(data.min()), dtype)
        dtypes.scalar_type(int(data.max()), dtype)
    return cast(data, dtype)


def copy(a: Any, order: str | None = None) -> Array:
    """A copy of ``a`` in its own buffer.

    >>> copy(array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return duplicate(as_array(a))


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """``x`` converted to ``dtype``, by value: floats are truncated towards zero for integers, nonzero values are true.

    >>> astype(array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    x = as_array(x)
    target = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    if dtypes.is_complex(x.type.dtype) and not dtypes.is_complex(target) and not dtypes.is_bool(target):
        warn_user("astype: complex to real drops the imaginary part; take .real.", np.exceptions.ComplexWarning)
    y = convert(x, target)
    return placed(duplicate(y) if copy and y is x else y, device)


def _full(where: str, shape: Any, dtype: Any, value: Any, device: Any, out_sharding: Any) -> Any:
    """The array of this shape whose elements are all ``value``, of the default float dtype unless one is given."""
    kind = config.current().default_float if dtype is None else dtypes.canonical(dtype)
    return cut(where, _filled(array_type(shape_of(shape, where), kind), value, device), out_sharding)


def _filled(type: ArrayType, value: Any, device: Any, like: Any = None) -> Any:
    """The array of this type whose elements are all ``value``; a NumPy array for the dtype float0."""
    if type.dtype == dtypes.float0:
        return np.zeros(type.shape, type.dtype)
    return put_like(shapes.full(type, value), like, device)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """The array of this shape whose elements are all 0; the dtype is the default float unless given.

    >>> zeros((2, 2)).dtype
    dtype('float32')
    """
    return _full("zeros", shape, dtype, 0, device, out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """The array of this shape whose elements are all 1; the dtype is the default float unless given.

    >>> ones(2)
    Array([1., 1.], dtype=float32)
    """
    return _full("ones", shape, dtype, 1, device, out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of this shape whose values are unspecified; here they are zeros.

    >>> empty((2, 3)).shape
    (2, 3)
    """
    return _full("empty", shape, dtype, 0, device, out_sharding)


def _element(value: Any, dtype: Any, weak: bool = False) -> Any:
    """A fill value as an array of this dtype; a number becomes a PRNG key by filling every word of the key data."""
    if dtypes.is_extended(dtype) and is_number(value):
        return shapes.full(array_type((), dtype), value)
    return convert(value, dtype, weak)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """``full(shape, x)[i] == x``; an array ``x`` is broadcast to ``shape``.

    The result is weakly typed if ``x`` is and ``dtype`` is not given.

    >>> full((2,), 3)
    Array([3, 3], dtype=int32, weak_type=True)
    """
    if isinstance(fill_value, (list, tuple)):
        fill_value = asarray(fill_value, dtype)
    value = as_array(fill_value) if dtype is None else _element(fill_value, dtypes.canonical(dtype))
    sizes = shape_of(shape, "full")
    y = placed(shapes.broadcast(value, sizes) if sizes != value.type.shape else value, device)
    return cut("full", y, out_sharding)


def _like(where: str, a: Any, dtype: Any, shape: Any) -> Any:
    """The type with the shape and dtype of ``a``, unless others are given; weak as ``a``, unless ``dtype`` is given."""
    like = a if hasattr(a, "shape") and hasattr(a, "dtype") else type_of(a)
    sizes = tuple(like.shape) if shape is None else shape_of(shape, where)
    if dtype is not None:
        return array_type(sizes, dtypes.canonical(dtype))
    return array_type(sizes, dtypes.canonicalize_dtype(like.dtype), bool(getattr(like, "weak_type", False)))


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """Zeros of the shape and dtype of ``a``, an array or anything with ``shape`` and ``dtype``.

    >>> zeros_like(array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return cut("zeros_like", _filled(_like("zeros_like", a, dtype, shape), 0, device, a), out_sharding)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """Ones of the shape and dtype of ``a``, an array or anything with ``shape`` and ``dtype``.

    >>> ones_like(2.5)
    Array(1., dtype=float32, weak_type=True)
    """
    return cut("ones_like", _filled(_like("ones_like", a, dtype, shape), 1, device, a), out_sharding)


def empty_like(
    prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array like ``prototype`` whose values are unspecified; here they are zeros.

    >>> empty_like(array([1, 2])).shape
    (2,)
    """
    y = put_like(shapes.full(_like("empty_like", prototype, dtype, shape), 0), prototype, device)
    return cut("empty_like", y, out_sharding)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """``fill_value``, broadcast to the shape of ``a`` and converted to its dtype.

    >>> full_like(array([1, 2]), 2.7)
    Array([2, 2], dtype=int32)
    """
    type = _like("full_like", a, dtype, shape)
    value = _element(fill_value, type.dtype, type.weak)
    y = put_like(shapes.broadcast(value, type.shape) if type.shape != value.type.shape else value, a, device)
    return cut("full_like", y, out_sharding)


@boundary
def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Array:
    """``fromfunction(f, shape)[i, j, ...] == f(i, j, ...)``: ``f`` is mapped over every axis.

    >>> fromfunction(lambda i, j: i + j, (2, 2))
    Array([[0., 1.],
           [1., 2.]], dtype=float32)
    """
    sizes = shape_of(shape, "fromfunction")
    rank = len(sizes)
    mapped = partial(function, **kwargs) if kwargs else function
    for d in range(rank)[::-1]:
        mapped = vmap(mapped, in_axes=tuple([0 if e == d else None for e in range(rank)]))
    return mapped(*[iota(dtypes.canonical(dtype), n) for n in sizes])


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """A vector of the elements stored in ``buffer``, copied.

    >>> frombuffer(b"\\x01\\x02", dtype="uint8")
    Array([1, 2], dtype=uint8)
    """
    count, offset = whole_number("frombuffer: count", count), whole_number("frombuffer: offset", offset)
    return from_numpy(np.frombuffer(buffer, dtypes.canonical(dtype), count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """A vector of the numbers written in ``string``, separated by ``sep``.

    >>> fromstring("1, 2", dtype=int, sep=",")
    Array([1, 2], dtype=int32)
    """
    count = whole_number("fromstring: count", count)
    return from_numpy(np.fromstring(string, dtypes.canonical(dtype), count, sep=sep))


def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """A vector of the elements of a file, stored as in memory, or written as text with ``sep`` between them.

    The file is read when this is called, under a transformation when the function is traced.
    Source: NumPy, ``fromfile``.
    """
    count, offset = whole_number("fromfile: count", count), whole_number("fromfile: offset", offset)
    return from_numpy(np.fromfile(file, dtypes.canonical(dtype), count, sep, offset), copy=False)


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Array:
    """A vector of the numbers that an iterable gives, which must be concrete.

    Source: NumPy, ``fromiter``.

    >>> fromiter((i * i for i in range(3)), int)
    Array([0, 1, 4], dtype=int32)
    """
    count = whole_number("fromiter: count", count)
    return from_numpy(np.fromiter(iter, dtypes.canonical(dtype), count), copy=False)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array from an object with ``__dlpack__``; memory is shared if ``copy=False``, else copied.

    Args:
        copy: False shares memory that may be written to as well; True always copies.

    Source: the array API standard, ``from_dlpack``.
    """
    return placed(imported(x, copy), device)
