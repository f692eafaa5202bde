"""Inputs for the operations beside rematerialisation, which are the identity."""

from __future__ import annotations

from handlax.effects.control.checkpoint import Name, OptimizationBarrier
from handlax.effects.types import dtypes

from .inputs import SPECIAL, Case, Domain

FEW = Domain(-2.0, 2.0, extremes=SPECIAL)

CASES = [
    Case(Name("kept"), (FEW,), (((3,),), ((2, 3),), ((),), ((0, 2),)), dtypes.ANY),
    Case(OptimizationBarrier(), (FEW,), (((3,),), ((),)), dtypes.ANY),
    Case(OptimizationBarrier(), (FEW, FEW), (((3,), (2, 2)), ((), (0,))), dtypes.ANY),
]
