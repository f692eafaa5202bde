"""The gradient of each example by vmap of grad, clipped one by one and averaged."""

from functools import partial

import handlax.numpy as jnp
from handlax import grad, jit, nn, random, tree, vmap


def loss(params, x, y):
    hidden = nn.relu(params["in"] @ x + params["bias"])
    return jnp.square(params["out"] @ hidden - y)


@partial(jit, static_argnames="limit")
def clipped(params, xs, ys, limit):
    slopes = vmap(grad(loss), in_axes=(None, 0, 0))(params, xs, ys)
    norms = jnp.sqrt(sum(jnp.sum(g.reshape(len(xs), -1) ** 2, axis=1) for g in tree.leaves(slopes)))
    scale = jnp.minimum(1.0, limit / norms)
    return norms, tree.map(lambda g: jnp.tensordot(scale, g, axes=1) / len(xs), slopes)


def main():
    a, b, c, d = random.split(random.key(21), 4)
    params = {"in": random.normal(a, (5, 3)), "bias": jnp.full(5, 0.1), "out": random.normal(b, (5,))}
    xs, ys = random.normal(c, (9, 3)), random.normal(d, (9,))
    norms, mean = clipped(params, xs, ys, limit=1.5)
    return {"norms": norms, **mean}
