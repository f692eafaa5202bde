"""A two-layer perceptron learns the sign of a product with plain gradient descent."""

import handlax.numpy as jnp
from handlax import grad, jit, random, value_and_grad


def initial(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (m, n)) * jnp.sqrt(2.0 / m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def forward(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return (x @ last["w"] + last["b"])[:, 0]


def loss(params, x, y):
    return jnp.mean(jnp.log1p(jnp.exp(-y * forward(params, x))))


@jit
def step(params, x, y):
    value, slope = value_and_grad(loss)(params, x, y)
    moved = [{name: p[name] - 0.5 * g[name] for name in p} for p, g in zip(params, slope, strict=True)]
    return moved, value


def main():
    kx, kp = random.split(random.key(0))
    x = random.uniform(kx, (32, 2), minval=-1.0, maxval=1.0)
    y = jnp.sign(x[:, 0] * x[:, 1])
    params = initial(kp, (2, 16, 1))
    losses = []
    for _ in range(12):
        params, value = step(params, x, y)
        losses.append(value)
    return {
        "losses": jnp.stack(losses),
        "prediction": forward(params, x),
        "slope": grad(loss)(params, x, y)[0]["w"],
    }
