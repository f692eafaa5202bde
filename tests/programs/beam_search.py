"""Beam search with a scan over time: ``top_k`` keeps the best paths, gathers carry their histories along."""

from functools import partial

import handlax.numpy as jnp
from handlax import jit, lax, nn, random, vmap

WIDTH = 3


@partial(jit, static_argnums=2)
def search(start, moves, steps):
    words = start.shape[0]

    def step(beam, t):
        scores, lasts, paths = beam
        options = scores[:, None] + moves[lasts]
        best, places = lax.top_k(options.reshape(-1), WIDTH)
        parents, lasts = places // words, (places % words).astype(jnp.int32)
        paths = paths[parents].at[:, t].set(lasts)
        return (best, lasts, paths), best[0]

    scores, lasts = lax.top_k(start, WIDTH)
    paths = jnp.zeros((WIDTH, steps + 1), jnp.int32).at[:, 0].set(lasts)
    (scores, _, paths), history = lax.scan(step, (scores, lasts, paths), jnp.arange(1, steps + 1))
    return scores, paths, history


def score(start, moves, path):
    def add(carry, word):
        total, last = carry
        return (total + moves[last, word], word), None

    return lax.scan(add, (start[path[0]], path[0]), path[1:])[0][0]


def main():
    start = nn.log_softmax(random.normal(random.key(11), (6,)))
    moves = nn.log_softmax(2 * random.normal(random.key(12), (6, 6)), axis=1)
    scores, paths, history = search(start, moves, 7)
    again = vmap(score, in_axes=(None, None, 0))(start, moves, paths)
    return {"scores": scores, "paths": paths, "history": history, "again": again}
