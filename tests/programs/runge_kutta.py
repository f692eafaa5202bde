"""The pendulum by the classical Runge-Kutta rule in ``fori_loop``; gradients of its end, and a shooting method."""

import handlax.numpy as jnp
from handlax import grad, jacfwd, jit, lax, vmap


def pendulum(state, length):
    angle, speed = state
    return jnp.stack([speed, -9.81 / length * jnp.sin(angle)])


def rk4(f, state, dt, *args):
    a = f(state, *args)
    b = f(state + 0.5 * dt * a, *args)
    c = f(state + 0.5 * dt * b, *args)
    d = f(state + dt * c, *args)
    return state + dt / 6 * (a + 2 * b + 2 * c + d)


def end(start, length, steps=40, dt=0.02):
    return lax.fori_loop(0, steps, lambda i, state: rk4(pendulum, state, dt, length), start)


@jit
def shoot(target):
    """The first speed with which the angle ends at the target."""

    def miss(speed):
        return end(jnp.stack([jnp.float32(0.2), speed]), 1.0)[0] - target

    return lax.fori_loop(0, 6, lambda i, speed: speed - miss(speed) / grad(miss)(speed), jnp.float32(1.0))


def main():
    start = jnp.array([0.5, 0.0])
    lengths = jnp.array([0.5, 1.0, 2.0])
    speed = shoot(0.4)
    return {
        "ends": jit(vmap(end, in_axes=(None, 0)))(start, lengths),
        "slope": jit(grad(lambda length: jnp.sum(end(start, length))))(1.0),
        "flow": jit(jacfwd(end))(start, 1.0),
        "speed": speed,
        "hit": end(jnp.stack([jnp.float32(0.2), speed]), 1.0),
    }


RTOL = 1e-4
