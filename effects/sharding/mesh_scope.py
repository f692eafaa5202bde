"""The mesh in force: the mesh of specs that come without one. It is a setting, local to a thread or async task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base import config
from ..base.errors import BadArgument
from ..base.stack import current
from .mesh import EMPTY_ABSTRACT_MESH, EMPTY_MESH, AbstractMesh, AxisType, Mesh


class set_mesh:
    """Set the mesh in force in this thread or task; as a ``with`` block, until the block ends.

        set_mesh(mesh)              with set_mesh(mesh): ...

    It is the mesh of specs that come without one, and uncommitted arrays are put on its devices. None: no mesh.
    Raises: BadArgument: it is no mesh of devices.
    """

    __slots__ = ("_before",)

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise BadArgument(
                f"set_mesh: the mesh must be a Mesh or None, got {type(mesh).__name__}.",
                hint="hx.sharding.use_abstract_mesh takes a mesh without devices.",
            )
        abstract = None if mesh is None else mesh.abstract_mesh
        self._before = config.enter(mesh=mesh, abstract_mesh=abstract)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        config.leave(self._before)


@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[AbstractMesh]:
    """Set an abstract mesh in force within the ``with`` block.

    Raises: BadArgument: it is none, or of another size than the mesh in force.
    """
    if not isinstance(mesh, AbstractMesh):
        raise BadArgument(
            f"use_abstract_mesh: the mesh must be an AbstractMesh, got {type(mesh).__name__}.",
            hint="mesh.abstract_mesh is that of a mesh of devices.",
        )
    around = get_abstract_mesh()
    if not around.empty and not mesh.empty and around.size != mesh.size:
        raise BadArgument(
            f"use_abstract_mesh: the mesh must have the size of that in force, {around.size}, got {mesh.size}.",
            hint="with set_mesh(None): ... leaves the mesh in force.",
        )
    with config.configure(abstract_mesh=mesh):
        yield mesh


def get_mesh() -> Mesh:
    """The mesh that ``set_mesh`` set, else an empty mesh."""
    settings = config.current()
    mesh: Mesh | None = settings.mesh
    return EMPTY_MESH if mesh is None or settings.abstract_mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in force, by ``set_mesh`` or ``use_abstract_mesh``; where none is, an empty mesh.

    Inside of ``shard_map`` those of its mesh, of which the ones that it divides are manual.
    """
    if around := _around():
        mesh: AbstractMesh = around[0].mesh.abstract_mesh
        manual = {name for binding in around for name, _ in binding.axes}
        kinds = [AxisType.Manual if n in manual else kind for n, kind in zip(mesh.axis_names, mesh.axis_types)]
        return AbstractMesh(mesh.axis_sizes, mesh.axis_names, kinds, abstract_device=mesh.abstract_device)
    mesh_in_force: AbstractMesh | None = config.current().abstract_mesh
    return EMPTY_ABSTRACT_MESH if mesh_in_force is None else mesh_in_force


def unmapped(mesh: Any) -> Any:
    """The mesh of the enclosing ``shard_map`` with no axis manual: what ``get_abstract_mesh`` undoes; a mesh of other
    axes is itself.
    """
    around = _around()
    return around[0].mesh.abstract_mesh if around and around[0].mesh.shape_tuple == mesh.shape_tuple else mesh


def _around() -> list[Any]:
    """The bindings of the ``shard_map``s around, innermost first."""
    return [binding for binding in current().scope if binding.mesh is not None]
