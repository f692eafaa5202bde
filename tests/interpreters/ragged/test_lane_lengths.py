"""Where the rows of lanes stand: lanes, places, and the layouts that go from rows to padding and back."""

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.stack import STACK
from handlax.effects.types.extent import length
from handlax.interpreters.ragged.lane_lengths import LaneLengths, RaggedLanes, lane_sizes, sum_rows, take_rows

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
    assert all((size <= bucket.room(length(0))).all() for size, bucket in zip(sizes, found.buckets))


def test_padding_of_rounded_lengths_is_small():
    rng = np.random.default_rng(0)
    n, lanes = lanes_of(list(rng.integers(16, 513, 32)))
    places = sum(len(bucket.lanes) * bucket.room(length(0)) for bucket in lanes.rounded.buckets)
    assert len(lanes.rounded.buckets) <= 8 and places < 1.2 * n.total


def test_derived_lengths():
    _, lanes = lanes_of([3, 0, 4], 2)
    assert lanes.of(2 * length(0) + 1).values.tolist() == [7, 1, 9]
    assert lanes.of(2 * length(0)).total == 18
    assert lanes.of(5).values.tolist() == [5, 5, 5]


def test_rows_are_summed_and_repeated():
    x, index = hnp.arange(8.0).reshape(4, 2), hnp.array([0, 0, 2, 3])
    assert np.array_equal(sum_rows(x, index, 3), [[2, 4], [0, 0], [4, 5]])
    assert np.array_equal(take_rows(x[:3], hnp.array([0, 0, 2])), x[np.array([0, 0, 2])])
    assert np.array_equal(hx.grad(lambda x: take_rows(x, hnp.array([0, 0, 2]))[:, 0].sum())(x)[:, 0], [2, 0, 1, 0])


@pytest.mark.parametrize("longest", [{0: 1}, {0: 40}, {0: 512}, {0: 5000}, {0: 45, 3: 700}], ids=str)
def test_sizes_of_lanes_one_after_the_other_grow_up_to_the_longest(longest):
    sizes = lane_sizes(longest)
    assert sizes[-1] == longest
    for number, bound in longest.items():
        found = [size[number] for size in sizes]
        assert found == sorted(found)
        assert found[0] <= max(32, 63)
        assert all([b <= max(2 * a, a + -(-bound // 8)) for a, b in itertools.pairwise(found)])
