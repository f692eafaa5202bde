"""Adam written over pytrees, with its state as a named tuple."""

from typing import Any, NamedTuple

import handlax
import handlax.numpy as jnp
from handlax import tree


class State(NamedTuple):
    count: Any
    mean: Any
    square: Any


def start(params):
    zeros = tree.map(jnp.zeros_like, params)
    return State(jnp.zeros((), jnp.int32), zeros, zeros)


def update(slope, state, rate=0.05, b1=0.9, b2=0.99, eps=1e-6):
    count = state.count + 1
    mean = tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mean, slope)
    square = tree.map(lambda s, g: b2 * s + (1 - b2) * g * g, state.square, slope)
    c1, c2 = 1 - b1**count, 1 - b2**count
    move = tree.map(lambda m, s: -rate * (m / c1) / (jnp.sqrt(s / c2) + eps), mean, square)
    return move, State(count, mean, square)


def objective(params):
    a, (b, c) = params["a"], params["rest"]
    return jnp.sum((a - 1.0) ** 2) + jnp.sum(jnp.cosh(b)) + (c * a[0] - 2.0) ** 2


@handlax.jit
def step(params, state):
    value, slope = handlax.value_and_grad(objective)(params)
    move, state = update(slope, state)
    return tree.map(jnp.add, params, move), state, value


def main():
    params = {"a": jnp.array([0.5, 3.0]), "rest": [jnp.array([[1.0, -1.0]]), jnp.array(0.1)]}
    state = start(params)
    values = []
    for _ in range(20):
        params, state, value = step(params, state)
        values.append(value)
    return {"values": jnp.stack(values), "count": state.count, "a": params["a"], "b": params["rest"][0]}
