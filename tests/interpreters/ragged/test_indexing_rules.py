"""Reading and writing at places along the ragged axis: each equals the loop over lanes, behind their ends too."""

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


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", NOT_EMPTY)
def test_slices_of_lanes_that_have_them(name, compiled):
    case = RaggedCase(*NOT_EMPTY[name], [3, 4, 2], not compiled)
    run = hx.jit(lambda *xs: case.mapped(*xs)) if compiled else case.mapped
    case.check_values(run(*case.args))
    case.check_gradients(hx.grad(case.loss)(case.data))
