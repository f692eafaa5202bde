"""The text of meshes, specs and shardings in programs.

    Mesh('i': 2, 'j': 4)             the first eight devices of the platform in force, in order
    Mesh('i': 2, devices=(1, 0))     those of these numbers; of another platform with platform='cpu'
    AbstractMesh('i': 2)             axes without devices

Types of axes are written where they are not those that the class gives: ``axis_types=(Manual, Auto)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.later_layers import LaterLayers
from ..sharding.devices import memory_kinds
from ..sharding.mesh import EMPTY_MESH, AbstractDevice, AbstractMesh, AxisType, Mesh, MeshAxes, mesh_of_numbers
from ..sharding.named_sharding import NamedSharding, SingleDeviceSharding, single_device_of_number
from ..sharding.partition_spec import UNCONSTRAINED, PartitionSpec, Unconstrained
from ..types.array_type import Space
from .printer import WRITERS, Printer


def _call(printer: Printer, name: str, *shown: str, **named: Any) -> str:
    """The text ``name(..., field=value)`` of a call, without the fields that are None."""
    fields = [f"{field}={printer.value(value)}" for field, value in named.items() if value is not None]
    return f"{name}({', '.join([*shown, *fields])})"


def _axes(printer: Printer, mesh: MeshAxes) -> list[str]:
    return [f"{printer.value(name)}: {size}" for name, size in mesh.shape_tuple]


def _types(mesh: MeshAxes, default: AxisType) -> tuple[AxisType, ...] | None:
    return None if {*mesh.axis_types} <= {default} else mesh.axis_types


def _mesh(printer: Printer, mesh: Mesh) -> str:
    first = LaterLayers.devices(None)
    devices = mesh._assignment
    platform = None if not devices or devices[0].platform == first[0].platform else devices[0].platform
    others = None if devices and devices == tuple(first[: len(devices)]) else tuple([device.id for device in devices])
    types = _types(mesh, AxisType.Auto)
    return _call(printer, "Mesh", *_axes(printer, mesh), axis_types=types, devices=others, platform=platform)


def _abstract_mesh(printer: Printer, mesh: AbstractMesh) -> str:
    types = _types(mesh, AxisType.Explicit)
    return _call(printer, "AbstractMesh", *_axes(printer, mesh), axis_types=types, device=mesh.abstract_device)


def _sharding(printer: Printer, sharding: NamedSharding) -> str:
    kind, mesh = sharding.memory_kind, sharding.mesh
    if isinstance(mesh, Mesh) and mesh.size and kind == memory_kinds(mesh._assignment[0]).default:
        kind = None
    return _call(printer, "NamedSharding", mesh=mesh, spec=sharding.spec, memory_kind=kind)


def _single(printer: Printer, sharding: SingleDeviceSharding) -> str:
    device, kind = sharding._device, sharding.memory_kind
    shown = None if kind == memory_kinds(device).default else kind
    return _call(printer, "SingleDeviceSharding", platform=device.platform, device=device.id, memory_kind=shown)


def _mesh_of(*axes: tuple[Any, int], axis_types: Any = None, devices: Any = None, platform: Any = None) -> Mesh:
    if not axes and devices == ():
        return EMPTY_MESH
    names, sizes = tuple([name for name, _ in axes]), tuple([size for _, size in axes])
    return mesh_of_numbers(platform, devices, sizes, names, axis_types)


def _abstract_mesh_of(*axes: tuple[Any, int], axis_types: Any = None, device: Any = None) -> AbstractMesh:
    names, sizes = tuple([name for name, _ in axes]), tuple([size for _, size in axes])
    return AbstractMesh(sizes, names, axis_types, abstract_device=device)


def _device_of(device_kind: str, num_cores: Any = None, platform: Any = None) -> AbstractDevice:
    return AbstractDevice(device_kind, num_cores, platform)


# what these texts call, with its arguments by position, ``name: size`` or by keyword
MAKERS: dict[str, Callable[..., Any]] = {
    "Mesh": _mesh_of,
    "AbstractMesh": _abstract_mesh_of,
    "AbstractDevice": _device_of,
    "P": PartitionSpec,
    "NamedSharding": NamedSharding,
    "SingleDeviceSharding": single_device_of_number,
}
NAMED: dict[str, Any] = {**AxisType.__members__, **Space.__members__, "UNCONSTRAINED": UNCONSTRAINED}

WRITERS[Mesh] = _mesh
WRITERS[AbstractMesh] = _abstract_mesh
WRITERS[AbstractDevice] = lambda printer, device: _call(
    printer, "AbstractDevice", device_kind=device.device_kind, num_cores=device.num_cores, platform=device.platform
)
WRITERS[PartitionSpec] = lambda printer, spec: _call(
    printer, "P", *map(printer.value, spec), unreduced=spec.unreduced or None, reduced=spec.reduced or None
)
WRITERS[NamedSharding] = _sharding
WRITERS[SingleDeviceSharding] = _single
WRITERS[AxisType] = WRITERS[Space] = lambda printer, kind: kind.name
WRITERS[Unconstrained] = lambda printer, value: repr(value)
