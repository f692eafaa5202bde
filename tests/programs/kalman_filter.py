"""A Kalman filter tracks a point with constant velocity, and the likelihood is differentiated in the noise."""

import handlax.numpy as jnp
from handlax import grad, jit, random


def inverse2(m):
    (a, b), (c, d) = m
    return jnp.array([[d, -b], [-c, a]]) / (a * d - b * c)


def step(mean, cov, seen, noise):
    move = jnp.array([[1.0, 0.0, 0.1, 0.0], [0.0, 1.0, 0.0, 0.1], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    look = jnp.eye(2, 4)
    mean, cov = move @ mean, move @ cov @ move.T + 0.01 * jnp.eye(4)
    surprise = seen - look @ mean
    spread = look @ cov @ look.T + noise * jnp.eye(2)
    inverse = inverse2(spread)
    gain = cov @ look.T @ inverse
    fit = -0.5 * (surprise @ inverse @ surprise + jnp.log(spread[0, 0] * spread[1, 1] - spread[0, 1] ** 2))
    return mean + gain @ surprise, (jnp.eye(4) - gain @ look) @ cov, fit


def likelihood(noise, observed):
    mean, cov, total = jnp.zeros(4), jnp.eye(4), 0.0
    for seen in observed:
        mean, cov, fit = step(mean, cov, seen, noise)
        total = total + fit
    return total, (mean, cov)


def main():
    times = jnp.arange(12) * 0.1
    path = jnp.stack([times, 0.5 - times], axis=1)
    observed = path + 0.1 * random.normal(random.key(5), path.shape)
    total, (mean, cov) = jit(likelihood)(0.04, observed)
    slope, _ = jit(grad(likelihood, has_aux=True))(0.04, observed)
    return {"total": total, "mean": mean, "cov": cov, "slope": slope}


RTOL = 1e-4
