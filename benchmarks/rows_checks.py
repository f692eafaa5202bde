"""Compiled gradients that look for NaN: by ``checkify`` beside JAX, by ``nan_origin`` beside the gradient alone."""

from __future__ import annotations

import importlib
from typing import Any

from handlax.library import nan_origin

from .jitted import run_time
from .sides import OURS, Side, assert_agree, seeded
from .timing import Row

WEIGHTS = [0.1 * seeded(128, 128, seed=i) for i in range(4)]
X = seeded(256, 128)


def gradient(side: Side) -> Any:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = side.np.tanh(x @ w)
        return side.np.mean(x**2)

    return side.lib.value_and_grad(loss)


def arguments(side: Side) -> list[Any]:
    return side.lib.tree.map(side.array, [WEIGHTS, X])  # type: ignore[no-any-return]


def checked(side: Side) -> tuple[Any, list[Any]]:
    """The gradient with checks for NaN."""
    checkify = importlib.import_module(f"{side.lib.__name__}.experimental.checkify")
    f = checkify.checkify(gradient(side), errors=checkify.nan_checks)
    return side.lib.jit(lambda *args: f(*args)[1]), arguments(side)


def with_origin(side: Side) -> tuple[Any, list[Any]]:
    """The gradient with the origin of NaN, and without it in the place of the other library."""
    f = gradient(OURS)
    g = OURS.lib.jit(nan_origin(f)) if side is OURS else OURS.lib.jit(lambda *args: (None, f(*args)))
    return lambda *args: g(*args)[1], arguments(OURS)


ROWS = [
    Row("compiled gradient with checks for NaN", 1.10, run_time(checked, assert_agree, 5), 1.00),
    Row("compiled gradient with nan_origin, beside the gradient", 1.50, run_time(with_origin, assert_agree, 5), 1.30),
]
