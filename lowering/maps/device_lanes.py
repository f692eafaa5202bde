"""Lanes that are each on a device of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base import config
from ...effects.base.errors import BadArgument, CannotCross
from ...effects.core.arrays import as_array
from ...effects.operations.foundations.shapes import move_axis, reshape
from ...effects.sharding.devices import is_addressable
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import P, cut_along
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...interpreters.batching.mapped_axes import dimensions, lane_count, result_dimensions
from ...interpreters.core.trace_cache import leaf_names
from ...interpreters.transformations.shard_map import over_devices
from ..arrays.sharding_constraints import reshard
from ..jit.devices import devices, local_devices, process_count


class LaneDevices(NamedTuple):
    """The devices of the lanes of ``pmap``, as its arguments of these names say, and the name of the axis."""

    name: Hashable
    axis_size: int | None
    devices: Sequence[Any] | None
    backend: str | None

    @property
    def several(self) -> bool:
        """Whether they are of several processes."""
        if self.devices is None:
            return config.PROCESS.joined > 1
        return not all(map(is_addressable, self.devices))

    def of_one_process(self) -> LaneDevices:
        """Themselves. Raises: CannotCross: they are of several processes."""
        if self.several:
            raise CannotCross(
                "pmap: with several processes it is compiled for the lanes of all, got a function to be lowered.",
                hint="call it; or lower shard_map over a mesh of hx.devices().",
            )
        return self

    def lanes(self, args: Any, in_axes: Any, processes: int | None = None) -> tuple[list[int | None], Mesh]:
        """The mapped dimension of each of the arguments, and the devices of all lanes; ``processes``: the arguments are
        those of this one of so many.

        Raises: ShapeMismatch: mapped dimensions differ in size. BadArgument: there are fewer devices than lanes, or
        other ones of this process.
        """
        leaves, tree = pytrees.flatten(args)
        xs = [as_array(x) for x in leaves]
        dims = dimensions("pmap", in_axes, args, xs)
        shares = processes or 1
        size = None if self.axis_size is None else self.axis_size // shares
        names = leaf_names(lambda i: f"mapped argument {i}", tree).__getitem__
        count = shares * lane_count("pmap", dims, xs, size, names)
        chosen = self._chosen(count)
        mine = sum(map(is_addressable, chosen))
        if processes and self.devices is not None and not processes * mine == count == len(chosen):
            raise BadArgument(
                f"pmap: each process must have a lane for each of its devices, got {count // processes} for {mine} of "
                f"{len(chosen)} devices.",
                hint="devices have equally many of each process; without devices it has any number of lanes.",
            )
        if len(chosen) < count:
            raise BadArgument(
                f"pmap: every lane needs a device, got {count} lanes for {len(chosen)} devices.",
                hint="vmap maps any number of lanes on one device; hx.config.update('num_cpu_devices', n) makes some.",
            )
        return dims, Mesh(np.array(chosen[:count]), (self.name,))

    def _chosen(self, count: int) -> list[Any]:
        if self.devices is not None:
            return [*self.devices]
        if self.several:
            return devices_of_all(count // process_count(self.backend), self.backend)
        return local_devices(backend=self.backend)


def devices_of_all(count: int, backend: str | None = None) -> list[Any]:
    """The first ``count`` devices of each process, in the order of the processes."""
    of_process: dict[int, list[Any]] = {}
    for device in devices(backend):
        of_process.setdefault(device.process_index, []).append(device)
    return [device for number in sorted(of_process) for device in of_process[number][:count]]


def on_devices(
    lane: Callable[..., Any], args: Any, dims: Sequence[int | None], mesh: Mesh, out_axes: Any, own_rows: bool = False
) -> Any:
    """``shard_map`` over a mesh of one axis, whose shards are slices of size 1 of the mapped dimensions ``dims``.

    ``own_rows``: what lanes share, of the arguments and of the results, is a row of each lane all the same, in
    dimension 0.
    """
    dims = [0 if d is None and own_rows else d for d in dims]
    leaves, tree = pytrees.flatten(args)
    xs, (name,) = [as_array(x) for x in leaves], mesh.axis_names

    def body(*pieces: Any) -> Any:
        values = [x if d is None else reshape(x, lane_type(x.type, d).shape) for x, d in zip(pieces, dims)]
        y = lane(*pytrees.unflatten(tree, values))
        ys = [as_array(leaf) for leaf in pytrees.leaves(y)]
        asked = result_dimensions("pmap", out_axes, y, [len(leaf.type.shape) + 1 for leaf in ys])
        targets[:] = [0 if d is None and own_rows else d for d in asked]
        rows = [v if d is None else _as_row(v) for v, d in zip(ys, targets)]
        specs[:] = [P() if d is None else P(name) for d in targets]
        structures.append(pytrees.structure(y))
        return rows

    targets: list[int | None] = []
    specs: list[P] = []
    structures: list[Any] = []
    into = tuple([cut_along(d, name) for d in dims])
    results = over_devices("pmap", body, into, specs, mesh, (), False)(*xs)
    placed = [y if d is None else move_axis(y, 0, d) for y, d in zip(results, targets)]
    if own_rows:
        placed = [reshard(y, NamedSharding(mesh, cut_along(d, name))) for y, d in zip(placed, targets)]
    return pytrees.unflatten(structures[-1], placed)


def _as_row(x: Any) -> Any:
    """``x`` with a new first dimension of size 1."""
    return reshape(x, (1, *x.type.shape))


def lane_type(type: ArrayType, d: int | None) -> ArrayType:
    """The type of a lane of an argument that is mapped along dimension ``d``; None: of one that lanes share."""
    return (type if d is None else type.update(shape=(*type.shape[:d], *type.shape[d + 1 :]))).cut_by(None)
