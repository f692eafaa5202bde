"""What keeps an accelerator busy: steps of models, products, transfers; and that both sides ask the same of XLA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from ml_dtypes import bfloat16

from . import programs
from .jitted import run_time
from .rows_dispatch import X
from .rows_eager import call
from .sides import OURS, THEIRS, Side, assert_agree, on, seeded
from .timing import Check, Measure, Pair, Prepare, Row, timed


def cast(x: Any, dtype: Any) -> Any:
    """The float arrays of dictionaries, lists and tuples in another dtype."""
    if isinstance(x, dict):
        return {name: cast(part, dtype) for name, part in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([cast(part, dtype) for part in x])
    return x.astype(dtype) if x.dtype.kind == "f" else x


@dataclass(frozen=True, eq=False)
class Step:
    """A training step by gradient descent: its title, the loss on either side, parameters and data in NumPy."""

    title: str
    loss: Callable[[Any], Callable[..., Any]]
    make: Callable[[], tuple[Any, ...]]
    agree: Check

    def on(self, side: Side) -> tuple[Any, list[Any]]:
        """The jitted step on one side, and its arguments there."""
        f = side.lib.value_and_grad(self.loss(side.np))

        def step(params, *data):
            value, slope = f(params, *data)
            return side.lib.tree.map(lambda p, g: p - 1e-3 * g, params, slope), value

        return side.lib.jit(step), [on(side, x) for x in self.make()]


class Compiled(NamedTuple):
    """A step on one side, lowered and compiled once for all rows about it, and its arguments."""

    lowered: Any
    program: Any
    arguments: list[Any]


@cache
def compiled(step: Step, side: Side) -> Compiled:
    f, arguments = step.on(side)
    lowered = f.lower(*arguments)
    return Compiled(lowered, lowered.compile(), arguments)


def loosely(rtol: float) -> Check:
    """Results agree up to the rounding of narrow numbers, in sums of many orders."""
    return lambda ours, theirs: assert_agree(ours, theirs, rtol, rtol)


def _mlp() -> tuple[Any, ...]:
    return programs.mlp_params((1024, 4096, 4096, 1024)), *programs.mlp_data(2048, 1024, 1024)


def _transformer() -> tuple[Any, ...]:
    params = programs.transformer_params(4, width=1024, vocabulary=8192, length=512)
    return cast(params, bfloat16), *programs.transformer_data(8, 512, 8192)


STEPS = [
    Step("MLP 1024-4096-4096-1024, batch 2048, f32", programs.mlp, _mlp, loosely(1e-2)),
    Step("transformer, 4 blocks of width 1024, 8 x 512 tokens, bf16", lambda np: programs.transformer(np, 16),
         _transformer, loosely(1e-1)),
]


def asked(step: Step, measure: Callable[[Compiled], float]) -> Measure:
    """A figure of the compiled step on both sides."""
    return lambda plan: Pair(*[measure(compiled(step, side)) for side in (OURS, THEIRS)])


def step_rows(step: Step) -> list[Row]:
    run = run_time(lambda side: compiled(step, side)[1:], step.agree)
    cost = lambda name: asked(step, lambda c: c.program.cost_analysis()[name])
    memory = asked(step, lambda c: c.program.memory_analysis().temp_size_in_bytes)
    lines = asked(step, lambda c: c.lowered.as_text().count("\n"))
    return [
        Row(f"step of {step.title}", 1.03, run, 1.00),
        Row(f"{step.title}: flops", None, cost("flops"), unit="flops"),
        Row(f"{step.title}: bytes accessed", None, cost("bytes accessed"), unit="bytes"),
        Row(f"{step.title}: temporary memory", None, memory, unit="bytes"),
        Row(f"{step.title}: lines of StableHLO", None, lines, unit="lines"),
    ]


def awaited(f: Callable[..., Any], *arrays: Any, check: Check = assert_agree) -> Measure:
    """A call until its result is there."""

    def make(side: Side) -> Prepare:
        xs = [side.array(x) for x in arrays]
        return lambda: lambda: side.ready(f(side, *xs))

    return timed(make, check=check)


def looped(side: Side) -> Callable[[Any], Any]:
    """A loop of a thousand small steps on the device."""
    return lambda x: side.lax.fori_loop(0, 1000, lambda i, x: x * 0.999 + 0.001, x)


LARGE, WIDE, SQUARE = seeded(1 << 24), seeded(4096, 4096), seeded(128, 128)

ROWS = [
    Row("jit call until its result is there, f32[8]", 1.00,
        run_time(lambda side: (side.lib.jit(lambda x: x + 1.0), [side.array(X)]), assert_agree, 9)),
    Row("loop of 1000 steps on the device, f32[8]", 1.03,
        run_time(lambda side: (side.lib.jit(looped(side)), [side.array(X)]), assert_agree, 9)),
    Row("eager x + y, f32[16777216]", 1.00, timed(call(lambda s, x, y: x + y, LARGE, LARGE))),
    Row("eager matmul, f32[128,128]", 1.00,
        timed(call(lambda s, x, y: x @ y, SQUARE, SQUARE), check=loosely(1e-2))),
    Row("eager matmul, f32[4096,4096]", 1.03,
        timed(call(lambda s, x, y: x @ y, WIDE, WIDE), check=loosely(1e-2))),
    Row("eager matmul, bf16[4096,4096]", 1.03,
        timed(call(lambda s, x, y: x @ y, WIDE.astype(bfloat16), WIDE.astype(bfloat16)), check=loosely(1e-1))),
    Row("device_put, f32[16777216]", 1.03, awaited(lambda s, _: s.lib.device_put(LARGE, s.lib.devices()[0]), X)),
    Row("device_get, f32[16777216]", 1.03, awaited(lambda s, x: np.asarray(x * 2).shape[0], LARGE)),
    *[row for step in STEPS for row in step_rows(step)],
]
