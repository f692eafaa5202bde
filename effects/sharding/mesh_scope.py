"""The mesh in force: what specs are about that come without a mesh. It is a setting, of a thread or task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base import config
from ..base.errors import BadArgument
from ..base.stack import current
from .mesh import EMPTY_ABSTRACT_MESH, EMPTY_MESH, AbstractMesh, AxisType, Mesh


class set_mesh:
    """Put a mesh in force from now on, in this thread or task; as a ``with`` block, until the block ends.

        set_mesh(mesh)              with set_mesh(mesh): ...

    Specs without a mesh are about it, and arrays that are committed to no device are placed over it. None: no mesh.
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
    """Put a mesh without devices in force within the ``with`` block.

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
    """The mesh that ``set_mesh`` has put in force; where it has not, an empty one."""
    settings = config.current()
    found: Mesh | None = settings.mesh
    return EMPTY_MESH if found is None or settings.abstract_mesh is None else found


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in force, by ``set_mesh`` or ``use_abstract_mesh``; where none is, an empty mesh.

    Inside of ``shard_map`` those of its mesh, of which the ones that it divides are manual.
    """
    around = [binding for binding in current().scope if binding.mesh is not None]
    if around:
        mesh: AbstractMesh = around[0].mesh.abstract_mesh
        manual = {name for binding in around for name, _ in binding.axes}
        kinds = [AxisType.Manual if n in manual else kind for n, kind in zip(mesh.axis_names, mesh.axis_types)]
        return AbstractMesh(mesh.axis_sizes, mesh.axis_names, kinds, abstract_device=mesh.abstract_device)
    found: AbstractMesh | None = config.current().abstract_mesh
    return EMPTY_ABSTRACT_MESH if found is None else found
