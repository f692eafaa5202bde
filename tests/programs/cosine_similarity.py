"""All cosine similarities between two sets of vectors, nearest neighbours, and a contrastive loss."""

import handlax.numpy as jnp
from handlax import grad, jit, nn, random, vmap


def unit(x):
    return x / jnp.sqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True))


def similarity(a, b):
    return jnp.clip(unit(a) @ unit(b).T, -1.0, 1.0)


def pair(a, b):
    return jnp.dot(a, b) / jnp.sqrt(jnp.dot(a, a) * jnp.dot(b, b))


def contrastive(a, b, heat=0.5):
    logits = similarity(a, b) / heat
    rows = nn.log_softmax(logits, axis=1)
    columns = nn.log_softmax(logits, axis=0)
    return -0.5 * jnp.mean(jnp.diag(rows) + jnp.diag(columns))


def main():
    a, b = random.normal(random.key(101), (2, 5, 4))
    matrix = jit(similarity)(a, b)
    return {
        "matrix": matrix,
        "pairs": vmap(vmap(pair, in_axes=(None, 0)), in_axes=(0, None))(a, b),
        "nearest": jnp.argmax(matrix, axis=1),
        "loss": contrastive(a, b),
        "slope": jit(grad(contrastive))(a, b),
    }
