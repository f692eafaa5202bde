"""Ranking: discounted gain by sorting, a pairwise hinge, a listwise loss, and their gradients through the sort."""

import handlax.numpy as jnp
from handlax import grad, jit, lax, nn, random


def gain(scores, relevance):
    order = jnp.argsort(-scores)
    discount = 1.0 / jnp.log2(jnp.arange(2.0, scores.size + 2.0))
    best = jnp.sort(relevance)[::-1]
    return jnp.sum(relevance[order] * discount) / jnp.sum(best * discount)


def pairwise(scores, relevance):
    better = relevance[:, None] > relevance[None, :]
    margin = scores[:, None] - scores[None, :]
    return jnp.sum(jnp.where(better, nn.relu(1.0 - margin), 0.0)) / jnp.sum(better)


def listwise(scores, relevance):
    return -jnp.sum(nn.softmax(relevance) * nn.log_softmax(scores))


def spread_of_best(scores, k=3):
    values, _ = lax.top_k(scores, k)
    return jnp.sum(jnp.sort(scores)[-2:] ** 2) + values[0] * values[-1]


def main():
    scores = random.normal(random.key(59), (8,))
    relevance = jnp.array([0.0, 2.0, 1.0, 0.0, 3.0, 1.0, 0.0, 2.0])
    best, where = lax.top_k(scores, 3)
    return {
        "gain": jit(gain)(scores, relevance),
        "pairwise": grad(pairwise)(scores, relevance),
        "listwise": jit(grad(listwise))(scores, relevance),
        "best": best,
        "where": where,
        "ranks": jnp.argsort(jnp.argsort(scores)),
        "spread": grad(spread_of_best)(scores),
    }
