"""Programs with loops and branches that are measured, each written once over ``np`` and ``lax`` of either library.

Each has a constant in its innermost body that may be another one: then no cache has seen that body, by whatever key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

Program = Callable[..., Any]
STEPS = 1000


def _normal(*shape: int, seed: int) -> Any:
    return (numpy.random.default_rng(seed).normal(size=shape) / shape[0] ** 0.5).astype("float32")


def recurrent(np: Any, lax: Any, constant: float = 0.5) -> Program:
    """A recurrent network over 1,000 steps."""

    def loss(params, xs):
        def cell(h, x):
            h = np.tanh(x @ params["in"] + h @ params["again"] + params["bias"])
            return h, np.sum(h * h) * constant

        h, ys = lax.scan(cell, params["start"], xs)
        return np.mean(ys) + np.sum(h)

    return loss


def recurrent_data(steps: int = STEPS, width: int = 32, batch: int = 8) -> tuple[Any, Any]:
    params = {
        "in": _normal(16, width, seed=0), "again": _normal(width, width, seed=1),
        "bias": _normal(width, seed=2), "start": numpy.zeros((batch, width), "float32"),
    }
    return params, _normal(steps, batch, 16, seed=3)


def nested(depth: int) -> Callable[[Any, Any], Program]:
    """Scans in scans, with values of every level used inside."""

    def make(np: Any, lax: Any, constant: float = 0.5) -> Program:
        def level(left, weights, outer):
            def step(c, w):
                if left == 1:
                    return np.sin(c * w + outer) * constant, c
                inner, ys = level(left - 1, weights, outer + c * w)(c)
                return inner * 0.5, np.sum(ys, axis=0)

            return lambda c: lax.scan(step, c, weights)

        def loss(c, weights):
            last, ys = level(depth, weights, c)(c)
            return np.sum(last) + np.sum(ys)

        return loss

    return make


def nested_data(steps: int, size: int = 16) -> tuple[Any, Any]:
    return _normal(size, seed=0), _normal(steps, size, seed=1)


def branching(np: Any, lax: Any, constant: float = 0.5) -> Program:
    """A scan whose steps take one of two branches, by a computed predicate."""

    def loss(c, xs):
        def step(c, x):
            y = lax.cond(np.sum(c) > 0.0, lambda c: np.tanh(c @ x), lambda c: c * constant + np.cos(c), c)
            return y, np.sum(y)

        last, ys = lax.scan(step, c, xs)
        return np.sum(last) + np.sum(ys)

    return loss


def branching_data(steps: int = STEPS, size: int = 16) -> tuple[Any, Any]:
    return _normal(size, seed=0), _normal(steps, size, size, seed=1)


def iteration(np: Any, lax: Any, constant: float = 0.5) -> Program:
    """A fixed point by a while loop, for which neither library has reverse mode."""

    def solve(a, b):
        def going(state):
            return (state[0] < 200) & (np.sum(state[2] ** 2) > 1e-12)

        def step(state):
            i, x, _ = state
            new = np.tanh(a @ x) * constant + b
            return i + 1, new, new - x

        return lax.while_loop(going, step, (0, b, b))[1]

    return solve


def iteration_data(size: int = 32) -> tuple[Any, Any]:
    return _normal(size, size, seed=0), _normal(size, seed=1)


def counting(np: Any, lax: Any, constant: float = 0.1) -> Program:
    """A loop over a range of integers that is known at trace time."""

    def loss(x, table):
        def step(i, x):
            return np.sin(x) + table[i] * constant * i

        return np.sum(lax.fori_loop(0, STEPS, step, x))

    return loss


def counting_data(size: int = 32) -> tuple[Any, Any]:
    return _normal(size, seed=0), _normal(STEPS, size, seed=1)


def blocks(np: Any, lax: Any, constant: float = 1e-5, heads: int = 4) -> Program:
    """Transformer blocks with stacked parameters, one after the other by ``scan``."""

    def norm(x):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + constant)

    def attention(p, x):
        batch, length, width = x.shape
        parts = [
            np.transpose(np.reshape(part, (batch, length, heads, width // heads)), (0, 2, 1, 3))
            for part in np.split(norm(x) @ p["qkv"], 3, axis=-1)
        ]
        q, k, v = parts
        scores = q @ np.swapaxes(k, -1, -2) / (width // heads) ** 0.5
        positions = np.arange(length)
        scores = np.where(positions[:, None] >= positions[None, :], scores, -1e9)
        weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        mixed = (weights / np.sum(weights, axis=-1, keepdims=True)) @ v
        return np.reshape(np.transpose(mixed, (0, 2, 1, 3)), (batch, length, width)) @ p["out"]

    def loss(params, x):
        def block(x, p):
            x = x + attention(p, x)
            return x + np.tanh(norm(x) @ p["up"] + p["bias"]) @ p["down"], None

        return np.mean(lax.scan(block, x, params)[0] ** 2)

    return loss


def blocks_data(count: int = 12, width: int = 64, batch: int = 4, length: int = 32) -> tuple[Any, Any]:
    def stacked(rows, columns, seed):
        return numpy.stack([_normal(rows, columns, seed=seed + i) for i in range(count)])

    params = {
        "qkv": stacked(width, 3 * width, 0), "out": stacked(width, width, 100), "up": stacked(width, 4 * width, 200),
        "bias": numpy.zeros((count, 4 * width), "float32"), "down": stacked(4 * width, width, 300),
    }
    return params, _normal(batch, length, width, seed=400)
