"""Reading, writing, joining and ordering along a ragged axis, of one and of two: each equals the loop over lanes."""

import pytest
from helpers.ragged_lanes import R, RaggedCase, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


def gram(x):
    return x @ x.T


def classes(x, count):
    return hnp.abs(x[:, 0] * 9).astype(int) % count


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
TABLE = hnp.cos(hnp.arange(200.0)).reshape(100, 2)

CASES = {
    "a part of a table": (lambda x: lax.dynamic_slice_in_dim(TABLE, 1, x.shape[0]) * x.sum(), "rows", R),
    "a slice of a table": (lambda x: lax.slice(TABLE, (0, 1), (x.shape[0], 2)) + x, "rows", R),
    "a table from the length on": (
        lambda x: (TABLE[x.shape[0] :].sum() + TABLE[1 : x.shape[0]].sum()) * x.sum(), "rows", 0),
    "the end of a table": (lambda x: TABLE[-x.shape[0] - 1 :, 0].sum() * x.sum(), "rows", 0),
    "a part as long as another": (lambda x: lax.dynamic_slice_in_dim(x, 0, x[1:].shape[0]).sum(0), "rows", 0),
    "in a buffer": (lambda x: lax.dynamic_update_slice(TABLE[:, :1] * hnp.ones(3), x, (1, 0)), "rows", 0),
    "second differences": (lambda x: hnp.diff(x, n=2, axis=0).sum(0), "rows", 0),
    "ordered, of two": (lambda x: hnp.sort(gram(x), 1).mean(0) * hnp.argsort(gram(x), 0).mean(0) / 99, "rows", R),
    "joined, of two": (lambda x: hnp.concatenate([gram(x), gram(x)[:, 1:], x], 1).max(1, initial=-9), "rows", R),
    "read, of two": (lambda x: hnp.take(gram(x), hnp.argsort(x[:, 0]), axis=0).sum(1) + hnp.diagonal(gram(x)),
                     "rows", R),
    "merged": (lambda x: x.T.reshape(-1) * hnp.ravel(x, order="F"), "rows", R),
    "tile, repeat": (lambda x: hnp.tile(x, (2, 1)) * hnp.repeat(x, 2, axis=0), "rows", R),
    "a part written": (lambda x: x.at[1:].multiply(2.0).at[::2].set(x[::2] * x[::2]), "rows", R),
    "a permutation written": (lambda x: x.at[hnp.argsort(x[:, 0])].set(x), "rows", R),
    "sums of classes": (lambda x: hx.ops.segment_sum(x, classes(x, 4), num_segments=4), "rows", 0),
    "histogram": (
        lambda x: (hnp.histogram(x[:, 0], bins=4, range=(-2, 2))[0], hnp.bincount(classes(x, 5), length=5)),
        "rows", 0),
    "derivatives of products": (
        lambda x: hx.jvp(lambda y: (y.prod(0), hnp.cumprod(y, 0).sum(0)), (x,), (hnp.cos(x),))[1], "rows", 0),
    "derivatives of extremes": (lambda x: hx.grad(lambda y: lax.cummax(y, 0).sum())(x), "rows", R),
    "associative_scan": (
        lambda x: lax.associative_scan(lambda a, b: a * b + a + b, x / 9, axis=0, reverse=True), "rows", R),
    "evenly spaced": (
        lambda x: (hnp.linspace(0.0, 1.0, x.shape[0])[1:] + hnp.arange(1, x.shape[0]))[:, None] * x[1:], "rows", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)


@pytest.mark.each_choice
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("f", "out"), [
    (lambda x: gram(x)[0] + lax.dynamic_slice_in_dim(gram(x), 1, 1, axis=1)[:, 0], R),
    (lambda x: x.at[0].set(1.0).at[hnp.array([0, 1])].add(2.0), R),
    (lambda x: lax.dynamic_update_slice(x, x[0:1] * 2, (1, 0)), R),
    (lambda x: hnp.insert(hnp.delete(x, 0, axis=0), 1, 5.0, axis=0), R),
    (lambda x: lax.top_k(x.T, 2)[0], 0),
    (lambda x: (hnp.median(x, 0), hnp.quantile(x, hnp.array([0.3, 0.8]), axis=0)), 0),
    (lambda x: (hnp.cov(x.T), hnp.std(x, 0, ddof=1)), 0),
    (lambda x: hnp.interp(hnp.array([0.1, 0.5]), hnp.sort(x[:, 0]), x[:, 1]), 0),
    (lambda x: hnp.unwrap(3 * x, axis=0), R),
    (lambda x: hnp.convolve(x[:, 0], hnp.array([1.0, 2.0])), R),
    (lambda x: hnp.convolve(x[:, 0], hnp.array([1.0, 2.0]), mode="same"), R),
    (lambda x: hnp.correlate(x[:, 0], hnp.array([1.0, 2.0])), R),
    (lambda x: hx.grad(lambda y: y.prod(0).sum())(x), R),
    (lambda x: hx.nn.one_hot(hnp.argmax(x[:, 0]), x.shape[0]), R),
], ids=range(14))
def test_of_lanes_that_are_long_enough(f, out, static):
    case = RaggedCase(f, "rows", out, [3, 2, 4], static)
    case.check(*hx.jit(case.computed)(case.args, case.data))


def test_the_median_of_an_empty_lane_is_no_number():
    x = hx.Ragged(hnp.array([1.0, 3.0]), (0, 2))
    assert hnp.array_equal(hx.vmap(hnp.median, R)(x), hnp.array([hnp.nan, 2.0]), equal_nan=True)


def test_the_least_numbers_stand_where_a_lane_is_shorter_than_k():
    x = hx.Ragged(hnp.array([1.0, 3.0, 2.0]), hnp.array([1, 2]), 2)
    largest = hx.jit(lambda x: hx.vmap(lambda y: lax.top_k(y, 2)[0], R)(x))(x)
    assert hnp.array_equal(largest, hnp.array([[1.0, -hnp.inf], [3.0, 2.0]]))
