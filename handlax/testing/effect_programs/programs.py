"""Random programs with effects, as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from ..generator.random_program import RandomProgram
from .block_writer import random_block
from .blocks import Block, simpler
from .text import text_of_block


@dataclass(frozen=True, repr=False)
class EffectProgram(RandomProgram):
    """A function of a choice, 0 or 1, and two numbers to a number, whose handlers answer what it performs."""

    block: Block
    prelude = (
        "import handlax as hx\nfrom handlax import lax\nfrom handlax import numpy as hnp\n"
        "from handlax.testing.effect_programs.functions import *\n"
    )

    def smaller(self) -> Iterator[EffectProgram]:
        return map(effect_program, simpler(self.block))

    def inputs(self, seed: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        return [np.asarray(float(rng.integers(2))), *[np.asarray(rng.uniform(-1, 1)) for _ in range(2)]]


def effect_program(block: Block) -> EffectProgram:
    """The program that a block is."""
    return EffectProgram(text_of_block(block), block)


def random_effect_program(random: Random, *, depth: int = 3, **options: Any) -> EffectProgram:
    """A program with effects, nested so deep, with the options of ``random_block``."""
    return effect_program(random_block(random, depth, **options).program)
