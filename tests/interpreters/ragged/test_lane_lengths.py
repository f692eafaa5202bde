"""Where the rows of lanes stand: lanes, places, and the layouts that go from rows to padding and back."""

import itertools
import math

import numpy as np
import pytest
from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.stack import STACK
from handlax.effects.operations.indexing.relocation import take_rows
from handlax.effects.types.extent import length
from handlax.interpreters.ragged.lane_lengths import Bucket, LaneLengths, Partition, RaggedLanes, lane_sizes

LENGTHS = [[3, 1, 4], [0, 2, 0], [0, 0], [1, 64, 33, 40, 2, 64]]


def lanes_of(lengths, spare=0):
    n = LaneLengths(hnp.array(lengths, "int32"), sum(lengths) + spare, max(lengths), STACK.get())
    return n, RaggedLanes(len(lengths), {0: n}, STACK.get())


@pytest.mark.parametrize("spare", [0, 2])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_lane_and_place_of_each_row(lengths, spare):
    n, _ = lanes_of(lengths, spare)
    total = sum(lengths)
    wanted = np.repeat(np.arange(len(lengths)), lengths)
    assert np.array_equal(n.lane[:total], wanted)
    assert np.array_equal(n.within[:total], np.concatenate([np.arange(k) for k in lengths]))
    assert np.array_equal(n.segment[total:], [len(lengths)] * (n.total - total))
    assert int(n.real.sum()) == total


@pytest.mark.parametrize("partition", ["whole", "rounded", "equal"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_layouts_meet_every_row_once(lengths, partition):
    _n, lanes = lanes_of(lengths, 2)
    found = getattr(lanes, partition)
    assert sorted(np.concatenate([bucket.lanes for bucket in found.buckets])) == list(range(len(lengths)))
    index, inverse = lanes.layout(length(0), found)
    real = np.flatnonzero(np.asarray(index) >= 0)
    assert sorted(np.asarray(index)[real]) == list(range(sum(lengths)))
    assert np.array_equal(np.asarray(inverse)[np.asarray(index)[real]], real)
    assert (np.asarray(inverse)[sum(lengths):] < 0).all()
    sizes = [np.asarray(lengths)[bucket.lanes] for bucket in found.buckets]
    assert all((size <= bucket.padded(length(0))).all() for size, bucket in zip(sizes, found.buckets))


def test_layouts_of_partitions_that_are_gone_are_not_met_again():
    _, lanes = lanes_of([3, 1, 4])
    for k in range(20):
        found = Partition(3, [Bucket(np.arange(3), {0: 4 + k})])
        assert lanes.layout(length(0), found)[0].shape == (3 * (4 + k),)


def test_padding_of_rounded_lengths_is_small():
    rng = np.random.default_rng(0)
    n, lanes = lanes_of(list(rng.integers(16, 513, 32)))
    places = sum(len(bucket.lanes) * bucket.padded(length(0)) for bucket in lanes.rounded.buckets)
    assert len(lanes.rounded.buckets) <= 8 and places < 1.2 * n.total


def test_derived_lengths():
    _, lanes = lanes_of([3, 0, 4], 2)
    assert lanes.of(2 * length(0) + 1).values.tolist() == [7, 1, 9]
    assert lanes.of(2 * length(0)).total == 18
    assert lanes.of(5).values.tolist() == [5, 5, 5]


def test_rows_are_taken_several_times():
    x, index = hnp.arange(8.0).reshape(4, 2), hnp.array([0, 0, 2])
    assert np.array_equal(take_rows(x[:3], index), x[np.asarray(index)])
    assert np.array_equal(hx.grad(lambda x: take_rows(x, index)[:, 0].sum())(x)[:, 0], [2, 0, 1, 0])


@pytest.mark.parametrize("longest", [{0: 1}, {0: 40}, {0: 512}, {0: 5000}, {0: 100_000}, {0: 45, 3: 700}], ids=str)
def test_sizes_of_lanes_one_after_the_other_grow_up_to_the_longest(longest):
    sizes = lane_sizes(longest)
    assert sizes[-1] == longest
    for number, bound in longest.items():
        found = [size[number] for size in sizes]
        assert found == sorted(found)
        assert found[0] < 256
        assert all([b <= max(4 * a + 3, a + -(-bound // 4)) for a, b in itertools.pairwise(found)])
    assert len(sizes) <= 4 + max(0, math.log(max(longest.values()) / 256, 4))  # each is compiled


def test_sizes_of_lanes_one_after_the_other_halve_the_work_of_padding():
    sizes = np.array([size[0] for size in lane_sizes({0: 512})])
    lengths = np.arange(1, 513)
    assert (sizes[np.searchsorted(sizes, lengths)] ** 2).mean() < 0.48 * 512**2


def classes(x):
    return hnp.floor(4 * hnp.abs(x[:, 0])).astype(int)


def ended(x, v):
    return hnp.append(x, v[None], axis=0)


def places(x):
    return hnp.arange(x.shape[0])


# functions to which the length of a lane is passed as a size
SIZES = {
    "length of a scan": (
        lambda x, s: lax.scan(lambda c, _: (c * 0.5 + x.sum() * s, c), s, None, length=x.shape[0]), "rows number",
        (0, R)),
    "length of a part": (
        lambda x, s: lax.scan(lambda c, _: (c * s, c), s, None, length=x.shape[0] // 2, reverse=True), "rows number",
        (0, R)),
    "fori_loop": (
        lambda x, v: lax.fori_loop(0, x.shape[0], lambda i, c: c * v + ended(x, v)[i], v), "rows vector", 0),
    "fori_loop of a part": (
        lambda x, v: lax.fori_loop(1, x.shape[0] // 2 + 1, lambda i, c: c * v + ended(x, v)[i], v), "rows vector", 0),
    "segment_sum": (lambda x: hx.ops.segment_sum(x, classes(x), x.shape[0]), "rows", R),
    "segment_max": (
        lambda x: hx.ops.segment_max(x, places(x) // 2 * 2, num_segments=x.shape[0])[::2], "rows", R),
    "segment_min": (lambda x: hx.ops.segment_min(hnp.sin(x), places(x), x.shape[0]), "rows", R),
    "segment_prod": (lambda x: hx.ops.segment_prod(x, places(x) // 2, num_segments=x.shape[0]), "rows", R),
    "segments of a vector": (
        lambda x, v: hx.ops.segment_sum(v, hnp.array([0, 2, 0]), x.shape[0]), "rows vector", R),
    "repeat": (lambda x, v: hnp.repeat(v[None], x.shape[0], axis=0) * x, "rows vector", R),
    "repeat of a number": (lambda x, s: hnp.repeat(s, x.shape[0]), "rows number", R),
    "repeat of several": (lambda x, v: hnp.repeat(v, x.shape[0]), "rows vector", R),
    "total of repeat": (
        lambda x: hnp.repeat(x[1:], 2, axis=0, total_repeat_length=x.shape[0] // 2 * 2), "rows", R),
    "bincount": (lambda x: hnp.bincount(classes(x), x[:, 1], length=x.shape[0]), "rows", R),
    "bincount of at least": (lambda x: hnp.bincount(classes(x), minlength=2, length=x.shape[0]), "rows", R),
    "arange downwards": (lambda x: x * hnp.arange(x.shape[0] - 1, -1, -1)[:, None], "rows", R),
    "arange by twos": (lambda x: hnp.arange(2 * x.shape[0], 0, -2, float) + hnp.arange(0.0, x.shape[0]), "rows", R),
    "linspace to the length": (lambda x: hnp.linspace(0, x.shape[0], x.shape[0]), "rows", R),
    "an array of lengths": (lambda x: hnp.array([x.shape[0], 2, 1.5]), "rows", 0),
    "full, eye, tri": (
        lambda x, s: hnp.full((x.shape[0], 3), s) * (hnp.eye(x.shape[0]) + hnp.tri(x.shape[0])).sum(0)[:, None],
        "rows number", R),
    "one_hot": (lambda x: hx.nn.one_hot(classes(x), x.shape[0]) @ x, "rows", R),
    "vander": (lambda x, v: hnp.vander(v / 3, x.shape[0]).T, "rows vector", R),
    "size of nonzero": (lambda x: hnp.nonzero(x[:, 0] > 0, size=x.shape[0], fill_value=-1)[0], "rows", R),
    "size of nonzero of two": (lambda x: hnp.argwhere(x > 0, size=x.shape[0], fill_value=7), "rows", R),
    "size of compress": (lambda x: hnp.compress(x[:, 0] > 0, x[:, 1], size=x.shape[0]), "rows", R),
    "random numbers": (lambda x: x * hx.random.normal(hx.random.key(3), (x.shape[0], 1)), "rows", R),
}
COMPILED = ["length of a scan", "fori_loop", "segment_max", "repeat of several", "size of nonzero"]
test_eager_sizes, _ = law_of_lanes(SIZES)
_, test_compiled_sizes = law_of_lanes({name: SIZES[name] for name in COMPILED})


def test_a_number_of_a_length_names_the_remedy():
    x = hx.Ragged(hnp.arange(8.0), (3, 1, 4))
    with pytest.raises(hx.errors.ConcretizationError, match=r"float32\(x.shape\[0\]\)"):
        hx.vmap(lambda r: r.sum() / float(r.shape[0]), R)(x)
    with pytest.raises(hx.errors.BadArgument, match="whole steps"):
        hx.vmap(lambda r: hnp.arange(0, r.shape[0], 0.5), R, R)(x)
