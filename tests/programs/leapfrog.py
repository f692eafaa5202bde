"""Hamiltonian Monte Carlo: leapfrog steps in ``fori_loop``, acceptance in a scan, chains in lanes."""

from functools import partial

import handlax.numpy as jnp
from handlax import grad, jit, lax, random, vmap


def energy(q):
    """A banana."""
    return 0.5 * q[0] ** 2 + 2.0 * (q[1] - q[0] ** 2) ** 2


def leapfrog(q, p, steps=8, dt=0.12):
    slope = grad(energy)

    def step(i, state):
        q, p = state
        p = p - 0.5 * dt * slope(q)
        q = q + dt * p
        return q, p - 0.5 * dt * slope(q)

    return lax.fori_loop(0, steps, step, (q, p))


def transition(q, key):
    a, b = random.split(key)
    p = random.normal(a, q.shape)
    moved, end = leapfrog(q, p)
    before, after = energy(q) + 0.5 * jnp.sum(p**2), energy(moved) + 0.5 * jnp.sum(end**2)
    accept = jnp.log(random.uniform(b)) < before - after
    return jnp.where(accept, moved, q), (jnp.where(accept, moved, q), accept, after - before)


@partial(jit, static_argnums=2)
def chain(key, start, length):
    return lax.scan(transition, start, random.split(key, length))[1]


def main():
    keys = random.split(random.key(23), 3)
    starts = jnp.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]])
    samples, accepted, drift = vmap(lambda key, q: chain(key, q, 10))(keys, starts)
    q, p = leapfrog(starts[1], jnp.array([0.3, -0.2]))
    back, _ = leapfrog(q, -p)
    return {"samples": samples, "accepted": accepted, "drift": drift, "reversed": back}


RTOL = 2e-3
