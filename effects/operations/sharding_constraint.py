"""The sharding constraint: how a value inside of a program is cut over the devices of a mesh."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..base.errors import BadArgument
from ..base.stack import current, perform
from ..core.columns import data_movement, linear
from ..core.operation import operation
from ..sharding.named_sharding import NamedSharding
from ..sharding.partition_spec import UNCONSTRAINED, PartitionSpec


# y = x, cut over the devices of the sharding's mesh as it says
@operation
class ShardingConstraint:
    sharding: NamedSharding

    @property
    def mesh(op) -> Any:
        return op.sharding.mesh

    def result_type(op, x):
        taken = {axis for binding in current().scope if binding.mesh is not None for axis, _ in binding.axes}
        found = [axis for axis in op.sharding.spec.axes if axis in taken]
        if found:
            raise BadArgument(
                f"with_sharding_constraint: inside of shard_map over {found[0]!r} a value has no parts along it, "
                f"got {op.sharding.spec}.",
                hint="name the axes that are left to the compiler.",
            )
        op.sharding.parts(len(x.shape))  # raises where the rank is too low; a part may be padded
        return x

    def evaluate(op, x):
        return x

    def batch(op, dims, x):  # the compiler chooses how the mapped dimension is cut
        return op.of_placed_lanes(dims[0], UNCONSTRAINED, x), dims[0]

    def of_placed_lanes(op, d, axes, x):
        """The same of all lanes, which stand in dimension ``d`` and are cut along these axes of the mesh."""
        spec = [*op.sharding.spec, *[None] * (d - len(op.sharding.spec))]
        cut = op.sharding.with_spec(PartitionSpec(*spec[:d], axes, *spec[d:]))
        return perform(replace(op, sharding=cut), x)

    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    def lower(op, emit, x):
        return emit.sharding_constraint(x, op.sharding)

    flops = data_movement
