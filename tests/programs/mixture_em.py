"""Expectation maximisation for a mixture of Gaussians on a line; the likelihood never falls."""

import handlax.numpy as jnp
from handlax import jit, nn, random


def log_joint(x, weights, means, deviations):
    z = (x[:, None] - means) / deviations
    return jnp.log(weights) - 0.5 * z**2 - jnp.log(deviations) - 0.5 * jnp.log(2 * jnp.pi)


@jit
def round_(x, weights, means, deviations):
    joint = log_joint(x, weights, means, deviations)
    likelihood = nn.logsumexp(joint, axis=1).sum()
    share = nn.softmax(joint, axis=1)
    mass = share.sum(axis=0)
    means = share.T @ x / mass
    deviations = jnp.sqrt(jnp.sum(share * (x[:, None] - means) ** 2, axis=0) / mass + 1e-4)
    return (mass / x.size, means, deviations), likelihood


def main():
    noise = random.normal(random.key(41), (60,))
    x = jnp.concatenate([-2.0 + 0.5 * noise[:30], 1.0 + noise[30:]])
    state = (jnp.array([0.5, 0.5]), jnp.array([-1.0, 0.5]), jnp.array([1.0, 1.0]))
    history = []
    for _ in range(8):
        state, likelihood = round_(x, *state)
        history.append(likelihood)
    history = jnp.stack(history)
    return {
        "history": history,
        "rising": jnp.all(jnp.diff(history) > 0),
        "weights": state[0],
        "means": state[1],
        "deviations": state[2],
    }


RTOL = 1e-4
