"""``programs_libraries.py equinox``: seconds of the first training step and of later ones of a model, and losses.

Run as it is with JAX, and by ``python -m handlax.as_jax`` with handlax in its place.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

Step = Callable[..., tuple[Any, Any, Any]]
WIDTH, DEPTH, ROWS, STEPS = 128, 4, 256, 200


def equinox_step() -> tuple[Step, Any, Any]:
    """A step of an Equinox perceptron with Adam, its model and the optimiser's state."""
    model = eqx.nn.MLP(8, 1, WIDTH, DEPTH, activation=jax.nn.gelu, key=jax.random.key(0))
    optimiser = optax.adam(1e-3)

    @eqx.filter_value_and_grad
    def loss(model, x):
        return jnp.mean((jax.vmap(model)(x) - x.sum(1, keepdims=True)) ** 2)

    @eqx.filter_jit
    def step(model, state, x):
        value, slopes = loss(model, x)
        updates, state = optimiser.update(slopes, state, model)
        return eqx.apply_updates(model, updates), state, value

    return step, model, optimiser.init(eqx.filter(model, eqx.is_array))


def flax_step() -> tuple[Step, Any, Any]:
    """A step of a Flax network of dense layers, normalised, with Adam, its parameters and the optimiser's state."""
    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(DEPTH):
                x = nn.gelu(nn.Dense(WIDTH)(nn.LayerNorm()(x)))
            return nn.Dense(1)(x)

    network, optimiser = Network(), optax.adam(1e-3)
    params = network.init(jax.random.key(0), jnp.zeros((1, 8)))

    @jax.jit
    def step(params, state, x):
        loss = lambda params: jnp.mean((network.apply(params, x) - x.sum(1, keepdims=True)) ** 2)
        value, slopes = jax.value_and_grad(loss)(params)
        updates, state = optimiser.update(slopes, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, params, optimiser.init(params)


def main(library: str) -> None:
    step, model, state = {"equinox": equinox_step, "flax": flax_step}[library]()
    x = jax.random.normal(jax.random.key(1), (ROWS, 8))
    losses, seconds = [], []
    for _ in range(1 + STEPS):
        start = time.perf_counter()
        model, state, value = step(model, state, x)
        value.block_until_ready()
        seconds.append(time.perf_counter() - start)
        losses.append(float(value))
    print(json.dumps({"first": seconds[0], "step": statistics.median(seconds[1:]), "losses": losses[:51:25]}))


if __name__ == "__main__":
    main(sys.argv[1])
