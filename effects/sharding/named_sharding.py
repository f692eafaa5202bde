"""Shardings: which shard of an array each device holds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..base.caches import cached
from ..base.errors import BadArgument, DeviceMismatch, ShapeMismatch, as_tuple
from ..base.immutables import KeyedObject
from ..base.later_layers import LaterLayers, displayed
from ..types.array_type import Shape, Space
from ..types.extent import as_size
from .devices import (
    MEMORY_KINDS,
    MeshDevice,
    checked_memory_kind,
    devices_of_numbers,
    is_addressable,
    kind_of,
    space_of,
)
from .mesh import AbstractMesh, AxisType, Mesh, MeshAxes, sdy_axis
from .mesh_scope import get_abstract_mesh, unmapped
from .partition_spec import UNCONSTRAINED, PartitionSpec, entry_axes

Index = tuple[slice, ...]
Bounds = tuple[tuple[int, int], ...]
"""Where a part of an array begins and ends, along each dimension; unlike an index it is hashable."""


def bounds(index: Index, shape: Sequence[int]) -> Bounds:
    """The bounds of a part at an index of slices of step 1, in an array of this shape."""
    return tuple([cut.indices(size)[:2] for cut, size in zip(index, shape)])


class Tiles(NamedTuple):
    """An array cut into a grid of equal tiles: the grid's shape, and for each device the row-major index of its tile.
    """

    grid: Shape
    of_device: tuple[int, ...]


@displayed
class Sharding(KeyedObject):
    """Which shard of an array each device holds. Immutable and hashable; the subclasses in this module are all there
    are.

    A subclass defines its devices, in order, and the tiles of an array of a given rank; all else is derived from these.
    """

    __slots__ = ("_memory_kind", "is_fully_replicated", "__weakref__")
    _guard = ("shardings", "sharding.with_spec(...) and with_memory_kind(...) make other ones.")
    _memory_kind: str | None
    is_fully_replicated: bool  # whether every device holds the whole array

    @property
    @abstractmethod
    def _device_assignment(self) -> tuple[MeshDevice, ...]:
        """The devices, in the order of the tiles of ``tiles``."""

    @abstractmethod
    def parts(self, rank: int) -> Shape:
        """The number of shards along each dimension of an array of this rank. Raises ShapeMismatch: the rank is too
        low.
        """

    @abstractmethod
    def tiles(self, rank: int) -> Tiles:
        """The grid of tiles of an array of this rank, and each device's tile. Raises ShapeMismatch: the rank is too
        low.
        """

    @abstractmethod
    def sdy(self, rank: int) -> str:
        """The sharding of an array of this rank in Shardy's syntax: ``[{"a"}, {"b", "c"}, {}]``."""

    @abstractmethod
    def with_memory_kind(self, kind: str) -> Any:
        """The same sharding in another kind of memory."""

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory that holds the shards; None for an abstract mesh with no kind given."""
        return self._memory_kind

    @property
    def memory_space(self) -> Space | None:
        """The memory that holds the shards: that of the devices or of their hosts; None: no kind is given."""
        return None if self._memory_kind is None else space_of(self._memory_kind)

    def lying_in(self, space: Space) -> Any:
        """The same cut over the same devices, its shards in this memory: the devices' own, or that of their hosts.

        Raises: BadArgument: the devices cannot address their host's memory.
        """
        return self if space is self.memory_space else self.with_memory_kind(kind_of(space, self._device_assignment[0]))

    @property
    def num_devices(self) -> int:
        return len(self._device_assignment)

    @property
    def device_set(self) -> set[Any]:
        return {*self._device_assignment}

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        return {*self._addressable_device_assignment}

    @property
    def _addressable_device_assignment(self) -> tuple[MeshDevice, ...]:
        """The devices of this process in order, under the name by which libraries ask for them."""
        return tuple([device for device in self._device_assignment if is_addressable(device)])

    @property
    def has_addressable_devices(self) -> bool:
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether every device is one of this process."""
        return all(map(is_addressable, self._device_assignment))

    def shard_shape(self, global_shape: Iterable[int]) -> Shape:
        """The shape of each device's shard. Raises ShapeMismatch: the rank is too low, or a dimension does not divide
        evenly.
        """
        return _shape_of_shard(self, _sizes(global_shape))

    def devices_indices_map(self, global_shape: Iterable[int]) -> dict[Any, Index]:
        """For each device the index (a tuple of slices) of its shard. Raises ShapeMismatch as ``shard_shape``."""
        return dict(zip(self._device_assignment, indices_of_shards(self, _sizes(global_shape))))

    def addressable_devices_indices_map(self, global_shape: Iterable[int]) -> dict[Any, Index]:
        """For each device of this process the index (a tuple of slices) of its shard. Raises ShapeMismatch."""
        indices = self.devices_indices_map(global_shape)
        return {device: index for device, index in indices.items() if is_addressable(device)}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether both shardings put arrays of this rank alike: the same devices in order, tiles and kind of memory."""
        return self == other or (
            isinstance(other, Sharding)
            and self._memory_kind == other._memory_kind
            and self._device_assignment == other._device_assignment
            and self.unreduced == other.unreduced
            and self.tiles(ndim) == other.tiles(ndim)
        )

    def check_compatible_aval(self, aval_shape: Iterable[int]) -> None:
        """Check that an array of this shape can be sharded so. Raises: ShapeMismatch."""
        self.shard_shape(aval_shape)

    def check_fit(self, where: str, name: Callable[[], str], shape: Shape) -> None:
        """Check that an array of this shape can be sharded so. Raises: ShapeMismatch, which names the function
        ``where`` and the array.
        """
        try:
            _shape_of_shard(self, shape)  # which is cached
            return
        except ShapeMismatch:
            pass
        self._refuse(where, name, shape)

    def _refuse(self, where: str, name: Callable[[], str], shape: Shape) -> None:
        """Raise ShapeMismatch, naming the function and the array, if this shape cannot be sharded so."""

    @property
    def unreduced(self) -> frozenset[Any]:
        """The axes of the mesh along which the shards are partial sums."""
        return frozenset()

    def cut(self, rank: int) -> NamedSharding | None:
        """What the type of an array of this rank says of it: how it cuts along explicit axes; None: along none."""
        return None


class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    __slots__ = ("_device",)
    _device: MeshDevice

    def __init__(self, device: MeshDevice, *, memory_kind: str | None = None):
        kind = checked_memory_kind("SingleDeviceSharding", device, memory_kind)
        self._fill(_device=device, _memory_kind=kind, is_fully_replicated=True)
        self._set_key(device, kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"

    def __reduce__(self) -> tuple[Any, ...]:
        return single_device_of_number, (self._device.platform, self._device.id, self._memory_kind)

    @property
    def _device_assignment(self) -> tuple[MeshDevice, ...]:
        return (self._device,)

    def parts(self, rank: int) -> Shape:
        return (1,) * rank

    def tiles(self, rank: int) -> Tiles:
        return Tiles((1,) * rank, (0,))

    def sdy(self, rank: int) -> str:
        return f"[{', '.join(['{}'] * rank)}]"

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)


class NamedSharding(Sharding):
    """Dimension d of an array is cut along the mesh axes in entry d of the spec, and replicated along all other axes.

        the shard of the device at mesh position p, along a dimension cut by axes (a, b):  shard p[a] * size(b) + p[b]

    The mesh may be abstract: then shards have shapes, but no devices.

    Along the axes that are ``unreduced`` in the spec each device has a partial sum of its shard.

    Raises: BadArgument: the spec names an axis that the mesh has not, or one twice, or one as unreduced or reduced that
    is automatic.
    """

    __slots__ = ("mesh", "spec")
    mesh: Any
    spec: PartitionSpec

    def __new__(
        cls, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ) -> NamedSharding:
        if not isinstance(mesh, MeshAxes):
            raise BadArgument(f"NamedSharding: the mesh must be a Mesh or an AbstractMesh, got {type(mesh).__name__}.")
        if not isinstance(spec, PartitionSpec):
            raise BadArgument(
                f"NamedSharding: the spec must be a PartitionSpec, got {spec!r}.",
                hint="hx.P('axis', None) cuts the first of two dimensions along an axis.",
            )
        return _named(mesh, spec, memory_kind)

    def __repr__(self) -> str:
        kind = "" if self._memory_kind is None else f", memory_kind={self._memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.mesh, self.spec, self._memory_kind)

    @property
    def _device_assignment(self) -> tuple[MeshDevice, ...]:
        if isinstance(self.mesh, AbstractMesh):
            raise DeviceMismatch(
                f"{self!r}: an abstract mesh has no devices, and they were asked for.",
                hint="make the sharding with a mesh of devices, as hx.make_mesh gives.",
            )
        return self.mesh._assignment

    @property
    def num_devices(self) -> int:
        return int(self.mesh.size)

    @property
    def is_fully_addressable(self) -> bool:
        return bool(self._device_assignment) and not self.mesh.is_multi_process

    def cut(self, rank: int) -> NamedSharding | None:
        named = self.update(mesh=unmapped(self.mesh)) if self.mesh.manual_axes else self
        return named._with_entries((*self.spec, *(None,) * (rank - len(self.spec))))

    @property
    def unreduced(self) -> frozenset[Any]:
        return self.spec.unreduced

    def _with_entries(self, entries: Sequence[Any]) -> NamedSharding | None:
        """Of a cut, that of a type whose dimensions have these entries."""
        return cut_over(self.mesh, entries, self.spec.unreduced, self.spec.reduced)

    @property
    def dual(self) -> NamedSharding:
        """Of a cut, that of cotangents."""
        return self.with_spec(self.spec.dual) if self.spec.summed_axes else self

    @property
    def whole(self) -> NamedSharding | None:
        """Of a cut, that of the sums where it is of partial ones."""
        return cut_over(self.mesh, tuple(self.spec))

    @property
    def hides(self) -> bool:
        """Whether it leaves a dimension to the compiler."""
        return UNCONSTRAINED in self.spec

    @property
    def hidden(self) -> NamedSharding:
        """That of a value of this rank with every dimension left to the compiler."""
        return self.with_spec([UNCONSTRAINED] * len(self.spec))

    def cut_sizes(self, shape: Sequence[Any]) -> list[str]:
        """The sizes of dimensions with the axes that cut them, in the text of types: ``8@a``, ``8@(a,b)``, ``8@?``."""
        return [str(n) if entry is None else f"{n}@{_axes_text(entry)}" for n, entry in zip(shape, self.spec)]

    def summed_axes(self) -> list[str]:
        """The unreduced and the reduced axes, in the text of types: ``U:a``, ``R:b``."""
        spec = self.spec
        return [*[f"U:{axis}" for axis in sorted(spec.unreduced, key=str)],
                *[f"R:{axis}" for axis in sorted(spec.reduced, key=str)]]

    def of_dimension(self, d: int) -> NamedSharding | None:
        """Of a cut, that of a vector cut as dimension ``d``."""
        return cut_over(self.mesh, [self.spec[d]])

    def without_dimension(self, d: int) -> NamedSharding | None:
        """Of a cut, that of the type without dimension ``d``."""
        return self._with_entries((*self.spec[:d], *self.spec[d + 1 :]))

    def with_dimension(self, d: int) -> NamedSharding | None:
        """Of a cut, that of the type with another dimension ``d``, which is whole."""
        return self._with_entries((*self.spec[:d], None, *self.spec[d:]))

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh axes along which arrays are replicated."""
        return frozenset(self.mesh.axis_names) - {*self.spec.axes} - self.spec.unreduced

    def parts(self, rank: int) -> Shape:
        self._check_rank(rank)
        return (*self._counts(), *(1,) * (rank - len(self.spec)))

    def _counts(self) -> list[int]:
        """Entry ``d``: into how many shards dimension ``d`` of an array is cut; for the dimensions that the spec names.
        """
        sizes = dict(self.mesh.shape_tuple)
        return [prod([sizes[name] for name in entry_axes(entry)]) for entry in self.spec]

    def _refuse(self, where: str, name: Callable[[], str], shape: Shape) -> None:
        if len(self.spec) > len(shape):
            raise ShapeMismatch(
                f"{where}: a spec has at most one entry per dimension, got {self.spec} for {name()} of shape {shape}."
            )
        for d, (size, count) in enumerate(zip(shape, self._counts())):
            if size % count:
                raise ShapeMismatch(
                    f"{where}: dimension {d} of {name()} must be a multiple of {count}, cut by {self.spec}, "
                    f"got size {size} in shape {shape}.",
                    hint=f"pad it to {-(-size // count) * count}, or cut another dimension.",
                )

    def tiles(self, rank: int) -> Tiles:
        return Tiles(self.parts(rank), _tile_of_device(self.mesh, self.spec))

    def sdy(self, rank: int) -> str:
        self._check_rank(rank)
        entries = [*self.spec, *(None,) * (rank - len(self.spec))]
        return f"[{', '.join(map(_sdy_entry, entries))}]"

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def with_spec(self, spec: Any) -> NamedSharding:
        """The sharding with another spec over the same mesh."""
        return self.update(spec=spec)

    @property
    def automatic(self) -> NamedSharding:
        """The same sharding of whole values over automatic axes, of which types state nothing."""
        mesh = self.mesh.update(axis_types=(AxisType.Auto,) * len(self.mesh.axis_names))
        return self.update(mesh=mesh, spec=tuple(self.spec))

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with another mesh, spec or kind of memory."""
        spec = changes.get("spec", self.spec)
        spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        kind = changes.get("memory_kind", self._memory_kind)
        return NamedSharding(changes.get("mesh", self.mesh), spec, memory_kind=kind)

    def _check_rank(self, rank: int) -> None:
        if len(self.spec) > rank:
            raise ShapeMismatch(
                f"NamedSharding: a spec has at most one entry per dimension, got {self.spec} for an array of rank "
                f"{rank}."
            )


@cached("named shardings", 4096)
def _named(mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    """The interned sharding of a mesh and a spec. Raises BadArgument: the spec names an axis that the mesh lacks, or
    one twice.
    """
    _check_axes(mesh, spec)
    if isinstance(mesh, Mesh) and mesh.size:
        memory_kind = checked_memory_kind("NamedSharding", mesh._assignment[0], memory_kind)
    elif memory_kind not in (None, *MEMORY_KINDS):
        raise BadArgument(f"NamedSharding: memory is of the kinds {MEMORY_KINDS}, got {memory_kind!r}.")
    sharding: NamedSharding = object.__new__(NamedSharding)
    whole = prod([mesh.axis_size("NamedSharding", name) for name in (*spec.axes, *spec.unreduced)]) == 1
    sharding._fill(mesh=mesh, spec=spec, _memory_kind=memory_kind, is_fully_replicated=whole)
    sharding._set_key(mesh, spec, memory_kind)
    return sharding


def cut_over(
    mesh: Mesh | AbstractMesh, entries: Sequence[Any], unreduced: Iterable[Any] = (), reduced: Iterable[Any] = ()
) -> NamedSharding | None:
    """The cut of a type whose dimensions have these entries: over the abstract mesh, as to its explicit axes alone.

    None where all are whole, so that types of whole values are the same with and without a mesh. UNCONSTRAINED hides a
    dimension: the compiler chooses how it is cut.
    """
    spec = PartitionSpec(*entries, unreduced=unreduced, reduced=reduced).restricted(mesh.explicit_axes)
    says = mesh.explicit_axes and (spec.summed_axes or {*spec} - {None})
    return NamedSharding(mesh.abstract_mesh, spec) if says else None


def _check_axes(mesh: MeshAxes, spec: PartitionSpec) -> None:
    axes = spec.axes
    for name in (*axes, *spec.summed_axes):
        if name not in mesh.axis_names:
            raise BadArgument(f"NamedSharding: the axes of the mesh are {mesh.axis_names}, got {name!r} in {spec}.")
    automatic = spec.summed_axes.intersection(mesh.auto_axes)
    if automatic:
        raise BadArgument(
            f"NamedSharding: along an automatic axis the compiler sums, got {spec} over {mesh}.",
            hint="axis_types=(AxisType.Explicit, ...) of the mesh make axes explicit.",
        )
    if len({*axes}) < len(axes):
        twice = next(name for name in axes if axes.count(name) > 1)
        raise BadArgument(
            f"NamedSharding: an axis of the mesh cuts one dimension, got {twice!r} twice in {spec}.",
            hint="leave it out of one entry.",
        )


def _axes_text(entry: Any) -> str:
    axes = ["?"] if entry is UNCONSTRAINED else [*map(str, entry_axes(entry))]
    return axes[0] if len(axes) == 1 else f"({','.join(axes)})"


def _sdy_entry(entry: Any) -> str:
    return "{?}" if entry is UNCONSTRAINED else "{" + ", ".join(map(sdy_axis, entry_axes(entry))) + "}"


def make_single_device_sharding(device: MeshDevice, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of a whole array on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def _sizes(shape: Any) -> Shape:
    """A shape that a user gives. Raises: BadArgument, NotAnInteger: it is none."""
    return tuple([as_size(size, "a sharding: a size") for size in as_tuple(shape, "a sharding", "a shape")])


@cached("shapes of shards", 4096)
def _shape_of_shard(sharding: Sharding, shape: Shape) -> Shape:
    """The shape of each shard of an array of this shape. Raises ShapeMismatch: a dimension does not divide evenly."""
    sharding._refuse(type(sharding).__name__, lambda: "an array", shape)
    return tuple([size // count for size, count in zip(shape, sharding.parts(len(shape)))])


@cached("tiles of shardings", 1024)
def _tile_of_device(mesh: MeshAxes, spec: PartitionSpec) -> tuple[int, ...]:
    """For each device of a mesh, the row-major index of its tile in the grid of tiles."""
    numbers: Any = np.zeros(mesh.axis_sizes, int)
    for name in spec.axes:  # row-major over the axes that cut, in the order of the spec: Horner's rule
        d = mesh.axis_names.index(name)
        along = np.arange(mesh.axis_sizes[d]).reshape([-1 if k == d else 1 for k in range(len(mesh.axis_sizes))])
        numbers = numbers * mesh.axis_sizes[d] + along
    return tuple(numbers.ravel().tolist())


@cached("indices of shards", 1024)
def indices_of_shards(sharding: Sharding, shape: Shape) -> tuple[Index, ...]:
    """The index (a tuple of slices) of each device's shard of an array of this shape, in device order. Raises
    ShapeMismatch.
    """
    part, (grid, tiles) = sharding.shard_shape(shape), sharding.tiles(len(shape))
    slices = [
        [slice(None)] if count == 1 else [slice(k * size, (k + 1) * size) for k in range(count)]
        for size, count in zip(part, grid)
    ]
    return tuple([
        tuple([cuts[k] for cuts, k in zip(slices, np.unravel_index(tile, grid))]) if grid else () for tile in tiles])


def single_device_of_number(
    platform: str | None, device: int, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding of a whole array on the platform's device with this id. Raises BadArgument: there is none."""
    (single_device,) = devices_of_numbers("SingleDeviceSharding", platform, [device])
    return SingleDeviceSharding(single_device, memory_kind=memory_kind)


def _in_force(cut: NamedSharding | None, rank: int) -> NamedSharding:
    """The cut over the mesh in force, whose manual axes it no longer names; without a cut, P(None, ...)."""
    mesh = get_abstract_mesh()
    if cut is None:
        return NamedSharding(mesh, PartitionSpec(*[None] * rank))
    manual = mesh.manual_axes if mesh.shape_tuple == cut.mesh.shape_tuple else ()
    return cut.update(mesh=mesh, spec=cut.spec.without_sums(manual)) if manual else cut


LaterLayers.in_force = staticmethod(_in_force)
