"""Memory spaces inside of programs: where a value lies, in the memory of its device or in that of the device's host.

Types say where values lie. What lies in the host's memory may be passed on, as it is: to bodies, through barriers, as
slices of a loop, and as a result. Any other operation computes in the device's memory: compiled, it reads a copy there,
and its results lie there. So do tangents and cotangents.
"""

from __future__ import annotations

from typing import Any

from ...base.stack import perform
from ...core.columns import data_movement
from ...core.operation import operation
from ...sharding.sharding_rules import alike
from ...types.array_type import Space


# y = x, in another memory
@operation
class ToMemory:
    space: Space
    primitive_aliases = ("device_put",)
    keeps_memory = True
    linear_in = slice(None)
    sharding_rule = alike

    def result_type(op, x):
        return x.lying_in(op.space)

    def evaluate(op, x):
        return x

    def batch(op, dims, x):
        return perform(op, x), dims[0]

    def jvp(op, primals, tangents):
        return perform(op, *primals), tangents[0]  # tangents lie in the device's memory

    def transpose(op, ct, x):
        return ct

    def lower(op, emit, x):
        return emit.in_memory(x, op.space)

    flops = data_movement


def in_memory(x: Any, space: Space | None) -> Any:
    """The array in this memory; itself where it lies there, and for None."""
    return x if space is None or x.type.memory_space is space else perform(ToMemory(space), x)
