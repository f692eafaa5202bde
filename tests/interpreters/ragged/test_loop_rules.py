"""Loops along the ragged axis and beside it: each equals the loop over lanes."""

from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

softmax = hx.nn.softmax

# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "scan along": (lambda x, s: lax.scan(lambda c, y: (hnp.tanh(c + y), c * s), s, x[:, 0]), "rows number", (0, R)),
    "backwards": (lambda x: lax.scan(lambda c, y: (hnp.sin(c + y), c), x.sum(0), x, reverse=True), "rows", (0, R)),
    "beside": (lambda x: lax.scan(lambda c, column: (c * column, c.sum()), x.sum(1), x.T), "rows", (R, 0)),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: hnp.sin(c) + x.sum(0), x), "rows", R),
    "map along": (lambda x, w: lax.map(lambda row: row @ w, x), "rows shared", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)
