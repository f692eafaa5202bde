"""A one-block transformer on tokens: next-token loss and the norm of every gradient leaf."""

from functools import partial

import handlax.numpy as jnp
from handlax import jit, nn, random, tree, value_and_grad, vmap

VOCABULARY, WIDTH, HEADS, LENGTH = 11, 8, 2, 7


def initial(key):
    shapes = {
        "tokens": (VOCABULARY, WIDTH),
        "places": (LENGTH, WIDTH),
        "block": {
            "qkv": (3, WIDTH, HEADS, WIDTH // HEADS),
            "out": (HEADS, WIDTH // HEADS, WIDTH),
            "up": (WIDTH, 4 * WIDTH),
            "down": (4 * WIDTH, WIDTH),
        },
    }
    flat, treedef = tree.flatten(shapes, is_leaf=lambda s: isinstance(s, tuple))
    keys = random.split(key, len(flat))
    return tree.unflatten(treedef, [0.3 * random.normal(k, s) for k, s in zip(keys, flat, strict=True)])


def normalise(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.square(centred).mean(axis=-1, keepdims=True) + 1e-5)


def block(params, x):
    q, k, v = jnp.einsum("td,sdhe->shte", normalise(x), params["qkv"])
    scores = jnp.einsum("hqe,hke->hqk", q, k) * (WIDTH // HEADS) ** -0.5
    causal = jnp.arange(x.shape[0])[:, None] >= jnp.arange(x.shape[0])[None, :]
    weights = nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    x = x + jnp.einsum("hqk,hke,hed->qd", weights, v, params["out"])
    return x + nn.gelu(normalise(x) @ params["up"]) @ params["down"]


def logits(params, tokens):
    x = params["tokens"][tokens] + params["places"]
    return normalise(block(params["block"], x)) @ params["tokens"].T


def loss(params, batch):
    predicted = nn.log_softmax(vmap(partial(logits, params))(batch[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(predicted, batch[:, 1:, None], axis=-1))


def main():
    params = initial(random.key(1))
    batch = random.randint(random.key(2), (4, LENGTH + 1), 0, VOCABULARY)
    value, slope = jit(value_and_grad(loss))(params, batch)
    norms = jnp.stack([jnp.sqrt(jnp.sum(leaf**2)) for leaf in tree.leaves(slope)])
    return {"batch": batch, "loss": value, "norms": norms, "slope": slope["tokens"]}
