"""Branches of unequal cost that lanes choose: executed on the lanes that take them, beside JAX's selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .sides import OURS, THEIRS, Side, assert_agree
from .timing import Measure, Pair, Plan, Prepare, Row, timed

LANES, WIDTH, LAYERS = 4096, 128, 8


@dataclass(frozen=True)
class Branching:
    """A network on one lane in ``one_in``, twice the lane on the others; ``group``: how ours is mapped."""

    one_in: int
    group: bool
    differentiate: bool

    def jitted(self, side: Side) -> tuple[Any, list[Any]]:
        """The jitted function on one side, and its arguments there."""

        def network(x: Any, *weights: Any) -> Any:
            for w in weights:
                x = side.np.tanh(x @ w)
            return x

        def lane(which: Any, x: Any, *weights: Any) -> Any:
            if side is OURS:
                return side.lax.cond(which == 0, network, lambda x, *_: 2 * x, x, *weights)
            # cond under vmap would copy the weights for every lane
            return side.np.where(which == 0, network(x, *weights), 2 * x)

        options = {"group": self.group} if side is OURS else {}
        f = side.lib.vmap(lane, (0, 0, *[None] * LAYERS), **options)
        g = f
        if self.differentiate:
            g = side.lib.value_and_grad(lambda which, *xs: (f(which, *xs) ** 2).mean(), tuple(range(1, LAYERS + 2)))
        rng = np.random.default_rng(0)
        which = rng.permutation(np.arange(LANES, dtype=np.int32) % self.one_in)
        x = rng.standard_normal((LANES, WIDTH), np.float32)
        weights = [rng.standard_normal((WIDTH, WIDTH), np.float32) / np.float32(WIDTH**0.5) for _ in range(LAYERS)]
        return side.lib.jit(g), [side.array(v) for v in (which, x, *weights)]

    @property
    def title(self) -> str:
        how = "grouped" if self.group else "selected"
        return f"a network on one lane in {self.one_in}, {how}, {('forward', 'value and gradient')[self.differentiate]}"


def run_time(case: Branching) -> Measure:
    def make(side: Side) -> Prepare:
        f, args = case.jitted(side)
        f(*args)
        return lambda: lambda: f(*args)

    return timed(make, check=lambda ours, theirs: assert_agree(ours, theirs, 1e-3, 1e-4), samples_per_round=1)


def memory(case: Branching) -> Callable[[Plan], Pair]:
    def measure(plan: Plan) -> Pair:
        sizes = []
        for side in (OURS, THEIRS):
            f, args = case.jitted(side)
            sizes.append(f.lower(*args).compile().memory_analysis().temp_size_in_bytes)
        return Pair(*sizes)

    return measure


FORWARD, GRADIENT, SELECTED, ALL = (
    Branching(10, True, False), Branching(10, True, True), Branching(10, False, True), Branching(1, True, True)
)
ROWS = [
    Row(FORWARD.title, 0.6, run_time(FORWARD)),
    Row(GRADIENT.title, 0.6, run_time(GRADIENT)),
    Row(f"{GRADIENT.title}: temporary memory", 0.6, memory(GRADIENT), unit="bytes"),
    Row(SELECTED.title, 1.0, run_time(SELECTED)),
    Row(ALL.title, None, run_time(ALL)),  # where nothing is gained: what sorting and recomputation cost
]
