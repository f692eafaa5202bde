"""Predators and prey by the midpoint rule; jvp carries the sensitivity in each parameter along the path."""

import handlax.numpy as jnp
from handlax import jit, jvp, vmap


def rate(state, theta):
    prey, predator = state
    a, b, c, d = theta
    return jnp.stack([a * prey - b * prey * predator, c * prey * predator - d * predator])


def solve(theta, steps=25, dt=0.1):
    state = jnp.array([1.0, 0.5])
    path = [state]
    for _ in range(steps):
        middle = state + 0.5 * dt * rate(state, theta)
        state = state + dt * rate(middle, theta)
        path.append(state)
    return jnp.stack(path)


def main():
    theta = jnp.array([1.1, 0.4, 0.3, 0.6])
    path, sensitivity = jit(vmap(lambda v: jvp(solve, (theta,), (v,)), out_axes=(None, 0)))(jnp.eye(4))
    step = 1e-2 * jnp.array([1.0, 0.0, 0.0, 0.0])
    return {
        "path": path,
        "sensitivity": sensitivity,
        "close": jnp.max(jnp.abs((solve(theta + step) - solve(theta - step)) / 2e-2 - sensitivity[0])) < 5e-2,
    }
