"""The types and shardings that jaxlib requires with every buffer, one object for each."""

import math
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from ...effects.base.caches import cached
from ...effects.base.errors import CompileError, DTypeMismatch
from ...effects.sharding.layout import Layout
from ...effects.sharding.mesh import AbstractMesh, Mesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.types.array_type import Shape
from ..clients.jaxlib_modules import JAXLIB_VERSION, Device, xc

BufferSharding: TypeAlias = Any


class Aval:
    """The attributes that jaxlib reads from the type of a buffer. Equal types are one object, created by ``aval``."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any):
        self.shape: Shape = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.weak_type = False

    def __repr__(self) -> str:
        return f"Aval({self.shape}, {self.dtype})"


AVALS: dict[tuple[Shape, np.dtype[Any]], Aval] = {}
"""The interned types."""


def aval(shape: Sequence[int], dtype: Any) -> Aval:
    """The one ``Aval`` of a shape and a dtype.

        aval(s, d) is aval(s, d)

    Raises: DTypeMismatch: no device holds such elements (strings, objects, dates, long double).

    >>> aval((2, 3), "float32")
    Aval((2, 3), float32)
    """
    key = (tuple(shape), np.dtype(dtype))
    found = AVALS.get(key)
    return _make_aval(*key) if found is None else found


EXTENDED = frozenset(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16", "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )
)
"""The dtypes of ``ml_dtypes`` that XLA supports."""
PACKED = frozenset(
    dtype for dtype in EXTENDED if dtype.name in ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
)
"""Several elements to a byte on a device, one to a byte in NumPy."""
NATIVE = frozenset(np.dtype(code) for code in "?bhilqBHILQefdFD")
"""The dtypes of NumPy that XLA supports."""


def _make_aval(shape: Shape, dtype: np.dtype[Any]) -> Aval:
    # XLA reads bytes in the native order whatever the dtype says, so other byte orders get no aval of their own.
    native = dtype.newbyteorder("=")
    if native not in NATIVE and native not in EXTENDED:
        raise DTypeMismatch(f"a device holds booleans and numbers, got dtype {dtype}", hint="convert with astype")
    return AVALS.setdefault((shape, native), Aval(shape, native))


class _OneDevice(xc.SingleDeviceSharding):
    """A sharding on one device that defines the properties which jaxlib 0.10 reads from Python.

    jax sets them on the base class when it is imported. They must not be set there by us: they would shadow those of
    jax's own instances. The properties read at every transfer are C functions, which cost no Python frame.
    """

    memory_kind = property(attrgetter("_memory_kind"))
    layout: Layout | None = None
    is_fully_replicated = True
    is_fully_addressable = True
    num_devices = 1
    device_set = property(lambda self: {self._device})
    _device_assignment = property(lambda self: (self._device,))
    _to_xla_hlo_sharding: Any = defaultdict(xc.HloSharding.replicate).__getitem__


# jaxlib 0.12 transfers 15 % faster when the class is exactly ``SingleDeviceSharding``.
_SINGLE: type[Any] = _OneDevice if JAXLIB_VERSION.startswith("0.10.") else xc.SingleDeviceSharding


def sharding(
    device: Device, memory_kind: str | None = None, layout: Layout | None = None, committed: bool = True
) -> BufferSharding:
    """The one sharding of buffers that lie whole on ``device``, in its default memory or that of another kind; in this
    layout, or row-major. Buffers that are not ``committed`` to the device have one of their own.
    """
    return _single(device, memory_kind or device.default_memory().kind, layout, committed)


@cached("shardings", 256)
def _single(device: Device, memory_kind: str, layout: Layout | None, committed: bool) -> BufferSharding:
    """The one sharding of this device, kind of memory and layout, and of buffers that are ``committed`` or not."""
    if layout is None:
        return _SINGLE(device, memory_kind=memory_kind)
    where = _OneDevice(device, memory_kind=memory_kind)
    where.layout = layout
    return where


class _OverDevices(xc.GSPMDSharding):
    """A sharding over the devices of a mesh, of arrays of one rank; ``named`` is the package's own, ``layout`` that of
    the shards; None: row-major. See _OneDevice.
    """

    memory_kind = property(attrgetter("_memory_kind"))
    is_fully_replicated = property(lambda self: self._hlo_sharding.is_replicated())
    is_fully_addressable = property(attrgetter("_internal_device_list.is_fully_addressable"))
    num_devices = property(lambda self: len(self._internal_device_list))
    device_set = property(lambda self: set(self._internal_device_list))
    _device_assignment = property(lambda self: tuple(self._internal_device_list))
    named: NamedSharding

    def __init__(self, named: NamedSharding, devices: Any, tiles: Any, layout: Layout | None):
        super().__init__(devices, tiles, memory_kind=named.memory_kind)
        self.named = named
        self.layout = layout

    def _to_xla_hlo_sharding(self, rank: int) -> Any:
        return self._hlo_sharding


@cached("lists of devices", 256)
def device_list(devices: tuple[Device, ...]) -> Any:
    """The runtime's list of these devices."""
    return xc.DeviceList(devices)


def sharding_over(named: NamedSharding, rank: int, layout: Layout | None = None) -> BufferSharding:
    """The one sharding of the runtime for arrays of a rank that are cut by ``named``; with shards of this layout, or
    row-major.
    """
    return _over(named, rank, layout)


@cached("shardings over devices", 4096)
def _over(named: NamedSharding, rank: int, layout: Layout | None) -> BufferSharding:
    """The one sharding of this mesh, spec, rank and layout."""
    return _OverDevices(named, device_list(named._device_assignment), hlo_sharding(named, rank), layout)


def layout_of(where: BufferSharding) -> Layout | None:
    """The layout of buffers that lie so; None: row-major."""
    found: Layout | None = getattr(where, "layout", None)
    return found


def laid_out(where: BufferSharding, rank: int, layout: Layout | None = None) -> BufferSharding:
    """The sharding of buffers of this rank that lie like those of ``where``, in this layout, or row-major."""
    named = getattr(where, "named", None)
    if named is None:
        return sharding(where._device, where._memory_kind, layout)
    return sharding_over(named, rank, layout)


def chosen_layout(made: Any) -> Layout | None:
    """A layout of XLA's; None: row-major."""
    found = made._xla_layout()
    layout = Layout(tuple(reversed(found.minor_to_major())), tuple(map(tuple, found.tiling())) or None)
    return None if layout.is_row_major else layout


def hlo_sharding(named: NamedSharding, rank: int) -> Any:
    """XLA's form of a sharding: the grid of tiles, and as its last dimension the copies of each tile."""
    mesh, parts = named.mesh, named.parts(rank)
    cuts = [mesh.axis_names.index(name) for name in named.spec.axes]
    copies = [k for k in range(len(mesh.axis_sizes)) if k not in cuts]
    count = math.prod([mesh.axis_sizes[k] for k in copies])
    if math.prod(parts) == 1:
        return xc.HloSharding.replicate()
    return xc.HloSharding.iota_tile(
        [*parts, *[count] * (count > 1)], mesh.axis_sizes, [*cuts, *copies],
        [xc.OpSharding.Type.REPLICATED] * (count > 1),
    )


def chosen_sharding(
    made: Any, rank: int, entries: int, meshes: Sequence[Mesh], known: Sequence[BufferSharding], memory_kind: str
) -> BufferSharding:
    """The sharding that XLA chose for a result, a whole value, in the words of one of ``known``, else of the meshes.

    Over explicit axes its spec has as many ``entries`` as that of the type.
    """
    tiles = xc.HloSharding.replicate() if made is None else xc.HloSharding.from_proto(made)
    for where in known:
        if where._hlo_sharding == tiles and len(where.named.spec) <= rank:
            named = where.named.update(spec=tuple(where.named.spec), memory_kind=memory_kind)
            return sharding_over(_spelled(named, entries), rank)
    found = in_words_of_meshes(tiles, rank, meshes).with_memory_kind(memory_kind)
    return sharding_over(_spelled(found, entries), rank)


def in_words_of_meshes(tiles: Any, rank: int, meshes: Sequence[Mesh]) -> NamedSharding:
    """XLA's sharding over the first mesh whose axes cut so, else over one of the same devices with an axis for each
    prime factor of their number.
    """
    for mesh in (*meshes, _with_least_axes(meshes[0])):
        spec = PartitionSpec() if tiles.is_manual() else spec_over(mesh, tiles, rank)
        if spec is not None:
            return NamedSharding(mesh, spec)
    raise CompileError(f"a value must be cut along whole axes of {meshes[0]}, got {tiles}.")


def _spelled(named: NamedSharding, entries: int) -> NamedSharding:
    """The sharding, if all axes are explicit with as many entries."""
    if not named.mesh.are_all_axes_explicit:
        return named
    return named.with_spec(named.spec.update((*named.spec, *[None] * (entries - len(named.spec)))))


def _with_least_axes(mesh: Mesh) -> Mesh:
    """The devices of a mesh in the same order, with an axis for each prime factor of their number."""
    sizes, rest = [], mesh.size
    for factor in range(2, mesh.size + 1):
        while rest % factor == 0:
            sizes.append(factor)
            rest //= factor
    return Mesh(np.array(mesh._assignment).reshape(sizes), tuple([f"devices_{k}" for k in range(len(sizes))]))


def spec_over(mesh: Mesh | AbstractMesh, tiles: Any, rank: int) -> PartitionSpec | None:
    """The spec by which XLA's tiles are cut over a mesh; None where no whole axes cut them so."""
    if tiles.is_replicated():
        return PartitionSpec()
    grid = tuple(tiles.tile_assignment_dimensions())
    order = np.argsort(tiles.tile_assignment_devices())  # where each device stands in the grid
    at = np.array(np.unravel_index(order, grid)).T.reshape(*mesh.axis_sizes, len(grid))
    origin = (0,) * len(mesh.axis_sizes)
    steps: list[list[tuple[int, Any]]] = [[] for _ in range(rank)]
    for k, (name, size) in enumerate(mesh.shape_tuple):
        if size > 1:  # one step along the axis leads to another tile along the dimension that it cuts
            step = at[(*origin[:k], 1, *origin[k + 1 :])] - at[origin]
            for d in np.flatnonzero(step[:rank]):
                steps[d].append((-int(step[d]), name))
    spec = [tuple([name for _, name in sorted(cuts, key=itemgetter(0))]) for cuts in steps]
    while spec and not spec[-1]:
        spec.pop()
    found = PartitionSpec(*spec)
    return found if hlo_sharding(NamedSharding(mesh, found), rank) == tiles else None


def named_sharding(buffer: Any) -> NamedSharding | None:
    """The package's sharding of a buffer over the devices of a mesh; None for one on a single device."""
    return getattr(buffer._sharding, "named", None)
