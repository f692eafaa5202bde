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


def recurrent(steps: int, gates: int, cell: Callable[[Side, Any, Any], Any]) -> tuple[Program, tuple[Any, ...]]:
    """Mean square of the last output of a recurrent cell, of which every step is written out.

    ``cell`` gives the next pair of output and memory by the present one and ``gates`` linear functions of the input and
    the output.
    """

    def program(side: Side) -> Callable[..., Any]:
        def loss(weights: Any, inputs: Any) -> Any:
            state = (side.np.zeros((16, 64), "float32"),) * 2
            for x in inputs:
                state = cell(side, state, x @ weights[0] + state[0] @ weights[1] + weights[2])
            return (state[0] * state[0]).mean()

        return loss

    width = 64 * gates
    weights = (seeded(64, width) / 8, seeded(64, width, seed=1) / 8, seeded(width, seed=2))
    return program, (weights, [seeded(16, 64, seed=i) for i in range(steps)])


def lstm(side: Side, state: Any, z: Any) -> Any:
    """The cell with an input, a forget, a candidate and an output gate."""
    sigmoid, tanh = side.lib.nn.sigmoid, side.np.tanh
    i, f, g, o = side.np.split(z, 4, axis=-1)
    c = sigmoid(f) * state[1] + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def elementary(side: Side, state: Any, z: Any) -> Any:
    """The cell of an elementary network, which has no memory."""
    return side.np.tanh(z), state[1]


def runge_kutta(steps: int) -> tuple[Program, tuple[Any, ...]]:
    """A neural differential equation by steps of the classical method of Runge and Kutta."""

    def program(side: Side) -> Callable[..., Any]:
        def loss(weights: Any, y: Any) -> Any:
            f, h = lambda y: side.np.tanh(side.np.tanh(y @ weights[0]) @ weights[1]), 1 / steps
            for _ in range(steps):
                k1 = f(y)
                k2 = f(y + h / 2 * k1)
                k3 = f(y + h / 2 * k2)
                k4 = f(y + h * k3)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return (y * y).mean()

        return loss

    return program, ((seeded(64, 64) / 8, seeded(64, 64, seed=1) / 8), seeded(16, 64))


def residual(blocks: int) -> tuple[Program, tuple[Any, ...]]:
    """A residual network: two convolutions a block, each with a norm over the batch."""

    def program(side: Side) -> Callable[..., Any]:
        np, relu = side.np, side.lib.nn.relu

        def layer(x: Any, w: Any) -> Any:
            y = side.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return (y - np.mean(y, (0, 1, 2))) * side.lax.rsqrt(np.var(y, (0, 1, 2)) + 1e-5)

        def loss(weights: Any, x: Any) -> Any:
            for first, second in weights:
                x = relu(x + layer(relu(layer(x, first)), second))
            return (x * x).mean()

        return loss

    weights = [(seeded(3, 3, 16, 16, seed=i) / 12, seeded(3, 3, 16, 16, seed=blocks + i) / 12) for i in range(blocks)]
    return program, (weights, seeded(4, 16, 16, 16))


def adam_step(blocks: int) -> tuple[Program, tuple[Any, ...]]:
    """The transformer's parameters and moments after one step of Adam, with the loss."""
    model, (weights, x) = transformer(blocks)

    def program(side: Side) -> Callable[..., Any]:
        gradient = side.lib.value_and_grad(model(side))
        map_trees = side.lib.tree.map

        def step(params: Any, first: Any, second: Any, x: Any) -> Any:
            loss, g = gradient(params, x)
            first = map_trees(lambda m, g: 0.9 * m + 0.1 * g, first, g)
            second = map_trees(lambda v, g: 0.999 * v + 0.001 * g * g, second, g)
            move = lambda p, m, v: p - 1e-3 * m / (side.np.sqrt(v) + 1e-8)
            return loss, map_trees(move, params, first, second), first, second

        return step

    zeros = [{name: np.zeros_like(w) for name, w in block.items()} for block in weights]
    return program, (weights, zeros, zeros, x)


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
    """Seconds of processor time to compile, milliseconds of a call, and bytes of temporary memory, of both sides.

    The loss is compiled with its gradient, a step of training as it is.
    """
    program, data = CASES[title]
    compiling: tuple[list[float], list[float]] = ([], [])
    built: list[Any] = [None, None]
    for _ in range(rounds):
        for i, side in enumerate((OURS, THEIRS)):
            side.lib.clear_caches()
            f = renewed(program(side))
            lowered = side.lib.jit(f if title in STEPS else side.lib.value_and_grad(f)).lower(*on(side, data))
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
    "transformer of 12 blocks with Adam": adam_step(12),
    "LSTM of 40 steps": recurrent(40, 4, lstm),
    "RNN of 60 steps": recurrent(60, 1, elementary),
    "Runge-Kutta of 20 steps": runge_kutta(20),
    "residual network of 12 blocks": residual(12),
    "scan of 8 convolutions": convolutions_in_scan(),
    "MLP of 16 different layers": narrowing(16),
}
STEPS = ("transformer of 12 blocks with Adam",)
UNITS = {"compile": "s", "run": "ms", "temporary memory": "bytes"}


def row(title: str, what: str, bar: float, aim: float | None = None) -> Row:
    def measure(plan: Plan) -> Pair:
        return Pair(*figures(title, 1 if "48" in title or plan.quick else 3)[what])

    differentiated = "" if title in STEPS else "value and gradient, "
    return Row(f"{what}: {differentiated}{title}", bar, measure, aim, unit=UNITS[what])


ROWS = [
    *[
        row(f"transformer of {n} blocks", "compile", bar, aim)
        for n, bar, aim in ((6, 0.8, 0.5), (12, 0.4, 0.25), (24, 0.15, 0.08), (48, 0.08, 0.04))
    ],
    row("transformer of 24 blocks", "run", 1.0, 0.9),
    row("transformer of 24 blocks", "temporary memory", 1.02, 0.5),
    row("LSTM of 40 steps", "compile", 0.25, 0.15),
    row("LSTM of 40 steps", "run", 0.6, 0.4),
    row("transformer of 12 blocks with Adam", "compile", 0.4, 0.25),
    row("residual network of 12 blocks", "compile", 0.9, 0.6),
    row("residual network of 12 blocks", "run", 1.03, 0.9),
    *[row(title, what, 1.03, 1.0) for title in ("RNN of 60 steps", "Runge-Kutta of 20 steps") for what in UNITS],
    row("scan of 8 convolutions", "run", 0.15, 0.05),
    row("MLP of 16 different layers", "compile", 1.02, 1.0),
]
