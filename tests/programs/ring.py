"""Messages around a ring of lanes: a rotating matrix product and an all-reduce in n - 1 hops."""

from functools import partial

import handlax.numpy as jnp
from handlax import grad, lax, random, vmap

LANES = 4
TURN = [(i, (i + 1) % LANES) for i in range(LANES)]


@partial(vmap, axis_name="ring")
def ring_sum(x):
    total = held = x
    for _ in range(LANES - 1):
        held = lax.ppermute(held, "ring", TURN)
        total = total + held
    return total


@partial(vmap, axis_name="ring")
def rotating_product(rows, block):
    me = lax.axis_index("ring")
    size = block.shape[0]
    out = jnp.zeros((rows.shape[0], block.shape[1]))
    for hop in range(LANES):
        owner = (me - hop) % LANES
        out = out + lax.dynamic_slice_in_dim(rows, owner * size, size, axis=1) @ block
        block = lax.ppermute(block, "ring", TURN)
    return out


@partial(vmap, axis_name="ring")
def gathered(x):
    return lax.all_gather(x, "ring") * (1 + lax.axis_index("ring"))


def main():
    a, b = random.split(random.key(53))
    left, right = random.normal(a, (8, 8)), random.normal(b, (8, 3))
    product = rotating_product(left.reshape(LANES, 2, 8), right.reshape(LANES, 2, 3))
    x = jnp.arange(8.0).reshape(LANES, 2)
    shifted = vmap(lambda x: lax.ppermute(x, "ring", [(0, 2), (1, 0), (2, 1), (3, 3)]), axis_name="ring")(x)
    slope = grad(lambda x: jnp.sum(jnp.sin(ring_sum(x))[1]))(x)
    return {
        "sum": ring_sum(x),
        "product": product.reshape(8, 3),
        "direct": left @ right,
        "gathered": gathered(x),
        "shifted": shifted,
        "slope": slope,
    }
