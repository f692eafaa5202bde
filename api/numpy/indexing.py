"""Reading and writing by position: take, put and their kin; ``x[...]`` itself is in ``subscripts``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..effects import dtypes, shapes
from ..effects.arithmetic import add, div, rem
from ..effects.arrays import Array, lift, scalar
from ..effects.broadcasting import broadcast_shape, promote
from ..effects.comparison import clamp, select_n
from ..effects.conversion import convert
from ..effects.cumulative import cumsum
from ..effects.errors import BadArgument, BadIndex, DTypeMismatch, ShapeMismatch
from ..effects.shapes import canonical_axis
from ..effects.stack import perform
from ..effects.windows import GatherDimensionNumbers
from .creation import shape_of
from .operands import no_out
from .shaping import ravel, resize
from .subscripts import CLIP, FILL, INT32, gathered, mode_of, narrow, on_host, reader, wrapped
from .triangles import diag_indices
from .updating import Reference


def positions(indices: Any, where: str) -> Any:
    """Indices as integers of 32 or 64 bits: NumPy data where their values are at hand."""
    i = np.asarray(indices) if isinstance(indices, (int, np.integer, np.ndarray)) else on_host(lift(indices))
    if i.dtype.kind == "b":
        i = i.astype(INT32) if not isinstance(i, Array) else convert(i, INT32)
    if not dtypes.is_integer(i.dtype):
        raise DTypeMismatch(f"{where}: indices must be integers, got {i.dtype}.", hint="convert with astype(int).")
    return narrow(i)


def limited(i: Any, n: int, mode: Any, where: str) -> tuple[Any, Any]:
    """Indices brought inside as NumPy's modes say, and the mode that is left for gather or scatter."""
    host = not isinstance(i, Array)
    dtype = i.dtype
    if mode == "wrap":
        if not n:
            return i, CLIP
        if host:
            return i % n, CLIP
        rest = rem(i, scalar(n, dtype))
        return wrapped(rest, n), CLIP
    if mode == "clip":
        low, high = 0, max(n - 1, 0)
        return (i.clip(low, high) if host else clamp(scalar(low, dtype), i, scalar(high, dtype))), CLIP
    if mode == "raise":
        raise BadArgument(f"{where}: there is no mode 'raise', indices may be unknown.", hint="use fill, clip or wrap.")
    return wrapped(i, n), mode_of(mode, FILL)


def take(
    a: Any, indices: Any, axis: int | None = None, out: None = None, mode: Any = None, unique_indices: bool = False,
    indices_are_sorted: bool = False, fill_value: Any = None,
) -> Any:  # fmt: skip
    """``take(x, i, axis=0)[j] == x[i[j]]``; of the flattened array for ``axis=None``.

    Indices outside read ``fill_value`` (``mode="fill"``, the default: NaN, or the least number), the nearest element
    (``clip``), or count round (``wrap``).

    >>> take(np.array([1.0, 2.0, 3.0], "float32"), np.array([0, -1, 5]))
    Array([ 1.,  3., nan], dtype=float32)
    """
    no_out(out, "take")
    x = a if isinstance(a, Array) else lift(a)
    if axis is None:
        x, axis = shapes.reshape(x, (x.size,)), 0
    else:
        axis = canonical_axis(axis, len(x.type.shape), "take")
    n = x.type.shape[axis]
    i, left = limited(positions(indices, "take"), n, mode, "take")
    if not n and i.size:
        raise BadIndex(f"take: there is nothing to take on an axis of size 0, got {x.type}, axis {axis}.")
    return gathered(x, [i], [n], [axis], i.shape, axis, left, fill_value, indices_are_sorted, unique_indices)


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, fill_value: Any = None, *,
    wrap_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """``take_along_axis(x, i, axis=1)[a, b] == x[a, i[a, b]]``; all other axes broadcast.

    >>> take_along_axis(np.array([[3, 4], [5, 6]], "int32"), np.array([[1], [0]]), axis=1)
    Array([[4],
           [5]], dtype=int32)
    """
    x = lift(arr)
    i = positions(indices, "take_along_axis")
    if axis is None:
        x, axis = shapes.reshape(x, (x.size,)), 0
        if i.ndim != 1:
            raise ShapeMismatch(f"take_along_axis: axis=None needs a vector of indices, got shape {i.shape}.")
    rank = x.ndim
    if i.ndim != rank:
        raise ShapeMismatch(f"take_along_axis: array and indices must have one rank, got {x.type} and shape {i.shape}.")
    axis = canonical_axis(axis, rank, "take_along_axis")
    n = x.shape[axis]
    if mode in ("wrap", "clip") or wrap_negative_indices:
        i, left = limited(i, n, mode, "take_along_axis")
    else:
        left = mode_of(mode, FILL)
    made = broadcast_shape("take_along_axis", (*x.shape[:axis], 1, *x.shape[axis + 1 :]), i.shape)
    if not prod(made):
        return shapes.full(x.type.update(shape=made), 0)
    return _along(x, lift(i), axis, made, left, fill_value)


def _along(x: Any, i: Any, axis: int, made: tuple[int, ...], mode: Any, fill: Any) -> Any:
    """One gather: axes of both run together, axes of one alone are windows or further index vectors."""
    pairs, windows, single, outer = [], [], [axis], []
    sizes = [1] * x.ndim
    for d, (n, m) in enumerate(zip(x.shape, i.shape)):
        if d == axis:
            outer.append(d)
        elif m == 1 and n != 1:
            windows.append(d)
            sizes[d] = n
        else:
            outer.append(d)
            if n == m:
                pairs.append(d)
            else:
                single.append(d)
    index = shapes.reshape(i, (*[i.shape[d] for d in outer], 1))
    numbers = GatherDimensionNumbers(
        tuple(windows), tuple(sorted(single)), (axis,), tuple(pairs), tuple([outer.index(d) for d in pairs])
    )
    return perform(reader(x, numbers, tuple(sizes), False, False, mode, fill), x, index)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Any:
    """``x`` with ``x[a, i[a, b]] = values[a, b]`` for ``axis=1``; needs ``inplace=False``, since arrays are immutable.

    >>> put_along_axis(np.zeros((2, 2), "int32"), np.array([[1], [0]]), 7, axis=1, inplace=False)
    Array([[0, 7],
           [7, 0]], dtype=int32)
    """
    _not_in_place(inplace, "put_along_axis")
    x, i = lift(arr), lift(positions(indices, "put_along_axis"))
    if axis is None:
        flat = put_along_axis(shapes.reshape(x, (x.size,)), i, values, 0, False, mode=mode)
        return shapes.reshape(flat, x.shape)
    axis = canonical_axis(axis, x.ndim, "put_along_axis")
    if i.ndim != x.ndim:
        raise ShapeMismatch(f"put_along_axis: array and indices must have one rank, got {x.type} and {i.type}.")
    index = tuple([
        i if d == axis else np.arange(n).reshape([n if e == d else 1 for e in range(x.ndim)])
        for d, n in enumerate(x.shape)
    ])  # fmt: skip
    return _at(x, index).set(values, mode=mode)


def _at(x: Any, index: Any) -> Any:
    return Reference(x, index)


def _not_in_place(inplace: bool, where: str) -> None:
    if inplace:
        raise BadArgument(f"{where}: arrays are immutable.", hint="pass inplace=False: the result is a new array.")


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """``a`` with ``v`` at positions ``ind`` of its flattened form; needs ``inplace=False``, since arrays are immutable.

    >>> put(np.zeros(3, "int32"), np.array([0, -1]), np.array([4, 5], "int32"), inplace=False)
    Array([4, 0, 5], dtype=int32)
    """
    _not_in_place(inplace, "put")
    x, values = lift(a), ravel(v)
    i = positions(ind, "put")
    if not prod(i.shape) or not values.size:
        return x
    i, left = limited(i, x.size, mode, "put")
    i = ravel(lift(i))
    flat = _at(shapes.reshape(x, (x.size,)), i).set(resize(values, (i.size,)), mode=left)
    return shapes.reshape(flat, x.shape)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """``arr`` with ``vals``, over and over, where ``mask`` holds; needs ``inplace=False``, since arrays are immutable.

    >>> place(np.zeros(3, "int32"), np.array([True, False, True]), np.array([4, 5], "int32"), inplace=False)
    Array([4, 0, 5], dtype=int32)
    """
    _not_in_place(inplace, "place")
    x, values, flags = lift(arr), ravel(vals), ravel(mask)
    if flags.size != x.size:
        raise ShapeMismatch(f"place: the mask must have as many elements as the array, got {flags.size} for {x.type}.")
    if not values.size:
        raise ShapeMismatch("place: there must be values to place, got none.")
    if not x.size:
        return x
    flags = convert(flags, np.dtype(bool))
    nth = add(cumsum(convert(flags, INT32)), scalar(-1, INT32))
    chosen = take(values, nth, mode="wrap")
    chosen, flat = promote(chosen, shapes.reshape(x, (x.size,)))
    return shapes.reshape(convert(select_n(flags, flat, chosen), x.dtype, x.weak_type), x.shape)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """``a`` with ``val`` on its main diagonal; needs ``inplace=False``, since arrays are immutable.

    >>> fill_diagonal(np.zeros((2, 2), "int32"), 3, inplace=False)
    Array([[3, 0],
           [0, 3]], dtype=int32)
    """
    _not_in_place(inplace, "fill_diagonal")
    x, values = lift(a), lift(val)
    if wrap:
        raise BadArgument("fill_diagonal: wrap must be False.")
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        raise ShapeMismatch(f"fill_diagonal: a matrix, or equal sizes, are needed, got {x.type}.")
    n = min(x.shape)
    if not n:
        return x
    return _at(x, diag_indices(n, x.ndim)).set(resize(values, (n,)) if values.ndim else values)


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """The index, one array for each axis, of elements of an array of this shape that positions name; clipped.

    >>> unravel_index(np.array([5, -1], "int32"), (2, 3))
    (Array([1, 1], dtype=int32), Array([2, 2], dtype=int32))
    """
    sizes = shape_of(shape, "unravel_index")
    i = positions(indices, "unravel_index")
    dtype = i.dtype
    total = prod(sizes)
    i = lift(limited(wrapped(i, total), total, "clip", "unravel_index")[0])
    results, stride = [], total
    for n in sizes:
        stride //= max(n, 1)
        part = div(i, scalar(max(stride, 1), dtype)) if stride > 1 else i
        results.append(rem(part, scalar(n, dtype)) if stride * n < total else part)
    return tuple(results)


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C", *, dtype: Any = None
) -> Any:
    """The position, in row-major order (``order="F"``: column-major), of the element that an index names.

    ``mode`` says what an entry outside means: an error (``raise``; its values must be known), ``clip`` or ``wrap``.

    >>> ravel_multi_index((np.array([1, 0]), np.array([2, 1])), (2, 3))
    Array([5, 1], dtype=int64)
    """
    sizes = shape_of(dims, "ravel_multi_index")
    if len(multi_index) != len(sizes):
        raise ShapeMismatch(f"ravel_multi_index: {len(sizes)} entries are needed, got {len(multi_index)}.")
    if order not in ("C", "F"):
        raise BadArgument(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}.")
    modes = mode if isinstance(mode, (tuple, list)) else (mode,) * len(sizes)
    parts = [lift(part) for part in multi_index]
    kind = dtypes.result_type(*parts) if dtype is None else dtypes.canonical(dtype)
    result: Any = scalar(0, kind)
    for part, n, how in zip(*[axis[:: 1 if order == "C" else -1] for axis in (parts, sizes, modes)]):
        if how == "raise":
            values = np.asarray(part)
            if values.size and not ((values >= 0) & (values < n)).all():
                raise BadArgument(
                    f"ravel_multi_index: entries must lie in [0, {n}).", hint="mode='clip' or 'wrap' allows others."
                )
        else:
            part = lift(limited(on_host(part), n, how, "ravel_multi_index")[0])
        result = result * scalar(n, kind) + convert(part, kind)
    return result


class IndexExpression:
    """``s_[1:2, ::3]``: an index as a value; ``index_exp`` gives a tuple always.

    >>> s_[1:2], index_exp[0]
    (slice(1, 2, None), (0,))
    """

    __slots__ = ("always_tuple",)

    def __init__(self, always_tuple: bool):
        self.always_tuple = always_tuple

    def __getitem__(self, index: Any) -> Any:
        return (index,) if self.always_tuple and not isinstance(index, tuple) else index


s_ = IndexExpression(False)
index_exp = IndexExpression(True)
