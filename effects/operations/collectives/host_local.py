"""An array of all processes and the rows of it that each has: two operations between them, each the other's transpose.

An array over the devices of several processes is one value, the same in each. The rows of it on its own devices are a
value that every process has of its own. Outside of programs no data move between them. A program with these operations
is executed by all processes together: as lanes of a ``vmap`` over the axis ``PROCESSES``, which are the devices, each of
which does what its process does.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...base.later_layers import LaterLayers
from ...base.stack import perform
from ...core.arrays import scalar
from ...core.columns import data_movement, linear
from ...core.named_axes import PROCESSES, Axis, SizedAxis
from ...core.operation import Operation, operation
from ...sharding.devices import processes_of
from ...sharding.mesh import Mesh
from ...sharding.named_sharding import NamedSharding
from ...sharding.partition_spec import cut_along
from ...sharding.sharding_rules import alike
from ...types.dtypes import int32
from ..elementwise.arithmetic import rem, sub
from ..indexing.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from .collective import AllGather, AxisIndex


class HostLocalMove(Operation):
    """A move between an array with a row on each device of ``mesh`` along ``dim``, and the rows on this process's.

    The mesh has one axis, along which each process has equally many devices.
    """

    __slots__ = ()
    named = True
    meets: ClassVar[bool] = True
    meets_all: ClassVar[bool] = True
    makes_equal: ClassVar[bool] = False
    needs_all_lanes: ClassVar[bool] = True
    axis_names = (PROCESSES,)
    sharding_rule = alike
    mesh: Mesh
    dim: int
    exempt = dict.fromkeys(
        ("evaluate", "lower", "batch", "jvp", "transpose"), "it moves data between processes; tests of pmap cover it")
    jvp = linear
    flops = data_movement

    @property
    def axes(self) -> tuple[SizedAxis, ...]:
        return ((PROCESSES, self.mesh.size),)

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset((Axis(PROCESSES),))

    @property
    def own(self) -> int:
        """The number of rows of one process."""
        return self.mesh.size // len(processes_of(self.mesh._assignment))

    @property
    def sharding(self) -> NamedSharding:
        """How the array of all processes lies."""
        return NamedSharding(self.mesh, cut_along(self.dim, self.mesh.axis_names[0]))

    def with_rows(self, x: Any, count: int) -> Any:
        """The type of ``x`` with so many rows."""
        return x.update(shape=(*x.shape[: self.dim], count, *x.shape[self.dim + 1 :])).cut_by(None)

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
        """The same of the lanes of ``PROCESSES``: each gives the row of its device."""
        number = rem(perform(AxisIndex(op.axes)), scalar(op.own, int32))
        return perform(AllGather(op.axes, None, (op.dim,)), dynamic_index_in_dim(x, number, op.dim, keepdims=False))


# y = the rows of this process; x: those of all
@operation
class GlobalToHostLocal(HostLocalMove):
    mesh: Mesh
    dim: int

    def result_type(op, x):
        return op.with_rows(x, op.own)

    def placed(op, x: Any) -> Any:
        """The rows of a concrete array that are on this process's devices, where they lie."""
        return LaterLayers.own_part(x, op.sharding)

    def transpose(op, ct, x):
        return perform(HostLocalToGlobal(op.mesh, op.dim), ct)

    def in_one_place(op, x: Any) -> Any:
        """The same in the lanes of ``PROCESSES``: each takes the rows of its process."""
        number = perform(AxisIndex(op.axes))
        return dynamic_slice_in_dim(x, sub(number, rem(number, scalar(op.own, int32))), op.own, op.dim)
