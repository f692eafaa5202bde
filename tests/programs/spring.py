"""A chain of springs follows the equations that grad derives from its Hamiltonian, by leapfrog steps."""

import handlax.numpy as jnp
from handlax import grad, jit


def energy(position, momentum):
    stretch = jnp.diff(position, prepend=0.0, append=0.0)
    return 0.5 * jnp.sum(momentum**2) + 0.5 * jnp.sum(stretch**2) + 0.05 * jnp.sum(stretch**4)


force = grad(lambda q, p: -energy(q, p), argnums=0)
velocity = grad(energy, argnums=1)


@jit
def leapfrog(q, p, dt):
    p = p + 0.5 * dt * force(q, p)
    q = q + dt * velocity(q, p)
    return q, p + 0.5 * dt * force(q, p)


def main():
    q, p = jnp.sin(jnp.linspace(0.3, 2.8, 6)), jnp.zeros(6)
    trajectory, energies = [q], [energy(q, p)]
    for _ in range(20):
        q, p = leapfrog(q, p, 0.1)
        trajectory.append(q)
        energies.append(energy(q, p))
    return {"trajectory": jnp.stack(trajectory), "momentum": p, "energies": jnp.array(energies)}
