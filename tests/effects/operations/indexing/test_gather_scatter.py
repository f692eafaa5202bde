"""What a caller promises about indices, and where the text of the program has it."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax

X, INDICES, UPDATES = np.zeros((4, 3), "float32"), np.array([[0], [2]], "int32"), np.ones((2, 3), "float32")
GATHER, SCATTER = lax.GatherDimensionNumbers((1,), (0,), (0,)), lax.ScatterDimensionNumbers((1,), (0,), (0,))
CALLS = {
    "gather": lambda x, i, u, **promises: lax.gather(x, i, GATHER, (1, 3), **promises),
    "scatter": lambda x, i, u, **promises: lax.scatter(x, i, u, SCATTER, **promises),
    "scatter_add": lambda x, i, u, **promises: lax.scatter_add(x, i, u, SCATTER, **promises),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("unique", [False, True])
def test_promises_stand_in_the_text(call, ordered, unique):
    f = hx.jit(lambda *xs: CALLS[call](*xs, indices_are_sorted=ordered, unique_indices=unique))
    text = f.lower(X, INDICES, UPDATES).as_text()
    assert f"indices_are_sorted = {str(ordered).lower()}" in text
    assert call == "gather" or f"unique_indices = {str(unique).lower()}" in text


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_indices_may_be_mapped_along_any_axis(call, axis):
    indices = np.random.default_rng(0).permuted(np.tile(np.arange(4), (5, 1)), axis=1)[:, :2, None].astype("int32")
    x, updates = np.arange(12, dtype="float32").reshape(4, 3), np.arange(30, dtype="float32").reshape(5, 2, 3)
    f = CALLS[call]
    found = hx.vmap(lambda i, u: f(x, i, u), (axis, 0))(np.moveaxis(indices, 0, axis), updates)
    np.testing.assert_array_equal(found, [f(x, i, u) for i, u in zip(indices, updates)])


def test_a_function_is_applied_once_for_each_index():
    x, rows = np.arange(12, dtype="float32").reshape(4, 3), [2, 0, 2]
    expected = x.copy()
    for row in rows:
        expected[row] = 2 * expected[row] + 1
    f = lambda x: lax.scatter_apply(x, np.array(rows)[:, None], lambda y: 2 * y + 1, SCATTER, update_shape=(3, 3))
    for way in (f, hx.jit(f)):
        np.testing.assert_array_equal(way(x), expected)
