"""Dropout with explicit keys: expected value, one mask per example, and many masks at prediction time."""

import handlax.numpy as jnp
from handlax import grad, jit, random, vmap


def dropout(key, rate, x):
    keep = random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(keep, x / (1.0 - rate), 0.0)


def network(key, weights, x):
    for i, w in enumerate(weights):
        x = jnp.maximum(dropout(random.fold_in(key, i), 0.25, x) @ w, 0.0)
    return x


def main():
    a, b, c = random.split(random.key(107), 3)
    weights = [random.normal(a, (8, 6)), random.normal(b, (6, 3))]
    x = random.normal(c, (5, 8))
    per_example = vmap(network, in_axes=(0, None, 0))(random.split(random.key(108), 5), weights, x)
    many = jit(vmap(lambda k: network(k, weights, x)))(random.split(random.key(109), 32))
    slope = grad(lambda w: jnp.sum(network(a, w, x)))(weights)
    return {
        "per_example": per_example,
        "mean": many.mean(axis=0),
        "deviation": many.std(axis=0),
        "first": slope[0],
        "second": slope[1],
        "kept": jnp.sum(dropout(b, 0.5, jnp.ones(1000)) > 0),
    }
