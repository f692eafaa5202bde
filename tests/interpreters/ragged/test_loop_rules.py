"""Loops along the ragged axis and beside it: each equals the loop over lanes."""

import numpy as np
import pytest
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
    "along what attention makes": (
        lambda x: lax.scan(lambda c, y: (hnp.tanh(c + y), c), hnp.zeros(3), hx.nn.softmax(x @ x.T, axis=-1) @ x),
        "rows", (0, R)),
    "singular where a lane has ended": (
        lambda x: lax.scan(lambda c, y: (hnp.sqrt(c) - 1 + 0 * y, c), hnp.where(x.shape[0] == 2, 4.0, 99.0), x[:, 0]),
        "rows", (0, R)),
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


@hx.effect(vmap="per_lane", diff="stop")
class Count:
    """The number of times it was performed before."""

    def result_type(op):
        return hx.ArrayType((), "int32")


COUNTER = hx.handler({Count: lambda n, op: (n + 1, n)})


@pytest.mark.parametrize("lengths", [(3, 1, 4), np.array([3, 1, 4])], ids=["known", "values"])
def test_a_lane_performs_the_effects_of_its_own_iterations(lengths):
    x = hx.Ragged(hnp.zeros(8), lengths)
    iterations_first = [0 + 3 + 5, 1, 2 + 4 + 6 + 7]
    for lane in (
        lambda row: lax.scan(lambda c, y: (c + hx.perform(Count()), None), 0, row)[0],
        lambda row: lax.fori_loop(0, row.shape[0], lambda i, c: c + hx.perform(Count()), 0),
    ):
        count, sums = hx.handle(COUNTER, 0)(lambda lane=lane: hx.vmap(lane, R)(x))()
        assert count == 8 and np.array_equal(sums, iterations_first)
        inside = hx.vmap(lambda row, lane=lane: hx.handle(COUNTER, 0)(lane)(row), R)(x)
        assert np.array_equal(inside[0], [3, 1, 4]) and np.array_equal(inside[1], [3, 0, 6])


@pytest.mark.parametrize("lane", [
    lambda row: hx.vmap(lambda y: y * hx.perform(Count()))(row).sum(),
    lambda row: lax.cond(row.sum() > 0, lambda row: row * hx.perform(Count()), lambda row: row, row).sum(),
])
def test_effects_of_rows_at_once_and_of_lanes_that_diverge_are_refused(lane):
    with pytest.raises(hx.errors.CannotCross, match="count"):
        hx.handle(COUNTER, 0)(lambda: hx.vmap(lane, R)(hx.Ragged(hnp.ones(8), (3, 1, 4))))()


@pytest.mark.parametrize("lengths", [(), np.zeros(0, np.int32)], ids=["known", "values"])
def test_without_lanes_no_effect_is_performed(lengths):
    lane = lambda row: lax.scan(lambda c, y: (c + hx.perform(Count()) * y, c), 0.0, row)[1]
    count, rows = hx.handle(COUNTER, 0)(lambda: hx.vmap(lane, R, R)(hx.Ragged(hnp.zeros(0), lengths)))()
    assert count == 0 and rows.to_list() == []


@pytest.mark.parametrize(
    ("lengths", "wanted"), [((3, 1, 4), 8), ((2, 2, 4), 8), ((0, 0), 0), ((), 0), (np.array([3, 1, 4]), 8)], ids=str
)
def test_a_tally_counts_the_iterations_that_lanes_have(lengths, wanted):
    """Where lengths are values of a program it is not known how many these are."""
    tally = hx.tally(0, lambda a, b: None if None in (a, b) else a + b, max, lambda a, n: n and a and a * n)
    counting = hx.handler({Count: lambda op: 1}, moves=tally)
    answering = hx.handler({Count: lambda op: hnp.int32(1)})
    lane = lambda row: lax.scan(lambda c, y: (c + hx.perform(Count()), None), 0, row)[0]
    x = hx.Ragged(hnp.zeros(wanted), lengths)
    numbers = []

    def counted(x):
        number, counts = hx.handle(counting, 0)(hx.vmap(lane, R))(x)
        numbers.append(number)
        return counts

    for transform in (lambda f: f, hx.jit):
        assert np.array_equal(transform(hx.handle(answering)(counted))(x), lengths)
    assert numbers == [wanted, wanted if isinstance(lengths, tuple) else None]
