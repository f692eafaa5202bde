"""Updates of arrays: ``x.at[index].set(y)`` and its kin, and NumPy's put, place, put_along_axis, fill_diagonal.

    integers and slices   the window is read, combined with the update and written back
    a mask                a select at every element
    anything else         one scatter
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.errors import BadArgument, BadIndex, DTypeMismatch, ShapeMismatch
from ...effects.base.later_layers import LaterLayers
from ...effects.base.source_locations import warn_user
from ...effects.base.stack import perform
from ...effects.base.wrapping import renamed
from ...effects.core.arrays import Array, as_array, as_arrays, scalar
from ...effects.functions.out_shardings import cut
from ...effects.operations.elementwise import arithmetic, comparison
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.foundations.sharding_constraint import cut_alike
from ...effects.operations.indexing import gather_scatter
from ...effects.operations.indexing.dynamic_slicing import DynamicUpdateSlice
from ...effects.operations.indexing.gather_windows import ScatterDimensionNumbers
from ...effects.operations.indexing.scatter_functions import scatter_apply
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, promote
from ...effects.operations.reductions.cumulative import cumsum
from ...effects.operations.reductions.scatter_products import ScatterMul
from ...effects.types.dtypes import result_type
from ...effects.types.extent import fits
from ...effects.types.sized import extents_in
from .adding_elements import resize
from .building_matrices import eye
from .creation import array_beside
from .index_arrays import diag_indices, where
from .index_reading import (
    APART,
    CLIP,
    FILL,
    FULL,
    INT32,
    INT64,
    BooleanIndex,
    bounds,
    check_static,
    entries,
    in_lane,
    layout,
    limited,
    mode_of,
    narrow,
    on_host,
    outside,
    positions,
    read,
    static,
    vectors,
    without_flags,
    wrapped,
)
from .indexing_operations import take
from .shape_manipulation import broadcast_to, ravel

__all__ = ["fill_diagonal", "place", "put", "put_along_axis"]


_write = DynamicUpdateSlice()


class UpdateMethod(NamedTuple):
    """A method of ``at``: the scatter, the function that combines an element with its update, the law of the result."""

    scatter: Any
    combine: Callable[[Any, Any], Any]
    law: str


UPDATE_METHODS: Mapping[str, UpdateMethod] = MappingProxyType({
    "set": UpdateMethod(gather_scatter.Scatter, lambda x, y: y, "x[index] = values"),
    "add": UpdateMethod(gather_scatter.ScatterAdd, arithmetic.add, "x[index] += values"),
    "subtract": UpdateMethod(gather_scatter.ScatterSub, arithmetic.sub, "x[index] -= values"),
    "multiply": UpdateMethod(ScatterMul, arithmetic.mul, "x[index] *= values"),
    "min": UpdateMethod(gather_scatter.ScatterMin, comparison.min, "x[index] = min(x[index], values)"),
    "max": UpdateMethod(gather_scatter.ScatterMax, comparison.max, "x[index] = max(x[index], values)"),
})


class ScatterPlan(NamedTuple):
    """A scatter at an index: its index vectors and dimension numbers, the shapes of ``x[index]`` and of the updates."""

    vectors: Any
    numbers: ScatterDimensionNumbers
    shape: tuple[int, ...]
    updates: tuple[int, ...]
    unique: bool


def window(items: list[Any], shape: tuple[int, ...], wrap: bool) -> Any:
    """``(starts, sizes, shape of x[index])`` of integers and slices of step 1; None for anything else."""
    sizes: list[int] = []
    starts, out = [], []
    for item in items:
        if item is None:
            out.append(1)
            continue
        n = shape[len(sizes)]
        if item.__class__ is int:
            starts.append(item + n if item < 0 and wrap else item)
            sizes.append(1)
            continue
        if item.__class__ is not slice:
            return None
        first, _, step, count = bounds(item, n)
        if step != 1 and fits(2, count):
            return None
        starts.append(first if count else 0)
        sizes.append(count)
        out.append(count)
    return tuple(starts), tuple(sizes), tuple(out)


def _int64(index: int) -> np.int64:
    """``index`` as an int64, clamped to its range: beyond it, an index is outside of every array."""
    return np.int64(min(max(index, -(2**63)), 2**63 - 1))


def scatter_plan(items: list[Any], shape: tuple[int, ...], wrap: bool, mode: Any) -> ScatterPlan:
    """The scatter to an index with arrays, or with slices of steps other than 1."""
    arrays = any([item is not None and item.__class__ not in (int, slice) for item in items])
    together, first = layout(items) if arrays else (True, -1)
    outer: tuple[int, ...] = ()
    # axis of x, its indices, their axis among the updates' (None: those of the index arrays; -1: they are a scalar)
    parts: list[tuple[int, Any, int | None]] = []
    dropped, result, batch, inner, sizes = [], [], [], [], []
    if arrays:
        outer = broadcast_shape("index", *[getattr(i, "shape", ()) for i in items])
    put_at = 0 if arrays and not together else None  # where the arrays' axes stand among those of the updates
    if put_at is not None:
        result, sizes, batch = list(outer), list(outer), list(range(len(outer)))
    dim = 0
    for k, item in enumerate(items):
        if arrays and together and k == first:
            put_at = len(sizes)
            batch.extend(range(len(sizes), len(sizes) + len(outer)))
            result.extend(outer)
            sizes.extend(outer)
        if item is None:
            result.append(1)
            continue
        n = shape[dim]
        if item.__class__ is slice:
            start, stop, step, count = bounds(item, n)
            if step == 1 or not fits(2, count):
                if start and count:
                    parts.append((dim, np.asarray(start) if start.__class__ is int else as_array(start), -1))
                inner.append(len(sizes))
            else:
                parts.append((dim, _stepped(start, stop, step, count), len(sizes)))
                dropped.append(dim)
                batch.append(len(sizes))
            result.append(count)
            sizes.append(count)
        else:
            i = np.asarray(_int64(item)) if item.__class__ is int else narrow(on_host(item))
            parts.append((dim, wrapped(i, n) if wrap else i, None))
            dropped.append(dim)
        dim += 1
    batch_sizes = [sizes[d] for d in batch]
    at = batch.index(put_at) if put_at is not None and outer else 0
    spread = [
        _spread(i, batch.index(d) if d is not None and d >= 0 else d, at, len(outer), len(batch)) for _, i, d in parts
    ]
    numbers = ScatterDimensionNumbers(tuple(inner), tuple(dropped), tuple([d for d, _, _ in parts]))
    index, known = vectors(spread, tuple(batch_sizes))
    numbered = [i for _, i, d in parts if d is None]
    unique = not outer or (known and mode is not CLIP and _distinct(numbered, outer))  # clipped indices may be equal
    return ScatterPlan(index, numbers, tuple(result), tuple(sizes), unique)


def _stepped(start: Any, stop: Any, step: int, count: Any) -> Any:
    """The index vector of a slice: the positions that it selects."""
    if isinstance(count, int):
        return np.arange(start, stop, step)
    return shapes.broadcast(as_array(start), (count,)) + iota(INT32, count) * step


def _spread(i: Any, axis: int | None, at: int, outer: int, rank: int) -> Any:
    """Indices reshaped with axes of size 1, so that they broadcast to the batch axes of the updates, ``rank`` of them.

    A vector lies along ``axis``; for None an index array along the last of the ``outer`` axes that begin at ``at``; for
    -1 indices are a scalar.
    """
    if axis == -1:
        return i
    sizes = [1] * rank
    if axis is None:
        sizes[at + outer - i.ndim : at + outer] = i.shape
    else:
        sizes[axis] = i.shape[0]
    return i.reshape(sizes) if not isinstance(i, Array) else shapes.reshape(i, tuple(sizes))


def _distinct(parts: list[Any], outer: tuple[int, ...]) -> bool:
    """Whether all index vectors are distinct; False, unchecked, where there are more than 4096."""
    count = int(np.prod(outer))
    if not 1 < count <= 4096:
        return count <= 1
    columns = [np.broadcast_to(i, outer).ravel().tolist() for i in parts]
    return len(set(zip(*columns))) == count


def _promoted(x: Any, values: Any) -> tuple[Any, Any]:
    """``x`` and the updates ``values`` promoted to one dtype, with a warning if that is not the dtype of ``x``."""
    if isinstance(values, Array) and values.type.dtype is x.type.dtype and values.type.weak is x.type.weak:
        return x, values
    values = array_beside(x, values)
    y, new = promote(x, values)
    if y.type.dtype != x.type.dtype:
        warn_user(
            f"at: updates of {result_type(values)} are rounded to the array's {x.type.dtype}; "
            "convert them with astype.",
            FutureWarning,
        )
    return y, new


def _mask(index: Any, shape: tuple[int, ...]) -> Any:
    """The index as a boolean array, if it is a single mask of the first axes; else None."""
    if index.__class__ is tuple and len(index) == 1:
        index = index[0]
    if not isinstance(index, (Array, np.ndarray)) or not index.ndim or index.dtype != np.bool_:
        return None
    if index.shape != shape[: index.ndim]:
        wanted = shape[: index.ndim]
        raise BadIndex(f"index: a mask must have the shape {wanted} of the axes it stands for, got {index.shape}.")
    return as_array(index)


def update(x: Any, index: Any, values: Any, way: UpdateMethod, options: Mapping[str, Any]) -> Any:
    """``x`` updated at ``index`` by ``way``; all methods of ``at`` but ``get`` and ``apply`` call this."""
    own = x.type
    x, values = _promoted(x, values)
    mask = _mask(index, own.shape)
    if mask is not None and values.ndim <= x.ndim - mask.ndim:
        y = _where(mask, way.combine(x, broadcast_to(broadcast_to(values, own.shape[mask.ndim :]), own.shape)), x)
    else:
        y = _written(x, in_lane(entries(index, own.shape), own.shape), values, way, options)
    return y if y.type is own else convert(y, own.dtype, own.weak)


def _where(mask: Any, y: Any, x: Any) -> Any:
    """``y`` where the mask of the first axes is true, ``x`` elsewhere."""
    return comparison.select_n(shapes.broadcast_in_dim(mask, x.type.shape, tuple(range(mask.ndim))), x, y)


def _written(x: Any, items: list[Any], values: Any, way: UpdateMethod, options: Mapping[str, Any]) -> Any:
    """``x`` with ``values`` combined into the elements at the entries of an index, by a window or by a scatter."""
    shape = x.type.shape
    if any([item.__class__ is BooleanIndex for item in items]):
        wide, items = without_flags(x, items)
        return shapes.reshape(_written(wide, items, values, way, options), shape)
    wrap, mode = options["wrap_negative_indices"], mode_of(options["mode"], FILL)
    known = window(items, shape, wrap)
    if known is not None and not outside(items, shape, wrap):
        starts, sizes, made = known
        return _replaced(x, starts, sizes, shapes.reshape(broadcast_to(values, made), sizes), way.combine)
    plan = scatter_plan(items, shape, wrap, mode)
    updates = shapes.reshape(broadcast_to(values, plan.shape), plan.updates)
    unique = options["unique_indices"] or plan.unique
    op = way.scatter(plan.numbers, bool(options["indices_are_sorted"]), bool(unique), mode)
    return perform(op, x, plan.vectors, updates)


def _replaced(x: Any, starts: tuple[int, ...], sizes: tuple[int, ...], values: Any, combine: Callable[..., Any]) -> Any:
    """``x`` with a contiguous window replaced by its combination with ``values``."""
    if 0 in sizes:
        return x
    old = static(x, [slice(a, a + n) if (a, n) != (0, m) else FULL for a, n, m in zip(starts, sizes, x.type.shape)])
    new = combine(old, values)
    if sizes == x.type.shape:
        return new
    wide = INT32 if all([fits(a, 2**31 - 1) for a in starts]) else INT64
    return perform(_write, x, cut_alike(new, old.type), *[convert(a, wide) for a in starts])


class IndexUpdateRef:
    """``x.at[index]``: elements of an array to read or update. Updates give a new array; ``x`` never changes.

    The methods take ``indices_are_sorted`` and ``unique_indices``, promises that make the compiled code faster, and
    ``mode``, for indices out of bounds: ``clip`` (the default of ``get``) clips them, ``fill`` or ``drop`` (the default
    of the others) reads ``fill_value`` and ignores updates, ``promise_in_bounds`` promises that there are none.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Any:
        """``x[index]``, with a choice of what indices out of bounds give."""
        x, index = (self.array, self.index) if out_sharding is None else LaterLayers.hidden((self.array, self.index))
        outside_mode = mode_of(mode, CLIP if fill_value is None else FILL)
        items = entries(index, x.type.shape)
        if mode is None:
            check_static(items, x.type.shape, wrap_negative_indices)
        y = read(x, items, outside_mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices)
        return cut("get", y, out_sharding)

    def apply(
        self, func: Callable[[Any], Any], *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, wrap_negative_indices: bool = True,
    ) -> Any:
        """``x[index] = func(x[index])`` for elementwise ``func``, applied as often as an index occurs."""
        x = self.array
        own = x.type

        def elements(old: Any) -> Any:
            return _elementwise(func, old, own)

        mask = _mask(self.index, own.shape)
        if mask is not None:
            return _where(mask, elements(x), x)
        items = [item for item in entries(self.index, own.shape) if item is not APART]
        if any([item.__class__ is BooleanIndex for item in items]):
            raise DTypeMismatch("at: apply takes no boolean scalars as indices.", hint="choose with where.")
        known = window(items, own.shape, wrap_negative_indices)
        if known is not None and not outside(items, own.shape, wrap_negative_indices):
            return _replaced(x, known[0], known[1], x, lambda old, _: elements(old))
        outside_mode = mode_of(mode, FILL)
        plan = scatter_plan(items, own.shape, wrap_negative_indices, outside_mode)
        return scatter_apply(
            x, plan.vectors, elements, plan.numbers,
            update_shape=plan.updates, indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices or plan.unique, mode=outside_mode,
        )

    def divide(self, values: Any, **options: Any) -> Any:
        """``x[index] /= values``; the result has the dtype of the quotient."""
        return self.array / _on_ones(self, values, options)

    def power(self, values: Any, **options: Any) -> Any:
        """``x[index] **= values``."""
        return self.array ** _on_ones(self, values, options)


def _elementwise(func: Callable[[Any], Any], old: Any, own: Any) -> Any:
    """``func(old)`` converted to the type ``own``'s dtype; a scalar result is broadcast, another shape refused."""
    new = convert(func(old), own.dtype, own.weak)
    shape = old.type.shape
    if new.type.shape and new.type.shape != shape:
        raise ShapeMismatch(
            f"at: apply takes a function of each element, got {new.type} for {old.type}.",
            hint="x.at[index].set(f(x[index])) takes one of all of them.",
        )
    return new if new.type.shape == shape else shapes.broadcast(new, shape)


def _on_ones(self: IndexUpdateRef, values: Any, options: Mapping[str, Any]) -> Any:
    """The array of ones with its elements at the index multiplied by ``values``."""
    return _at(shapes.full(self.array.type, 1), self.index).multiply(values, **options)


def _method(name: str, way: UpdateMethod) -> Callable[..., Any]:
    """The method ``name`` of ``IndexUpdateRef``, with its docstring."""

    def method(
        self: IndexUpdateRef, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Any:
        options = {
            "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode,
            "wrap_negative_indices": wrap_negative_indices,
        }
        if out_sharding is None:
            return update(self.array, self.index, values, way, options)
        array, index, values = LaterLayers.hidden((self.array, self.index, values))
        return cut(name, update(array, index, values, way, options), out_sharding)

    renamed(method, name).__qualname__ = f"IndexUpdateRef.{name}"
    method.__doc__ = f"A new array with ``{way.law}``; an index that occurs more than once is updated each time."
    return method


for _name, _way in UPDATE_METHODS.items():
    setattr(IndexUpdateRef, _name, _method(_name, _way))
IndexUpdateRef.mul = IndexUpdateRef.multiply  # type: ignore[attr-defined]


class IndexUpdateHelper:
    """The value of ``x.at``: ``x.at[index]`` is an ``IndexUpdateRef``."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Array:
    """``x`` with ``x[a, i[a, b]] = values[a, b]`` for ``axis=1``; needs ``inplace=False``, since arrays are immutable.

    >>> put_along_axis(np.zeros((2, 2), "int32"), np.array([[1], [0]]), 7, axis=1, inplace=False)
    Array([[0, 7],
           [7, 0]], dtype=int32)
    """
    _not_in_place(inplace, "put_along_axis")
    x, i = as_array(arr), as_array(positions(indices, "put_along_axis"))
    if axis is None:
        flat = put_along_axis(shapes.reshape(x, (x.size,)), i, values, 0, False, mode=mode)
        return shapes.reshape(flat, x.shape)
    axis = canonical_axis(axis, x.ndim, "put_along_axis")
    if i.ndim != x.ndim:
        raise ShapeMismatch(f"put_along_axis: array and indices must have one rank, got {x.type} and {i.type}.")
    grid = np.ix_(*map(np.arange, x.shape))
    return _at(x, (*grid[:axis], i, *grid[axis + 1 :])).set(values, mode=mode)


def _at(x: Any, index: Any) -> Any:
    """``x.at[index]``, untyped: its update methods are attached at run time."""
    return IndexUpdateRef(x, index)


def _not_in_place(inplace: bool, where: str) -> None:
    if inplace:
        raise BadArgument(f"{where}: arrays are immutable.", hint="pass inplace=False: the result is a new array.")


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Array:
    """``a`` with ``v`` at positions ``ind`` of its flattened form; needs ``inplace=False``, since arrays are immutable.

    Negative positions count from the end, and the nearest position stands for those outside. With ``mode="clip"`` that
    is the first one for all that are negative; with "wrap" positions are taken modulo the size.

    >>> put(np.zeros(3, "int32"), np.array([0, -1]), np.array([4, 5], "int32"), inplace=False)
    Array([4, 0, 5], dtype=int32)
    """
    _not_in_place(inplace, "put")
    x, values = as_arrays(a, v)
    values = ravel(values)
    i = positions(ind, "put")
    if not prod(i.shape) or not values.size:
        return x
    i, left = limited(wrapped(i, x.size), x.size, "clip", "put") if mode is None else limited(i, x.size, mode, "put")
    i = ravel(as_array(i))
    flat = _at(shapes.reshape(x, (x.size,)), i).set(resize(values, (i.size,)), mode=left)
    return shapes.reshape(flat, x.shape)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """``arr`` with ``vals``, repeated as needed, where ``mask`` is true; needs ``inplace=False``: arrays are immutable.

    >>> place(np.zeros(3, "int32"), np.array([True, False, True]), np.array([4, 5], "int32"), inplace=False)
    Array([4, 0, 5], dtype=int32)
    """
    _not_in_place(inplace, "place")
    x, values = as_arrays(arr, vals)
    values, flags = ravel(values), ravel(mask)
    if flags.size != x.size:
        raise ShapeMismatch(f"place: the mask must have as many elements as the array, got {flags.size} for {x.type}.")
    if not values.size:
        raise ShapeMismatch("place: there must be values to place, got none.")
    if not x.size:
        return x
    flags = convert(flags, np.dtype(bool))
    nth = cumsum(convert(flags, INT32)) + scalar(-1, INT32)
    chosen = take(values, nth, mode="wrap")
    chosen, flat = promote(chosen, shapes.reshape(x, (x.size,)))
    return shapes.reshape(convert(select_n(flags, flat, chosen), x.dtype, x.weak_type), x.shape)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """``a`` with ``val`` on its main diagonal; needs ``inplace=False``, since arrays are immutable.

    >>> fill_diagonal(np.zeros((2, 2), "int32"), 3, inplace=False)
    Array([[3, 0],
           [0, 3]], dtype=int32)
    """
    _not_in_place(inplace, "fill_diagonal")
    x, values = as_arrays(a, val)
    if wrap:
        raise BadArgument("fill_diagonal: wrap must be False.")
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        raise ShapeMismatch(f"fill_diagonal: a matrix, or equal sizes, are needed, got {x.type}.")
    if extents_in(x.shape) and x.ndim == 2 and values.ndim < 2:
        return where(eye(x.shape[0], x.shape[1], dtype=bool), convert(values, x.dtype), x)
    n = min(x.shape)
    if not n:
        return x
    return _at(x, diag_indices(n, x.ndim)).set(resize(values, (n,)) if values.ndim else values)
