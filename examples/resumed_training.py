"""Train a small network, which may be killed at any moment: started again, it goes on, and its loss is the same.

    python examples/resumed_training.py [FOLDER]

What a step depends on is its number and the state: parameters, the optimiser's averages, a random key. Every few steps
the state is saved by a thread, while the next steps are computed.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import handlax as hx
from handlax import numpy as hnp
from handlax import random
from handlax.checkpoints import CheckpointManager
from handlax.example_libraries import optimizers

STEPS, EVERY, BATCH = 200, 10, 32
SIZES = (2, 32, 1)
init, update, params_of = optimizers.adam(1e-2)


class State(NamedTuple):
    optimiser: Any
    key: Any
    loss: Any


def initial() -> State:
    key, *keys = random.split(random.key(0), len(SIZES))
    weights = [(random.normal(k, (n, m)) / n**0.5, hnp.zeros(m)) for k, n, m in zip(keys, SIZES, SIZES[1:])]
    return State(init(weights), key, hnp.float32(0))


def loss(weights: Any, x: Any) -> Any:
    """The squared error of a network that learns a ring."""
    (w, b), (v, c) = weights
    prediction = hnp.tanh(x @ w + b) @ v + c
    return hnp.mean((prediction[:, 0] - hnp.cos(3 * hnp.linalg.norm(x, axis=1))) ** 2)


@hx.jit
def train(step: Any, state: State) -> State:
    key, batch_key = random.split(state.key)
    x = random.uniform(batch_key, (BATCH, 2), minval=-1)
    value, gradient = hx.value_and_grad(loss)(params_of(state.optimiser), x)
    return State(update(step, gradient, state.optimiser), key, value)


def main(folder: str) -> None:
    with CheckpointManager(folder, keep=2) as manager:
        start, state = manager.resume(0, initial())
        print(f"from step {start}", flush=True)
        for step in range(start, STEPS):
            state = train(step, state)
            if (step + 1) % EVERY == 0:
                manager.save(step + 1, state, loss=state.loss)
    print(f"loss {float(state.loss).hex()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "checkpoints")
