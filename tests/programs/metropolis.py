"""A Metropolis sampler runs several chains side by side on a bimodal density."""

import handlax.numpy as jnp
from handlax import jit, random, vmap


def log_density(x):
    return jnp.logaddexp(-0.5 * jnp.sum((x - 1.5) ** 2), -0.5 * jnp.sum((x + 1.5) ** 2))


def step(key, x, width=1.0):
    propose, decide = random.split(key)
    candidate = x + width * random.normal(propose, x.shape)
    accept = jnp.log(random.uniform(decide)) < log_density(candidate) - log_density(x)
    return jnp.where(accept, candidate, x), accept


def main():
    chains = 8
    advance = jit(vmap(step))
    x, key = jnp.zeros((chains, 2)), random.key(83)
    samples, accepted = [], []
    for _ in range(30):
        key, now = random.split(key)
        x, accept = advance(random.split(now, chains), x)
        samples.append(x)
        accepted.append(accept)
    samples = jnp.stack(samples)
    return {"last": x, "mean": samples.mean(axis=(0, 1)), "rate": jnp.mean(jnp.array(accepted), axis=0)}


RTOL = 1e-4
