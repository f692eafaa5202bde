"""An array of all processes and the rows of it that each has: two operations between them, each the other's transpose.

An array over the devices of several processes is one value, the same in each. The rows of it on its own devices are a
value that every process has of its own: it varies along the axis ``PROCESSES``, which the processes themselves are.
Outside of programs no data move. A program with these operations is executed by all processes together, which are the
lanes of a ``vmap`` over that axis.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...base.later_layers import LaterLayers
from ...base.stack import perform
from ...core.columns import data_movement, linear
from ...core.named_axes import PROCESSES, Axis, SizedAxis
from ...core.operation import Operation, operation
from ...sharding.devices import processes_of
from ...sharding.mesh import Mesh
from ...sharding.named_sharding import NamedSharding
from ...sharding.partition_spec import cut_along
from ...sharding.sharding_rules import alike
from ..foundations.shapes import move_axis, reshape
from ..manipulation.slicing import axis_at, concatenate, index_in_dim, slice_in_dim


class HostLocalMove(Operation):
    """A move between an array with a row on each device of ``mesh`` along ``dim``, and the rows on this process's.

    The mesh has one axis, along which each process has equally many devices.
    """

    __slots__ = ()
    named = True
    meets: ClassVar[bool] = True
    meets_all: ClassVar[bool] = True
    makes_equal: ClassVar[bool] = False
    needs_all_lanes: ClassVar[bool] = False
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
        return ((PROCESSES, len(processes_of(self.mesh._assignment))),)

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset((Axis(PROCESSES),))

    @property
    def own(self) -> int:
        """The number of rows of one process."""
        return self.mesh.size // self.axes[0][1]

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

    def collective(op, axis, size, dims, x):
        rows = move_axis(axis_at(x, dims[0], 0, size), op.dim + 1, 1)
        return move_axis(reshape(rows, (op.mesh.size, *rows.type.shape[2:])), 0, op.dim), None


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

    def collective(op, axis, size, dims, x):
        if dims[0] is None:
            rows = move_axis(x, op.dim, 0)
        else:  # each process has a copy of its own, from which it takes its rows
            copies = move_axis(move_axis(x, dims[0], 0), op.dim + 1, 1)
            each = [index_in_dim(copies, p, 0, keepdims=False) for p in range(size)]
            rows = concatenate([slice_in_dim(y, p * op.own, (p + 1) * op.own) for p, y in enumerate(each)], 0)
        return move_axis(reshape(rows, (size, op.own, *rows.type.shape[1:])), 1, op.dim + 1), 0
