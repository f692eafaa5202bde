"""A gated recurrent cell unrolled in Python learns to repeat an earlier input; gradients flow through time."""

import handlax.numpy as jnp
from handlax import jit, nn, random, tree, value_and_grad, vmap


def initial(key, inputs, hidden):
    a, b, c = random.split(key, 3)
    glorot = nn.initializers.glorot_uniform()
    return {
        "input": glorot(a, (inputs, 3 * hidden)),
        "hidden": 0.4 * random.normal(b, (hidden, 3 * hidden)),
        "read": glorot(c, (hidden, 1)),
    }


def cell(params, h, x):
    xr, xz, xn = jnp.split(x @ params["input"], 3)
    hr, hz, hn = jnp.split(h @ params["hidden"], 3)
    reset, update = nn.sigmoid(xr + hr), nn.sigmoid(xz + hz)
    candidate = jnp.tanh(xn + reset * hn)
    return (1 - update) * candidate + update * h


def run(params, xs):
    h = jnp.zeros(params["read"].shape[0])
    outputs = []
    for x in xs:
        h = cell(params, h, x)
        outputs.append((h @ params["read"])[0])
    return jnp.stack(outputs)


def loss(params, sequences):
    outputs = vmap(lambda xs: run(params, xs))(sequences)
    return jnp.mean((outputs[:, 2:] - sequences[:, :-2, 0]) ** 2)


def main():
    params = initial(random.key(79), 1, 5)
    sequences = random.uniform(random.key(80), (6, 8, 1))
    step = jit(value_and_grad(loss))
    losses = []
    for _ in range(6):
        value, slope = step(params, sequences)
        params = tree.map(lambda p, g: p - 0.3 * g, params, slope)
        losses.append(value)
    return {"losses": jnp.stack(losses), "outputs": run(params, sequences[0]), "slope": slope["hidden"]}
