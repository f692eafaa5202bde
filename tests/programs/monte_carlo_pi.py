"""Pi from random points in a square, over independent streams, with the standard error."""

import handlax.numpy as jnp
from handlax import jit, random, vmap


def estimate(key, points=500):
    x, y = random.uniform(key, (2, points), minval=-1.0, maxval=1.0)
    return 4.0 * jnp.mean(x * x + y * y <= 1.0)


def main():
    key = random.key(31)
    streams = vmap(lambda i: random.fold_in(key, i))(jnp.arange(16))
    estimates = jit(vmap(estimate))(streams)
    error = jnp.std(estimates, ddof=1) / jnp.sqrt(16.0)
    return {"estimates": estimates, "mean": estimates.mean(), "error": error}
