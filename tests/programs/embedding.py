"""Embedding lookups by index and by one-hot product, a bag of words, and the scatter that is their gradient."""

import handlax.numpy as jnp
from handlax import grad, jit, nn, random, value_and_grad


def by_index(table, tokens):
    return jnp.take(table, tokens, axis=0)


def by_product(table, tokens):
    return nn.one_hot(tokens, table.shape[0]) @ table


def bag(table, tokens, lengths):
    present = jnp.arange(tokens.shape[1]) < lengths[:, None]
    return jnp.sum(jnp.where(present[..., None], table[tokens], 0.0), axis=1) / lengths[:, None]


def score(lookup, table, tokens):
    return jnp.sum(jnp.sin(lookup(table, tokens)))


def main():
    table = random.normal(random.key(97), (10, 4))
    tokens = random.randint(random.key(98), (3, 5), 0, 10)
    lengths = jnp.array([5, 2, 3])
    value, slope = jit(value_and_grad(score, argnums=1), static_argnums=0)(by_index, table, tokens)
    return {
        "value": value,
        "slope": slope,
        "product": grad(score, argnums=1)(by_product, table, tokens),
        "bag": jit(bag)(table, tokens, lengths),
        "bag_slope": grad(lambda t: jnp.sum(bag(t, tokens, lengths) ** 2))(table),
        "negative": table[-1] + table[jnp.array([-2, 0])],
    }
