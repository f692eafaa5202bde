"""Loops along the ragged axis and beside it: each equals the loop over lanes."""

import pytest
from helpers.ragged_lanes import R, RaggedCase

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
MORE = [([2, 2, 2], True), ([0, 0], False), ([1, 40, 70], True), ([1, 40, 70], False)]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_loop_over_lanes(name, static):
    case = RaggedCase(*CASES[name], [3, 1, 4] if static else [0, 2, 1, 0], static)
    case.check_values(case.mapped(*case.args))
    case.check_gradients(hx.grad(case.loss)(case.data))


@pytest.mark.sweep
@pytest.mark.parametrize(("lengths", "static"), MORE, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_compiled(name, lengths, static):
    case = RaggedCase(*CASES[name], lengths, static)
    case.check_values(hx.jit(lambda *xs: case.mapped(*xs))(*case.args))
    case.check_gradients(hx.jit(hx.grad(case.loss))(case.data))
