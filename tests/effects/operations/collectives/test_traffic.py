"""What devices send: the cells against messages counted one by one, of algorithms that compute the right values."""

from __future__ import annotations

import itertools
from collections import Counter
from math import prod

import numpy as np
import pytest

from handlax.effects.core.columns import TRAFFIC
from handlax.effects.operations.collectives.collective import (
    AllGather,
    AllToAll,
    AxisIndex,
    Pbroadcast,
    Pmax,
    Ppermute,
    Psum,
    PsumScatter,
    Pvary,
)
from handlax.effects.operations.collectives.traffic import Sent
from handlax.effects.types.array_type import array_type
from handlax.sharding import AbstractMesh

SIZES = {"a": 2, "b": 3, "c": 4}
MESH = AbstractMesh(tuple(SIZES.values()), tuple(SIZES))
SUBSETS = [names for n in (1, 2, 3) for names in itertools.permutations(SIZES, n)]
WHOLE = 24 * 8  # bytes: 24 numbers of 64 bits


def axes_of(names):
    return tuple((name, SIZES[name]) for name in names)


class Devices:
    """A mesh of devices with a list of numbers each, which count what they send along each axis."""

    def __init__(self, names):
        self.axes = [name for name in SIZES if name in names]  # in the order of the mesh: the last one is the innermost
        shape = [SIZES[name] for name in self.axes]
        self.places = [*itertools.product(*map(range, shape))]
        self.values = {place: [float(x) for x in range(24 * i, 24 * i + 24)] for i, place in enumerate(self.places)}
        self.bytes, self.messages = Counter(), Counter()

    def ring(self, axis, chunk, combine):
        """Every device sends chunk number ``chunk(position, step)`` to the next, in n - 1 steps."""
        k, n = self.axes.index(axis), SIZES[axis]
        chunks = {place: self.chunks[place] for place in self.places}
        for step in range(n - 1):
            sent = {}
            for place in self.places:
                number = chunk(place[k], step) % n
                target = (*place[:k], (place[k] + 1) % n, *place[k + 1 :])
                sent[target] = number, list(chunks[place][number])
                self.bytes[axis, place] += 8 * len(chunks[place][number])
                self.messages[axis, place] += 1
            for target, (number, values) in sent.items():
                chunks[target][number] = combine(chunks[target][number], values)

    def scatter(self, axis):
        """Each device along the axis keeps the sum of its chunk."""
        k, n = self.axes.index(axis), SIZES[axis]
        self.chunks = {p: [list(c) for c in np.split(np.array(v), n)] for p, v in self.values.items()}
        self.ring(axis, lambda i, step: i - step - 1, lambda own, new: [x + y for x, y in zip(own, new)])
        self.values = {p: self.chunks[p][p[k]] for p in self.places}

    def gather(self, axis):
        """Each device along the axis gets the values of all, in order."""
        k, n = self.axes.index(axis), SIZES[axis]
        self.chunks = {p: [v if i == p[k] else [] for i in range(n)] for p, v in self.values.items()}
        self.ring(axis, lambda i, step: i - step, lambda own, new: new)
        self.values = {p: [x for c in self.chunks[p] for x in c] for p in self.places}

    def sent(self):
        """By axis, where all devices send the same."""
        found = {}
        for axis in self.axes:
            counts = {(self.messages[axis, place], self.bytes[axis, place]) for place in self.places}
            found[axis, SIZES[axis]] = Sent(*counts.pop())
            assert not counts
        return found


def traffic(op, operand=WHOLE, result=WHOLE):
    types = [array_type((n // 8,), "float64") for n in (operand, result)]
    return TRAFFIC.find(type(op))(op, MESH, types[:1], types[1:])


@pytest.mark.parametrize("names", SUBSETS)
def test_a_sum_is_scattered_from_the_inside_and_gathered_from_the_outside(names):
    devices = Devices(names)
    expected = np.sum([*devices.values.values()], axis=0).tolist()
    for axis in reversed(devices.axes):
        devices.scatter(axis)
    scattered = devices.sent()
    for axis in devices.axes:
        devices.gather(axis)
    assert all(values == expected for values in devices.values.values())
    axes = axes_of(names)
    dims = tuple(range(len(axes)))
    total = prod(n for _, n in axes)
    assert traffic(PsumScatter(axes, None, dims), WHOLE, WHOLE // total) == scattered
    assert traffic(AllGather(axes, None, dims), WHOLE // total, WHOLE) == scattered
    for op in (Psum(axes), Pmax(axes), Pbroadcast(axes, None, 0)):
        assert traffic(op) == devices.sent()
    assert sum(sent.bytes for sent in traffic(Psum(axes)).values()) == 2 * (total - 1) * WHOLE // total


@pytest.mark.parametrize("names", SUBSETS)
def test_an_exchange_sends_along_each_axis_what_changes_its_position(names):
    axes = axes_of(names)
    places = [*itertools.product(*[range(n) for _, n in axes])]
    block = WHOLE // len(places)
    for mine in places:
        moved = [[other for other in places if other[k] != mine[k]] for k in range(len(axes))]
        expected = {axis: Sent(axis[1] - 1, len(others) * block) for axis, others in zip(axes, moved)}
        assert traffic(AllToAll(axes, None, tuple(range(len(axes))))) == expected


@pytest.mark.parametrize(("pairs", "crossed"), [
    ([], ()), ([(0, 0)], ()), ([(0, 1)], "c"), ([(0, 4)], "b"), ([(3, 4)], "bc"),
    ([(i, (i + 1) % 12) for i in range(12)], "bc"),
])
def test_a_permutation_sends_along_the_axes_that_a_message_crosses(pairs, crossed):
    op = Ppermute(axes_of("bc"), tuple(pairs))
    assert traffic(op) == {axis: Sent(1, WHOLE) for axis in axes_of(crossed)}


def test_groups_meet_along_the_axes_whose_products_they_are():
    axes = axes_of("bc")
    rows = tuple(tuple(range(i, i + 4)) for i in (0, 4, 8))
    columns = tuple(tuple(range(i, 12, 4)) for i in range(4))
    halves = tuple((4 * i + j, 4 * i + j + 2) for i in range(3) for j in range(2))
    blocks = ((0, 2, 4, 6, 8, 10), (1, 3, 5, 7, 9, 11))
    assert traffic(Psum(axes, rows)) == traffic(Psum(axes_of("c")))
    assert traffic(Psum(axes, columns)) == traffic(Psum(axes_of("b")))
    assert traffic(Psum(axes, halves)) == {("c", 4): Sent(2, WHOLE)}
    assert traffic(Psum(axes, blocks)) == {("b", 3): Sent(4, 2 * 2 * WHOLE // 2 // 3), ("c", 4): Sent(2, WHOLE)}
    cross = ((0, 1, 2, 3), (4, 8), *[(lane,) for lane in (5, 6, 7, 9, 10, 11)])
    assert traffic(Psum(axes, cross)) == {("b", 3): Sent(2, WHOLE), ("c", 4): Sent(6, 2 * 3 * WHOLE // 4)}
    assert traffic(Psum(axes_of("c"), ((0, 1, 2), (3,)))) == {("c", 4): Sent(4, 4 * WHOLE // 3)}


def test_groups_that_are_no_products_count_on_every_axis_that_they_cross():
    diagonal = tuple(tuple((i + 4 * (j % 3)) % 12 for i, j in [(k, k), (k + 1, k + 1)]) for k in range(0, 4, 2))
    rest = tuple((lane,) for lane in range(12) if not any(lane in group for group in diagonal))
    op = Psum(axes_of("bc"), diagonal + rest)
    assert traffic(op) == {("b", 3): Sent(2, WHOLE), ("c", 4): Sent(2, WHOLE)}


def test_a_size_that_cannot_be_divided_is_rounded_up():
    assert traffic(Psum(axes_of("c")), 8, 8) == {("c", 4): Sent(6, 12)}
    assert traffic(Psum(axes_of("bc")), 8, 8) == {("b", 3): Sent(4, 3), ("c", 4): Sent(6, 12)}


@pytest.mark.parametrize("op", [AxisIndex(axes_of("a")), Pvary(axes_of("a"))])
def test_what_does_not_meet_sends_nothing(op):
    assert not TRAFFIC.has(type(op))


def test_axes_of_one_device_are_silent():
    mesh = AbstractMesh((1, 3), ("one", "b"))
    x = array_type((3,), "float32")
    assert TRAFFIC.find(Psum)(Psum((("one", 1), ("b", 3))), mesh, [x], [x]) == {("b", 3): Sent(4, 16)}
