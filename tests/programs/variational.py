"""Variational inference by the reparametrisation trick: a diagonal normal fitted to a banana-shaped density."""

import handlax.numpy as jnp
from handlax import jit, random, value_and_grad, vmap


def log_target(z):
    x, y = z
    return -0.5 * (x / 1.5) ** 2 - 2.0 * (y - 0.3 * x**2) ** 2


def negative_bound(params, key, draws=32):
    mean, log_scale = params
    noise = random.normal(key, (draws, 2))
    samples = mean + jnp.exp(log_scale) * noise
    return -jnp.mean(vmap(log_target)(samples)) - jnp.sum(log_scale)


@jit
def step(params, key):
    value, slope = value_and_grad(negative_bound)(params, key)
    return tuple(p - 0.05 * g for p, g in zip(params, slope, strict=True)), value


def main():
    params = (jnp.zeros(2), jnp.full(2, -1.0))
    values = []
    for key in random.split(random.key(127), 25):
        params, value = step(params, key)
        values.append(value)
    return {"values": jnp.stack(values), "mean": params[0], "scale": jnp.exp(params[1])}
