"""Branches of unequal cost that lanes choose: executed on the lanes that take them, beside JAX's selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .jitted import run_time, temporary_memory
from .sides import OURS, Side, assert_agree
from .timing import Row

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

    def agree(self, ours: Any, theirs: Any) -> None:
        assert_agree(ours, theirs, 1e-3, 1e-4)

    @property
    def title(self) -> str:
        how = "grouped" if self.group else "selected"
        return f"a network on one lane in {self.one_in}, {how}, {('forward', 'value and gradient')[self.differentiate]}"


FORWARD, GRADIENT, SELECTED, ALL = (
    Branching(10, True, False), Branching(10, True, True), Branching(10, False, True), Branching(1, True, True)
)
ROWS = [
    Row(FORWARD.title, 0.6, run_time(FORWARD.jitted, FORWARD.agree)),
    Row(GRADIENT.title, 0.6, run_time(GRADIENT.jitted, GRADIENT.agree)),
    Row(f"{GRADIENT.title}: temporary memory", 0.6, temporary_memory(GRADIENT.jitted), unit="bytes"),
    Row(SELECTED.title, 1.0, run_time(SELECTED.jitted, SELECTED.agree)),
    # where nothing is gained: what sorting and recomputation cost
    Row(ALL.title, None, run_time(ALL.jitted, ALL.agree)),
]
