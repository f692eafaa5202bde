"""vmap: axes in, axes out, names, and what is refused."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


def test_lane_i_is_the_function_of_the_ith_entries():
    x, y = np.arange(6.0, dtype="float32").reshape(3, 2), np.arange(3.0, dtype="float32")
    f = lambda x, y: {"s": x * y.sum(), "t": hnp.flip(y) + x}
    mapped = hx.vmap(f, (1, None), {"s": 0, "t": 1})(x, y)
    np.testing.assert_array_equal(mapped["s"], x.T * y.sum())
    np.testing.assert_array_equal(mapped["t"], y[::-1, None] + x)


def test_axes_may_be_given_for_subtrees_and_counted_from_the_end():
    f = lambda tree, x: tree["a"] + tree["b"] * x
    tree = {"a": np.ones((2, 4), "float32"), "b": np.float32(3.0)}
    made = hx.vmap(f, ({"a": -1, "b": None}, 0), -1)(tree, np.arange(4.0, dtype="float32"))
    np.testing.assert_array_equal(made, 1 + 3 * np.arange(4.0) + np.zeros((2, 1)))


def test_a_size_and_a_name_without_any_mapped_argument():
    np.testing.assert_array_equal(hx.vmap(lambda: lax.axis_index("i"), axis_size=3, axis_name="i")(), [0, 1, 2])


@pytest.mark.parametrize(("call", "words"), [
    (lambda: hx.vmap(lambda x, y: x + y)(np.ones(2), np.ones(3)), "2.*3"),
    (lambda: hx.vmap(lambda x: x, in_axes=None)(1.0), "in_axes"),
    (lambda: hx.vmap(lambda x: x, in_axes=1)(np.ones(2)), "axis 1|in_axes"),
    (lambda: hx.vmap(lambda x: x, out_axes=2)(np.ones(2)), "out_axes"),
])
def test_axes_that_are_not_there_are_refused(call, words):
    with pytest.raises(errors.HandlaxError, match=words):
        call()


def test_the_hint_at_vmap_does_not_ask_for_what_is_declared():
    @hx.effect(vmap="once")
    class Note:
        def result_type(op, x):
            return None

    with pytest.raises(hx.errors.CannotCross) as caught:
        hx.vmap(lambda x: hx.perform(Note(), x))(hnp.arange(3.0))
    assert caught.value.hint == "handle it inside: vmap(hx.handle(h)(f))."


def test_numbers_and_numpy_arrays_stay_what_they_are_where_they_are_not_mapped():
    x = np.arange(12.0, dtype="float32").reshape(2, 6)
    rows = lambda a, k, mask: a.reshape(k, -1).sum(1) if (mask > 1).any() and isinstance(k, int) else a
    apply = hx.vmap(rows, (0, None, None))
    for f in (apply, lambda *args: hx.jit(lambda x: apply(x, *args[1:]))(args[0])):
        np.testing.assert_array_equal(f(x, 3, np.array([1, 2])), x.reshape(2, 3, 2).sum(2))
    np.testing.assert_array_equal(hx.vmap(rows, (0, None, None))(x, 2, np.array([0])), x)
    named = hx.vmap(lambda a, k, how: how(a.reshape(k, -1)), (0, None, None))
    np.testing.assert_array_equal(hx.jit(lambda x: named(x, 3, hnp.sum))(x), x.sum(1))


def test_what_is_no_array_passes_where_it_is_not_mapped():
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    apply = hx.vmap(lambda x, how: how["f"](x) * how["by"] + len(how["name"]), (0, None))
    how = {"f": hnp.sum, "by": 2.0, "name": "abc"}
    np.testing.assert_array_equal(apply(x, how), 2 * x.sum(1) + 3)
    np.testing.assert_array_equal(hx.jit(hx.grad(lambda x: apply(x, how).sum()))(x), np.full((2, 3), 2.0))
    rows = hx.Ragged(np.arange(3.0, dtype="float32"), np.array([1, 2]))
    np.testing.assert_array_equal(hx.vmap(lambda row, f: f(row), (hx.ragged_axis, None))(rows, hnp.sum), [0.0, 3.0])
    for axes in (0, (None, None)):  # a function has no lanes, and says not how many there are
        with pytest.raises(errors.HandlaxError, match=r"got function|must be mapped"):
            hx.vmap(lambda x, f: f(x), axes)(x, hnp.sum)


def test_a_mapped_result_that_all_lanes_should_share_is_named():
    x = hnp.arange(3.0)
    for f, out_axes, where in [
        (lambda x: {"a": x, "b": x}, {"a": 0, "b": None}, r" at \['b'\]"),
        (lambda x: (x, [1.0, x]), (0, None), r" at \[1\]\[1\]"),
        (lambda x: x, None, ""),
    ]:
        with pytest.raises(hx.errors.ShapeMismatch, match=rf"got a mapped f32\[\]{where}\."):
            hx.vmap(f, out_axes=out_axes)(x)
