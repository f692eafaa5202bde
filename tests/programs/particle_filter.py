"""A particle filter: a scan whose steps resample by ``cond``, keys handed on as part of the carry."""

import handlax.numpy as jnp
from handlax import jit, lax, nn, random

COUNT = 40


def resampled(key, particles, log_weights):
    steps = (jnp.arange(COUNT) + random.uniform(key)) / COUNT
    places = jnp.searchsorted(jnp.cumsum(nn.softmax(log_weights)), steps)
    return particles[jnp.minimum(places, COUNT - 1)], jnp.zeros(COUNT)


@jit
def run(key, seen):
    def step(state, y):
        key, particles, log_weights, total = state
        key, a, b = random.split(key, 3)
        particles = 0.9 * particles + 0.4 * random.normal(a, (COUNT,))
        log_weights = log_weights - 0.5 * ((y - particles) / 0.3) ** 2
        total = total + nn.logsumexp(log_weights) - jnp.log(COUNT)
        weights = nn.softmax(log_weights)
        effective = 1 / jnp.sum(weights**2)
        mean = jnp.sum(weights * particles)
        poor = effective < COUNT / 2
        particles, log_weights = lax.cond(
            poor, lambda: resampled(b, particles, log_weights), lambda: (particles, log_weights - jnp.max(log_weights))
        )
        return (key, particles, log_weights, total), (mean, effective, poor)

    (_, _, _, total), path = lax.scan(step, (key, jnp.zeros(COUNT), jnp.zeros(COUNT), 0.0), seen)
    return total, path


def main():
    seen = jnp.cos(0.3 * jnp.arange(15))
    total, (means, effective, poor) = run(random.key(5), seen)
    return {"total": total, "means": means, "effective": effective, "poor": poor}


RTOL = 1e-3
