"""One call for each distinct length: what Python decides by the length equals the loop over lanes."""

import numpy as np
import pytest
from helpers.ragged_lanes import R, RaggedCase

import handlax as hx
from handlax import numpy as hnp

LENGTHS = [3, 1, 0, 3, 2]
X = hx.Ragged(hnp.arange(4.0), (3, 1))


def by_length(x):
    """What has no meaning where the length is not known: it decides by it, iterates, and reads from the end."""
    if len(x) == 1:
        return 2 * x
    return hnp.stack([row * i for i, row in enumerate(x)]) if len(x) else x


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "by the length": (by_length, "rows", R),
    "reshaped": (lambda x: x.reshape(-1, 3)[::-1].reshape(len(x), 3), "rows", R),
    "of other lengths": (lambda x, s: hnp.ones((2 * len(x) // 3, 2)) * s, "rows number", R),
    "median": (lambda x: hnp.median(x, 0) if len(x) else hnp.zeros(3), "rows", 0),
    "last": (lambda x: x.T if len(x) == 3 else hnp.zeros((3, 3)), "rows", 2),
    "two": (lambda x, y, v: (x[: len(y)] @ y[: len(x)].T).sum() * v, "rows others vector", 0),
    "shared": (lambda x, w: (hnp.array(1.0 * len(x)), x @ w), "rows shared", (0, R)),
    "a pair": (lambda p: {"a": p[0] * len(p[1]), "b": p[1]}, "pair", {"a": R, "b": R}),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_python_decides_by_the_length(name, compiled):
    f, kinds, out_axes = CASES[name]
    case = RaggedCase(f, kinds, 0, LENGTHS, True)
    axes = tuple([{"rows": R, "others": R, "pair": R, "shared": None}.get(kind, 0) for kind in kinds.split()])
    case.mapped = hx.vmap(f, axes, out_axes, per_length=True)
    y = (hx.jit(lambda *xs: case.mapped(*xs)) if compiled else case.mapped)(*case.args)
    case.check(hnp.moveaxis(y, 2, 0) if name == "last" else y, hx.grad(case.loss)(case.data))


def test_it_is_called_once_for_each_length():
    calls = []
    y = hx.vmap(lambda x, s: (calls.append((x.shape[0], s.shape)), x * s)[1], (R, 0), R, per_length=True)(
        hx.Ragged(hnp.arange(9.0), (3, 0, 3, 0, 3)), hnp.arange(5.0)
    )
    assert calls == [(0, ()), (3, ())]
    assert [lane.tolist() for lane in y.to_list()] == [[0, 0, 0], [], [6, 8, 10], [], [24, 28, 32]]


def test_lengths_of_an_argument_are_those_of_the_result():
    y = hx.vmap(lambda x: x[::-1], R, R, per_length=True)(X)
    assert y.segment_lengths == (3, 1)
    assert hx.vmap(lambda x, y: x + y, (R, R), R)(X, y).segment_lengths == (3, 1)


def test_known_arrays_of_lengths_and_keyword_arguments():
    x = hx.Ragged(hnp.arange(6.0), np.array([3, 1]))
    y = hx.vmap(lambda x, *, s: s * len(x), R, per_length=True)(x, s=hnp.array([2.0, 5.0]))
    assert y.tolist() == [6, 5]


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: hx.vmap(lambda x: x, R, 0, per_length=True)(X), hx.errors.ShapeMismatch, "where only the first axis"),
    (lambda: hx.vmap(lambda x: x, R, R, axis_name="i", per_length=True)(X), hx.errors.BadArgument, "never together"),
    (lambda: hx.vmap(abs, R, R, spmd_axis_name="i", per_length=True)(X), hx.errors.BadArgument, "no equal parts"),
    (lambda: hx.vmap(lambda x: hx.lax.psum(x.sum(), "i"), R, per_length=True)(X), hx.errors.UnboundAxis, "'i'"),
    (lambda: hx.vmap(lambda x: x, per_length=True)(hnp.ones(3)), hx.errors.BadArgument, "ragged arrays"),
    (lambda: hx.jit(hx.vmap(lambda x: x, R, R, per_length=True))(hx.Ragged(hnp.ones(4), np.array([3, 1]))),
     hx.errors.BadArgument, "has static lengths"),
    (lambda: hx.vmap(lambda x: x if len(x) == 1 else (x, x), R, R, per_length=True)(X), hx.errors.TreeMismatch, "one"),
    (lambda: hx.vmap(lambda x: x.sum(), R, R, per_length=True)(X), hx.errors.ShapeMismatch, "out_axes=0"),
])
def test_what_needs_all_lanes_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@hx.effect(vmap="per_lane", diff="stop")
class Entrance:
    def result_type(op, x):
        return None


def entering(row):
    hx.perform(Entrance(), row.sum())
    return row.sum()


IN_ORDER = hx.handler({Entrance: lambda state, op, x: (10 * state + x, None)})


def test_effects_that_lanes_would_perform_in_the_order_of_their_lengths_are_refused():
    with pytest.raises(hx.errors.CannotCross, match="in the order of their lengths"):
        hx.handle(IN_ORDER, 0.0)(hx.vmap(entering, R, per_length=True))(X)
    inside = lambda row: hx.handle(IN_ORDER, 0.0)(entering)(row)[0]
    np.testing.assert_array_equal(hx.vmap(inside, R, per_length=True)(X), hx.vmap(inside, R)(X))
    equal = hx.Ragged(hnp.arange(4.0), (2, 2))
    of_equal = hx.handle(IN_ORDER, 0.0)(hx.vmap(entering, R, per_length=True))(equal)[0]
    assert of_equal == hx.handle(IN_ORDER, 0.0)(hx.vmap(entering, R))(equal)[0]


def test_callbacks_in_any_order_are_performed():
    seen = []
    watched = lambda row: (hx.debug.callback(lambda x: seen.append(float(x)), row.sum()), row.sum())[1]
    hx.vmap(watched, R, per_length=True)(X)
    hx.effects_barrier()
    assert sorted(seen) == [3.0, 3.0]
