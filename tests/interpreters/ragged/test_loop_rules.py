"""Loops along the ragged axis and beside it: each equals the loop over lanes."""

from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


def ended(test, x, s):
    """A loop with a ragged carry, of at most five iterations."""
    step = lambda c: (c[0] + 1, c[1] + 0.7, hnp.cos(c[2]) * c[1])
    return lax.while_loop(test, step, (0, s, x), max_steps=5)[2]


def outers(x, start):
    """A loop whose slices, carry and results are ragged."""
    return lax.scan(lambda c, row: (hnp.cos(c) + row, hnp.outer(row, c)), start, x)[1]


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "scan along": (lambda x, s: lax.scan(lambda c, y: (hnp.tanh(c + y), c * s), s, x[:, 0]), "rows number", (0, R)),
    "backwards": (lambda x: lax.scan(lambda c, y: (hnp.sin(c + y), c), x.sum(0), x, reverse=True), "rows", (0, R)),
    "beside": (lambda x: lax.scan(lambda c, column: (c * column, c.sum()), x.sum(1), x.T), "rows", (R, 0)),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: hnp.sin(c) + x.sum(0), x), "rows", R),
    "map along": (lambda x, w: lax.map(lambda row: row @ w, x), "rows shared", R),
    "lanes that end apart": (lambda x, s: ended(lambda c: c[1] < 2 + s, x, s), "rows number", R),
    "as long as the lane": (lambda x, s: ended(lambda c: c[0] < x.shape[0], x, s), "rows number", R),
    "rows by rows": (
        lambda x: lax.scan(lambda c, r: (hnp.tanh(c + (r * r).sum()), r * c), 0.3, hx.nn.softmax(x @ x.T, 1))[1] @ x,
        "rows", R),
    "rows of others": (lambda x, y: outers(x @ y.T, y[:, 0]).sum((1, 2)) * 0.01, "rows others", R),
    "ragged carry": (lambda x: lax.scan(lambda c, row: (hnp.tanh(c + row), row), x, x)[0], "rows", R),
    "a branch of the lane in a loop": (
        lambda x, s: lax.fori_loop(0, 3, lambda i, c: lax.cond(c.sum() > s, hnp.sin, hnp.exp, c), x), "rows number", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)
