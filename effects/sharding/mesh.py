"""Meshes: devices in a grid whose axes have names. Equal meshes are one object."""

from __future__ import annotations

import enum
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from contextvars import ContextVar, Token
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..base import config
from ..base.caches import process_lock
from ..base.errors import BadArgument, ShapeMismatch, as_tuple
from ..base.frozen_values import Value
from ..base.immutables import KeyedObject
from ..base.later_layers import LaterLayers, displayed
from ..base.wrapping import context_variable
from .devices import MeshDevice, devices_of_numbers, is_addressable


class AxisType(enum.Enum):
    """Who chooses how arrays are partitioned along a mesh axis: the compiler (Auto), array types (Explicit), or the
    program (Manual).
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class AbstractDevice(Value):
    """The kind of device, without its identity, of an abstract mesh."""

    device_kind: str
    num_cores: int | None
    platform: str | None = None

    def __repr__(self) -> str:
        return f"AbstractDevice({self._shown()})"

    def _shown(self) -> str:
        shown = f"device_kind={self.device_kind}, num_cores={self.num_cores}"
        return shown if self.platform is None else f"{shown}, platform={self.platform}"


@displayed
class MeshAxes(KeyedObject):
    """The base of ``Mesh`` and ``AbstractMesh``: axes with sizes, names and types."""

    __slots__ = ("axis_sizes", "axis_names", "axis_types", "__weakref__")
    _guard = ("meshes", "mesh.update(...) makes another one.")
    axis_sizes: tuple[int, ...]
    axis_names: tuple[Hashable, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The sizes of the axes by name, in order."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes))

    @property
    def size(self) -> int:
        """The number of devices; 0 for the empty mesh."""
        return 0 if self.empty else prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether this is the empty mesh, which is in force where none is set."""
        return not self.axis_names

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        return self._of_type(AxisType.Manual)

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        return self._of_type(AxisType.Explicit)

    @property
    def are_all_axes_auto(self) -> bool:
        return {*self.axis_types} == {AxisType.Auto}

    @property
    def are_all_axes_explicit(self) -> bool:
        return {*self.axis_types} == {AxisType.Explicit}

    @property
    def are_all_axes_manual(self) -> bool:
        return {*self.axis_types} == {AxisType.Manual}

    def _of_type(self, wanted: AxisType) -> tuple[Hashable, ...]:
        return tuple([name for name, kind in zip(self.axis_names, self.axis_types) if kind is wanted])

    def axis_size(self, where: str, name: Hashable) -> int:
        """The size of an axis, for ``where``. Raises BadArgument: the mesh has no such axis."""
        if name not in self.axis_names:
            raise BadArgument(f"{where}: the axes of the mesh are {self.axis_names}, got {name!r}.")
        return self.axis_sizes[self.axis_names.index(name)]

    def _shown_axes(self) -> str:
        sizes = ", ".join([f"{name!r}: {size}" for name, size in self.shape_tuple]) or "()"
        return f"{sizes}, axis_types=({', '.join(map(repr, self.axis_types))}{',' * (len(self.axis_types) == 1)})"


class AbstractMesh(MeshAxes):
    """The axes of a mesh without its devices: what a program that names mesh axes is traced and planned with.

    Abstract meshes are equal if their axes and their kinds of device are. The axes are explicit unless said otherwise.

    >>> AbstractMesh((2, 4), ("a", "b")).size
    8
    """

    __slots__ = ("abstract_device",)
    abstract_device: AbstractDevice | None

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        sizes, names = as_tuple(axis_sizes, "AbstractMesh", "axis_sizes"), _axis_names(axis_names)
        if not all([isinstance(size, (int, np.integer)) and size > 0 for size in sizes]):
            raise BadArgument(f"AbstractMesh: the size of an axis is a positive integer, got {sizes}.")
        if len(sizes) != len(names):
            raise ShapeMismatch(f"AbstractMesh: every axis has a size and a name, got {len(sizes)} sizes, {names}.")
        types = _axis_types("AbstractMesh", names, axis_types, AxisType.Explicit)
        _check_names("AbstractMesh", names)
        sizes = tuple(map(int, sizes))
        self._fill(axis_sizes=sizes, axis_names=names, axis_types=types, abstract_device=abstract_device)
        self._set_key(sizes, names, types, abstract_device)

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(AbstractMesh, abstract_device=self.abstract_device)
        return make, (self.axis_sizes, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        device = "" if self.abstract_device is None else f", {self.abstract_device._shown()}"
        return f"AbstractMesh({self._shown_axes()}{device})"

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    @property
    def devices(self) -> Any:
        raise BadArgument("AbstractMesh: an abstract mesh has axes alone, its devices were asked for.")

    device_ids = local_devices = local_mesh = is_multi_process = devices

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: Any = None,
        axis_types: Any = None,
        **changes: Any,
    ) -> AbstractMesh:
        """The same mesh with other sizes, names or types of its axes, or another kind of device."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **changes},
        )

    def update_axis_types(self, changes: dict[Hashable, AxisType]) -> AbstractMesh:
        """The same mesh where these axes have these types."""
        return self.update(axis_types=tuple([
            changes.get(name, kind) for name, kind in zip(self.axis_names, self.axis_types)]))


class Mesh(MeshAxes):
    """Devices in a grid whose axes have names: ``devices[i, j]`` is at position i along the first axis and j along the
    second.

    Immutable, hashable; equal meshes (devices, names and types) are one object. In a ``with`` block, specs without a
    mesh of their own are about this one. The axes are automatic unless said otherwise.

    Raises: ShapeMismatch: another number of names than of dimensions. BadArgument: a device or a name stands twice.
    """

    __slots__ = ("devices", "abstract_mesh", "_assignment", "_local")
    devices: np.ndarray[Any, Any]
    abstract_mesh: AbstractMesh  # the same axes, and the kind of the devices where it is one
    _assignment: tuple[MeshDevice, ...]
    _local: tuple[MeshDevice, ...]  # when first asked for

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        grid, names = _grid(devices), _axis_names(axis_names)
        types = _axis_types("Mesh", names, axis_types, AxisType.Auto)
        assignment = tuple(grid.flat) if grid.ndim or names or grid[()] is not None else ()
        key = grid.shape, assignment, names, types
        with _LOCK:
            known = _MESHES.get(key)
            if known is not None:
                return known
            _check_grid(grid, assignment, names)
            mesh: Mesh = object.__new__(cls)
            mesh._set_key(*key)
            mesh._fill(axis_sizes=grid.shape, axis_names=names, axis_types=types)
            mesh._fill(devices=grid, _assignment=assignment, abstract_mesh=_without_devices(mesh, assignment))
            return _MESHES.setdefault(key, mesh)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self.empty:
            return "EMPTY_MESH"
        numbers = tuple([device.id for device in self._assignment])
        platform = self._assignment[0].platform
        return mesh_of_numbers, (platform, numbers, self.axis_sizes, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"

    def __str__(self) -> str:
        return f"Mesh({self._shown_axes()})"

    def __enter__(self) -> Mesh:
        _ENTERED.set((*_ENTERED.get(), config.enter(mesh=self)))
        return self

    def __exit__(self, *error: Any) -> None:
        *outer, token = _ENTERED.get()
        _ENTERED.set(tuple(outer))
        config.leave(token)

    @property
    def size(self) -> int:
        return len(self._assignment)

    @property
    def empty(self) -> bool:
        return not self._assignment

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The ids of the devices, in an array of the grid's shape."""
        return np.array([device.id for device in self._assignment], int).reshape(self.axis_sizes)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process, in the order of the grid."""
        if not hasattr(self, "_local"):
            self._fill(_local=tuple([device for device in self._assignment if is_addressable(device)]))
        return [*self._local]

    @property
    def is_multi_process(self) -> bool:
        return len(self.local_devices) != self.size

    @property
    def is_scalar(self) -> bool:
        """Whether the mesh is one device without axes."""
        return self.devices.ndim == 0

    @property
    def local_mesh(self) -> Mesh:
        """The subgrid of this process's devices. Raises BadArgument: they form no grid."""
        local = np.array([is_addressable(device) for device in self._assignment], bool).reshape(self.axis_sizes)
        places = np.nonzero(local)
        block = self.devices[np.ix_(*map(np.unique, places))] if self.axis_names else self.devices
        if block.size != local.sum():
            raise BadArgument("local_mesh: the devices of a process must form a grid, got a part of one.")
        return Mesh(block, self.axis_names, self.axis_types)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The same mesh with other devices, names or types of its axes."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )


def mesh_of_numbers(
    platform: str | None, numbers: Sequence[int] | None, sizes: Sequence[int], names: Any, axis_types: Any = None
) -> Mesh:
    """The mesh of the platform's devices with these ids in row-major order; None: of its first devices.

    Raises: BadArgument: the platform has no such device, or fewer.
    """
    count = prod(sizes)
    if numbers is None:
        numbers = [device.id for device in LaterLayers.devices(platform)[:count]]
    if len(numbers) != count:
        raise BadArgument(f"Mesh: a grid of the sizes {tuple(sizes)} has {count} devices, got {len(numbers)}.")
    grid = np.empty(count, object)
    grid[:] = devices_of_numbers("Mesh", platform, numbers)
    return Mesh(grid.reshape(sizes), names, axis_types)


def sdy_axis(name: Hashable) -> str:
    """An axis name in Shardy's syntax: a quoted string; a name that is no string is quoted as its ``repr``."""
    text = name if isinstance(name, str) else f"{name!r}:{type(name).__name__}"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A") + '"'


def _without_devices(mesh: MeshAxes, assignment: tuple[MeshDevice, ...]) -> AbstractMesh:
    """The abstract mesh of a mesh of these devices; it has a kind of device if they all have the same."""
    kinds = {(device.device_kind, device.platform) for device in assignment}
    device = None
    if len(kinds) == 1:
        (kind, platform), cores = *kinds, getattr(assignment[0], "num_cores", None)
        device = AbstractDevice(kind, cores, platform)
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types, abstract_device=device)


def _grid(devices: Any) -> np.ndarray[Any, Any]:
    """The devices as a read-only object array that shares no memory with the argument."""
    grid = np.array(devices, object)
    grid.flags.writeable = False
    return grid


def _axis_names(names: Any) -> tuple[Hashable, ...]:
    return (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)


def _axis_types(where: str, names: tuple[Hashable, ...], types: Any, default: AxisType) -> tuple[AxisType, ...]:
    """The type of each axis. Raises BadArgument: these are not types, or not one for each axis."""
    if types is None:
        return (default,) * len(names)
    kinds = (types,) if isinstance(types, AxisType) else as_tuple(types, where, "axis_types")
    if len(kinds) != len(names) or not all([isinstance(k, AxisType) for k in kinds]):
        raise BadArgument(f"{where}: axis_types must hold an AxisType for each of the axes {names}, got {types}.")
    return kinds


def _check_names(where: str, names: tuple[Hashable, ...]) -> None:
    if len({*names}) < len(names) or None in names:
        raise BadArgument(f"{where}: the names of axes must differ, and be other than None, got {names}.")


def _check_grid(grid: np.ndarray[Any, Any], assignment: tuple[MeshDevice, ...], names: tuple[Hashable, ...]) -> None:
    if grid.ndim != len(names):
        raise ShapeMismatch(
            f"Mesh: every dimension of the devices has a name, got devices of shape {grid.shape} and {names}.",
            hint="devices.reshape(...) makes a grid of another rank.",
        )
    _check_names("Mesh", names)
    for device in assignment:
        if not hasattr(device, "process_index"):
            raise BadArgument(f"Mesh: the grid holds devices, got {device!r}.", hint="np.array(hx.devices()).")
    if len({*assignment}) < len(assignment):
        twice = next(device for device in assignment if assignment.count(device) > 1)
        raise BadArgument(f"Mesh: every device stands once, got {twice!r} {assignment.count(twice)} times.")


_MESHES: weakref.WeakValueDictionary[Any, Mesh] = weakref.WeakValueDictionary()
_LOCK = process_lock()
_ENTERED: ContextVar[tuple[Token[Any], ...]] = context_variable("handlax_entered_meshes", ())
config.CLASSES |= {"mesh": Mesh, "abstract_mesh": AbstractMesh}
EMPTY_MESH = Mesh(np.array(None, object), ())
EMPTY_ABSTRACT_MESH = AbstractMesh((), ())
