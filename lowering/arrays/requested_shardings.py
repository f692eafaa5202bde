"""Shardings as users ask for them: trees of shardings, of specs over the mesh in force, and of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.errors import BadArgument
from ...effects.base.stack import current
from ...effects.sharding.layout import AutoLayout, Format, Layout
from ...effects.sharding.mesh import AbstractMesh, Mesh
from ...effects.sharding.named_sharding import NamedSharding, Sharding
from ...effects.sharding.partition_spec import UNCONSTRAINED, PartitionSpec
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType


def is_requested(x: Any) -> bool:
    """Whether a value is a leaf of a tree of requested shardings; None is one, too."""
    return x is None or isinstance(x, (Sharding, PartitionSpec, Format))


def requested(where: str, sharding: Any) -> Any:
    """The sharding itself, that of a format, or that of a spec over the mesh in force; None for a format without one.

    A sharding over an abstract mesh with the axes of the one in force, ``get_abstract_mesh()``, is over its devices.

    Raises: BadArgument: it is none of these, or no mesh is in force.
    """
    if isinstance(sharding, Format):
        return None if sharding.sharding is None else requested(where, sharding.sharding)
    mesh = _mesh_in_force()
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        same = mesh is not None and mesh.shape_tuple == sharding.mesh.shape_tuple
        if not same:
            return sharding
        of_values = sharding.mesh.manual_axes  # in the types of values no axis is manual
        return sharding.update(mesh=mesh if of_values else mesh.update(axis_types=sharding.mesh.axis_types))
    if isinstance(sharding, Sharding):
        return sharding
    if not isinstance(sharding, PartitionSpec):
        raise BadArgument(
            f"{where}: a sharding or a PartitionSpec is needed, got {sharding!r}.",
            hint="NamedSharding(mesh, PartitionSpec('axis')).",
        )
    if mesh is None:
        raise BadArgument(
            f"{where}: a PartitionSpec is about the mesh in force, and there is none, got {sharding}.",
            hint="with hx.set_mesh(mesh): ..., or NamedSharding(mesh, spec).",
        )
    return NamedSharding(mesh, sharding)


def _mesh_in_force() -> Any:
    """The mesh of the ``shard_map`` around; else that of ``set_mesh``, or the abstract one if this has other axes; else
    None.
    """
    around = [binding.mesh for binding in current().scope if binding.mesh is not None]
    if around:
        return around[0]
    settings = config.current()
    mesh, axes = settings.mesh, settings.abstract_mesh
    if axes is None or axes.empty:
        return mesh
    same = mesh is not None and mesh.shape_tuple == axes.shape_tuple
    return mesh.update(axis_types=axes.axis_types) if same else axes


def over_mesh(sharding: Sharding) -> NamedSharding:
    """An equivalent sharding over a mesh; a single device becomes a mesh of that device alone."""
    if isinstance(sharding, NamedSharding):
        return sharding
    (device,) = sharding._device_assignment
    mesh = Mesh(np.array([device]), ("device",))
    return NamedSharding(mesh, PartitionSpec(), memory_kind=sharding.memory_kind)


def for_leaves(where: str, shardings: Any, tree: Any) -> list[Any]:
    """The sharding requested for each leaf of a tree, else None. Raises: TreeMismatch: ``shardings`` is no prefix of
    it.
    """
    by_leaf = pytrees.broadcast_prefix(shardings, tree, is_requested, what=where)
    return [None if sharding is None else requested(where, sharding) for sharding in by_leaf]


def layouts_for_leaves(
    where: str, formats: Any, tree: Any, types: Sequence[ArrayType]
) -> tuple[Layout | AutoLayout | None, ...]:
    """The layout requested for each leaf of a tree, of these types; ``()`` where none is. Raises: BadArgument: arrays
    cannot have it.
    """
    if not any([isinstance(leaf, Format) and leaf.layout for leaf in pytrees.leaves(formats, is_requested)]):
        return ()
    by_leaf = pytrees.broadcast_prefix(formats, tree, is_requested, what=where)
    layouts = [leaf.layout_of(where, t) if isinstance(leaf, Format) else None for leaf, t in zip(by_leaf, types)]
    return tuple(layouts) if any(layouts) else ()


def leaf_name(root: str, tree: Any, i: int) -> str:
    """The name of leaf ``i`` of the tree ``root``, such as ``x['w'][0]``."""
    return f"{root}{pytrees.keystr(pytrees.leaves_with_path(tree)[i][0])}"


def whole_shardings(where: str, shardings: Any) -> None:
    """Check that every leaf of a tree is a sharding without unconstrained dimensions. Raises: BadArgument."""
    for leaf in pytrees.leaves(shardings, is_requested):
        if leaf is not None and not is_requested(leaf):
            requested(where, leaf)
        leaf = leaf.sharding if isinstance(leaf, Format) else leaf
        spec = leaf.spec if isinstance(leaf, NamedSharding) else leaf
        if isinstance(spec, PartitionSpec) and UNCONSTRAINED in spec:
            raise BadArgument(
                f"{where}: every dimension must be said, got {spec}.",
                hint="leave the sharding out, None, and the compiler chooses all of it.",
            )
