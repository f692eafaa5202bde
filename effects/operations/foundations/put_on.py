"""``PutOn``: the transfer of an array to one device, which differentiation undoes."""

from __future__ import annotations

from typing import Any

from ...base.later_layers import LaterLayers
from ...base.stack import perform
from ...core.columns import data_movement, linear
from ...core.operation import operation
from ...sharding.named_sharding import SingleDeviceSharding
from ...sharding.sharding_rules import alike


# y = x, on the device; its cotangent is put on the device of x, where that is known. No program moves it: it has one
# set of devices
@operation
class PutOn:
    sharding: SingleDeviceSharding
    source: SingleDeviceSharding | None = None
    keeps_memory = True
    sharding_rule = alike

    def result_type(op, x):
        return x.lying_in(op.sharding.memory_space)

    def evaluate(op, x):
        return x

    def placed(op, x: Any) -> Any:
        """The concrete array, moved."""
        return LaterLayers.placed(x, op.sharding)

    def batch(op, dims, x):
        return perform(op, x), dims[0]

    jvp = linear

    def transpose(op, ct, x):
        return ct if op.source is None else perform(PutOn(op.source, op.sharding), ct)

    def lower(op, emit, x):
        return emit.in_memory(x, op.sharding.memory_space)

    flops = data_movement
