"""Deep models written as Python loops: what XLA needs to compile them, and what they need to run."""

from __future__ import annotations

import functools
import gc
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .sides import OURS, THEIRS, Side, assert_agree, on, renewed, seeded
from .timing import Pair, Plan, Row

Program = Callable[[Side], Callable[..., Any]]
ROUNDS = 25  # of run times


def transformer(blocks: int) -> tuple[Program, tuple[Any, ...]]:
    """Mean square of the last state of a sequence of 64, of width 128 and 4 heads, without parameters in the norms."""

    def program(side: Side) -> Callable[..., Any]:
        np = side.np

        def norm(x: Any) -> Any:
            return (x - np.mean(x, -1, keepdims=True)) * side.lax.rsqrt(np.var(x, -1, keepdims=True) + 1e-5)

        def block(p: Any, x: Any) -> Any:
            h = norm(x)
            q, k, v = [(h @ p[name]).reshape(64, 4, 32).transpose(1, 0, 2) for name in "qkv"]
            weights = side.lib.nn.softmax(q @ k.transpose(0, 2, 1) / 4.0, axis=-1)
            x = x + (weights @ v).transpose(1, 0, 2).reshape(64, 128) @ p["o"]
            return x + side.lib.nn.gelu(norm(x) @ p["a"]) @ p["b"]

        def loss(params: Any, x: Any) -> Any:
            for p in params:
                x = block(p, x)
            return np.mean(x * x)

        return loss

    rng = np.random.default_rng(0)
    shapes = {**dict.fromkeys("qkvo", (128, 128)), "a": (128, 512), "b": (512, 128)}
    weights = [{name: (0.05 * rng.normal(size=s)).astype("f4") for name, s in shapes.items()} for _ in range(blocks)]
    return program, (weights, rng.normal(size=(64, 128)).astype("f4"))


def lstm(steps: int) -> tuple[Program, tuple[Any, ...]]:
    """Mean square of the last state of a recurrent cell, of which every step is written out."""

    def program(side: Side) -> Callable[..., Any]:
        sigmoid, tanh = side.lib.nn.sigmoid, side.np.tanh

        def loss(weights: Any, inputs: Any) -> Any:
            h = c = side.np.zeros((16, 64), "float32")
            for x in inputs:
                i, f, g, o = side.np.split(x @ weights[0] + h @ weights[1] + weights[2], 4, axis=-1)
                c = sigmoid(f) * c + sigmoid(i) * tanh(g)
                h = sigmoid(o) * tanh(c)
            return (h * h).mean()

        return loss

    weights = (seeded(64, 256) / 8, seeded(64, 256, seed=1) / 8, seeded(256, seed=2))
    return program, (weights, [seeded(16, 64, seed=i) for i in range(steps)])


def convolutions_in_scan() -> tuple[Program, tuple[Any, ...]]:
    """A ``scan`` over the weights of eight residual convolutions."""

    def program(side: Side) -> Callable[..., Any]:
        def step(x: Any, w: Any) -> Any:
            y = side.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return x + side.np.tanh(y), None

        return lambda weights, x: (side.lax.scan(step, x, weights)[0] ** 2).mean()

    return program, (seeded(8, 3, 3, 32, 32) / 100, seeded(8, 16, 16, 32))


def narrowing(layers: int) -> tuple[Program, tuple[Any, ...]]:
    """A perceptron of which no two layers have one shape."""

    def program(side: Side) -> Callable[..., Any]:
        def loss(weights: Any, x: Any) -> Any:
            for w in weights:
                x = side.np.tanh(x @ w)
            return (x * x).mean()

        return loss

    widths = [128 - 4 * i for i in range(layers + 1)]
    return program, ([seeded(a, b) / a for a, b in itertools.pairwise(widths)], seeded(16, 128))


@functools.cache
def figures(title: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds of processor time to compile, milliseconds of a call, and bytes of temporary memory, of both sides."""
    program, data = CASES[title]
    compiling: tuple[list[float], list[float]] = ([], [])
    built: list[Any] = [None, None]
    for _ in range(rounds):
        for i, side in enumerate((OURS, THEIRS)):
            side.lib.clear_caches()
            gradient = side.lib.value_and_grad(renewed(program(side)))
            lowered = side.lib.jit(gradient).lower(*on(side, data))
            gc.collect()
            start = time.process_time()
            built[i] = lowered.compile()
            compiling[i].append(time.process_time() - start)
    args = [on(side, data) for side in (OURS, THEIRS)]
    assert_agree(*[f(*xs) for f, xs in zip(built, args)])
    running: tuple[list[float], list[float]] = ([], [])
    for n in range(ROUNDS):
        for i in (0, 1) if n % 2 else (1, 0):
            start = time.perf_counter()
            (OURS, THEIRS)[i].ready(built[i](*args[i]))
            running[i].append((time.perf_counter() - start) * 1e3)
    ours, theirs = [f.memory_analysis().temp_size_in_bytes for f in built]
    return {
        "compile": (statistics.median(compiling[0]), statistics.median(compiling[1])),
        "run": (statistics.median(running[0]), statistics.median(running[1])),
        "temporary memory": (ours, theirs),
    }


CASES = {
    **{f"transformer of {n} blocks": transformer(n) for n in (6, 12, 24, 48)},
    "LSTM of 40 steps": lstm(40),
    "scan of 8 convolutions": convolutions_in_scan(),
    "MLP of 16 different layers": narrowing(16),
}
UNITS = {"compile": "s", "run": "ms", "temporary memory": "bytes"}


def row(title: str, what: str, bar: float, aim: float | None = None) -> Row:
    def measure(plan: Plan) -> Pair:
        return Pair(*figures(title, 1 if "48" in title or plan.quick else 3)[what])

    return Row(f"{what}: value and gradient, {title}", bar, measure, aim, unit=UNITS[what])


ROWS = [
    *[
        row(f"transformer of {n} blocks", "compile", bar, aim)
        for n, bar, aim in ((6, 0.8, 0.5), (12, 0.4, 0.25), (24, 0.15, 0.08), (48, 0.08, 0.04))
    ],
    row("transformer of 24 blocks", "run", 1.0, 0.9),
    row("transformer of 24 blocks", "temporary memory", 1.02, 0.5),
    row("LSTM of 40 steps", "compile", 0.25, 0.15),
    row("LSTM of 40 steps", "run", 0.6, 0.4),
    row("scan of 8 convolutions", "run", 0.15, 0.05),
    row("MLP of 16 different layers", "compile", 1.02, 1.0),
]
