"""The wave equation on a string: finite differences, and the gradient of what a far sensor hears in the first shape."""

import handlax.numpy as jnp
from handlax import jit, jvp, value_and_grad


def evolve(u, speed, steps=24, dt=0.4):
    factor = (speed * dt) ** 2

    def bend(u):
        inner = u[2:] - 2.0 * u[1:-1] + u[:-2]
        return jnp.concatenate([jnp.zeros(1), inner, jnp.zeros(1)])

    before, now = u, u + 0.5 * factor * bend(u)
    heard = []
    for _ in range(steps):
        before, now = now, 2.0 * now - before + factor * bend(now)
        heard.append(now[-4])
    return now, jnp.stack(heard)


def main():
    x = jnp.linspace(0.0, 1.0, 24)
    first = jnp.exp(-200.0 * (x - 0.3) ** 2) * (x > 0) * (x < 1)
    final, heard = jit(evolve)(first, 1.0)
    loudness, slope = jit(value_and_grad(lambda u: jnp.sum(evolve(u, 1.0)[1] ** 2)))(first)
    _, by_speed = jvp(lambda c: evolve(first, c)[0], (1.0,), (1.0,))
    return {"final": final, "heard": heard, "loudness": loudness, "slope": slope, "by_speed": by_speed}


RTOL = 1e-4
