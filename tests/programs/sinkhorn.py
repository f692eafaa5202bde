"""Entropic optimal transport by Sinkhorn iterations in the log domain, and its gradient in the points."""

import handlax.numpy as jnp
from handlax import jit, nn, random, value_and_grad


def plan(x, y, epsilon=0.3, rounds=15):
    cost = jnp.sum((x[:, None] - y[None, :]) ** 2, axis=-1)
    f, g = jnp.zeros(len(x)), jnp.zeros(len(y))
    log_a, log_b = -jnp.log(float(len(x))), -jnp.log(float(len(y)))
    for _ in range(rounds):
        f = epsilon * log_a - epsilon * nn.logsumexp((g[None, :] - cost) / epsilon, axis=1)
        g = epsilon * log_b - epsilon * nn.logsumexp((f[:, None] - cost) / epsilon, axis=0)
    return jnp.exp((f[:, None] + g[None, :] - cost) / epsilon), cost


def distance(x, y):
    transport, cost = plan(x, y)
    return jnp.sum(transport * cost)


def main():
    a, b = random.split(random.key(113))
    x, y = random.uniform(a, (6, 2)), random.uniform(b, (5, 2)) + 0.3
    value, slope = jit(value_and_grad(distance))(x, y)
    transport, _ = plan(x, y)
    return {"value": value, "slope": slope, "transport": transport, "marginal": transport.sum(axis=0)}


RTOL = 1e-4
