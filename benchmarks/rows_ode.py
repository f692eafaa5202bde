"""Differential equations: the first call of the gradient of a solution, which traces and compiles, and later calls."""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .jitted import run_time
from .sides import Side, assert_agree, seeded
from .timing import Prepare, Row, timed

_constants = itertools.count(1)
TIMES = np.linspace(0, 2, 10, dtype=np.float32)


def oscillator(side: Side, constant: float) -> Callable[..., Any]:
    """Van der Pol's equation."""
    return lambda y, t, mu: side.np.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - (1 + constant) * y[0]])


def network(side: Side, constant: float) -> Callable[..., Any]:
    """A slope that is a layer of 16 units."""
    return lambda y, t, p: side.np.tanh(y @ p[0]) @ p[1] - constant * t * y


EQUATIONS: dict[str, tuple[Callable[[Side, float], Callable[..., Any]], tuple[Any, ...]]] = {
    "an oscillator": (oscillator, (np.float32(1.5), seeded(2))),
    "a network": (network, ((seeded(8, 16) - 0.5, seeded(16, 8) - 0.5), seeded(8))),
}


def gradient(name: str, side: Side, constant: float) -> tuple[Any, list[Any]]:
    """The jitted gradient by the parameters of the sum of squares of a solution, and its arguments."""
    make, data = EQUATIONS[name]
    f, solve = make(side, constant), importlib.import_module(f"{side.lib.__name__}.experimental.ode").odeint

    def loss(p: Any, y: Any, t: Any) -> Any:
        return side.np.sum(solve(f, y, t, p, rtol=1e-5, atol=1e-5) ** 2)

    return side.lib.jit(side.lib.grad(loss)), side.lib.tree.map(side.array, [*data, TIMES])


def first_call(name: str) -> Callable[[Side], Prepare]:
    """Each call has a new constant, so that caches of equal programs miss."""

    def prepared(side: Side) -> Prepare:
        def prepare() -> Callable[[], Any]:
            f, args = gradient(name, side, 0.1 + 1e-6 * next(_constants))
            return lambda: side.ready(f(*args))

        return prepare

    return prepared


_agree = functools.partial(assert_agree, rtol=1e-2)
ROWS = [
    *[Row(f"first call of grad of odeint, {name}", 1.00, timed(first_call(name), check=_agree, cold=True))
      for name in EQUATIONS],
    *[Row(f"compiled gradient of odeint, {name}", 1.05,
          run_time(functools.partial(lambda name, side: gradient(name, side, 0.1), name), _agree, 3))
      for name in EQUATIONS],
]
