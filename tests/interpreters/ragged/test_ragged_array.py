"""Ragged arrays: made, printed, converted, traced, and refused where lengths do not fit."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

ROWS = np.arange(16, dtype=np.float32).reshape(8, 2)
SPLIT = np.split(ROWS, [3, 4])


def test_the_type_names_the_lengths():
    assert str(hx.Ragged(ROWS[:, 0], (3, 1, 4)).type) == "i:3 => f32[[3,1,4].i]"
    assert str(hx.Ragged(ROWS, np.array([3, 1, 4])).type) == "i:3 => f32[[3,1,4].i,2]"
    assert str(hx.Ragged((ROWS, ROWS[:, 0]), (8,)).type) == "i:1 => (f32[[8].i,2], f32[[8].i])"
    shown = []
    hx.jit(lambda x: shown.append(str(x.type)))(hx.Ragged(ROWS, np.array([3, 1, 4])))
    assert shown == ["i:3 => f32[n.i,2]"]


@pytest.mark.parametrize("lengths", [(3, 1, 4), np.array([3, 1, 4])])
def test_lists_and_padded_arrays_convert_back(lengths):
    x = hx.Ragged(ROWS, lengths)
    assert [np.asarray(part).tolist() for part in x.to_list()] == [part.tolist() for part in SPLIT]
    assert np.array_equal(x[-1], SPLIT[-1]) and len(x) == 3
    assert np.array_equal(hx.Ragged.from_list(SPLIT).data, ROWS)
    padded, mask = x.to_padded(9.0)
    assert padded.shape == (3, 4, 2) and mask.tolist() == [[j < n for j in range(4)] for n in (3, 1, 4)]
    assert np.array_equal(padded[mask], ROWS) and (padded[~mask] == 9).all()
    assert np.array_equal(hx.Ragged.from_padded(padded, lengths).data, ROWS)


def test_conversions_are_compiled_and_differentiated():
    n = np.array([3, 1, 4])
    f = lambda rows, n: hx.Ragged(rows, n, 5).to_padded()[0]
    assert hx.jit(f)(ROWS, n).shape == (3, 5, 2)
    assert np.array_equal(hx.jit(f)(ROWS, n)[:, :4], f(ROWS, n))
    assert np.array_equal(hx.grad(lambda rows: (f(rows, n) ** 2).sum())(hnp.asarray(ROWS)), 2 * ROWS)
    back = hx.jit(lambda x, n: hx.Ragged.from_padded(x, n).data)(f(ROWS, n), n)
    assert np.array_equal(back[:8], ROWS) and not back[8:].any()


def test_it_is_a_pytree():
    x = hx.Ragged({"a": ROWS, "b": ROWS[:, 0]}, np.array([3, 1, 4]))
    assert len(hx.tree.leaves(x)) == 3 and len(hx.tree.leaves(hx.Ragged(ROWS, (8,)))) == 1
    assert hx.tree.map(lambda v: v, x).type.__repr__() == repr(x.type)


def test_equal_rooms_share_a_program():
    traces = []

    @hx.jit
    def f(x):
        traces.append(1)
        return hx.vmap(lambda row: row.sum(0), hx.ragged_axis)(x)

    for lengths in ([3, 1, 4], [0, 8, 0], [2, 2, 2]):
        wanted = [part.sum(0) for part in np.split(ROWS, np.cumsum(lengths))[:3]]
        assert np.allclose(f(hx.Ragged(ROWS, np.array(lengths))), wanted)
    assert len(traces) == 1


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: hx.Ragged(ROWS, (3, 9)), hx.errors.BadArgument, "sum to 12, but the data has 8 rows"),
    (lambda: hx.Ragged(ROWS, np.array([3, -1])), hx.errors.BadArgument, "lane 1 has -1"),
    (lambda: hx.Ragged(ROWS, np.array([3, 4]), 3), hx.errors.BadArgument, "got 3 and 4 of lane 1"),
    (lambda: hx.Ragged((ROWS, ROWS[:3]), (3,)), hx.errors.ShapeMismatch, "equally many rows"),
    (lambda: hx.Ragged(ROWS, np.array([1.0])), hx.errors.DTypeMismatch, "vector of integers"),
    (lambda: hx.Ragged.from_list([]), hx.errors.BadArgument, "at least one lane"),
    (lambda: hx.Ragged(ROWS, (3, 1, 4))[3], IndexError, "lane 3 of 3"),
    (lambda: setattr(hx.Ragged(ROWS, (8,)), "data", 1), hx.errors.Immutable, "ragged arrays"),
    (lambda: hx.jit(lambda x: x.to_list())(hx.Ragged(ROWS, np.array([8]))), hx.errors.BadArgument, "to_padded"),
])
def test_what_does_not_fit_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()
