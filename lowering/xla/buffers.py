"""Buffers: transfer to and from devices, waiting, deletion.

jaxlib's C++ imports jax wherever it has to invent the type of a buffer. Here every buffer is created with its ``aval``;
the few calls where that is impossible are made under ``without_jax``.
"""

import ctypes
import zlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from ...effects.base.caches import cached
from ...effects.base.errors import NotAddressable
from ...effects.sharding.devices import processes_of
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.types.array_type import ArrayType, Shape
from ..clients.jaxlib_modules import xc
from ..clients.processes import connection
from ..clients.runtime_access import REFUSALS, check_access
from .buffer_types import AVALS, PACKED, Aval, BufferSharding, Device, aval, layout_of, named_sharding, sharding
from .jax_import_guard import without_jax

Buffer: TypeAlias = Any
"""jaxlib's ``ArrayImpl``. Never hand one to a user: jax, once imported, takes it for its own."""

_COPY = xc.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = xc.HostBufferSemantics.ZERO_COPY
_device_put: Callable[..., Buffer] = xc.batched_device_put


@cached("transfers to a device", 256)
def putter(device: Device, *, copy: bool = True, committed: bool = True) -> Callable[[Any], Buffer]:
    """``put`` for one device with its look-ups done beforehand, for calls with NumPy arguments.

        putter(device, copy=c)(x) == put(x, device, copy=c)

    ``committed`` marks the buffer as put on its device by name; ``is_committed`` reads the mark.
    """
    devices, where, avals, numpy_array = [device], sharding(device, committed=committed), AVALS, np.ndarray
    semantics = _COPY if copy else _ALIAS

    def put_here(array: Any) -> Buffer:
        if type(array) is numpy_array:
            kind = avals.get((array.shape, array.dtype))
            if kind is not None:
                # The last argument keeps 64-bit types; without it jaxlib reads a switch that only jax sets.
                return _device_put(kind, where, [array], devices, committed, False, semantics, True)
        array = np.asarray(array)
        kind = aval(array.shape, array.dtype)
        native = array.astype(kind.dtype, copy=False)
        return _device_put(kind, where, [native], devices, committed, False, semantics, True)

    return put_here


def put(array: Any, device: Device, *, copy: bool = True) -> Buffer:
    """The elements of a NumPy array or scalar, on ``device``.

        to_numpy(put(x, device)) == x

    With ``copy`` a later change of ``array`` does not change the buffer. Without it the buffer may share the array's
    memory (on a CPU it does for contiguous arrays aligned to 64 bytes): only for arrays that are no longer written.

    Raises: DTypeMismatch: no device holds such elements.
    """
    return putter(device, copy=copy)(array)


def lies_at(buffer: Buffer, where: BufferSharding) -> bool:
    """Whether a program that takes an argument from ``where`` can take this buffer."""
    own = buffer._sharding
    if own is where:
        return True
    return cut_alike(own, where) and own._memory_kind == where._memory_kind and layout_of(own) == layout_of(where)


def cut_alike(one: BufferSharding, other: BufferSharding) -> bool:
    """Whether each device holds the same part of a buffer by both shardings, in whatever memory and layout."""
    if hasattr(one, "named") and hasattr(other, "named"):
        return bool(
            one._internal_device_list == other._internal_device_list and one._hlo_sharding == other._hlo_sharding)
    return not hasattr(one, "named") and not hasattr(other, "named") and bool(one._device == other._device)


place_of = attrgetter("_sharding")
"""Where a buffer lies and whether it is committed, to be compared by identity."""


def places_of(buffers: Sequence[Any]) -> list[Any]:
    """``place_of`` each buffer; None for a NumPy array."""
    try:
        return [*map(place_of, buffers)]
    except AttributeError:
        return [None if type(b) is np.ndarray else place_of(b) for b in buffers]


def moved_to_device(buffer: Buffer, where: BufferSharding) -> Buffer:
    """A buffer of one device, copied to a device and memory of the same client."""
    return _device_put(buffer.aval, where, [buffer], [where._device], True, False, _ALIAS, True)


def put_at(array: np.ndarray[Any, Any], where: BufferSharding, *, copy: bool = False) -> Buffer:
    """The elements of a NumPy array, lying and cut as ``where`` says; without ``copy`` it must not be written later.

    Over devices of several processes each must put the same array: it is a joint action of theirs.
    """
    if hasattr(where, "named"):
        _take_part(array, where)
        return spread(array.copy() if copy else array, where)
    semantics = _COPY if copy else _ALIAS
    return _device_put(aval(array.shape, array.dtype), where, [array], [where._device], True, False, semantics, True)


def _take_part(array: np.ndarray[Any, Any], where: BufferSharding) -> None:
    """Note, as a joint action of the processes of the devices, that they put this array there."""
    joined = connection()
    if joined is not None and not where.named.is_fully_addressable:
        digest = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        group = processes_of(where.named._device_assignment)
        with joined.turn(group):
            joined.take_part(group, f"an argument {ArrayType(array.shape, array.dtype)} with digest {digest:08x}")


def spread(array: np.ndarray[Any, Any], where: BufferSharding) -> Buffer:
    """The elements of a NumPy array that is no longer written, over the devices of a mesh; along unreduced axes on the
    first ones, and zeros on the others.

    Raises: ShapeMismatch: a dimension cannot be cut into equal parts.
    """
    zeroed = _zeroed(where.named) if where.named.unreduced else ()
    made: dict[Any, Any] = {}  # devices that hold the same part share its memory
    parts = []
    for device, index in where.named.addressable_devices_indices_map(array.shape).items():
        key = device in zeroed, *[(cut.start, cut.stop) for cut in index]
        if key not in made:
            part = np.asarray(array[index])
            made[key] = np.zeros_like(part) if device in zeroed else part
        parts.append(made[key])
    return spread_parts(parts, aval(array.shape, array.dtype), where)


def _zeroed(named: NamedSharding) -> frozenset[Device]:
    """The devices that are not the first along an unreduced axis: of a value that is there already they add nothing."""
    mesh = named.mesh
    first = mesh.devices[tuple([slice(1 if name in named.unreduced else None) for name in mesh.axis_names])]
    return frozenset(mesh.devices.flat).difference(first.flat)


def spread_parts(parts: Sequence[np.ndarray[Any, Any]], kind: Aval, where: BufferSharding) -> Buffer:
    """The buffer of this type whose part on each device of this process is given; they are no longer written."""
    copies = {id(part): part if part.flags.c_contiguous else part.copy() for part in parts}
    devices = where._internal_device_list.addressable_device_list
    if not parts or where.named.unreduced:  # jaxlib takes parts to be equal that are of whole dimensions
        places = [sharding(device, where._memory_kind) for device in devices]
        return assemble([put_at(copies[id(part)], place) for part, place in zip(parts, places)], kind, where)
    return _device_put(kind, where, [copies[id(part)] for part in parts], [*devices], True, False, _ALIAS, True)


def assemble(parts: list[Buffer], kind: Aval, where: BufferSharding) -> Buffer:
    """The buffer of this type whose parts are these buffers, one on each device of this process, in their order."""
    return xc.ArrayImpl(kind, where, parts, committed=True, _skip_checks=True)


def in_words_of(buffer: Buffer, where: BufferSharding) -> Buffer:
    """The same parts as a buffer of the sharding ``where``, which must cut it alike."""
    return buffer if buffer._sharding is where else buffer._rewrap_with_aval_and_sharding(buffer.aval, where)


def duplicate(buffer: Buffer) -> Buffer:
    """A buffer of equal elements on the same devices, in memory of its own."""
    named = named_sharding(buffer)
    if named is not None and not named.is_fully_addressable:  # XLA copies to the devices of this process alone
        return assemble([duplicate(part) for part in parts_of(buffer)], buffer.aval, buffer._sharding)
    where, devices, always = buffer._sharding, xc.DeviceList(devices_of(buffer)), xc.ArrayCopySemantics.ALWAYS_COPY
    return xc.batched_copy_array_to_devices_with_sharding([buffer], [devices], [where], [always])[0]


# Transfer out


def to_numpy(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    """The elements of a buffer as a read-only array, after waiting for them.

    On a CPU the array shares the buffer's memory and keeps it alive; from a GPU it is a copy.

    Raises: RuntimeFailure: the program that computes it failed, or the buffer was deleted or donated.
    """
    block_until_ready(buffer)  # XLA ends the process where memory is asked for that a failed program never had
    if 0 in shape:  # XLA does not cut what has no elements: its shards have the shape of the whole
        return np.broadcast_to(np.empty((), dtype), shape)
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:  # not a dtype of NumPy, or not in the memory of the host
        return _to_numpy_by_copy(buffer, dtype, shape)


def _to_numpy_by_copy(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    named = named_sharding(buffer)
    if named is not None and not named.is_fully_addressable:
        return to_numpy(_part_of_all(buffer, dtype, shape), dtype, shape)
    if hasattr(buffer, "_to_np_array_did_copy"):  # since 0.12
        array = buffer._to_np_array_did_copy()[0]
    elif named is not None:
        array = _gather(buffer, dtype, shape)
    elif dtype not in PACKED and device_of(buffer).platform == "cpu" and layout_of(buffer._sharding) is None:
        array = _view_memory(buffer, dtype, shape)
    else:
        with without_jax():
            array = buffer._single_device_array_to_np_array_did_copy()[0]
    array = array.view()
    array.flags.writeable = False
    return array


def _part_of_all(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> Buffer:
    """One part of a buffer over devices of several processes, where each is the whole. Raises NotAddressable."""
    named: Any = named_sharding(buffer)
    if not named.is_fully_replicated or not named.has_addressable_devices:
        here, size = len(named.addressable_devices), named.num_devices
        raise NotAddressable(
            f"array: this process must hold all of the data, got {ArrayType(shape, dtype)} by {named.spec} over {size} "
            f"devices, {here} of them its own.",
            hint="multihost_utils.process_allgather(x) gives all of it; x.addressable_shards is what is here.",
        )
    return parts_of(buffer)[0]


def _gather(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    """The elements of an array that is sharded over several devices, copied together from its shards."""
    array = np.empty(shape, dtype)
    indices = named_sharding(buffer).addressable_devices_indices_map(shape)  # type: ignore[union-attr]
    for index, part in reversed([*zip(indices.values(), parts_of(buffer))]):  # the first of several of a part counts
        array[index] = to_numpy(part, dtype, array[index].shape)
    return array


def parts_of(buffer: Buffer) -> list[Buffer]:
    """The buffers of the parts of a buffer over several devices: on each device of this process, in their order."""
    with without_jax():
        parts = buffer._arrays
    shape = named_sharding(buffer).shard_shape(buffer.aval.shape)  # type: ignore[union-attr]
    kind = aval(shape, buffer.aval.dtype)
    own = buffer._sharding
    places = [sharding(d, own._memory_kind, own.layout) for d in own._internal_device_list.addressable_device_list]
    return [part._rewrap_with_aval_and_sharding(kind, place) for part, place in zip(parts, places)]


def _view_memory(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    memory = (ctypes.c_char * buffer.on_device_size_in_bytes()).from_address(pointer(buffer))
    memory.owner = buffer  # the array's chain of bases now references the buffer
    return np.frombuffer(memory, dtype=dtype).reshape(shape)


def pointer(buffer: Buffer) -> int:
    """The address of the first element. It keeps nothing alive: the buffer may be freed or donated later."""
    with without_jax():
        return int(buffer.unsafe_buffer_pointer())


def size_on_devices(buffer: Buffer) -> int:
    """The bytes that the elements take on all devices of this process together."""
    with without_jax():
        return int(buffer.on_device_size_in_bytes())


def cuda_array_interface(buffer: Buffer) -> dict[str, Any]:
    """Address, shape and dtype of a buffer on a GPU, as CUDA's libraries in Python exchange them."""
    with without_jax():
        return dict(buffer.__cuda_array_interface__)


def block_until_ready(buffer: Buffer) -> None:
    """Wait until the elements are computed.

    Raises: RuntimeFailure: the program that computes them failed, or the buffer was deleted or donated.
    PlatformUnavailable: this is a forked child, and they were not computed before the fork.
    """
    if REFUSALS and not buffer.is_ready():
        check_access()
    buffer.block_until_ready()


def all_until_ready(buffers: list[Buffer]) -> None:
    """``block_until_ready`` of each buffer, in one call of the runtime."""
    if REFUSALS and not all(map(is_ready, buffers)):
        check_access()
    xc.batched_block_until_ready(buffers)


def device_of(buffer: Buffer) -> Device:
    """The device of a single-device buffer."""
    return buffer._sharding._device


def devices_of(buffer: Buffer) -> tuple[Device, ...]:
    """The devices of a buffer, in the order of its mesh."""
    named = named_sharding(buffer)
    return (device_of(buffer),) if named is None else named._device_assignment


def is_committed(buffer: Buffer) -> bool:
    """Whether the buffer was put on its device by name, so that computations with it must happen there."""
    return bool(buffer._committed)


def is_ready(buffer: Buffer) -> bool:
    """Whether the elements are computed."""
    return bool(buffer.is_ready())


def is_device(x: Any) -> bool:
    """Whether a value is a device of the runtime."""
    return isinstance(x, xc.Device)


def is_only_device(device: Device, default: Device) -> bool:
    """Whether ``device`` is the only device of the platform of ``default``."""
    return device.client is default.client and len(device.client.devices()) == 1


def is_deleted(buffer: Buffer) -> bool:
    """Whether the buffer was deleted, or donated to a program."""
    return bool(buffer.is_deleted())


def delete(buffer: Buffer) -> None:
    """Free the elements now; NumPy arrays that share them stay valid."""
    buffer.delete()
