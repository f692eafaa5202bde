"""A gated recurrent cell under ``scan`` learns to repeat what it saw two steps before; sequences in lanes."""

from functools import partial

import handlax.numpy as jnp
from handlax import jit, lax, nn, random, tree, value_and_grad, vmap


def initial(key, inputs, hidden):
    a, b, c = random.split(key, 3)
    return {
        "input": 0.5 * random.normal(a, (inputs, 3 * hidden)),
        "hidden": 0.4 * random.normal(b, (hidden, 3 * hidden)),
        "read": 0.5 * random.normal(c, (hidden,)),
    }


def cell(params, h, x):
    xr, xz, xn = jnp.split(x @ params["input"], 3)
    hr, hz, hn = jnp.split(h @ params["hidden"], 3)
    reset, update = nn.sigmoid(xr + hr), nn.sigmoid(xz + hz)
    h = (1 - update) * jnp.tanh(xn + reset * hn) + update * h
    return h, h @ params["read"]


def run(params, xs):
    return lax.scan(partial(cell, params), jnp.zeros(params["read"].shape), xs)


def loss(params, sequences):
    _, outputs = vmap(run, in_axes=(None, 0))(params, sequences)
    return jnp.mean((outputs[:, 2:] - sequences[:, :-2, 0]) ** 2)


@jit
def train(params, sequences):
    def step(params, _):
        value, slope = value_and_grad(loss)(params, sequences)
        return tree.map(lambda p, g: p - 0.3 * g, params, slope), value

    return lax.scan(step, params, None, length=8)


def main():
    params = initial(random.key(31), 1, 6)
    sequences = random.uniform(random.key(32), (5, 12, 1))
    params, losses = train(params, sequences)
    final, outputs = run(params, sequences[0])
    return {"losses": losses, "outputs": outputs, "final": final}
