"""Strategies of meshes of devices, partition specs and shardings."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ...effects.sharding.mesh import Mesh, MeshAxes
from ...effects.sharding.named_sharding import NamedSharding, Sharding, SingleDeviceSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.types.array_type import Shape
from ...lowering.jit.devices import devices as all_devices
from .array_values import drawn


@st.composite
def meshes(
    draw: st.DrawFn, devices: Sequence[Any] | None = None, *, axis_names: Sequence[str] = ("a", "b", "c")
) -> Mesh:
    """Meshes of some of the devices, in any order, with one or more of the axes. Shrinks to one device.

    Args:
        devices: those to choose from, by default ``hx.devices()``; the environment variable
            ``HANDLAX_NUM_CPU_DEVICES`` says how many a CPU counts as.
        axis_names: the names of the axes; a mesh has the first of them.

    >>> from hypothesis import find
    >>> find(meshes(), lambda mesh: True).shape_tuple
    (('a', 1),)
    """
    ordered = draw(st.permutations(all_devices() if devices is None else [*devices]))
    sizes: list[int] = []
    for _ in range(draw(st.integers(1, len(axis_names)))):
        sizes.append(draw(st.integers(1, len(ordered) // prod(sizes))))
    return Mesh(np.array(ordered[: prod(sizes)], object).reshape(sizes), tuple(axis_names[: len(sizes)]))


@st.composite
def partition_specs(draw: st.DrawFn, shape: Shape, mesh: MeshAxes) -> PartitionSpec:
    """Specs by which an array of a shape can be cut over a mesh: sizes are multiples of the numbers of their shards.

    Dimensions are cut along one axis, several, or none; what is not cut at the end may be left out. Shrinks to ``P()``.

    >>> from hypothesis import find
    >>> from handlax.sharding import AbstractMesh
    >>> find(partition_specs((6, 3), AbstractMesh((2, 3), ("a", "b"))), lambda spec: spec.axes == ("b", "a"))
    P(('b', 'a'),)
    """
    sizes = dict(mesh.shape_tuple)
    entries: list[tuple[Any, ...]] = []
    for n in shape:
        names: tuple[Any, ...] = ()
        parts = 1
        while fitting := [name for name in sizes if n % (parts * sizes[name]) == 0]:
            name = draw(st.none() | st.sampled_from(fitting))
            if name is None:
                break
            names, parts = (*names, name), parts * sizes.pop(name)
        entries.append(names)
    cut = max([d + 1 for d, names in enumerate(entries) if names], default=0)
    return PartitionSpec(*entries[: draw(st.integers(cut, len(entries)))])


@st.composite
def shardings(
    draw: st.DrawFn, shape: Shape, mesh: st.SearchStrategy[Mesh] | Mesh | None = None
) -> Sharding:
    """Shardings that ``device_put`` accepts for an array of a shape: over a mesh, or of one of its devices.

    Shrinks to a whole array on one device. ``mesh``: a mesh or a strategy of them, ``meshes()`` by default.

    >>> from hypothesis import find
    >>> find(shardings((4, 2)), lambda sharding: sharding.num_devices == 1).is_fully_replicated
    True
    """
    over = drawn(draw, meshes() if mesh is None else mesh)
    if draw(st.booleans()):
        return NamedSharding(over, draw(partition_specs(shape, over)))
    return SingleDeviceSharding(draw(st.sampled_from([*over.devices.flat])))
