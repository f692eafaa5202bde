"""Where the data of concrete arrays are: devices, sharding, and the part that each device holds."""

from __future__ import annotations

from typing import Any

from ..base.immutables import ImmutableObject
from ..sharding.devices import is_addressable
from ..sharding.named_sharding import Sharding
from .array_backend import InstalledBackend


class Shard(ImmutableObject):
    """The part of an array that one device holds.

    ``data == x[index]``, an array on the device alone; None where the device is another process's. ``replica_id``: how
    many devices before it hold the same part.
    """

    __slots__ = ("data", "device", "global_shape", "sharding")
    _guard = ("shards", "device_put makes other arrays.")
    device: Any
    sharding: Sharding
    global_shape: tuple[int, ...]
    data: Any

    def __init__(self, device: Any, sharding: Sharding, global_shape: tuple[int, ...], data: Any = None):
        for name, value in zip(self.__slots__, (data, device, global_shape, sharding)):
            object.__setattr__(self, name, value)

    @property
    def index(self) -> tuple[slice, ...]:
        return self.sharding.devices_indices_map(self.global_shape)[self.device]

    @property
    def replica_id(self) -> int:
        places = self.sharding.tiles(len(self.global_shape)).of_device
        own = self.sharding._device_assignment.index(self.device)
        return places[:own].count(places[own])

    def __repr__(self) -> str:
        place = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({place}, data={self.data})"


class OnDevices:
    """What concrete arrays tell of where their data are."""

    __slots__ = ()
    type: Any
    buffer: Any

    @property
    def sharding(self) -> Sharding:
        """Which part of the data is on which device."""
        return InstalledBackend.backend.sharding(self.buffer)

    @property
    def committed(self) -> bool:
        """Whether the array was put where it is by name, so that computations with it happen there."""
        return InstalledBackend.backend.is_committed(self.buffer)

    _committed = committed

    def devices(self) -> set[Any]:
        return self.sharding.device_set

    @property
    def device(self) -> Any:
        """The device; of an array over several its sharding."""
        sharding = self.sharding
        return next(iter(sharding.device_set)) if sharding.num_devices == 1 else sharding

    @property
    def is_fully_addressable(self) -> bool:
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return self.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The part of each device of this process."""
        return [shard for shard in self.global_shards if is_addressable(shard.device)]

    @property
    def global_shards(self) -> list[Shard]:
        """The part of each device; the data of those of other processes are None."""
        sharding, shape = self.sharding, self.type.shape
        parts = iter(InstalledBackend.backend.parts(self))
        held = [(device, next(parts) if is_addressable(device) else None) for device in sharding._device_assignment]
        return [Shard(device, sharding, shape, data) for device, data in held]

    def addressable_data(self, index: int) -> Any:
        """The part that device ``index`` of this process holds, as an array on that device alone."""
        return InstalledBackend.backend.parts(self)[index]

    def unsafe_buffer_pointer(self) -> int:
        """The address of the data on the device."""
        return int(self.buffer.unsafe_buffer_pointer())
