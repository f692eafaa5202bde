"""``x.at[index].set(y)`` and its kin: new arrays that differ from ``x`` at some places.

    known integers and slices   the window is read, combined and written back
    a mask                      a choice at every element
    anything else               one scatter
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..effects import arithmetic, comparison, shapes
from ..effects.arrays import Array, lift, scalar
from ..effects.broadcasting import broadcast_shape, promote
from ..effects.conversion import convert
from ..effects.dynamic import DynamicUpdateSlice
from ..effects.errors import BadIndex, DTypeMismatch
from ..effects.indexing import Scatter, ScatterAdd, ScatterMax, ScatterMin, ScatterMul, ScatterSub
from ..effects.refusals import no_sharding
from ..effects.scattering import scatter_apply
from ..effects.stack import perform
from ..effects.windows import ScatterDimensionNumbers
from .shaping import broadcast_to
from .subscripts import (
    CLIP,
    FILL,
    FULL,
    INT32,
    INT64,
    Flag,
    entries,
    layout,
    mode_of,
    narrow,
    on_host,
    outside,
    read,
    static,
    vectors,
    without_flags,
    wrapped,
)

_write = DynamicUpdateSlice()


class Way(NamedTuple):
    """One way to update: the scatter, and what it does to an element and its update."""

    scatter: Any
    combine: Callable[[Any, Any], Any]


WAYS: Mapping[str, Way] = MappingProxyType({
    "set": Way(Scatter, lambda x, y: y),
    "add": Way(ScatterAdd, arithmetic.add),
    "subtract": Way(ScatterSub, arithmetic.sub),
    "multiply": Way(ScatterMul, arithmetic.mul),
    "min": Way(ScatterMin, comparison.min),
    "max": Way(ScatterMax, comparison.max),
})  # fmt: skip


class Places(NamedTuple):
    """Where updates go: the index vectors of a scatter, its dimension numbers, and the shape that ``x[index]`` has."""

    vectors: Any
    numbers: ScatterDimensionNumbers
    shape: tuple[int, ...]
    updates: tuple[int, ...]
    unique: bool


def window(items: list[Any], shape: tuple[int, ...], wrap: bool) -> Any:
    """``(starts, sizes, shape of x[index])`` of known integers and slices of step 1; None for anything else."""
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
        first, stop, step = item.indices(n)
        count = len(range(first, stop, step))
        if count > 1 and step != 1:
            return None
        starts.append(first if count else 0)
        sizes.append(count)
        out.append(count)
    return tuple(starts), tuple(sizes), tuple(out)


def places(items: list[Any], shape: tuple[int, ...], wrap: bool) -> Places:
    """Where an index with arrays, or with slices of other steps, writes."""
    arrays = any([item is not None and item.__class__ not in (int, slice) for item in items])
    together, first = layout(items) if arrays else (True, -1)
    outer: tuple[int, ...] = ()
    parts: list[tuple[int, Any, int | None]] = []  # axis of x, its indices, place of their axis; None: that of arrays
    dropped, result, batch, inner, sizes = [], [], [], [], []
    if arrays:
        outer = broadcast_shape("index", *[getattr(i, "shape", ()) for i in _advanced(items)])
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
            start, stop, step = item.indices(n)
            count = len(range(start, stop, step))
            if step == 1 or count <= 1:
                if start and count:
                    parts.append((dim, np.asarray(start), -1))
                inner.append(len(sizes))
            else:
                parts.append((dim, np.arange(start, stop, step), len(sizes)))
                dropped.append(dim)
                batch.append(len(sizes))
            result.append(count)
            sizes.append(count)
        else:
            i = np.asarray(item, np.int64) if item.__class__ is int else narrow(on_host(item))
            parts.append((dim, wrapped(i, n) if wrap else i, None))
            dropped.append(dim)
        dim += 1
    rows = [sizes[d] for d in batch]
    at = batch.index(put_at) if put_at is not None and outer else 0
    spread = [_spread(i, batch.index(place) if place is not None and place >= 0 else place, at, len(outer), len(rows))
              for _, i, place in parts]  # fmt: skip
    numbers = ScatterDimensionNumbers(tuple(inner), tuple(dropped), tuple([d for d, _, _ in parts]))
    index, known = vectors(spread, tuple(rows))
    unique = not outer or (known and _distinct([i for _, i, place in parts if place is None], outer))
    return Places(index, numbers, tuple(result), tuple(sizes), unique)


def _advanced(items: list[Any]) -> list[Any]:
    return [item for item in items if item is not None and item.__class__ is not slice]


def _spread(i: Any, place: int | None, at: int, outer: int, rank: int) -> Any:
    """Indices with axes of size 1, so that their axes stand where the batch has them."""
    if place == -1:
        return i
    own = i.shape
    if place is None:
        sizes = [1] * rank
        sizes[at + outer - len(own) : at + outer] = own
    else:
        sizes = [1] * rank
        sizes[place] = own[0]
    return i.reshape(sizes) if not isinstance(i, Array) else shapes.reshape(i, tuple(sizes))


def _distinct(parts: list[Any], outer: tuple[int, ...]) -> bool:
    """Whether no two known index vectors are equal; not looked at where there are many."""
    count = int(np.prod(outer))
    if not 1 < count <= 4096:
        return count <= 1
    rows = np.stack([np.broadcast_to(i, outer).ravel() for i in parts])
    return len(set(zip(*rows.tolist()))) == count


def _promoted(x: Any, values: Any) -> tuple[Any, Any]:
    """Array and updates in one dtype; a warning where the array's own cannot hold the updates'."""
    values = values if isinstance(values, Array) else lift(values)
    if x.type.dtype is values.type.dtype and x.type.weak is values.type.weak:
        return x, values
    y, values = promote(x, values)
    if y.type.dtype != x.type.dtype:
        warnings.warn(
            f"at: updates of {values.type.dtype} are rounded to the array's {x.type.dtype}; convert them with astype.",
            FutureWarning, stacklevel=4,
        )  # fmt: skip
    return y, values


def _mask(index: Any, shape: tuple[int, ...]) -> Any:
    """The index as a mask over the first axes, if it is one."""
    if index.__class__ is tuple and len(index) == 1:
        index = index[0]
    if not isinstance(index, (Array, np.ndarray)) or not index.ndim or index.dtype != np.bool_:
        return None
    if index.shape != shape[: index.ndim]:
        wanted = shape[: index.ndim]
        raise BadIndex(f"index: a mask must have the shape {wanted} of the axes it stands for, got {index.shape}.")
    return lift(index)


def update(x: Any, index: Any, values: Any, way: Way, options: Mapping[str, Any]) -> Any:
    """``x`` updated at ``index``: what all methods of ``at`` do."""
    own = x.type
    x, values = _promoted(x, values)
    mask = _mask(index, own.shape)
    if mask is not None and values.ndim <= x.ndim - mask.ndim:
        y = _where(mask, way.combine(x, broadcast_to(broadcast_to(values, own.shape[mask.ndim :]), own.shape)), x)
    else:
        y = _written(x, entries(index, own.shape), values, way, options)
    return y if y.type is own else convert(y, own.dtype, own.weak)


def _where(mask: Any, y: Any, x: Any) -> Any:
    spread = shapes.broadcast_in_dim(mask, x.type.shape, tuple(range(mask.ndim)))
    return comparison.select_n(spread, x, y)


def _written(x: Any, items: list[Any], values: Any, way: Way, options: Mapping[str, Any]) -> Any:
    shape = x.type.shape
    if any([item.__class__ is Flag for item in items]):
        wide, items = without_flags(x, items)
        return shapes.reshape(_written(wide, items, values, way, options), shape)
    wrap, mode = options["wrap_negative_indices"], mode_of(options["mode"], FILL)
    known = window(items, shape, wrap)
    if known is not None and not outside(items, shape, wrap):
        starts, sizes, made = known
        values = shapes.reshape(broadcast_to(values, made), sizes)
        return _replaced(x, starts, sizes, values, way.combine)
    found = places(items, shape, wrap)
    updates = shapes.reshape(broadcast_to(values, found.shape), found.updates)
    unique = options["unique_indices"] or found.unique
    op = way.scatter(found.numbers, bool(options["indices_are_sorted"]), bool(unique), mode)
    return perform(op, x, found.vectors, updates)


def _replaced(x: Any, starts: tuple[int, ...], sizes: tuple[int, ...], values: Any, combine: Callable[..., Any]) -> Any:
    """``x`` with a window of it combined with ``values``."""
    if 0 in sizes:
        return x
    old = static(x, [slice(a, a + n) if (a, n) != (0, m) else FULL for a, n, m in zip(starts, sizes, x.type.shape)])
    new = combine(old, values)
    if sizes == x.type.shape:
        return new
    wide = INT32 if max(starts) < 2**31 else INT64
    return perform(_write, x, new, *[scalar(a, wide) for a in starts])


class Reference:
    """``x.at[index]``: places of an array, to be read or written. The array itself never changes.

    The methods take ``indices_are_sorted`` and ``unique_indices``, promises that make the compiled code faster, and
    ``mode``, which says what becomes of indices outside: ``clip`` (the default of ``get``) moves them inside, ``fill``
    or ``drop`` (the default of the others) reads ``fill_value`` and writes nothing, ``promise_in_bounds`` says that
    there are none.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"Reference({self.array!r}, {self.index!r})"

    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Any:  # fmt: skip
        """``x[index]``, with a say about indices outside."""
        no_sharding("get", out_sharding)
        x = self.array
        found = mode_of(mode, CLIP if fill_value is None else FILL)
        items = entries(self.index, x.type.shape)
        return read(x, items, found, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices)

    def apply(
        self, func: Callable[[Any], Any], *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, wrap_negative_indices: bool = True,
    ) -> Any:  # fmt: skip
        """``x[index] = func(x[index])``, where ``func`` works elementwise; once for each time an index occurs."""
        x = self.array
        own = x.type
        mask = _mask(self.index, own.shape)
        if mask is not None:
            return _where(mask, convert(lift(func(x)), own.dtype, own.weak), x)
        items = entries(self.index, own.shape)
        if any([item.__class__ is Flag for item in items]):
            raise DTypeMismatch("at: apply takes no boolean scalars as indices.", hint="choose with where.")
        known = window(items, own.shape, wrap_negative_indices)
        if known is not None and not outside(items, own.shape, wrap_negative_indices):
            return _replaced(x, known[0], known[1], x, lambda old, _: convert(lift(func(old)), own.dtype, own.weak))
        found = places(items, own.shape, wrap_negative_indices)
        return scatter_apply(
            x, found.vectors, lambda old: convert(lift(func(old)), own.dtype, own.weak), found.numbers,
            update_shape=found.updates, indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices or found.unique, mode=mode_of(mode, FILL),
        )  # fmt: skip

    def divide(self, values: Any, **options: Any) -> Any:
        """``x[index] /= values``; the result has the dtype of the quotient."""
        return self.array / _on_ones(self, values, options)

    def power(self, values: Any, **options: Any) -> Any:
        """``x[index] **= values``."""
        return self.array ** _on_ones(self, values, options)


def _on_ones(self: Reference, values: Any, options: Mapping[str, Any]) -> Any:
    ones = shapes.full(self.array.type, 1)
    return Reference(ones, self.index).multiply(values, **options)  # type: ignore[attr-defined]


def _method(name: str, law: str) -> Callable[..., Any]:
    way = WAYS[name]

    def method(
        self: Reference, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Any:  # fmt: skip
        no_sharding(name, out_sharding)
        options = {
            "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode,
            "wrap_negative_indices": wrap_negative_indices,
        }  # fmt: skip
        return update(self.array, self.index, values, way, options)

    method.__name__ = name
    method.__qualname__ = f"Reference.{name}"
    method.__doc__ = f"A new array: ``{law}``, for each time an index occurs."
    return method


for _name, _law in (
    ("set", "x[index] = values"), ("add", "x[index] += values"), ("subtract", "x[index] -= values"),
    ("multiply", "x[index] *= values"), ("min", "x[index] = min(x[index], values)"),
    ("max", "x[index] = max(x[index], values)"),
):  # fmt: skip
    setattr(Reference, _name, _method(_name, _law))
Reference.mul = Reference.multiply  # type: ignore[attr-defined]


class At:
    """``x.at``: give it an index."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> Reference:
        return Reference(self.array, index)

    def __repr__(self) -> str:
        return f"At({self.array!r})"


