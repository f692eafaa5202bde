"""Train a small network on handwritten digits; killed at any moment and started again, its loss is the same.

    python examples/resumed_training.py [FOLDER]

What a step depends on is its number and the state: parameters, and the optimiser's averages. The number says which
batch comes next. Every few steps the state is saved by a thread, while the next steps are computed; another thread
makes the next batches.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import handlax as hx
from handlax import nn, random
from handlax import numpy as hnp
from handlax.checkpoints import CheckpointManager
from handlax.data import Batches
from handlax.example_libraries import optimizers

EPOCHS, BATCH, EVERY = 8, 64, 10
SIZES = (64, 32, 10)
init, update, params_of = optimizers.adam(1e-2)


class State(NamedTuple):
    optimiser: Any
    loss: Any


def initial() -> State:
    keys = random.split(random.key(0), len(SIZES) - 1)
    weights = [(random.normal(k, (n, m)) / n**0.5, hnp.zeros(m)) for k, n, m in zip(keys, SIZES, SIZES[1:])]
    return State(init(weights), hnp.float32(0))


def batches() -> Batches:
    images, labels = load_digits(return_X_y=True)
    data = {"image": (images / 16).astype(np.float32), "label": labels.astype(np.int32)}
    return Batches(data, BATCH, key=random.key(1), epochs=EPOCHS)


def loss(weights: Any, batch: Any) -> Any:
    """Mean cross entropy."""
    (w, b), (v, c) = weights
    scores = nn.log_softmax(nn.relu(batch["image"] @ w + b) @ v + c)
    return -hnp.mean(hnp.take_along_axis(scores, batch["label"][:, None], axis=1))


@partial(hx.jit, donate_argnums=1)
def train(step: Any, state: State, batch: Any) -> State:
    value, gradient = hx.value_and_grad(loss)(params_of(state.optimiser), batch)
    return State(update(step, gradient, state.optimiser), value)


def main(folder: str) -> None:
    with CheckpointManager(folder, keep=2) as manager:
        start, state = manager.resume(0, initial())
        print(f"from step {start}", flush=True)
        for step, batch in enumerate(hx.prefetch(batches()[start:]), start):
            state = train(step, state, batch)
            if (step + 1) % EVERY == 0:
                manager.save(step + 1, state, loss=state.loss)
    print(f"loss {float(state.loss).hex()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "checkpoints")
