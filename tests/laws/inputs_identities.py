"""Inputs for operations that are the identity: those beside rematerialisation, and the sharding constraint."""

from __future__ import annotations

import numpy as np

import handlax as hx
from handlax.effects.control.checkpoint import Boundary, Name, OptimizationBarrier
from handlax.effects.operations.foundations.layout_constraint import LayoutConstraint
from handlax.effects.operations.foundations.put_on import PutOn
from handlax.effects.operations.foundations.sharding_constraint import ShardingConstraint
from handlax.effects.operations.foundations.to_memory import ToMemory
from handlax.effects.sharding.layout import Layout
from handlax.effects.sharding.mesh import Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import PartitionSpec
from handlax.effects.types import dtypes
from handlax.effects.types.array_type import Space
from handlax.testing.strategies import Domain, Operands

from .inputs import SPECIAL

FEW = Domain(-2.0, 2.0, extremes=SPECIAL)
HALVES = NamedSharding(Mesh(np.array(hx.devices()[:2]), ("halves",)), PartitionSpec("halves"))

CASES = [
    Operands(Name("kept"), (FEW,), (((3,),), ((2, 3),), ((),), ((0, 2),)), dtypes.ANY),
    Operands(ShardingConstraint(HALVES), (FEW,), (((4,),), ((2, 3),), ((0, 2),)), dtypes.ANY),
    Operands(LayoutConstraint(Layout((1, 0))), (FEW,), (((3, 2),), ((0, 2),)), dtypes.ANY),
    Operands(PutOn(SingleDeviceSharding(hx.devices()[1])), (FEW,), (((3,),), ((),)), dtypes.ANY),
    Operands(ToMemory(Space.Host), (FEW,), (((3,),), ((),)), dtypes.ANY),
    Operands(OptimizationBarrier(), (FEW,), (((3,),), ((),)), dtypes.ANY),
    Operands(Boundary(), (FEW, FEW), (((3,), (2, 2)), ((), (0,))), dtypes.ANY),
    Operands(OptimizationBarrier(), (FEW, FEW), (((3,), (2, 2)), ((), (0,))), dtypes.ANY),
]
