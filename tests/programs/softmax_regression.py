"""Multinomial regression with one-hot targets, label smoothing and momentum."""

import handlax.numpy as jnp
from handlax import jit, nn, random, value_and_grad


def cross_entropy(params, x, labels):
    weights, bias = params
    target = 0.9 * nn.one_hot(labels, 4) + 0.1 / 4
    return -jnp.mean(jnp.sum(target * nn.log_softmax(x @ weights + bias), axis=-1))


@jit
def step(params, speed, x, labels):
    value, slope = value_and_grad(cross_entropy)(params, x, labels)
    speed = tuple(0.9 * s - 0.1 * g for s, g in zip(speed, slope, strict=True))
    return tuple(p + s for p, s in zip(params, speed, strict=True)), speed, value


def main():
    x = random.normal(random.key(13), (24, 5))
    labels = jnp.argmax(x[:, :4] + 0.5 * x[:, 1:], axis=1)
    params = (jnp.zeros((5, 4)), jnp.zeros(4))
    speed = (jnp.zeros((5, 4)), jnp.zeros(4))
    values = []
    for _ in range(15):
        params, speed, value = step(params, speed, x, labels)
        values.append(value)
    guess = jnp.argmax(x @ params[0] + params[1], axis=1)
    return {"values": jnp.stack(values), "weights": params[0], "accuracy": jnp.mean(guess == labels)}
