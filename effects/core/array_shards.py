"""``Shard`` and ``OnDevices``: the devices and sharding of a concrete array, and the part that each device holds."""

from __future__ import annotations

from typing import Any

from ..base.errors import ConcretizationTypeError
from ..base.immutables import ImmutableObject
from ..base.later_layers import LaterLayers
from ..sharding.devices import is_addressable
from ..sharding.layout import Format, row_major
from ..sharding.named_sharding import Sharding


class Shard(ImmutableObject):
    """The part of an array ``x`` that one device holds.

    ``data == x[index]``, an array on that device alone; None where another process has the device. ``replica_id``: how
    many devices before this one, in the order of the sharding, hold the same part.
    """

    __slots__ = ("data", "device", "global_shape", "sharding")
    _guard = ("shards", "device_put makes other arrays.")
    device: Any
    sharding: Sharding
    global_shape: tuple[int, ...]
    data: Any

    def __init__(self, device: Any, sharding: Sharding, global_shape: tuple[int, ...], data: Any = None):
        self._fill(data=data, device=device, global_shape=global_shape, sharding=sharding)

    @property
    def index(self) -> tuple[slice, ...]:
        return self.sharding.devices_indices_map(self.global_shape)[self.device]

    @property
    def replica_id(self) -> int:
        tiles = self.sharding.tiles(len(self.global_shape)).of_device
        own = self.sharding._device_assignment.index(self.device)
        return tiles[:own].count(tiles[own])

    def __repr__(self) -> str:
        where = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({where}, data={self.data})"


class OnDevices:
    """The properties of a concrete array that say where its data are: devices, sharding, shards."""

    __slots__ = ()
    type: Any
    buffer: Any

    @property
    def sharding(self) -> Sharding:
        """Which part of the data is on which device."""
        return LaterLayers.backend.sharding(self.buffer)

    @property
    def format(self) -> Format:
        """The layout of the data and the sharding."""
        return Format(LaterLayers.backend.layout(self.buffer) or row_major(self.type.ndim), self.sharding)

    @property
    def committed(self) -> bool:
        """Whether the user chose the array's devices, so that computations with the array are executed on them."""
        return LaterLayers.backend.is_committed(self.buffer)

    _committed = committed

    def devices(self) -> set[Any]:
        return self.sharding.device_set

    @property
    def device(self) -> Any:
        """The device that holds the array, or the sharding if several devices do."""
        sharding = self.sharding
        return next(iter(sharding.device_set)) if sharding.num_devices == 1 else sharding

    @property
    def is_fully_addressable(self) -> bool:
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return self.sharding.is_fully_replicated

    @property
    def _is_here(self) -> bool:
        """Whether this process holds all of the data."""
        return self.is_fully_addressable or (self.is_fully_replicated and self.sharding.has_addressable_devices)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The part of each device of this process."""
        return [shard for shard in self.global_shards if is_addressable(shard.device)]

    @property
    def global_shards(self) -> list[Shard]:
        """One shard per device; ``data`` is None in the shards of other processes' devices."""
        sharding, shape = self.sharding, self.type.shape
        parts = iter(LaterLayers.backend.parts(self))
        held = [(device, next(parts) if is_addressable(device) else None) for device in sharding._device_assignment]
        return [Shard(device, sharding, shape, data) for device, data in held]

    def addressable_data(self, index: int) -> Any:
        """The part that device ``index`` of this process holds, as an array on that device alone."""
        return LaterLayers.backend.parts(self)[index]

    def unsafe_buffer_pointer(self) -> int:
        """The address of the data on the device."""
        LaterLayers.backend.block(self.buffer)
        return LaterLayers.backend.pointer(self.buffer)

    def on_device_size_in_bytes(self) -> int:
        """The bytes that the data take on all devices of this process together."""
        return LaterLayers.backend.size_on_devices(self.buffer)


def _unplaced(name: str) -> Any:
    def raising(box: Any, *args: Any, **kwargs: Any) -> Any:
        return box._unknown(
            ConcretizationTypeError,
            f"{name}: only an array whose values are known has its data on devices",
            "ask outside of the transformed function; hx.typeof(x) is known here.",
        )

    return raising


class OnNoDevice:
    """The names of ``OnDevices``, and others about data, on a box, which has none: all of them raise."""

    __slots__ = ()
    committed = property(_unplaced("committed"))
    is_fully_addressable = property(_unplaced("is_fully_addressable"))
    is_fully_replicated = property(_unplaced("is_fully_replicated"))
    addressable_shards = property(_unplaced("addressable_shards"))
    global_shards = property(_unplaced("global_shards"))
    addressable_data = _unplaced("addressable_data")
    devices = _unplaced("devices")
    is_deleted = _unplaced("is_deleted")
    delete = _unplaced("delete")
    copy_to_host_async = _unplaced("copy_to_host_async")
    on_device_size_in_bytes = _unplaced("on_device_size_in_bytes")
    unsafe_buffer_pointer = _unplaced("unsafe_buffer_pointer")
    __dlpack__ = _unplaced("__dlpack__")
    __dlpack_device__ = _unplaced("__dlpack_device__")
