"""Where the operands of random operations lie: keys of random words, counters, seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from laws.inputs import INTEGERS, Case, Domain, Shape

from handlax.effects import threefry as t
from handlax.effects.arrays import concrete
from handlax.effects.dtypes import UNSIGNED, uint32
from handlax.effects.types import array_type

WORD = Domain(0, 2**32 - 1, dtype=uint32, extremes=(0, 2**32 - 1))
KEY_SHAPES: tuple[tuple[Shape, ...], ...] = (((),), ((3,),), ((2, 3),), ((0, 2),))


@dataclass(frozen=True)
class Keys(Domain):
    """Keys of random words; they have no NumPy form, so they are drawn as arrays."""

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> Any:
        words = rng.integers(0, 2**32 - 1, (*shape, 2), endpoint=True).astype(uint32)
        return concrete(array_type(shape, t.KEY), words)


CASES = [
    Case(t.Threefry2x32(), (WORD,) * 4),
    *[Case(t.RandomBits(width, shape), (Keys(),), KEY_SHAPES)
      for width in (8, 16, 32, 64) for shape in ((), (5,), (2, 3), (0, 4), (300,))],
    *[Case(t.RandomSplit(shape), (Keys(),), KEY_SHAPES) for shape in ((), (2,), (2, 3), (0,), (300,))],
    Case(t.RandomFoldIn(), (Keys(), WORD)),
    Case(t.RandomSeed(), (INTEGERS,)),
    Case(t.RandomWrap(), (WORD,), (((2,),), ((3, 2),), ((0, 2),)), UNSIGNED & {uint32}),
    Case(t.RandomUnwrap(), (Keys(),), KEY_SHAPES),
]
