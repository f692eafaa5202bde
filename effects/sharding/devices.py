"""What shardings ask of a device: any object with these attributes serves, and two are equal if they are one."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..base.caches import cached
from ..base.errors import BadArgument


class MeshDevice(Protocol):
    """One device, of this process or another: it compares and hashes by identity."""

    id: int
    process_index: int
    platform: str
    device_kind: str
    client: Any  # of the process that asks: ``client.process_index()``

    def default_memory(self) -> Any: ...

    def addressable_memories(self) -> list[Any]: ...


class MemoryKinds(NamedTuple):
    """The kinds of memory that a device reads and writes, and the one where arrays are unless told otherwise."""

    default: str
    all: tuple[str, ...]


def is_addressable(device: MeshDevice) -> bool:
    """Whether the device is one of this process."""
    return bool(device.process_index == device.client.process_index())


@cached("memory kinds of devices", 4096)
def memory_kinds(device: MeshDevice) -> MemoryKinds:
    """The kinds of memory of a device of any process."""
    found = tuple([memory.kind for memory in device.addressable_memories()])
    return MemoryKinds(device.default_memory().kind, found)


def checked_memory_kind(where: str, device: MeshDevice, kind: str | None) -> str:
    """The kind of memory that is meant, the device's own for None. Raises BadArgument: the device has none such."""
    known = memory_kinds(device)
    if kind is None:
        return known.default
    if kind not in known.all:
        raise BadArgument(f"{where}: a {device.platform} device has memory of the kinds {known.all}, got {kind!r}.")
    return kind
