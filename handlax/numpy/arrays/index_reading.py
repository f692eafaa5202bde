"""``x[index]``: the index is parsed once, then read by slices, or by one gather.

    static     integers and slices       one slice, perhaps a reversal and a reshape
    dynamic    traced scalars            one dynamic slice
    advanced   arrays                    integers and slices first, by one slice, then one gather

An integer out of bounds is clipped when read, and ignored when written; see ``at`` for other modes.
Source: NumPy's manual, "Indexing on ndarrays", for where the axes of arrays go.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...effects.base import config
from ...effects.base.errors import (
    BadArgument,
    BadIndex,
    ConcretizationError,
    DTypeMismatch,
    NonConcreteBooleanIndexError,
    NotAnArray,
    NotAnInteger,
    NotProvided,
    ShapeMismatch,
    whole_number,
)
from ...effects.base.stack import current
from ...effects.core.arrays import Array, Box, ConcreteArray, as_array, from_numpy, scalar
from ...effects.core.operation import shared
from ...effects.operations.elementwise.arithmetic import add, rem
from ...effects.operations.elementwise.comparison import clamp, lt, select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import Reshape
from ...effects.operations.indexing.dynamic_slicing import DynamicSlice
from ...effects.operations.indexing.gather_scatter import Gather, default_fill
from ...effects.operations.indexing.gather_windows import GatherDimensionNumbers, GatherScatterMode
from ...effects.operations.manipulation.operand_promotion import broadcast_shape
from ...effects.operations.manipulation.slicing import Rev, Slice
from ...effects.types import dtypes
from ...effects.types.extent import Extent, positive, single, unbound
from ...effects.types.parts_of_axes import ceiling_divided, part_of
from ...lowering.arrays.device_put import put_like
from .creation import asarray
from .joining_splitting import joined_along, leaves

CLIP, FILL = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
FULL = slice(None)
INT32, INT64 = np.dtype("int32"), np.dtype("int64")


class BooleanIndex(NamedTuple):
    """A boolean scalar as index: a new axis, of size 1 if it is true, else 0."""

    value: bool


APART = BooleanIndex(True)  # put before a slice, it makes the arrays of an index not adjacent


class MaskIndex(NamedTuple):
    """A boolean array as index: it indexes as many axes as it has."""

    value: Any


def entries(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """The entries of an index, one for each axis, ``None`` for a new one: int, slice, array, or BooleanIndex."""
    given = index if index.__class__ is tuple else (index,)
    parsed: list[Any] = []
    used, dots = 0, -1
    for item in given:
        kind = item.__class__
        if kind is int or kind is slice:
            used += 1
        elif item is None:
            pass
        elif item is Ellipsis:
            if dots >= 0:
                raise BadIndex(f"index: at most one ellipsis may stand in an index, got {index}.")
            dots = len(parsed)
            continue
        else:
            if kind is list and index is item:
                raise NotAnArray(
                    "index: a list is no index by itself.",
                    hint="use x[array(list)], or x[tuple(list)] for one entry an axis.",
                )
            item = _entry(item)
            used += np.ndim(item.value) if item.__class__ is MaskIndex else item.__class__ is not BooleanIndex
        parsed.append(item)
    rest = len(shape) - used
    if rest < 0:
        raise BadIndex(f"index: an array of shape {shape} takes at most {len(shape)} indices, got {used}.")
    if rest:
        at = dots if dots >= 0 else len(parsed)
        parsed[at:at] = [FULL] * rest
    elif dots > 0 and _separates(parsed[:dots], parsed[dots:]):
        parsed.insert(0, APART)
    return _unmasked(parsed, shape) if any([item.__class__ is MaskIndex for item in parsed]) else parsed


def _separates(before: list[Any], after: list[Any]) -> bool:
    """Whether an ellipsis of no axes between these entries moves the axes of index arrays to the front.

    As a slice in its place would (NumPy's rule): if integers or arrays, booleans among them, stand on both sides, and
    they are not in front.
    """
    advanced = [[i for i in items if i is not None and i.__class__ is not slice] for items in (before, after)]
    boolean = BooleanIndex, MaskIndex
    arrays = [i for i in (*advanced[0], *advanced[1]) if isinstance(i, boolean) or bool(getattr(i, "ndim", None))]
    return bool(advanced[0] and advanced[1] and arrays) and (before[0] is None or before[0].__class__ is slice)


def _listed(item: Any) -> np.ndarray[Any, Any]:
    """The NumPy array of a list of numbers, or of lists. Raises ShapeMismatch: some of them have other lengths."""
    try:
        return np.asarray(item, None if item else int)
    except ValueError:
        raise ShapeMismatch(f"index: lists must have equal lengths in every dimension, got {item!r}.") from None


def _entry(item: Any) -> Any:
    """The index entry for an item that is neither int, slice, None nor Ellipsis."""
    if isinstance(item, (bool, np.bool_)):
        return BooleanIndex(bool(item))
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, tuple)):
        with_arrays = any([isinstance(leaf, Array) for leaf in leaves(item)])
        item = asarray(item) if with_arrays else _listed(item)
    elif isinstance(item, str):
        raise NotAnArray(f"index: text is no index, got {item!r}.")
    elif not isinstance(item, (Array, np.ndarray)):
        item = as_array(item)
    dtype = item.dtype
    if not dtypes.is_bool(dtype) and not dtypes.is_integer(dtype):
        raise DTypeMismatch(
            f"index: indices must be integers or booleans, got {dtype}.", hint="convert with astype(int)."
        )
    if item.ndim == 0 and not (isinstance(item, Array) and not isinstance(item, ConcreteArray)):
        return BooleanIndex(bool(item)) if dtype.kind == "b" else int(item)
    return MaskIndex(item) if dtype.kind == "b" else item


def _unmasked(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The entries with masks replaced by the integer indices where they are true."""
    unmasked: list[Any] = []
    dim = 0  # the next axis of the array
    for item in items:
        if item.__class__ is not MaskIndex:
            unmasked.append(item)
            dim += item is not None and item.__class__ is not BooleanIndex
            continue
        mask = item.value
        if isinstance(mask, Array) and not isinstance(mask, ConcreteArray):
            raise NonConcreteBooleanIndexError(
                f"index: the values of a mask must be known, got {mask.described}.",  # type: ignore[attr-defined]
                hint="use where(mask, x, y), or nonzero(mask, size=n) for a known number of elements.",
            )
        size = shape[dim : dim + mask.ndim]
        if len(mask.shape) != len(size) or any([m not in (0, n) for m, n in zip(mask.shape, size)]):
            raise BadIndex(f"index: a mask must have the shape {size} of the axes it stands for, got {mask.shape}.")
        unmasked.extend(np.nonzero(np.asarray(mask)))
        dim += mask.ndim
    return unmasked


def without_flags(x: Any, items: list[Any]) -> tuple[Any, list[Any]]:
    """Boolean scalars replaced by an array that indexes an axis of size 1."""
    sizes, kept = [], []
    own = iter(x.type.shape)
    for item in items:
        if item.__class__ is BooleanIndex:
            sizes.append(1)
            kept.append(np.zeros(int(item.value), INT32))
            continue
        if item is not None:
            sizes.append(next(own))
        kept.append(item)
    return shapes.reshape(x, tuple(sizes)), kept


def getitem(x: Any, index: Any) -> Any:
    """``x[index]``: NumPy's indexing; integers outside an axis are clipped, or refused: ``check_static_indices``."""
    if index.__class__ is int:
        shape = x.type.shape
        if shape and shape[0].__class__ is not Extent:
            return _row(x, index, shape)
    items = entries(index, x.type.shape)
    items = in_lane(items, x.type.shape)
    check_static(items, x.type.shape)
    return read(x, items, CLIP, None, False, False, True)


def in_lane(items: list[Any], shape: tuple[Any, ...]) -> list[Any]:
    """The entries with Python integers along ragged axes as arrays, since they may be out of bounds in some lane."""
    if not any([n.__class__ is Extent for n in shape]):
        return items
    sizes = iter(shape)
    sized = [(item, None if item is None or item.__class__ is BooleanIndex else next(sizes)) for item in items]
    return [_computed(item) if item.__class__ is int and n.__class__ is Extent else item for item, n in sized]


def check_static(items: list[Any], shape: tuple[int, ...], wrap: bool = True) -> None:
    """Where ``check_static_indices`` is set, raises BadIndex: an integer among the entries is out of bounds."""
    if not config.current().check_static_indices:
        return
    dim = 0
    for item in items:
        if item.__class__ is int and not (-shape[dim] if wrap else 0) <= item < shape[dim]:
            raise BadIndex(
                f"index: an index must lie in its axis, got {item} for axis {dim} of size {shape[dim]}.",
                hint="without check_static_indices it is clipped.",
            )
        dim += item is not None and item.__class__ is not BooleanIndex


def _row(x: Any, i: int, shape: tuple[int, ...]) -> Any:
    """``x[i]`` for a Python integer along the first axis, which is not ragged."""
    n = shape[0]
    i = i + n if i < 0 else i
    if not 0 <= i < n:
        check_static([i], shape, False)
        return _dynamic(x, [_computed(i) if n else clipped(i, n), *[FULL] * (len(shape) - 1)], False)
    rest = shape[1:]
    run = current()
    zeros = (0,) * len(rest)
    if n != 1:
        x = run.answer(Slice((i, *zeros), (i + 1, *rest), (1,) * len(shape)), (x,))
    return run.answer(Reshape(rest), (x,))


def clipped(i: int, n: int) -> int:
    """The nearest valid index to ``i``, which is out of bounds for an axis of size ``n``."""
    if not n:
        raise BadIndex(f"index: there is no element {i} on an axis of size 0.")
    return 0 if i < 0 else n - 1


def read(x: Any, items: list[Any], mode: Any, fill: Any, is_sorted: bool, unique: bool, wrap: bool) -> Any:
    """``x`` at the entries of an index."""
    plain = True
    for item in items:
        kind = item.__class__
        if kind is not int and kind is not slice and item is not None:
            plain = False
            break
    if plain:
        if not outside(items, x.type.shape, wrap):
            return static(x, items, wrap)
        if mode is not FILL:  # clipped by an operation, which a handler may watch
            items = [_computed(item) if item.__class__ is int else item for item in items]
    elif any([item.__class__ is BooleanIndex for item in items]):
        x, items = without_flags(x, items)
    if mode is not FILL and all([not hasattr(item, "ndim") or not item.ndim for item in items]):
        return _dynamic(x, items, wrap)
    return _advanced(x, items, mode, fill, is_sorted, unique, wrap)


def _computed(i: int) -> Any:
    """A Python integer as an array of rank 0, clamped to 62 bits: int32, or int64 where it is large."""
    i = min(max(i, -(2**62)), 2**62)
    return from_numpy(np.array(i, np.int32 if abs(i) < 2**31 else np.int64))


def outside(items: list[Any], shape: tuple[Any, ...], wrap: bool = True) -> bool:
    """Whether a Python integer among the entries is out of bounds, or may be so in a lane of a ragged ``vmap``."""
    sizes = iter(shape)
    for item in items:
        if item is not None:
            n = next(sizes)
            if item.__class__ is int and (n.__class__ is Extent or not (-n if wrap else 0) <= item < n):
                return True
    return False


def bounds(item: slice, n: Any) -> tuple[int, Any, int, Any]:
    """The start, stop and step of a slice of an axis of size ``n``, and how many elements it has.

    Raises: BadIndex: a bound is traced. NotAnInteger: a bound is no integer. BadArgument: the step is 0.
    """
    try:
        start, stop = unbound(item.start), unbound(item.stop)
        if Extent in (n.__class__, start.__class__, stop.__class__):
            step = 1 if item.step is None else whole_number("index: a step", item.step)
            range(0, 0, step)  # which refuses 0, as slice.indices does
            first, behind = part_of(n, start, stop, step)
            count = ceiling_divided(behind - first, abs(step))
            return (first, behind, step, count) if step > 0 else (behind - 1, first - 1, step, count)
        a, b, step = item.indices(n)
        return a, b, step, len(range(a, b, step))
    except TypeError as error:
        if not isinstance(error, ConcretizationError):
            raise NotAnInteger(f"index: the ends and the step of a slice must be integers, got {item}.") from None
        unknown = next(end for end in (item.start, item.stop, item.step) if isinstance(end, Box))
        raise BadIndex(
            f"index: the start, stop and step of a slice must be known, got {unknown.described}.",
            hint="lax.dynamic_slice takes unknown starts; or make the argument static (static_argnums).",
        ) from None
    except ValueError:
        raise BadArgument(f"index: the step of a slice must not be 0, got {item}.") from None


def static(x: Any, items: list[Any], wrap: bool = True) -> Any:
    """``x`` at integers, slices and None, by at most a slice, a reversal and a reshape."""
    shape = x.type.shape
    out: list[int] = []
    starts: list[int] = []
    limits, strides, back = [], [], []
    trivial = True
    for item in items:
        if item is None:
            out.append(1)
            continue
        dim = len(starts)
        n = shape[dim]
        if item.__class__ is int:
            i = item + n if item < 0 and wrap else item
            if not 0 <= i < n:
                i = clipped(i, n)
            a, b, step = i, i + 1, 1
        else:
            if item is FULL:
                a, b, step, count = 0, n, 1, n
            else:
                a, b, step, count = bounds(item, n)
                if not count:
                    a, b, step = 0, 0, 1
                elif step < 0:
                    back.append(dim)
                    a, b, step = a + (count - 1) * step, a + 1, -step
            out.append(count)
        if a or b != n or step != 1:
            trivial = False
        starts.append(a)
        limits.append(b)
        strides.append(step)
    if not trivial:
        x = current().answer(Slice(tuple(starts), tuple(limits), tuple(strides)), (x,))
    if back:
        x = current().answer(Rev(tuple(back)), (x,))
    made = tuple(out)
    return x if made == x.type.shape else current().answer(Reshape(made), (x,))


def _dynamic(x: Any, items: list[Any], wrap: bool) -> Any:
    """``x`` at traced scalars, integers, slices and None, by a dynamic slice."""
    shape = x.type.shape
    basic: list[Any] = []
    for item in items:
        if item is None:
            continue
        if item.__class__ is int:  # the axis stays, with size 1
            n = shape[len(basic)]
            i = item + n if item < 0 and wrap else item
            i = i if 0 <= i < n else clipped(i, n)
            item = slice(i, i + 1)
        basic.append(FULL if hasattr(item, "ndim") else item)
    y = static(x, basic, wrap)
    out: list[int] = []
    starts: list[Any] = []
    sizes: list[int] = []
    for item in items:
        if item is None:
            out.append(1)
            continue
        n = y.type.shape[len(sizes)]
        if hasattr(item, "ndim"):
            if not n:
                clipped(0, n)
            starts.append(wrapped(narrow(item), n) if wrap else narrow(item))
            sizes.append(1)
        else:
            starts.append(0)
            sizes.append(n)
            if item.__class__ is not int:
                out.append(n)
    wide = INT64 if any([start.__class__ is not int and start.type.dtype == INT64 for start in starts]) else INT32
    starts = [scalar(0, wide) if start.__class__ is int else convert(start, wide) for start in starts]
    return shapes.reshape(current().answer(shared(DynamicSlice, tuple(sizes)), (y, *starts)), tuple(out))


def narrow(i: Any) -> Any:
    """Indices as int32, or as int64 if their dtype holds numbers beyond int32."""
    kind = INT64 if i.dtype in (dtypes.int64, dtypes.uint64, dtypes.uint32) else INT32
    if not isinstance(i, Array):
        return i.astype(kind, copy=False)
    return convert(i, kind) if i.dtype != kind or i.type.weak else i


def wrapped(i: Any, n: Any) -> Any:
    """Negative indices replaced by those counted from the front of an axis of size ``n``."""
    if not isinstance(i, Array):
        if isinstance(n, Extent):
            return wrapped(as_array(i), n)
        return np.where(i < 0, i + n, i)
    if dtypes.is_unsigned(i.type.dtype):
        return i
    dtype = i.type.dtype
    return select_n(lt(i, scalar(0, dtype)), i, add(i, convert(n, dtype)))


def on_host(i: Any) -> Any:
    """An index array as a NumPy array if its values are on the host, else as it is."""
    return i._value if isinstance(i, ConcreteArray) and i._value is not None else i


def vectors(arrays: list[Any], shape: tuple[int, ...]) -> tuple[Any, bool]:
    """The ``k`` arrays stacked as index vectors ``[*shape, k]``, and whether their values are on the host."""
    if all([isinstance(i, (np.ndarray, np.generic)) for i in arrays]):
        wide = INT64 if any([i.dtype.itemsize == 8 and i.size and np.abs(i).max() >= 2**31 for i in arrays]) else INT32
        if len(arrays) == 1 and arrays[0].shape == shape:
            return from_numpy(np.array(arrays[0], wide)[..., None], copy=False), True
        stacked = np.stack([np.broadcast_to(i, shape) for i in arrays], -1) if arrays else np.zeros((*shape, 0), wide)
        return from_numpy(stacked.astype(wide, copy=False), copy=False), True
    parts = [as_array(i) for i in arrays]
    wide = INT64 if any([i.type.dtype == INT64 for i in parts]) else INT32
    columns = []
    for i in parts:
        i = convert(i, wide)
        if i.type.shape != shape:
            i = shapes.broadcast(i, shape)
        columns.append(shapes.reshape(i, (*shape, 1)))
    return joined_along(columns, len(shape)), False


def layout(items: list[Any]) -> tuple[bool, int]:
    """Whether the arrays and integers of an index are adjacent, and the entry at which the first of them is.

    If they are, their broadcast axes replace them in the result; else they come first (NumPy's rule).
    """
    advanced = [k for k, item in enumerate(items) if item is not None and item.__class__ is not slice]
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    return together, advanced[0] if together else 0


def _advanced(x: Any, items: list[Any], mode: Any, fill: Any, is_sorted: bool, unique: bool, wrap: bool) -> Any:
    """``x`` at arrays, integers, slices and None: integers and slices by ``static``, then arrays by one gather."""
    _, first = layout(items)
    shape = x.type.shape
    basic: list[Any] = []
    arrays, sizes, out, dims = [], [], [], []
    dim = kept = before = 0  # axes of x, axes after slicing, those of them that lie before the arrays' axes
    new_before = 0  # axes of size 1, for None, that lie before the arrays' axes
    for k, item in enumerate(items):
        if item is None:
            out.append(1)
            new_before += k < first
            continue
        n = shape[dim]
        dim += 1
        if item.__class__ is slice:
            basic.append(item)
            out.append(bounds(item, n)[3])
            before += k < first
            kept += 1
        elif item.__class__ is int and (mode is not FILL or not outside([item], (n,), wrap)):
            basic.append(item)
        else:
            basic.append(FULL)
            item = narrow(on_host(item)) if item.__class__ is not int else np.asarray(item, INT32)
            arrays.append(wrapped(item, n) if wrap else item)
            sizes.append(n)
            dims.append(kept)
            kept += 1
    y = static(x, basic, wrap)
    outer = broadcast_shape("index", *[i.shape for i in arrays])
    out[before + new_before : before + new_before] = outer
    made = gathered(y, arrays, sizes, dims, outer, before, mode, fill, is_sorted, unique)
    return shapes.reshape(made, tuple(out))


def gathered(
    y: Any, arrays: list[Any], sizes: list[int], dims: Sequence[int], outer: tuple[int, ...], at: int, mode: Any,
    fill: Any, is_sorted: bool, unique: bool,
) -> Any:
    """``y`` at arrays along ``dims``, all other axes whole; the arrays' axes are put before axis ``at`` of the rest."""
    shape = y.type.shape
    rest = [n for d, n in enumerate(shape) if d not in dims]
    result = (*rest[:at], *outer, *rest[at:])
    if not prod(result):
        return put_like(shapes.full(y.type.update(shape=result), 0), y)
    if any([not n for n in sizes]) and mode is not FILL:
        raise BadIndex(f"index: there is nothing to read on an axis of size 0, got {y.type}.")
    index, known = vectors(arrays, outer)
    if mode is FILL and known and all([((i >= 0) & (i < n)).all() for i, n in zip(arrays, sizes)]):
        mode = CLIP  # nothing to fill
    numbers = GatherDimensionNumbers(
        tuple([d for d in range(len(result)) if not at <= d < at + len(outer)]), tuple(dims), tuple(dims)
    )
    window = tuple([single(n) if d in dims else n for d, n in enumerate(shape)])
    return current().answer(reader(y, numbers, window, bool(unique), bool(is_sorted), mode, fill), (y, index))


def reader(x: Any, numbers: Any, window: tuple[int, ...], unique: bool, is_sorted: bool, mode: Any, fill: Any) -> Any:
    """The gather operation that reads ``x``: one shared object for equal fields, unless a fill value is given."""
    if mode is not FILL:
        return shared(Gather, numbers, window, unique, is_sorted, mode)
    if fill is None:
        return shared(_filling, numbers, window, unique, is_sorted, x.type.dtype)
    value = np.asarray(fill)
    if value.shape:
        raise BadArgument(f"fill_value: must be a scalar, got shape {value.shape}.")
    return Gather(numbers, window, unique, is_sorted, mode, value.item())


def _filling(numbers: Any, window: tuple[int, ...], unique: bool, is_sorted: bool, dtype: Any) -> Gather:
    """The gather that reads the default fill value of ``dtype`` at indices out of bounds."""
    return Gather(numbers, window, unique, is_sorted, FILL, default_fill(dtype))


def mode_of(mode: Any, default: Any) -> Any:
    """The ``GatherScatterMode`` called ``mode``; ``default`` for None."""
    return default if mode is None else GatherScatterMode.from_any(mode)


def positions(indices: Any, where: str) -> Any:
    """Indices as int32 or int64: a NumPy array if their values are on the host, else an array."""
    i = np.asarray(indices) if isinstance(indices, (int, np.integer, np.ndarray)) else as_array(indices)
    if dtypes.is_integer(i.dtype) or i.dtype == dtypes.bool_:
        i = on_host(i) if isinstance(i, Array) else i
    if i.dtype == dtypes.bool_:
        i = i.astype(INT32) if not isinstance(i, Array) else convert(i, INT32)
    if not dtypes.is_integer(i.dtype):
        raise DTypeMismatch(f"{where}: indices must be integers, got {i.dtype}.", hint="convert with astype(int).")
    return narrow(i)


def limited(i: Any, n: Any, mode: Any, where: str) -> tuple[Any, Any]:
    """The indices, within an axis of size ``n`` for the modes "wrap" and "clip", and the mode of the gather or scatter.

    Negative indices count from the end, except that "clip" makes them 0.
    """
    if isinstance(n, Extent):
        i = as_array(i)
    host = not isinstance(i, Array)
    dtype, word = i.dtype, mode if isinstance(mode, str) else None
    if word == "wrap":
        if not n:
            return i, CLIP
        return (i % n if host else wrapped(rem(i, convert(n + positive(1 - n), dtype)), n)), CLIP
    if word == "clip":
        last = positive(n - 1)
        return (i.clip(0, last) if host else clamp(scalar(0, dtype), i, convert(last, dtype))), CLIP
    if word == "raise":
        raise NotProvided(f"{where}: there is no mode 'raise', indices may be unknown.", hint="use fill, clip or wrap.")
    return wrapped(i, n), mode_of(mode, FILL)
