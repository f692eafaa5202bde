"""An array of all processes and the rows of it that each has: two operations between them, each the other's transpose.

An array over the devices of several processes is one value, the same in each. The rows of it on its own devices are a
value that every process has of its own. Outside of programs no data move between them. A program with these operations
is executed by all processes together: as lanes of a ``vmap`` over the axis ``PROCESSES``, which are the devices, of
which each does what its process does.
"""

from __future__ import annotations

from typing import Any

from ...base.later_layers import LaterLayers
from ...base.stack import perform
from ...core.columns import linear
from ...core.named_axes import PROCESSES, SizedAxis
from ...core.operation import operation
from ...sharding.mesh import Mesh
from ...sharding.named_sharding import NamedSharding
from ...sharding.partition_spec import cut_along
from ..indexing.dynamic_slicing import dynamic_index_in_dim
from .collective import AllGather, Collective, lane_position
from .lane_groups import Groups


class HostLocalMove(Collective):
    """A move between an array with a row on each device of ``mesh`` along ``dim``, and the rows on this process's.

    The mesh has one axis, along which each process has equally many devices.
    """

    __slots__ = ()
    meets_all = True
    mesh: Mesh
    dim: int
    jvp = linear

    @property
    def axes(self) -> tuple[SizedAxis, ...]:  # type: ignore[override]
        return ((PROCESSES, self.mesh.size),)

    @property
    def by_process(self) -> Groups:
        """The devices of each process."""
        of_process: dict[int, list[int]] = {}
        for i, device in enumerate(self.mesh._assignment):
            of_process.setdefault(device.process_index, []).append(i)
        return tuple(map(tuple, of_process.values()))

    @property
    def needs_all_lanes(self) -> bool:
        return True

    @property
    def sharding(self) -> NamedSharding:
        """How the array of all processes lies."""
        return NamedSharding(self.mesh, cut_along(self.dim, self.mesh.axis_names[0]))

    def with_rows(self, x: Any, count: int) -> Any:
        """The type of ``x`` with so many rows."""
        return x.update(shape=(*x.shape[: self.dim], count, *x.shape[self.dim + 1 :])).cut_by(None)

    def gathered(self, x: Any, position: Any, groups: Groups | None) -> Any:
        """In the lanes of ``PROCESSES``: the rows at ``position`` of all lanes, or of those of the same group."""
        row = dynamic_index_in_dim(x, position, self.dim, keepdims=False)
        return perform(AllGather(self.axes, groups, (self.dim,)), row)

    def batch(self: Any, dims: Any, x: Any) -> Any:
        (d,) = dims
        return perform(type(self)(self.mesh, self.dim + (d <= self.dim)), x), d


# y = the rows of all processes; x: those of this one
@operation
class HostLocalToGlobal(HostLocalMove):
    mesh: Mesh
    dim: int

    def result_type(op, x):
        return op.with_rows(x, op.mesh.size)

    def placed(op, x: Any) -> Any:
        """The rows of concrete arrays, where they lie."""
        return LaterLayers.assembled(op.sharding, x)

    def transpose(op, ct, x):
        return perform(GlobalToHostLocal(op.mesh, op.dim), ct)

    def in_one_place(op, x: Any) -> Any:
        return op.gathered(x, lane_position(op.axes, op.by_process, x.type.varying), None)


# y = the rows of this process; x: those of all
@operation
class GlobalToHostLocal(HostLocalMove):
    mesh: Mesh
    dim: int

    def result_type(op, x):
        return op.with_rows(x, len(op.by_process[0]))

    def placed(op, x: Any) -> Any:
        """The rows of a concrete array that are on this process's devices, where they lie."""
        return LaterLayers.own_part(op.sharding, x)

    def transpose(op, ct, x):
        return perform(HostLocalToGlobal(op.mesh, op.dim), ct)

    def in_one_place(op, x: Any) -> Any:
        return op.gathered(x, lane_position(op.axes, None, x.type.varying), op.by_process)
