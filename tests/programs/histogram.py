"""Counting and summing by segment with .at[].add, its relatives min, max, multiply, and the gradient of each."""

import handlax.numpy as jnp
from handlax import grad, jit, random


def histogram(x, edges):
    place = jnp.searchsorted(edges, x, side="right") - 1
    return jnp.zeros(edges.size - 1, dtype=jnp.int32).at[place].add(1, mode="drop")


def segment_sum(values, segments, count):
    return jnp.zeros((count, *values.shape[1:]), values.dtype).at[segments].add(values)


def segment_max(values, segments, count):
    return jnp.full((count, *values.shape[1:]), -jnp.inf, values.dtype).at[segments].max(values)


def main():
    x = random.normal(random.key(67), (40,))
    edges = jnp.linspace(-2.0, 2.0, 9)
    values = random.normal(random.key(68), (10, 3))
    segments = jnp.array([0, 2, 2, 1, 0, 3, 3, 3, 1, 0])
    sums = jit(segment_sum, static_argnums=2)(values, segments, 5)
    return {
        "histogram": jit(histogram)(x, edges),
        "sums": sums,
        "counts": jnp.bincount(segments, length=5),
        "largest": segment_max(values, segments, 4),
        "least": jnp.full((4, 3), 9.0).at[segments].min(values),
        "product": jnp.ones(4).at[segments].multiply(values[:, 0]),
        "slope": grad(lambda v: jnp.sum(segment_sum(v, segments, 4) ** 2))(values),
        "slope_max": grad(lambda v: jnp.sum(segment_max(v, segments, 4) ** 2))(values),
    }
