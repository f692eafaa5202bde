"""The two leading principal axes by power iteration with deflation, and the explained variance."""

import handlax.numpy as jnp
from handlax import jit, random


def leading(matrix, start, rounds=30):
    v = start
    for _ in range(rounds):
        v = matrix @ v
        v = v / jnp.sqrt(jnp.vdot(v, v))
    return v, v @ matrix @ v


@jit
def principal(data):
    centred = data - jnp.mean(data, axis=0)
    cov = centred.T @ centred / (len(data) - 1)
    first, a = leading(cov, jnp.ones(data.shape[1]))
    second, b = leading(cov - a * jnp.outer(first, first), jnp.ones(data.shape[1]))
    return jnp.stack([first, second]), jnp.stack([a, b]) / jnp.trace(cov)


def main():
    data = random.normal(random.key(11), (50, 4)) * jnp.array([3.0, 1.5, 0.5, 0.2]) + jnp.arange(4.0)
    axes, share = principal(data)
    return {"axes": jnp.abs(axes), "share": share, "cov": jnp.cov(data, rowvar=False)}


RTOL = 1e-4
