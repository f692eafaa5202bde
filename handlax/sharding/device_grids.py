"""Grids of devices for meshes: in the order of the devices, or in blocks by machine."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, ShapeMismatch
from ..effects.sharding.mesh import AxisType, Mesh
from ..lowering.jit.devices import devices as all_devices

Grid = np.ndarray[Any, Any]


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """The mesh of these sizes and names, over the first devices, as many as it needs. Its axes are explicit.

    Raises: ShapeMismatch: there are too few devices, or the axes have other numbers of sizes and names. BadArgument:
    the sizes are no tuple.

    >>> make_mesh((1, 1), ("data", "model")).shape["data"]
    1
    """
    if not isinstance(axis_sizes, Sequence) or not all([isinstance(n, (int, np.integer)) for n in axis_sizes]):
        raise BadArgument(f"make_mesh: the sizes are a tuple of integers, one for each axis, got {axis_sizes!r}.")
    found = all_devices() if devices is None else [*devices]
    count = prod(axis_sizes)
    if count > len(found):
        raise ShapeMismatch(
            f"make_mesh: a mesh of the sizes {tuple(axis_sizes)} needs {count} devices, got {len(found)}.",
            hint="virtual CPU devices: hx.config.update('jax_num_cpu_devices', n) before the first use.",
        )
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return Mesh(create_device_mesh(axis_sizes, found[:count]), names, types)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> Grid:
    """A grid of this shape of the devices, in their order: neighbours along the last axis are neighbours in the list.

    The two options are about the wiring of accelerators that this package does not know; they change nothing.
    Raises: ShapeMismatch: there are more or fewer devices than places.

    >>> create_device_mesh((2, 2), ["a", "b", "c", "d"])[1, 0]
    'c'
    """
    found = all_devices() if devices is None else [*devices]
    if len(found) != prod(mesh_shape):
        raise ShapeMismatch(
            f"create_device_mesh: a grid of shape {tuple(mesh_shape)} holds {prod(mesh_shape)} devices, "
            f"got {len(found)}."
        )
    return np.array(found, object).reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> Grid:
    """A grid in blocks, one for each granule: devices that are near each other, of one slice or of one process.

        result.shape[d] == dcn_mesh_shape[d] * mesh_shape[d]

    Each block has the shape ``mesh_shape``, and the blocks form a grid of the shape ``dcn_mesh_shape``; the shorter
    shape is filled with ones in front. Along axes of size 1 in ``dcn_mesh_shape`` nothing crosses from block to block.

    Raises: BadArgument: a device does not say its slice. ShapeMismatch: another number of granules or of devices.
    """
    granules: dict[int, list[Any]] = {}
    for device in all_devices() if devices is None else devices:
        granules.setdefault(_granule(device, process_is_granule), []).append(device)
    order = sorted(granules) if should_sort_granules_by_key else [*granules]
    if len(order) != prod(dcn_mesh_shape):
        raise ShapeMismatch(
            f"create_hybrid_device_mesh: a grid of blocks of shape {tuple(dcn_mesh_shape)} holds "
            f"{prod(dcn_mesh_shape)} granules, got {len(order)}."
        )
    rank = max(len(mesh_shape), len(dcn_mesh_shape))
    inner, outer = ((1,) * (rank - len(shape)) + tuple(shape) for shape in (mesh_shape, dcn_mesh_shape))
    blocks = [create_device_mesh(inner, granules[key]).ravel() for key in order]
    # dimensions: the places of blocks, then those in a block; each pair of them is one axis of the result
    pairs = [d + k for d in range(rank) for k in (0, rank)]
    return np.stack(blocks).reshape(*outer, *inner).transpose(pairs).reshape([a * b for a, b in zip(outer, inner)])


def _granule(device: Any, process_is_granule: bool) -> int:
    """The number of the process or slice of a device."""
    if process_is_granule:
        return int(device.process_index)
    if not hasattr(device, "slice_index"):
        raise BadArgument(
            f"create_hybrid_device_mesh: every device must say its slice, got {device!r} without slice_index.",
            hint="process_is_granule=True makes a block of every process.",
        )
    return int(device.slice_index)
