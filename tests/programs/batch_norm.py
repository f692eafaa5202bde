"""Batch normalisation of one example at a time: the mean over the batch is a pmean over a named axis."""

from functools import partial

import handlax.numpy as jnp
from handlax import grad, jit, lax, random, vmap


def normalise(x, scale, shift):
    mean = lax.pmean(x, axis_name="batch")
    variance = lax.pmean(x**2, axis_name="batch") - mean**2
    return scale * (x - mean) / jnp.sqrt(variance + 1e-3) + shift


@partial(vmap, in_axes=(0, None, None), out_axes=0, axis_name="batch")
def network(x, scale, shift):
    return normalise(jnp.tanh(normalise(x, scale, shift)), scale[::-1], shift)


@partial(vmap, in_axes=0, out_axes=None, axis_name="batch")
def extremes(x):
    return {"most": lax.pmax(x, "batch"), "least": lax.pmin(x, "batch"), "total": lax.psum(x, "batch")}


def main():
    x = 2.0 * random.normal(random.key(47), (6, 3)) + 1.0
    scale, shift = jnp.array([1.0, 2.0, 0.5]), jnp.array([0.0, 0.1, -0.1])
    slope = jit(grad(lambda x, s: jnp.sum(network(x, s, shift) ** 3), argnums=(0, 1)))(x, scale)
    return {"out": jit(network)(x, scale, shift), "slope_x": slope[0], "slope_scale": slope[1], **extremes(x)}


RTOL = 1e-4
