"""The derivative of a fixed point by the implicit function theorem, with jvp and vjp, and not through the loop."""

import handlax.numpy as jnp
from handlax import jacfwd, jacrev, jit, jvp, vjp


def contraction(z, theta):
    return 0.4 * jnp.tanh(theta @ z) + jnp.cos(jnp.arange(3.0))


def fixed_point(theta, rounds=30):
    z = jnp.zeros(3)
    for _ in range(rounds):
        z = contraction(z, theta)
    return z


@jit
def forward(theta, dtheta):
    z = fixed_point(theta)
    _, b = jvp(lambda t: contraction(z, t), (theta,), (dtheta,))
    dz = jnp.zeros(3)
    for _ in range(30):
        dz = jvp(lambda z: contraction(z, theta), (z,), (dz,))[1] + b
    return dz


@jit
def reverse(theta, ct):
    z = fixed_point(theta)
    _, pull_z = vjp(lambda z: contraction(z, theta), z)
    _, pull_theta = vjp(lambda t: contraction(z, t), theta)
    w = ct
    for _ in range(30):
        w = ct + pull_z(w)[0]
    return pull_theta(w)[0]


def main():
    theta = jnp.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]])
    direction, ct = jnp.outer(jnp.arange(3.0), jnp.ones(3)), jnp.array([1.0, -1.0, 2.0])
    unrolled = jacfwd(fixed_point)(theta)
    return {
        "z": fixed_point(theta),
        "forward": forward(theta, direction),
        "forward_unrolled": jnp.tensordot(unrolled, direction, axes=2),
        "reverse": reverse(theta, ct),
        "reverse_unrolled": jnp.tensordot(ct, jacrev(fixed_point)(theta), axes=1),
    }


RTOL = 5e-5
