"""Inputs for random operations: keys with random key data, counters, seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from laws.inputs import INTEGERS

from handlax.effects.core.arrays import concrete
from handlax.effects.operations import random_bits as t
from handlax.effects.operations.random_blocks import Philox2x32, Philox4x32, Threefry4x32
from handlax.effects.types.array_type import Shape, array_type
from handlax.effects.types.dtypes import KeyDType, uint32
from handlax.testing.strategies import Domain, Operands

WORD = Domain(0, 2**32 - 1, dtype=uint32, extremes=(0, 2**32 - 1))
KEY_SHAPES: tuple[tuple[Shape, ...], ...] = (((),), ((3,),), ((2, 3),), ((0, 2),))


@dataclass(frozen=True)
class Keys(Domain):
    """Keys with random key data; NumPy has no keys, so they are drawn as arrays of handlax."""

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> Any:
        words = rng.integers(0, 2**32 - 1, (*shape, 2), endpoint=True).astype(uint32)
        return concrete(array_type(shape, t.KEY), words)


CASES = [
    Operands(t.Threefry2x32(), (WORD,) * 4),
    *[Operands(op(), (WORD,) * count) for op, count in ((Philox2x32, 3), (Philox4x32, 6), (Threefry4x32, 8))],
    *[Operands(t.RandomBits(32, shape), (Keys(),), KEY_SHAPES) for shape in ((), (5,), (0, 4), (300,))],
    *[Operands(t.RandomBits(width, (2, 3)), (Keys(),), KEY_SHAPES[1:2]) for width in (8, 16, 64)],
    *[Operands(t.RandomSplit(shape), (Keys(),), KEY_SHAPES) for shape in ((2, 3), (0,))],
    Operands(t.RandomSplit((300,)), (Keys(),), KEY_SHAPES[:1]),
    Operands(t.RandomFoldIn(), (Keys(), WORD)),
    Operands(t.RandomSeed(), (INTEGERS,), (((),), ((3,),), ((0, 2),))),
    Operands(t.RandomWrap(), (WORD,), (((2,),), ((3, 2),), ((0, 2),))),
    Operands(t.RandomWrap(KeyDType("rbg")), (WORD,), (((4,),), ((3, 4),))),
    Operands(t.RandomUnwrap(), (Keys(),), KEY_SHAPES),
]
