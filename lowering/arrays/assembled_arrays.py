"""Arrays over several devices, assembled from their shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, DeviceMismatch, DTypeMismatch, ShapeMismatch
from ...effects.base.stack import BASE, inside
from ...effects.core.arrays import ConcreteArray, as_array, concrete, from_numpy
from ...effects.operations.foundations.shapes import canonical_shape
from ...effects.sharding.devices import is_addressable
from ...effects.sharding.layout import Format
from ...effects.sharding.named_sharding import Bounds, NamedSharding, Sharding, bounds
from ...effects.trees import pytrees
from ...effects.types.array_type import array_type, stated
from ...effects.types.dtypes import ExtendedDType, canonical
from ..compile.placement import over
from ..xla.array_backend import note_placement
from ..xla.lazy import runtime
from ..xla.stablehlo_types import storage
from .device_put import destination, device_put
from .requested_shardings import over_mesh
from .sharding_constraints import reshard


def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding | Format, data_callback: Callable[[Any], Any], dtype: Any = None
) -> ConcreteArray:
    """The array whose shard at each ``index`` (a tuple of slices) that this process holds is ``data_callback(index)``.

        make_array_from_callback(x.shape, s, lambda index: x[index]) == x

    ``sharding`` may be a format.

    Raises: ShapeMismatch: a shard has the wrong shape, or the shape cannot be cut so. DTypeMismatch: shards have
    several dtypes, or are random keys and ``dtype`` is another one. BadArgument: the process holds no shard, and
    ``dtype`` is not given.
    """
    if isinstance(sharding, Format):
        return _laid_out(sharding, lambda cut: make_array_from_callback(shape, cut, data_callback, dtype))
    where, converts = "make_array_from_callback", dtype is not None and not isinstance(dtype, ExtendedDType)
    sharding.check_fit(where, lambda: "the array", tuple(shape))
    made: dict[Bounds, ConcreteArray] = {}
    shards = []
    for index in sharding.addressable_devices_indices_map(shape).values():
        key = bounds(index, shape)
        if key not in made:
            data = data_callback(index)
            made[key] = _known(np.asarray(data, dtype) if converts else data)
        shards.append(made[key])
    if not shards and dtype is None:
        raise BadArgument(
            f"{where}: dtype must be given in a process that has no device of the sharding, got None.",
            hint="the same one in every process, such as dtype=float.",
        )
    _check_dtypes(where, shards, dtype)
    kind = shards[0].type.dtype if shards else canonical(dtype)
    return _assemble(where, tuple(shape), sharding, [shard.value for shard in shards], kind)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> Any:
    """The array of which each process passes what its own devices hold, concatenated in order along each dimension.

        one process:  make_array_from_process_local_data(s, x) == x

    Without ``global_shape``, a dimension is longer than the local one by the ratio of all shards to this process's. Of
    a tree it is one shape for all, or a tree of shapes.

    Raises: BadShape: ``global_shape`` is none.
    ShapeMismatch: the local data do not have the size of this process's shards.
    """
    if isinstance(sharding, Format):
        return _laid_out(sharding, lambda cut: make_array_from_process_local_data(cut, local_data, global_shape))
    target = destination("make_array_from_process_local_data", sharding)
    if global_shape is None or _is_shape(global_shape):
        return pytrees.map(lambda x: _of_local_data(target, x, global_shape), local_data)
    return pytrees.map(lambda x, shape: _of_local_data(target, x, shape), local_data, global_shape)


def _laid_out(asked: Format, make: Callable[[Any], Any]) -> Any:
    """What ``make`` gives of the format's sharding, in its layout."""
    return device_put(make(asked.sharding), asked)


def _is_shape(shapes: Any) -> bool:
    """Whether this is one shape for all leaves, rather than a tree of shapes."""
    return isinstance(shapes, tuple | list | np.ndarray) and all([hasattr(size, "__index__") for size in shapes])


def _known(x: Any) -> ConcreteArray:
    """``x`` as an array with a value. Raises: TracerArrayConversionError: it is only being traced."""
    y = as_array(x)
    return y if isinstance(y, ConcreteArray) else from_numpy(np.asarray(y))


def _of_local_data(sharding: Sharding, x: Any, global_shape: Sequence[int] | None) -> ConcreteArray:
    local = _known(x)
    data, rank = local.value, len(local.type.shape)
    grid, tiles = sharding.tiles(rank)
    places = zip(sharding._device_assignment, tiles)
    mine = [np.unravel_index(tile, grid) if grid else () for device, tile in places if is_addressable(device)]
    held = [sorted({int(at[d]) for at in mine}) for d in range(rank)]  # along each dimension, this process's shards
    sizes = [n * g // len(h) for n, g, h in zip(data.shape, grid, held)]
    shape = canonical_shape(sizes if global_shape is None else global_shape, "make_array_from_process_local_data")
    if len(shape) != rank:
        raise ShapeMismatch(
            f"make_array_from_process_local_data: global_shape must have the rank of the local data, got {shape} for "
            f"{local.type}."
        )
    sharding.check_fit("make_array_from_process_local_data", lambda: "the array", shape)
    part = sharding.shard_shape(shape)
    for d, (size, width, parts, whole) in enumerate(zip(data.shape, part, held, shape)):
        if size not in (width * len(parts), whole):
            raise ShapeMismatch(
                f"make_array_from_process_local_data: dimension {d} of the local data must have the {len(parts)} parts "
                f"of size {width} that this process holds, got size {size}.",
                hint="global_shape is the shape of the array of all processes.",
            )

    def cut(at: Any) -> tuple[slice, ...]:
        first = [k if n == whole else parts.index(k) for k, n, whole, parts in zip(at, data.shape, shape, held)]
        return tuple([slice(k * width, (k + 1) * width) for k, width in zip(first, part)])

    where, dtype = "make_array_from_process_local_data", local.type.dtype
    return _assemble(where, shape, sharding, [data[cut(at)] for at in mine], dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding | Format, arrays: Sequence[Any], *, dtype: Any = None
) -> ConcreteArray:
    """The array whose shards are the given arrays, each on its device; nothing is copied.

    Raises: DeviceMismatch: they are not on this process's devices of the sharding, one on each.
    ShapeMismatch: one does not have the shape of a shard.
    """
    if isinstance(sharding, Format):
        return _laid_out(sharding, lambda cut: make_array_from_single_device_arrays(shape, cut, arrays, dtype=dtype))
    where = "make_array_from_single_device_arrays"
    cut, shape = over_mesh(sharding), tuple(shape)
    devices = [device for device in cut._device_assignment if is_addressable(device)]
    arrays = [_known(x) for x in arrays]
    of_device = {device: x for x in arrays for device in x.devices()}
    if {*of_device} != {*devices} or len(arrays) != len(devices):
        raise DeviceMismatch(
            f"{where}: there must be an array on each of the devices {[device.id for device in devices]}, "
            f"got arrays on {[device.id for device in of_device]}.",
            hint="device_put(part, device) for each device of the sharding.",
        )
    parts = [of_device[device] for device in devices]
    _check_dtypes(where, parts, dtype)
    _check_shards(where, shape, cut, [x.type.shape for x in parts])
    over(cut.mesh)
    kind = stated(array_type(shape, parts[0].type.dtype), cut)
    held, where = _stored(kind, cut)
    row_major = [runtime.copy_to(x.buffer, runtime.laid_out(x.buffer._sharding, len(held.shape))) for x in parts]
    return concrete(kind, None, runtime.assemble(row_major, held, where))


def own_part(cut: NamedSharding, x: Any) -> ConcreteArray:
    """The part of ``x``, placed by the sharding ``cut``, that is on this process's devices.

    It is the inverse of ``make_array_from_process_local_data``.
    """
    if x.sharding != cut:
        with inside(BASE):
            x = reshard(x, cut)
    mine, part = NamedSharding(cut.mesh.local_mesh, cut.spec), cut.shard_shape(x.shape)
    shape = [size * count for size, count in zip(part, mine.parts(len(part)))]
    return make_array_from_single_device_arrays(shape, mine, [shard.data for shard in x.addressable_shards])


def _stored(kind: Any, sharding: Any) -> tuple[Any, Any]:
    """The runtime's type and sharding for arrays of a type."""
    stored, dtype = storage(kind)
    return runtime.aval(stored, dtype), runtime.sharding_over(sharding, len(stored))


def _check_dtypes(where: str, parts: Sequence[ConcreteArray], dtype: Any) -> None:
    """Check that all parts have one dtype, which is ``dtype`` unless that is None. Raises: DTypeMismatch."""
    kinds = {x.type.dtype for x in parts} | (set() if dtype is None else {canonical(dtype)})
    if len(kinds) > 1:
        raise DTypeMismatch(f"{where}: the parts must have one dtype, got {', '.join(sorted(map(str, kinds)))}.")


def _check_shards(where: str, shape: Sequence[int], sharding: Sharding, shapes: Sequence[Sequence[int]]) -> None:
    sharding.check_fit(where, lambda: "the array", tuple(shape))
    expected = sharding.shard_shape(shape)
    for shape_of_shard in shapes:
        if tuple(shape_of_shard) != expected:
            raise ShapeMismatch(
                f"{where}: a shard of {tuple(shape)} by {sharding} has the shape {expected}, got {shape_of_shard}."
            )


def _assemble(
    where: str, shape: Any, sharding: Sharding, parts: Sequence[np.ndarray[Any, Any]], dtype: Any
) -> ConcreteArray:
    """The array of these shards, one for each device of this process, in order; of random keys their key data."""
    _check_shards(where, shape, sharding, [part.shape[: len(shape)] for part in parts])
    kind = array_type(shape, dtype)
    if parts and sharding.num_devices == 1 and not hasattr(sharding, "mesh"):
        (device,) = sharding._device_assignment
        note_placement(device, sharding.memory_kind)
        here = runtime.sharding(device, sharding.memory_kind)
        return concrete(stated(kind, sharding), None, runtime.put_at(parts[0], here, copy=True))
    cut = over_mesh(sharding)
    over(cut.mesh)
    kind = stated(kind, cut)
    return concrete(kind, None, runtime.spread_parts(parts, *_stored(kind, cut)))
