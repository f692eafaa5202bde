"""The arguments and results of vmap: ragged arrays among them, and containers of a user's own."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

R = hx.ragged_axis
X = hx.Ragged(hnp.arange(8.0), (3, 1, 4))
OTHER = hx.Ragged(hnp.ones(4), (1, 1, 2))
SUMS = [3.0, 3.0, 22.0]


def test_trees_of_ragged_and_ordinary_arguments():
    f = lambda args, w, *, scale: args["x"].sum() * args["s"] * scale + w
    y = hx.vmap(f, in_axes=({"x": R, "s": 0}, None))({"x": X, "s": hnp.arange(3.0)}, 1.0, scale=hnp.ones(3))
    assert np.allclose(y, [1, 4, 45])
    assert np.allclose(hx.vmap(lambda *, x: x.sum(), R)(x=X), SUMS)


def test_results_of_one_length_are_one_ragged_array():
    pair = hx.vmap(lambda x: {"a": x, "b": x * 2}, R, R)(X)
    assert isinstance(pair, hx.Ragged) and pair.segment_lengths == (3, 1, 4)
    assert np.array_equal(pair.data["b"], 2 * X.data)
    total, rest = hx.vmap(lambda x: (x.sum(), (x, x)), R, (0, R))(X)
    assert np.allclose(total, SUMS) and len(rest.data) == 2


def test_lengths_of_results_follow_from_the_arguments():
    y = hx.vmap(lambda x: hnp.concatenate([x, hnp.zeros(1), x]), R, R)(X)
    assert [len(part) for part in y.to_list()] == [7, 3, 9]


def test_spare_rows_leave_as_zeros():
    x = hx.Ragged(hnp.full(8, hnp.nan).at[:3].set(1.0), np.array([1, 2]))
    y = hx.vmap(lambda x: x + 1, R, R)(x)
    assert np.array_equal(y.data, [2, 2, 2, 0, 0, 0, 0, 0])


def test_axis_names_and_sizes():
    f = lambda x: x.sum() / hx.lax.psum(x.sum(), "i") * hx.lax.axis_size("i")
    assert np.allclose(hx.vmap(f, R, axis_name="i", axis_size=3)(X), np.array(SUMS) * 3 / 28)


@pytest.mark.parametrize(("run", "error", "words"), [
    (lambda: hx.vmap(lambda x: x, R, 0)(X), hx.errors.ShapeMismatch, r"out_axes=hx.ragged_axis, got f32\[n0\]"),
    (lambda: hx.vmap(lambda x: x.sum(), R, R)(X), hx.errors.ShapeMismatch, "out_axes=0 for a result"),
    (lambda: hx.vmap(lambda x: hnp.outer(x, x), R, R)(X), hx.errors.ShapeMismatch, r"f32\[n0,n0\]"),
    (lambda: hx.vmap(lambda x: x, R, R)(hnp.ones((3, 4))), hx.errors.BadArgument, "an axis of Ragged"),
    (lambda: hx.vmap(lambda x, y: y, (0, R), R)(X, X), hx.errors.BadArgument, "of a Ragged is a RaggedAxis, got 0"),
    (lambda: hx.vmap(lambda x, y: x, (R, 0), R)(X, hnp.ones(4)), hx.errors.ShapeMismatch, "one size"),
    (lambda: hx.vmap(lambda x, y: x + y, R, R)(X, OTHER), hx.errors.ShapeMismatch, "n0.*n1"),
])
def test_what_is_no_ragged_axis_is_refused(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_a_length_that_outlives_its_lanes_is_refused():
    kept = []
    hx.vmap(lambda x: (kept.append(x.shape[0]), x.sum())[1], R)(X)
    with pytest.raises(hx.errors.EscapedBox, match="n0 is the length of a lane"):
        hnp.ones(3) * kept[0]
