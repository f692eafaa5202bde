"""Kinematics of a planar arm: its Jacobian both ways, manipulability, and inverse kinematics by the transpose."""

import handlax.numpy as jnp
from handlax import jacfwd, jacrev, jit, vmap

LENGTHS = (1.0, 0.8, 0.5)


def tip(angles):
    total = jnp.cumsum(angles)
    lengths = jnp.array(LENGTHS)
    return jnp.array([jnp.sum(lengths * jnp.cos(total)), jnp.sum(lengths * jnp.sin(total))])


def manipulability(angles):
    jacobian = jacfwd(tip)(angles)
    (a, b), (c, d) = jacobian @ jacobian.T
    return jnp.sqrt(a * d - b * c)


@jit
def reach(angles, goal):
    for _ in range(10):
        angles = angles + 0.2 * jacrev(tip)(angles).T @ (goal - tip(angles))
    return angles


def main():
    poses = jnp.array([[0.1, 0.2, 0.3], [1.0, -0.5, 0.25], [-0.7, 0.9, 1.4]])
    goals = jnp.array([[1.5, 0.5], [0.5, 1.5], [1.0, 1.0]])
    return {
        "tips": vmap(tip)(poses),
        "forward": vmap(jacfwd(tip))(poses),
        "reverse": vmap(jacrev(tip))(poses),
        "manipulability": jit(vmap(manipulability))(poses),
        "reached": vmap(reach)(poses, goals),
        "bending": jacfwd(jacrev(tip))(poses[1]),
    }
