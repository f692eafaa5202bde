"""Ragged arrays: made, printed, converted, traced, and refused where lengths do not fit."""

import copy
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.interpreters.ragged.lane_lengths import capacity

R = hx.ragged_axis
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
    for index, error in ((3, IndexError), (-4, hx.errors.BadIndex), (1.5, hx.errors.NotAnInteger)):
        with pytest.raises(error, match="Ragged: ") as found:
            x[index]
        assert "test_ragged_array.py" in str(found.value)
    padded, mask = x.to_padded(9.0)
    assert padded.shape == (3, 4, 2) and mask.tolist() == [[j < n for j in range(4)] for n in (3, 1, 4)]
    assert np.array_equal(padded[mask], ROWS) and (padded[~mask] == 9).all()
    assert np.array_equal(hx.Ragged.from_padded(padded, lengths).data, ROWS)


def test_masked_arrays_convert_back():
    places = np.array([[1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]], bool)
    array = np.arange(24.0).reshape(3, 4, 2)
    wanted = [rows[mask].tolist() for rows, mask in zip(array, places)]
    masked = np.ma.MaskedArray(array, ~np.repeat(places[..., None], 2, 2))
    for x in (
        hx.Ragged.from_masked(masked),
        hx.Ragged.from_masked(array, places),
        hx.jit(hx.Ragged.from_masked)(array, places),
    ):
        assert [lane.tolist() for lane in x.to_list()] == wanted
        back = x.to_masked()
        assert [row.compressed().tolist() for row in back] == [np.ravel(lane).tolist() for lane in wanted]
        assert [lane.tolist() for lane in hx.Ragged.from_masked(back).to_list()] == wanted
    loss = lambda array: (hx.Ragged.from_masked(array, places).data ** 2).sum()
    assert np.array_equal(hx.grad(loss)(hnp.asarray(array)), 2 * array * places[..., None])


def test_rooms_of_lanes_are_static_and_their_lengths_are_values():
    traces = []

    @hx.jit
    def f(x):
        traces.append(1)
        return hx.vmap(lambda rows: rows @ rows.T @ rows, hx.ragged_axis, hx.ragged_axis)(x)

    for lengths in ([9, 2, 3], [12, 4, 1], [16, 1, 0]):
        lanes = [np.sin(np.arange(2.0 * n, dtype=np.float32)).reshape(n, 2) for n in lengths]
        x = hx.Ragged.bucketed(lanes, 4)
        assert x.longest == tuple(max(1, -(-n // 4)) * 4 for n in lengths)
        for y, rows in zip(f(x).to_list(), lanes, strict=True):
            assert np.allclose(y, rows @ rows.T @ rows, atol=1e-5)
    assert len(traces) == 2  # padded lengths 12, 4, 4 twice


def test_rooms_bound_what_lanes_are_padded_to():
    x = hx.Ragged.bucketed([np.ones((n, 2), np.float32) for n in (60, 3, 3, 3)], 8)
    scores = lambda x: hx.vmap(lambda rows: hx.nn.softmax(rows @ rows.T) @ rows, hx.ragged_axis, hx.ragged_axis)(x)
    memory = lambda x: hx.jit(scores).lower(x).compile().memory_analysis().temp_size_in_bytes
    assert memory(x) < memory(hx.Ragged(x.data, x.segment_lengths, 64)) / 2


def test_lengths_of_another_are_declared_equal():
    x, y = hx.Ragged(ROWS, np.array([3, 1, 4])), hx.Ragged(np.concatenate([ROWS, ROWS]), np.array([3, 1, 4]), 4)
    product = lambda x, y: hx.vmap(lambda a, b: a * b, hx.ragged_axis, hx.ragged_axis)(x, y)
    with pytest.raises(hx.errors.ShapeMismatch, match=r"n0 .*n1"):
        hx.jit(product)(x, y)
    for f in (lambda x, y: product(x, y.over(x)), lambda x, y: product(x.over(y), y)):
        assert np.array_equal(f(x, y).data[:8], ROWS**2)
        assert np.array_equal(hx.jit(f)(x, y).data[:8], ROWS**2)


def test_gradients_by_ragged_arrays_are_ragged_arrays():
    x = hx.Ragged(hnp.asarray(ROWS), np.array([3, 1, 4]))
    loss = lambda x: (hx.vmap(lambda rows: rows**2, hx.ragged_axis, hx.ragged_axis)(x).data).sum()
    gradient = hx.grad(loss, allow_int=True)(x)
    assert np.array_equal(gradient.data, 2 * ROWS) and repr(gradient) == "Ragged(i:3 => f32[n.i,2])"


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
    (lambda: hx.Ragged(ROWS, np.array([3, 4]), (3, 3)), hx.errors.BadArgument, "got 3 and 4 of lane 1"),
    (lambda: hx.Ragged(ROWS, np.array([3, 4]), (3, 4, 5)), hx.errors.ShapeMismatch, "each of 2 lanes, got 3"),
    (lambda: hx.Ragged.bucketed([ROWS], 0), hx.errors.BadArgument, "must be positive, got 0"),
    (lambda: hx.Ragged.from_masked(np.ma.MaskedArray(np.ones((1, 1, 2)), [[[True, False]]])), hx.errors.BadArgument,
     "masked as a whole or not at all"),
    (lambda: hx.Ragged(ROWS, (3, 5)).over(hx.Ragged(ROWS, (2, 6))), hx.errors.ShapeMismatch, "got 3 and 2 of lane 0"),
    (lambda: hx.Ragged(ROWS, (3, 5)).over(hx.Ragged(ROWS, (8,))), hx.errors.ShapeMismatch, "got 2 and 1"),
    (lambda: hx.Ragged((ROWS, ROWS[:3]), (3,)), hx.errors.ShapeMismatch, "equally many rows"),
    (lambda: hx.Ragged(ROWS, np.array([1.0])), hx.errors.DTypeMismatch, "vector of integers"),
    (lambda: hx.Ragged(ROWS, (1.0, 1)), hx.errors.DTypeMismatch, "lengths must be integral, got float 1.0"),
    (lambda: hx.Ragged(ROWS, np.array([1]), "a"), hx.errors.DTypeMismatch, "longest must be integral, got str 'a'"),
    (lambda: hx.Ragged(ROWS, np.array([1]), (2.5,)), hx.errors.DTypeMismatch, "got float 2.5"),
    (lambda: hx.Ragged.bucketed([ROWS], "a"), hx.errors.DTypeMismatch, "the multiple must be integral"),
    (lambda: hx.Ragged.from_padded(ROWS[0], (3,)), hx.errors.ShapeMismatch, "lanes and places"),
    (lambda: hx.Ragged.from_padded(ROWS, (3,) * 8), hx.errors.BadArgument, "the 2 places of a lane, got 3 of lane 0"),
    (lambda: hx.Ragged.from_padded(ROWS, np.array([0] * 7 + [-1])), hx.errors.BadArgument, "got -1 of lane 7"),
    (lambda: hx.Ragged.from_padded(ROWS, (3,)), hx.errors.ShapeMismatch, "each of 8 lanes needs a length, got 1"),
    (lambda: hx.Ragged.from_padded(ROWS, np.ones(8)), hx.errors.DTypeMismatch, "vector of integers"),
    (lambda: hx.Ragged.from_masked(ROWS, ROWS), hx.errors.DTypeMismatch, "the mask must be boolean"),
    (lambda: hx.Ragged.from_masked(ROWS, ROWS[:3] > 0), hx.errors.ShapeMismatch, r"the mask must be bool\[8,2\]"),
    (lambda: hx.Ragged.from_list([1.0]), hx.errors.ShapeMismatch, "a lane is an array of rows"),
    (lambda: hx.Ragged.batches([ROWS], 0), hx.errors.BadArgument, "positive number of rows, got 0"),
    (lambda: list(hx.Ragged.batches([1.0], 8)), hx.errors.ShapeMismatch, "a lane is an array of rows"),
    (lambda: hx.Ragged.from_list([]), hx.errors.BadArgument, "at least one lane"),
    (lambda: hx.Ragged.from_list(hnp.ones((2, 3))), hx.errors.BadArgument, "a list of lanes is needed, got an array"),
    (lambda: hx.Ragged.bucketed(np.ones((1, 3))), hx.errors.BadArgument, "a list of lanes is needed, got an array"),
    (lambda: hx.Ragged(ROWS, (3, 1, 4))[3], hx.errors.BadIndex, r"in \[-3, 3\), got 3"),
    (lambda: setattr(hx.Ragged(ROWS, (8,)), "data", 1), hx.errors.Immutable, "ragged arrays"),
    (lambda: hx.jit(lambda x: x.to_list())(hx.Ragged(ROWS, np.array([8]))), hx.errors.BadArgument, "to_padded"),
])
def test_what_does_not_fit_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("lengths", [[-2, 3, 1], [9, 9, 9], [2, 5, 5], [0, 0, 4]], ids=str)
def test_lengths_as_values_that_do_not_fit_are_clamped_in_one_way(lengths):
    """Between 0 and ``longest``, and to the rows that are left."""
    rows = np.arange(1.0, 5.0, dtype=np.float32)
    n = np.clip(lengths, 0, 3)
    starts = np.minimum(np.cumsum(n) - n, 4)
    n = np.minimum(n, 4 - starts)

    def f(x, lengths):
        lane = lambda r: (r.sum(), r.shape[0] * 1, r.max(initial=0.0), hnp.cumsum(r)[-1:].sum())
        return hx.vmap(lane, hx.ragged_axis)(hx.Ragged(x, lengths, 3))

    wanted = [rows[a : a + k] for a, k in zip(starts, n)]
    total, size, top, last = hx.jit(f)(rows, np.asarray(lengths, np.int32))
    np.testing.assert_allclose(total, [r.sum() for r in wanted])
    np.testing.assert_array_equal(size, n)
    np.testing.assert_allclose(top, [r.max(initial=0) for r in wanted])
    np.testing.assert_allclose(last, [r.sum() for r in wanted])


def test_the_length_as_a_number_reads_no_row():
    f = lambda x, n: hx.vmap(lambda r: r[0] / r.shape[0], hx.ragged_axis)(hx.Ragged(x, n, 3))
    program = hx.make_program(f)(np.ones(1000, np.float32), np.array([3, 2, 1], np.int32))
    assert "reduce_sum" not in str(program)


@pytest.mark.parametrize("lengths", [(2, 2), np.array([2, 2], np.int32)], ids=["static", "array"])
def test_copies_and_pickles(lengths):
    x = hx.Ragged({"a": hnp.arange(4.0)}, lengths, 3)
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), hx.device_get(x)):
        assert again.longest == 3
        np.testing.assert_array_equal(again[1]["a"], [2.0, 3.0])


def test_a_gradient_of_a_ragged_array_has_no_lengths():
    x = hx.Ragged(hnp.arange(4.0), hnp.array([2, 2]))
    g = hx.grad(lambda x: (hx.vmap(lambda r: r.sum(), hx.ragged_axis)(x) ** 2).sum(), allow_int=True)(x)
    np.testing.assert_array_equal(g.data, [2.0, 2.0, 10.0, 10.0])
    with pytest.raises(hx.errors.DTypeMismatch, match="lengths are a vector of integers"):
        hx.vmap(lambda r: r * 2, hx.ragged_axis, hx.ragged_axis)(g)


def counted(f):
    """The jitted function, and a list with an entry for each program that was compiled."""
    programs = []
    return hx.jit(lambda *xs: programs.append(1) or f(*xs)), programs


def test_capacities_are_four_between_powers_of_two_and_waste_less_than_a_quarter():
    sizes = [capacity(n) for n in range(2049)]
    assert sizes[:18] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 12, 12, 14, 14, 16, 16, 20]
    assert all([n <= size and 4 * size < 5 * n for n, size in enumerate(sizes) if n])
    assert all([len(set(sizes[n + 1 : 2 * n + 1])) == 4 for n in (4, 8, 16, 1024)])


def test_a_stream_of_lists_compiles_a_logarithmic_number_of_programs():
    rng, totals = np.random.default_rng(0), set()
    f, programs = counted(hx.vmap(lambda x: x.sum(), R))
    for _ in range(100):
        lanes = [np.ones(n, np.float32) for n in rng.integers(4, rng.integers(9, 65), 8)]
        x = hx.Ragged.from_list(lanes, longest=64)
        totals.add(sum(map(len, lanes)))
        assert sum(map(len, lanes)) <= x.data.shape[0] < 1.25 * sum(map(len, lanes))
        assert f(x).tolist() == [len(lane) for lane in lanes]
    assert len(totals) > 60 and len(programs) <= 4 * np.log2(max(totals) / min(totals)) + 2


def test_batches_compile_a_logarithmic_number_of_programs_and_waste_less_than_a_quarter():
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(2.5, 0.5, 500), 6, 40).astype(int)
    rows = [np.ones((n, 1), np.float32) for n in lengths]
    f, programs = counted(hx.vmap(lambda x: (x @ x.T).sum(), R))
    met = []
    for lanes, x in hx.Ragged.batches(rows, 128):
        met += lanes
        total = lengths[list(lanes)].sum()
        assert x.data.shape[0] == sum(x.longest) <= 128 and 4 * sum(x.longest) < 5 * total
        assert f(x).tolist() == (lengths[list(lanes)] ** 2).tolist()
    assert sorted(met) == list(range(500))
    assert len(programs) <= 8 * np.log2(lengths.max() / lengths.min()) + 10


def test_batches_of_a_stream_without_an_end_compile_one_program_for_each_size():
    rng = np.random.default_rng(0)
    stream = ({"words": np.ones(n), "parts": np.ones((n, 2))} for n in iter(lambda: rng.integers(9, 17), None))
    found = {(x.longest[0], len(lanes)) for _, (lanes, x) in zip(range(60), hx.Ragged.batches(stream, 64))}
    assert found == {(10, 6), (12, 5), (14, 4), (16, 4)}
    (whole,) = hx.Ragged.batches([np.ones(100), np.ones(0)][:1], 10)
    assert whole[0] == (0,) and whole[1].longest == (112,)
    assert [x.to_list()[0].shape for _, x in hx.Ragged.batches([np.ones(0)], 10)] == [(0,)]


def test_from_list_bounds_the_lengths():
    assert [hx.Ragged.from_list([np.ones(n)] * 9).longest for n in (0, 1, 5, 64, 65)] == [1, 1, 8, 64, 128]
    with pytest.raises(hx.errors.ShapeMismatch, match="a lane is an array of rows"):
        hx.Ragged.from_list([[1, 2], [3]])


@pytest.mark.parametrize("lengths", [(2, 2), np.array([2, 2], np.int32)], ids=["static", "array"])
def test_a_tree_of_numpy_arrays_is_mapped_too(lengths):
    x = hx.tree.map(np.asarray, hx.Ragged(hnp.arange(4.0), lengths))
    np.testing.assert_array_equal(hx.vmap(lambda r: r.sum(), hx.ragged_axis)(x), [1.0, 5.0])
    np.testing.assert_array_equal(x.to_padded()[0], [[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(x[1], [2.0, 3.0])
