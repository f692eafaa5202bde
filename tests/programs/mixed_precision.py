"""A forward pass in bfloat16 with float32 master weights and a scaled loss; gradients arrive in float32."""

import handlax.numpy as jnp
from handlax import jit, nn, random, tree, value_and_grad


def half(params):
    return tree.map(lambda p: p.astype(jnp.bfloat16), params)


def scaled_loss(params, x, y, scale):
    first, second = half(params)
    hidden = nn.relu(x.astype(jnp.bfloat16) @ first)
    error = (hidden @ second)[:, 0].astype(jnp.float32) - y
    return scale * jnp.mean(error**2)


@jit
def step(params, x, y):
    value, slope = value_and_grad(scaled_loss)(params, x, y, 128.0)
    return [p - 0.1 * g / 128.0 for p, g in zip(params, slope, strict=True)], value / 128.0


def main():
    a, b, c = random.split(random.key(137), 3)
    x = random.normal(a, (16, 4))
    params = [0.5 * random.normal(b, (4, 8)), 0.5 * random.normal(c, (8, 1))]
    values = []
    for _ in range(5):
        params, value = step(params, x, jnp.sin(x[:, 0]))
        values.append(value)
    same = [p.dtype == jnp.float32 for p in params]
    return {"values": jnp.stack(values), "first": params[0], "second": params[1], "kept": jnp.array(same)}


RTOL = 3e-2
