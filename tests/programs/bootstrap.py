"""Bootstrap intervals of a mean, a median and a correlation; each resample has its own key."""

from functools import partial

import handlax.numpy as jnp
from handlax import jit, random, vmap


def correlation(pairs):
    x, y = (pairs - pairs.mean(axis=0)).T
    return jnp.sum(x * y) / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


@partial(jit, static_argnums=(0, 3))
def resampled(statistic, key, data, times):
    def once(key):
        chosen = random.randint(key, (len(data),), 0, len(data))
        return statistic(data[chosen])

    return vmap(once)(random.split(key, times))


def main():
    noise = random.normal(random.key(71), (30, 2))
    data = noise @ jnp.array([[1.0, 0.8], [0.0, 0.6]])
    levels = jnp.array([2.5, 50.0, 97.5])
    key = random.key(72)
    return {
        "mean": jnp.percentile(resampled(partial(jnp.mean, axis=0), key, data, 64), levels, axis=0),
        "median": jnp.percentile(resampled(partial(jnp.median, axis=0), key, data, 64), levels, axis=0),
        "correlation": jnp.percentile(resampled(correlation, key, data, 64), levels),
        "shuffled": correlation(jnp.stack([random.permutation(key, data[:, 0]), data[:, 1]], axis=1)),
    }


RTOL = 1e-4
