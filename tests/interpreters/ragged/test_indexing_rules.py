"""Reading and writing at places along the ragged axis: each equals the loop over lanes, behind their ends too."""

import numpy as np
import pytest
from helpers.ragged_lanes import R, RaggedCase, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


def places(x):
    """Integers of both signs, most of them in no lane."""
    return hnp.floor(4 * x[:, 0]).astype(int)


def within(x):
    return hnp.abs(places(x)) % hnp.maximum(x.shape[0], 1)


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "filled": (lambda x: x.at[places(x)].get(mode="fill", fill_value=2.0), "rows", R),
    "clipped": (lambda x, v: hnp.take(hnp.concatenate([x, v[None]]), places(x), axis=0, mode="clip"), "rows vector", R),
    "wrapped": (lambda x, v: hnp.take(hnp.concatenate([x, v[None]]), places(x), axis=0, mode="wrap"), "rows vector", R),
    "filled, of two ragged axes": (
        lambda x: (x @ x.T).at[:, places(x)].get(mode="fill", fill_value=2.0).sum(1), "rows", R),
    "of two ragged axes at a number of the lane": (
        lambda x, s: (x @ x.T).at[hnp.floor(3 * s).astype(int)].get(mode="fill", fill_value=2.0), "rows number", R),
    "added": (lambda x: hnp.zeros((5, 3)).at[places(x)].add(x), "rows", 0),
    "multiplied, least, largest": (
        lambda x: [getattr(hnp.ones((5, 3)).at[within(x)], way)(x) for way in ("multiply", "min", "max")], "rows", 0),
    "added at clipped places": (lambda x, w: w.at[places(x)].add(x, mode="clip"), "rows shared", 0),
    "added to its own rows": (lambda x: x.at[places(x)].add(hnp.cos(x)), "rows", R),
    "its own rows set": (lambda x: x.at[places(x)].set(2.0), "rows", R),
    "a row set": (lambda x, v: x.at[1].set(v), "rows vector", R),
    "rows of two ragged axes set": (lambda x: (x @ x.T).at[0].set(2.0) @ x, "rows", R),
    "counted": (lambda x: hnp.bincount(within(x), length=3), "rows", 0),
    "segments": (lambda x: hx.ops.segment_sum(x, within(x), 4), "rows", 0),
    "columns replaced": (lambda x, s: lax.dynamic_update_slice(x, x[:, :1] * s, (0, 1)), "rows number", R),
    "diagonals": (lambda x: (hnp.diagonal(x @ x.T), hnp.trace(x @ x.T)), "rows", (R, 0)),
    "a diagonal matrix": (lambda x: hnp.diag(x[:, 0]) @ x, "rows", R),
    "indices unraveled": (lambda x: hnp.where(hnp.eye(x.shape[0], dtype=bool), 0, x @ x.T).sum(1), "rows", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)

NOT_EMPTY = {
    "a slice": (lambda x, s: lax.dynamic_slice_in_dim(x, hnp.floor(9 * s).astype(int), 2), "rows number", 0),
    "a row of two ragged axes": (lambda x, s: (x @ x.T)[hnp.abs(9 * s).astype(int)], "rows number", R),
    "a slice replaced": (
        lambda x, s: lax.dynamic_update_slice_in_dim(x, s * hnp.ones((2, 3)), hnp.floor(5 * s).astype(int), 0),
        "rows number", R),
    "the last column of two ragged axes": (lambda x: (x @ x.T)[:, -1], "rows", R),
}


def shortened(x, start, size):
    """The law of a dynamic slice that a lane may be too short for: it repeats its last row."""
    place = hnp.clip(start, 0, max(len(x) - size, 0)) + hnp.arange(size)
    return x[hnp.minimum(place, len(x) - 1)] if len(x) else hnp.zeros((size, *x.shape[1:]))


@pytest.mark.each_choice
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("start", [-1, 0, 1, 9])
def test_a_lane_that_is_shorter_than_the_slice_repeats_its_own_last_row(start, static):
    lengths = (3, 1, 4, 0, 2)
    data = hnp.arange(1.0, 11.0)
    n = lengths if static else hnp.array(lengths)
    lanes = hx.Ragged(data, n).to_list()
    sliced = lambda r, start: lax.dynamic_slice_in_dim(r, start, 2)
    row_of_two = lambda r, start: lax.dynamic_slice_in_dim(r[:, None] * r, start, 2).sum(1)
    for f, wanted in (
        (sliced, lambda r: shortened(r, start % len(r) if start < 0 and len(r) else start, 2)),
        (row_of_two, lambda r: shortened(r * r.sum(), start % len(r) if start < 0 and len(r) else start, 2)),
    ):
        for starts in (start, hnp.full(5, start)):
            mapped = lambda d: hx.vmap(f, in_axes=(R, None if starts is start else 0))(hx.Ragged(d, n), starts)
            assert np.allclose(mapped(data), hnp.stack([wanted(r) for r in lanes]))
            assert np.allclose(hx.jit(mapped)(data), mapped(data))
            loss = lambda d: sum([(wanted(r) ** 2).sum() for r in hx.Ragged(d, lengths).to_list()])
            assert np.allclose(hx.grad(lambda d: (mapped(d) ** 2).sum())(data), hx.grad(loss)(data))


def test_an_update_longer_than_a_lane_begins_at_its_first_row():
    x = hx.Ragged(hnp.arange(8.0), (3, 1, 4))
    f = lambda r, at: lax.dynamic_update_slice_in_dim(r, hnp.array([70.0, 80.0]), at, 0)
    y = hx.vmap(f, in_axes=(R, 0), out_axes=R)(x, hnp.array([9, 1, 0]))
    assert [lane.tolist() for lane in y.to_list()] == [[0, 70, 80], [70], [70, 80, 6, 7]]
    update = hnp.full((2, 2), 7.0)
    g = lambda r, at: lax.dynamic_update_slice(r[:, None] * r, update[:, :1] * r, (at, 0)).sum(1)
    y = hx.vmap(g, in_axes=(R, 0), out_axes=R)(x, hnp.array([9, 1, 0]))
    wanted = [[0, 21, 21], [21], [154, 154, 6 * 22, 7 * 22]]
    assert all(np.allclose(lane, w) for lane, w in zip(y.to_list(), wanted))


@pytest.mark.parametrize("place", [0, 2, -2, 9])
def test_a_place_that_a_lane_may_not_have_is_filled(place):
    x = hx.Ragged(hnp.arange(10.0), (3, 1, 4, 0, 2))
    read = lambda r: r.at[place].get(mode="fill", fill_value=-1.0)
    assert np.array_equal(hx.vmap(read, in_axes=R)(x), hnp.stack([read(r) for r in x.to_list()]))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", NOT_EMPTY)
def test_slices_of_lanes_that_have_them(name, compiled):
    case = RaggedCase(*NOT_EMPTY[name], [3, 4, 2], not compiled)
    run = hx.jit(lambda *xs: case.mapped(*xs)) if compiled else case.mapped
    case.check(run(*case.args), hx.grad(case.loss)(case.data))


def test_updates_without_an_index_are_refused_and_not_added_for_padding():
    numbers = lax.ScatterDimensionNumbers((), (), ())
    total = lambda rows: lax.scatter_add(hnp.float32(0), hnp.zeros((rows.shape[0], 0), "int32"), rows, numbers)
    assert total(hnp.ones(3)) == 3
    with pytest.raises(hx.errors.CannotCross, match="index vectors along a ragged axis must have an entry"):
        hx.vmap(total, in_axes=R)(hx.Ragged(hnp.ones(4), (3, 1)))
