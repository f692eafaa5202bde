"""The interface of devices that shardings rely on: any object with these attributes serves; devices compare by
identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..base.caches import cached
from ..base.errors import BadArgument
from ..base.later_layers import LaterLayers
from ..types.array_type import Space


class MeshDevice(Protocol):
    """One device, of this process or another: it compares and hashes by identity."""

    id: int
    process_index: int
    platform: str
    device_kind: str
    client: Any  # of the process that asks: ``client.process_index()``

    def default_memory(self) -> Any: ...

    def addressable_memories(self) -> list[Any]: ...


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
KINDS_OF_SPACES = {Space.Device: "device", Space.Host: "pinned_host"}
"""XLA's names of the memories that programs know."""


class MemoryKinds(NamedTuple):
    """The kinds of memory that a device can address, and the default one."""

    default: str
    all: tuple[str, ...]


def devices_of_numbers(where: str, platform: str | None, numbers: Sequence[int]) -> list[MeshDevice]:
    """The platform's devices with these ids. Raises BadArgument: it lacks one of them."""
    known = LaterLayers.devices(platform)
    by_id = {device.id: device for device in known}
    absent = [number for number in numbers if number not in by_id]
    if absent:
        raise BadArgument(
            f"{where}: device {absent[0]} is needed, got {len(known)} devices of the platform {known[0].platform!r}.",
            hint="hx.config.update('num_cpu_devices', n), before their first use, makes devices.",
        )
    return [by_id[number] for number in numbers]


def is_addressable(device: MeshDevice) -> bool:
    """Whether the device is one of this process."""
    return bool(device.process_index == device.client.process_index())


def processes_of(devices: Iterable[MeshDevice]) -> frozenset[int]:
    """The indices of the processes that have these devices."""
    return frozenset([device.process_index for device in devices])


@cached("memory kinds of devices", 4096)
def memory_kinds(device: MeshDevice) -> MemoryKinds:
    """The kinds of memory of a device of any process."""
    kinds = tuple([memory.kind for memory in device.addressable_memories()])
    return MemoryKinds(device.default_memory().kind, kinds)


def space_of(kind: str) -> Space:
    """The memory that a device's memory of this kind is: its own, or its host's."""
    return Space.Host if kind.endswith("_host") else Space.Device


def kind_of(space: Space, device: MeshDevice) -> str:
    """The kind of memory that a device has as this one. Raises BadArgument: it reaches no pinned memory of its host."""
    return checked_memory_kind("memory", device, KINDS_OF_SPACES[space] if space is Space.Host else None)


def checked_memory_kind(where: str, device: MeshDevice, kind: str | None) -> str:
    """The kind of memory, or the device's default for None. Raises BadArgument: the device has no such kind."""
    known = memory_kinds(device)
    if kind is None:
        return known.default
    if kind not in known.all:
        raise BadArgument(f"{where}: a {device.platform} device has memory of the kinds {known.all}, got {kind!r}.")
    return kind
