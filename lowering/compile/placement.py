"""Where programs are executed: their devices, and how arguments and results are cut among these.

A program of one device is the simple case of one partition. A program whose operations name a mesh is executed by the
devices of that mesh, one partition on each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base import config
from ...effects.base.errors import BadArgument, DeviceMismatch, as_tuple
from ...effects.programs.program import Program, derived_once
from ...effects.sharding.layout import AutoLayout, Layout
from ...effects.sharding.mesh import AbstractMesh, Mesh, MeshAxes
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.types.array_type import ArrayType
from ...interpreters.analysis.cut_constraints import stated_meshes
from ..xla.array_backend import default_device, note_placement
from ..xla.lazy import runtime


class Placement(NamedTuple):
    """The devices of a program, one partition on each, and the shardings of its arguments and results.

    ``mesh`` is None where all is on one device. Over a mesh an argument without a sharding is whole on every device,
    and the compiler chooses the sharding of a result that has none. ``()`` stands for no sharding at all. On one device
    a result may have a sharding for its memory. What has no layout is row-major.
    """

    devices: tuple[Any, ...]
    mesh: MeshAxes | None = None
    arguments: tuple[NamedSharding | None, ...] = ()
    results: tuple[Any, ...] = ()
    argument_layouts: tuple[Layout | AutoLayout | None, ...] = ()
    result_layouts: tuple[Layout | AutoLayout | None, ...] = ()

    @property
    def shardings(self) -> tuple[NamedSharding | None, ...]:
        """Those of the arguments and of the results."""
        return self.arguments + self.results

    @property
    def platform(self) -> str:
        """The platform of the devices, "cpu" or "cuda"; of an abstract mesh that of the devices it stands for."""
        device = self.devices[0] if self.devices else getattr(self.mesh, "abstract_device", None)
        name = getattr(device, "platform", None) or "cpu"
        return "cuda" if name == "gpu" else name

    def emitted(self, used: Sequence[int], arguments: int, results: int, tokens: int) -> Placement:
        """The placement of a program that takes the arguments ``used`` alone, from the memory of the devices, and
        further ones that are whole, and that has ``tokens`` more results, whole too.
        """
        more, layouts = (None,) * (arguments - len(used)), self.argument_layouts
        placement = self._replace(
            argument_layouts=(*[layouts[n] for n in used], *more) if layouts else (),
            result_layouts=(*self.result_layouts, *(None,) * tokens) if self.result_layouts else (),
        )
        if self.mesh is None:
            return placement._replace(results=(*self.results, *(None,) * tokens) if self.results else ())
        whole = NamedSharding(self.mesh, PartitionSpec())  # type: ignore[arg-type]
        given = [self.arguments[n] if self.arguments else None for n in used]
        taken = [whole if s is None else s.update(memory_kind=None) for s in given]
        return placement._replace(
            arguments=(*taken, *[whole] * len(more)),
            results=(*(self.results or (None,) * results), *[whole] * tokens),
        )

    def after(self, captured: Sequence[NamedSharding | None], count: int) -> Placement:
        """The placement of a program that takes captured arrays of these shardings before its ``count`` arguments.

        Arrays on other devices are brought to these.
        """
        known = [s if s is not None and s._device_assignment == self.devices else None for s in captured]
        given = self.arguments or (None,) * count
        return self._replace(
            arguments=(*known, *given) if self.arguments or any(known) else (),
            argument_layouts=(*(None,) * len(captured), *self.argument_layouts) if self.argument_layouts else (),
        )


ANYWHERE = Placement(())
"""The placement on one device, which may be any."""


def on_device(device: Any) -> Placement:
    """The placement on one device."""
    return Placement((device,))


def over(mesh: MeshAxes, arguments: Iterable[Any] = ()) -> Placement:
    """The placement over the devices of a mesh; once one was made, every call checks where its arguments are.

    An abstract mesh has no devices: its programs are emitted, not compiled.
    """
    if not isinstance(mesh, Mesh):
        return Placement((), mesh, tuple(arguments))
    note_placement(mesh._assignment[-1])
    return Placement(mesh._assignment, mesh, tuple(arguments))


def assigned(where: str, placement: Placement, mesh: MeshAxes | None, devices: Any) -> Placement:
    """The placement on these devices, over a mesh of them with the axes of ``mesh``; None: on the one device.

    Raises: DeviceMismatch: there are more or fewer of them. BadArgument: they are no sequence of devices.
    """
    given = as_tuple(devices, where, "device_assignment")
    size = 1 if mesh is None else mesh.size
    if not all(map(runtime.is_device, given)):
        raise BadArgument(f"{where}: device_assignment must be devices of hx.devices(), got {given}.")
    if len(given) != size:
        raise DeviceMismatch(
            f"{where}: device_assignment must have as many devices as the mesh, {size}, got {len(given)}."
        )
    if mesh is None:
        note_placement(given[0])
        return placement._replace(devices=given)
    found = _mesh_of(given, mesh)
    arguments, results = [
        tuple([None if s is None else s.update(mesh=found) for s in shardings])
        for shardings in (placement.arguments, placement.results)
    ]
    return placement._replace(devices=over(found).devices, mesh=found, arguments=arguments, results=results)


def by_settings() -> Placement:
    """The placement of a program of which nothing was said: over the mesh in force, else on the default device."""
    settings = config.current()
    if settings.mesh is not None and settings.abstract_mesh is not None:
        return over(settings.mesh)
    return on_device(default_device())


@derived_once
def meshes(program: Program) -> tuple[MeshAxes, ...]:
    """The meshes that operations of the program name, each once: those of its sub-programs included."""
    found: dict[MeshAxes, None] = {}
    if not any([hasattr(kind, "mesh") for kind in program.operations]):
        return ()
    for op in program.ops:
        mesh = getattr(op, "mesh", None)
        if mesh is not None:
            found[mesh] = None
        if op.bodied:
            for body in op.bodies:  # type: ignore[attr-defined]
                found.update(dict.fromkeys(meshes(body)))
    return tuple(found)


def settle(program: Program, name: str, wanted: Placement | None, held: Sequence[Any] = ()) -> Placement:
    """Where a program is executed: as ``wanted`` (None: nothing was said), or by the devices of its own meshes.

    An abstract mesh stands for the devices of the mesh in force, or of an array that the program ``held``.

    Raises: DeviceMismatch: they are not the same devices in the same order, or not as many.
    """
    found = meshes(program) or stated_meshes(program)
    named = [mesh for mesh in found if isinstance(mesh, Mesh) or mesh.size > 1]  # one device is no mesh
    if not named:
        return wanted or by_settings()
    concrete = [mesh for mesh in named if isinstance(mesh, Mesh)]
    if wanted is None and not concrete:
        known = [sharding.mesh for x in held if (sharding := sharding_of(x)) is not None]
        for mesh in (config.current().mesh, *known):
            if mesh is not None and mesh.size in [each.size for each in named]:
                return over(mesh)
    devices = wanted.devices if wanted is not None else concrete[0]._assignment if concrete else ()
    for mesh in named:
        own = mesh._assignment if isinstance(mesh, Mesh) else None
        if len(devices) not in (0, 1, mesh.size) if own is None else devices != own:
            raise DeviceMismatch(
                f"{name}: all meshes and arguments must have the same devices in the same order, got "
                f"{_numbers(devices)} and {mesh if own is None else _numbers(own)}.",
                hint="make the meshes of one list of devices, and device_put the arguments there.",
            )
    if wanted is not None and (wanted.mesh is not None or not concrete):
        return wanted
    return over((*concrete, *named)[0])


def sharding_of(x: Any) -> NamedSharding | None:
    """The sharding of an array over the devices of a mesh; None for one on a single device, and for boxes."""
    buffer = getattr(x, "_buffer", None)
    return None if buffer is None else runtime.named_sharding(buffer)


def placed_as_typed(
    placement: Placement, arguments: Sequence[ArrayType], results: Sequence[ArrayType]
) -> Placement:
    """The placement with arguments and results cut as their types state, where nothing else was said."""
    return placement._replace(
        arguments=_as_typed(placement.mesh, placement.arguments, arguments),
        results=_as_typed(placement.mesh, placement.results, results),
    )


def _as_typed(mesh: MeshAxes | None, given: tuple[Any, ...], types: Sequence[ArrayType]) -> tuple[Any, ...]:
    if mesh is None or not any([t.cut is not None and not t.cut.hides for t in types]):
        return given
    stated = [None if t.cut is None or t.cut.hides else t.cut.update(mesh=_over_axes(mesh, t.cut.mesh)) for t in types]
    return tuple([a if a is not None else b for a, b in zip(given or (None,) * len(types), stated)])


def _over_axes(mesh: MeshAxes, axes: AbstractMesh) -> MeshAxes:
    """The mesh, if it has these axes; else that of its devices which has them."""
    if mesh.shape_tuple == axes.shape_tuple:
        return mesh
    return _mesh_of(mesh._assignment, axes) if isinstance(mesh, Mesh) else axes


def _mesh_of(devices: Sequence[Any], axes: MeshAxes) -> Mesh:
    """The mesh of these devices with these axes."""
    return Mesh(np.array(devices).reshape(axes.axis_sizes), axes.axis_names, axes.axis_types)


@derived_once
def constants(program: Program) -> tuple[Any, ...]:
    """The arrays that a program has as constants, and those of its bodies."""
    bodies = [body for op in program.ops if op.bodied for body in op.bodies]  # type: ignore[attr-defined]
    return (*program.consts, *[const for body in bodies for const in constants(body)])


def where_all_lie(program: Program, operands: Sequence[Any]) -> Placement | None:
    """The placement on the devices to which operands or constants are committed; None where none is. Raises:
    DeviceMismatch: they are committed to different devices.
    """
    held = constants(program)
    names = lambda n: "a captured array" if n < len(held) else f"operand {n - len(held)}"
    where = committed([getattr(x, "_buffer", None) for x in (*held, *operands)], program.name, names)
    if where is None or not held:
        return where
    return where._replace(
        arguments=where.arguments[len(held) :], argument_layouts=where.argument_layouts[len(held) :]
    )


def committed(buffers: Iterable[Any], what: str, names: Any = None) -> Placement | None:
    """The placement on the devices to which some of the buffers are committed; None where none is committed.

    Raises: DeviceMismatch: two are committed to different devices; ``names(i)`` is the name of buffer ``i``.
    """
    buffers = list(buffers)
    devices: tuple[Any, ...] = ()
    first = 0
    for i, buffer in enumerate(buffers):
        if buffer is not None and runtime.is_committed(buffer):
            found = runtime.devices_of(buffer)
            if not devices:
                devices, first = found, i
            elif found != devices:
                called = names or (lambda n: f"operand {n}")
                pair = f"{called(first)} on {_shown(devices)} and {called(i)} on {_shown(found)}"
                raise DeviceMismatch(
                    f"{what}: arguments must be on the same devices in the same order, got {pair}.",
                    hint="move one with device_put(x, device).",
                )
    if not devices:
        return None
    shardings = [None if buffer is None else runtime.named_sharding(buffer) for buffer in buffers]
    mesh = next((sharding.mesh for sharding in shardings if sharding is not None), None)
    where = on_device(devices[0]) if mesh is None else over(mesh, shardings)
    layouts = tuple([None if buffer is None else runtime.layout_of(buffer._sharding) for buffer in buffers])
    return where._replace(argument_layouts=layouts) if any(layouts) else where


def _shown(devices: tuple[Any, ...]) -> str:
    return str(devices[0]) if len(devices) == 1 else _numbers(devices)


def _numbers(devices: Iterable[Any]) -> str:
    return f"devices {[device.id for device in devices]}"
