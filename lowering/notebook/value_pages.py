"""Pages of arrays and ragged arrays: their type, where they are, and a picture of a sample of the values.

A sample has at most 64 rows and 64 columns, and is cut out on the devices that have the data. Traced values have a type
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from ...effects.base.config import configure
from ...effects.base.stack import BASE, inside
from ...effects.core.array_shards import Shard
from ...effects.core.arrays import Box, ConcreteArray, type_of
from ...effects.operations.indexing.dynamic_slicing import dynamic_slice
from ...effects.operations.manipulation.slicing import slice as slice_
from ...effects.sharding.named_sharding import Sharding
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ...effects.types.dtype_families import ExtendedDType
from ...interpreters.inspection.outline import bytes_text
from ...interpreters.ragged.ragged_array import Ragged, RaggedType
from ..jit.jit import jit
from .page import Page, describe, note, preformatted, titled
from .placement_pages import boxes, device_name
from .value_pictures import picture

SIDE = 64           # rows and columns of a sample
LANES = 32          # strips of a ragged array
FEW_LANES = 8       # whose lengths the title states
FEW = 100           # so many numbers are shown as text too
SMALL = 1 << 20     # bytes that are read whole, faster than a program that cuts elements out is compiled
VIEWED = ("cpu",)   # platforms whose data NumPy sees where they lie
SHARDS = 64         # of more shards none is read


@describe.register
def _of_traced(x: Box) -> Page:
    return titled(f"{x.type} under {x.run.described}", note("a traced value: its numbers are not known"))


@describe.register
def _of_array(x: ConcreteArray) -> Page:
    title = f"{x.type}"
    if x.is_deleted():
        return titled(title, note("deleted"))
    sharding = None if x._buffer is None else x.sharding  # what no device has yet is not transferred
    readable = sharding is None or _is_readable(x)
    shown = [note(f"{x.type.dtype}, {bytes_text(x.nbytes)}, {_place(sharding)}")]
    if readable and x.size and x.ndim and _has_numbers(x):
        shown += _picture(x, sharding)
    if sharding is not None and sharding.num_devices > 1:
        shown += boxes(sharding, max(x.ndim, 1))
    if readable and x.size <= FEW:
        shown.append(preformatted(str(x)))
    return titled(title, *shown)


def _place(sharding: Sharding | None) -> str:
    """Where an array is, in words."""
    if sharding is None:
        return "in NumPy's memory"
    devices = sharding._device_assignment
    memory = "" if sharding.memory_kind in (None, "device", "unpinned_host") else f", {sharding.memory_kind}"
    if len(devices) == 1:
        return f"on {device_name(devices[0])}{memory}"
    spec = getattr(sharding, "spec", None)
    return f"over {len(devices)} devices{'' if spec is None else f' by {spec}'}{memory}"


def _has_numbers(x: ConcreteArray) -> bool:
    """Whether its elements are numbers, which keys and derivatives of integers are not."""
    return not isinstance(x.type.dtype, ExtendedDType) and x.type.dtype.itemsize > 0


def _is_readable(x: ConcreteArray) -> bool:
    """Whether this process has all of the data, in few shards, which are no partial sums."""
    if x._value is not None:
        return True
    return x._is_here and x.sharding.num_devices <= SHARDS and not x.sharding.unreduced


def _picture(x: ConcreteArray, sharding: Sharding | None) -> list[str]:
    """The picture of a sample of the values, with lines where the array is cut, and their range."""
    values = as_floats(sample(x, sharding))
    matrix = values.reshape(-1, values.shape[-1])
    count = "" if values.size == x.size else f" in a sample of {values.size:,} of {x.size:,}"
    lines: list[str] = []
    shape: tuple[int, ...] = matrix.shape
    if sharding is not None and x.ndim <= 2 and sharding.num_devices > 1:
        shape = (1, *x.type.shape)[-2:]
        grid = (1, *sharding.tiles(x.ndim).grid)[-2:]
        lines = [f"M0 0H{shape[1]}V{shape[0]}H0Z"]
        lines += [f"M0 {shape[0] * k / grid[0]:g}H{shape[1]}" for k in range(1, grid[0])]
        lines += [f"M{shape[1] * k / grid[1]:g} 0V{shape[0]}" for k in range(1, grid[1])]
    return [picture(matrix, f"{x.type}", lines, shape), note(_range(values) + count)]


def sample(x: ConcreteArray, sharding: Sharding | None = None) -> np.ndarray[Any, Any]:
    """Elements of an array at equal distances, all of them where they are few; of each shard its device sends some.

    The last dimension has at most 64 elements, and so have all others together.
    """
    budget, steps = SIDE, [-(-x.type.shape[-1] // SIDE)]
    for size in reversed(x.type.shape[:-1]):
        steps.insert(0, -(-size // budget))
        budget = max(1, budget // -(-size // steps[0]))
    if x._value is not None or sharding is None or x.nbytes <= SMALL:
        return x.value[tuple([slice(None, None, step) for step in steps])]
    shape = tuple([-(-size // step) for size, step in zip(x.type.shape, steps)])
    found = np.empty(shape, x.type.dtype)
    for shard in _distinct_shards(x):
        there, starts, sizes = _places(shard.index, steps, x.type.shape)
        if all(sizes) and _is_read_whole(shard, x):
            found[there] = shard.data.value[tuple(map(slice, starts, (None,) * x.ndim, steps))]
        elif all(sizes):
            found[there] = _on_its_device(_cut, shard.data, starts, sizes, tuple(steps))
    return found


def _distinct_shards(x: ConcreteArray) -> Iterable[Shard]:
    """One shard of those that hold the same part."""
    return {str(shard.index): shard for shard in x.addressable_shards}.values()


def _is_read_whole(shard: Shard, of: ConcreteArray) -> bool:
    """Whether reading all of a shard is faster than compiling a program for its device.

    An array that is a shard itself would keep what is read, and could no longer be donated without a copy.
    """
    return shard.data is not of and (shard.data.nbytes <= SMALL or shard.device.platform in VIEWED)


@partial(jit, static_argnums=(2, 3))
def _cut(x: Any, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Elements at equal distances, which shards of one shape take by one trace: their starts are operands."""
    return slice_(dynamic_slice(x, starts, sizes), (0,) * len(sizes), sizes, steps)


@jit
def _first_of_rows(x: Any, rows: Any) -> Any:
    return x[(rows, *[0] * (x.ndim - 1))]


def _on_its_device(f: Callable[..., Any], x: ConcreteArray, *args: Any) -> np.ndarray[Any, Any]:
    """The elements that a compiled function takes out of an array, under no handlers; they may be NaN."""
    with inside(BASE), configure(debug_nans=False, debug_infs=False, no_tracing=False, no_execution=False):
        return f(x, *args).value


def _places(
    index: tuple[slice, ...], steps: list[int], shape: tuple[int, ...]
) -> tuple[tuple[slice, ...], tuple[int, ...], tuple[int, ...]]:
    """Where the sampled elements of a shard are in the sample, and in the shard: where they start, and how far they go.
    """
    there, starts, sizes = [], [], []
    for part, step, size in zip(index, steps, shape):
        start, stop, _ = part.indices(size)
        first, end = -(-start // step), -(-stop // step)
        there.append(slice(first, end))
        starts.append(first * step - start)
        sizes.append(max((end - first - 1) * step + 1, 0))
    return tuple(there), tuple(starts), tuple(sizes)


def as_floats(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values of any dtype of numbers as float64; complex ones by their magnitude."""
    return np.abs(values) if dtypes.is_complex(values.dtype) else values.astype(np.float64)


def _range(values: np.ndarray[Any, Any]) -> str:
    """The least and the largest of the finite numbers, and how many are not finite."""
    finite = values[np.isfinite(values)]
    others = values.size - finite.size
    shown = f"from {finite.min():.4g} to {finite.max():.4g}" if finite.size else "no finite number"
    return shown + (f", {others:,} not finite" if others else "")


@describe.register
def _of_ragged(x: Ragged) -> Page:
    leaves, lengths = pytrees.leaves(x.data), x.segment_lengths
    arrays = leaves if isinstance(lengths, tuple) else [*leaves, lengths]
    deleted = any([isinstance(each, ConcreteArray) and each.is_deleted() for each in arrays])
    hidden = isinstance(lengths, ConcreteArray) and (deleted or not _is_readable(lengths))
    brief = x.count > FEW_LANES or hidden
    title = f"Ragged {RaggedType(x.count, None, pytrees.tree_map(type_of, x.data)) if brief else x.type}"
    if deleted:
        return titled(title, note("deleted"))
    if not all([isinstance(each, ConcreteArray) for each in arrays]):
        return titled(title, note("traced values: their numbers are not known"))
    if hidden:
        return titled(title, note("the lengths are not read"))
    known = np.asarray(lengths if isinstance(lengths, tuple) else lengths.value, int)
    if not known.any():
        return titled(title, note("no rows"))
    return titled(title, *_strips(leaves[0], known), *[note(f"and {leaf.type}") for leaf in leaves[1:]])


def _strips(data: ConcreteArray, lengths: np.ndarray[Any, Any]) -> list[str]:
    """A strip for each of the first lanes, as long as the lane; in it the first number of every sampled row."""
    shown = lengths[:LANES]
    step = -(-max(int(shown.max()), 1) // SIDE)
    counts = -(-shown // step)
    starts = np.cumsum(lengths)[: len(shown)] - shown
    rows = np.concatenate([start + step * np.arange(count) for start, count in zip(starts, counts)])
    place = (np.repeat(np.arange(len(shown)), counts), np.concatenate([np.arange(count) for count in counts]))
    matrix = np.zeros((len(shown), max(int(counts.max()), 1)))
    read = data.size > 0 and _has_numbers(data) and _is_readable(data)
    if read:
        matrix[place] = as_floats(_at_rows(data, rows))
    strips = [f"M0 {i}H{count}V{i + 1}H0Z" for i, count in enumerate(counts) if count]
    more = f"; {len(lengths) - len(shown):,} more lanes" if len(lengths) > len(shown) else ""
    facts = f"{len(lengths):,} lanes, {lengths.min():,} to {lengths.max():,} rows long{more}"
    first = ", the first number of each row" if data.ndim > 1 else ""
    return [picture(matrix, f"{len(shown)} lanes", strips), note(facts + (first if read else ", no values are read"))]


def _at_rows(data: ConcreteArray, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The first number of each of these rows; the devices send them alone where they have many."""
    if data._value is not None or data.nbytes <= SMALL:
        return data.value[(rows, *[0] * (data.ndim - 1))]
    found = np.empty(len(rows), data.type.dtype)
    for shard in _distinct_shards(data):
        (start, stop), *others = [part.indices(size)[:2] for part, size in zip(shard.index, data.type.shape)]
        mine = (start <= rows) & (rows < stop)
        if any([begin for begin, _ in others]) or not mine.any():
            continue
        if _is_read_whole(shard, data):
            found[mine] = shard.data.value[(rows[mine] - start, *[0] * (data.ndim - 1))]
        else:  # as many rows of each, so that shards of one shape have one trace
            found[mine] = _on_its_device(_first_of_rows, shard.data, np.clip(rows - start, 0, stop - start - 1))[mine]
    return found
