"""The lengths of lanes, and where their rows stand: the index arrays that all values over one vector of lengths share.

    rows       lanes one after the other, T of them; behind the last lane, copies of the last row
    padded     lanes of about equal length together, in buckets, each as long as its longest lane

Index arrays are computed once, outside of the lanes; where the lengths are known they are constants.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.errors import CannotCross
from ...effects.base.stack import BASE, Run, inside, perform
from ...effects.control.checkpoint import OptimizationBarrier
from ...effects.core.arrays import ConcreteArray, as_array, from_numpy, scalar
from ...effects.core.operation import shared
from ...effects.operations.elementwise.arithmetic import Unread
from ...effects.operations.elementwise.bitwise import bitwise_not
from ...effects.operations.elementwise.comparison import lt, select
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.comparison import min as minimum
from ...effects.operations.foundations.shapes import broadcast_in_dim, full, reshape, zeros
from ...effects.operations.indexing.relocation import take_rows
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.slicing import concatenate, index_in_dim
from ...effects.operations.reductions.cumulative import Cumsum
from ...effects.operations.reductions.row_folds import RepeatRows, lanes_of_rows, row_index
from ...effects.types.array_type import array_type
from ...effects.types.dtypes import INEXACT
from ...effects.types.extent import Extent, length, most, part_extent
from ..batching.batch import BatchBox
from ..core.body_transform import INNER_BODIES, StateFlow

INT32 = np.dtype("int32")
BUCKETS = 8  # lengths are rounded up to so many sizes, of at least ``SMALLEST`` rows
SMALLEST = 32


def line(size: int) -> Any:
    """0, 1, ..., size - 1."""
    return iota(INT32, size)


def constant(x: Any) -> Any:
    """Indices that are known, as an array."""
    return from_numpy(np.asarray(x, INT32))


def fitting_ends(lengths: Any, rows: int, longest: Any) -> Any:
    """Where lanes end, whose lengths are values: from 0 to ``longest``, one bound or one each, and within the rows."""
    bound = constant(np.broadcast_to(longest, lengths.type.shape))
    ends = perform(shared(Cumsum, 0, False), minimum(maximum(lengths, scalar(0, INT32)), bound))
    return minimum(ends, scalar(rows, INT32))


class LaneLengths:
    """One vector of lengths. ``total``: the room of rows; ``longest``: a bound of the lengths; both at least 1.

    ``known``: the lengths, where they are no values of a program; ``outer``: the run around the lanes. ``source``: the
    ragged array that has them, if one does; ``ends``: the row behind the last one of each lane, where it is known.
    """

    def __init__(
        self, values: Any, total: int, longest: int, outer: Run, source: Any = None, ends: Any = None
    ):
        self.values = values
        self.source = source
        self.count = values.type.shape[0]
        self.total = max(total, 1)
        self.longest = max(min(longest, self.total), 1)
        self.known = values.value if isinstance(values, ConcreteArray) else None
        rooms = getattr(source, "longest", None)  # a bound for each lane, or one for all
        self.rooms = np.asarray(rooms) if isinstance(rooms, tuple) else None
        self.place = BASE if self.known is not None else outer  # where its index arrays are computed
        if ends is not None:
            self.ends = ends

    def as_operand(self, values: Any, outer: Run) -> LaneLengths:
        """The same lengths where they are the operand ``values``; as little is known of them, whatever it is."""
        new = copy.copy(self)
        new.__dict__ = {name: x for name, x in vars(self).items() if name in _DESCRIPTION}
        new.values, new.source, new.place = values, None, outer
        return new

    @cached_property
    def ends(self) -> Any:
        """The row behind the last one of each lane."""
        with inside(self.place):
            return perform(shared(Cumsum, 0, False), self.values)

    @cached_property
    def starts(self) -> Any:
        """The first row of each lane."""
        with inside(self.place):
            return self.ends - self.values

    @cached_property
    def end(self) -> Any:
        """The row behind the last lane."""
        with inside(self.place):
            return index_in_dim(self.ends, self.count - 1, 0, False) if self.count else scalar(0, INT32)

    @cached_property
    def real(self) -> Any:
        """Whether a row belongs to a lane, or is spare."""
        with inside(self.place):
            return lt(line(self.total), self.end)

    @property
    def full(self) -> bool:
        """Whether there are no spare rows, as far as that is known."""
        return self.known is not None and int(self.known.sum()) == self.total

    @property
    def no_empty(self) -> bool:
        """Whether every lane has a row, as far as that is known."""
        return self.known is not None and bool(self.known.all())

    @cached_property
    def segment(self) -> Any:
        """The lane of each row; of spare rows the number of lanes."""
        with inside(self.place):
            return lanes_of_rows(self.ends, self.total)

    @cached_property
    def index(self) -> Any:
        """The description of the lanes that folds of rows and repetitions take."""
        with inside(self.place):
            found = row_index(minimum(self.ends, scalar(self.total, INT32)), self.total)
            return found if self.known is not None else tuple([perform(OptimizationBarrier(), v)[0] for v in found])

    @property
    def lane(self) -> Any:
        """The lane of each row; of spare rows that of the last row."""
        return self.index[2]

    @cached_property
    def within(self) -> Any:
        """The place of each row in its lane."""
        with inside(self.place):
            if not self.count:
                return zeros(array_type((self.total,), INT32))
            return line(self.total) - self.repeated(self.starts)

    @cached_property
    def places(self) -> Any:
        """The place of each row in its lane; of spare rows that of the last row."""
        with inside(self.place):
            return self.within if self.full else self.copied(self.within)

    def repeated(self, x: Any) -> Any:
        """For each row what its lane has: ``x``, lanes first, along the rows."""
        if self.count == 1:
            return broadcast_in_dim(x, (self.total, *x.type.shape[1:]), tuple(range(len(x.type.shape))))
        if x.type.dtype in INEXACT and self.count:
            return perform(shared(RepeatRows, True), x, *self.index)
        return take_rows(x, self.lane)

    def copied(self, x: Any) -> Any:
        """Rows with copies of the last one, or ones, without cotangent, in place of the spare ones."""
        last = perform(Unread(), take_rows(x, reshape(self.last, (1,))))
        (last,) = perform(OptimizationBarrier(), select(self.end > 0, last, full(last.type, 1)))  # it is read once
        last = broadcast_in_dim(last, x.type.shape, tuple(range(x.ndim)))
        return select(broadcast_in_dim(self.real, x.type.shape, (0,)), x, last)

    @cached_property
    def last(self) -> Any:
        """The last row of a lane, an index; 0 where all lanes are empty."""
        with inside(self.place):
            return maximum(self.end - 1, scalar(0, INT32))


_DESCRIPTION = ("count", "total", "longest", "known", "rooms")  # what is static of a ``LaneLengths``


class EnteredRows(BatchBox):
    """Rows as they ``entered``, where the spare ones may be anything; in ``value`` they are copies of the last one.

    The copies are made when they are first asked for: a sum leaves the spare rows out, and costs none.
    """

    __slots__ = ("entered", "lengths", "_copied")

    def __init__(self, run: Any, mark: Any, lengths: LaneLengths, x: Any):
        self.type = x.type.update(shape=(mark.extent, *x.type.shape[1:]))
        self.run, self.dim, self.site = run, mark, run.cell.site
        self.entered, self.lengths, self._copied = x, lengths, None

    @property
    def value(self) -> Any:
        if self._copied is None:
            run: Any = self.run
            with inside(run.outer):
                self._copied = self.lengths.copied(self.entered)
        return self._copied


@dataclass(frozen=True, eq=False)
class Bucket:
    """Lanes that are padded to one length: their numbers, and for each number of a length the size of the padding."""

    lanes: np.ndarray[Any, Any]
    sizes: dict[int, int]
    exact: bool = False  # whether all lanes have these lengths

    def room(self, size: Any) -> int:
        """The size that an extent has in the lanes of the bucket, which are padded; others are as any size."""
        if type(size) is not Extent or size.lengths.isdisjoint(self.sizes):
            return size
        return size.at(self.sizes) if self.exact else room_of(size, self.sizes)


def common_factor(size: Extent) -> int:
    """The least room: k for k times a size, so that its rows can be divided."""
    return gcd(*[factor for _, factor in size.terms])


class Partition:
    """The lanes divided into buckets. ``order``: the lanes, bucket by bucket; ``whole``: it is one bucket, in order."""

    def __init__(self, count: int, buckets: Sequence[Bucket]):
        self.buckets = tuple(buckets)
        self.whole = len(self.buckets) == 1
        self.counts = tuple([len(bucket.lanes) for bucket in self.buckets])
        lanes = np.concatenate([bucket.lanes for bucket in self.buckets]) if self.buckets else np.zeros(0, int)
        self.order = constant(lanes)
        self.inverse = constant(np.argsort(lanes))


class Segments(NamedTuple):
    """The spec of rows: lanes of these lengths one after the other. ``key`` is equal for the same vector of lengths.

    ``lengths``: the ``LaneLengths``, or what computes them, given the run around the lanes. Of results: lanes of
    whatever lengths they have.
    """

    key: Any = None
    lengths: Any = None

    def within(self, outer: Run) -> Segments:
        """The spec with its lengths computed."""
        return self._replace(lengths=self.lengths(outer)) if callable(self.lengths) else self


class RaggedLanes:
    """All that the runs of one ragged ``vmap`` share: the lengths by their numbers, and the layouts computed so far.

    ``first``: the number of its first length. ``make_numbers``: the numbers of the lanes, if they are not 0, 1, 2, ...
    """

    def __init__(
        self, count: int, lengths: dict[int, LaneLengths], outer: Run, first: int = 0, make_numbers: Any = None
    ):
        self.count = count
        self.first = first
        self.make_numbers = make_numbers
        self.lengths = lengths
        self.outer = outer
        self.home: Run | None = None  # the run that was installed for them
        self.known = all([n.known is not None for n in lengths.values()])
        self._numbers: dict[Any, int] = {}
        self._derived: dict[Extent, LaneLengths] = {}
        self._layouts: dict[Any, Any] = {}

    def of_operands(self, values: Sequence[Any], outer: Run) -> RaggedLanes:
        """The same lanes where these are the lengths that are not known, then the numbers if they are not 0, 1, ..."""
        rest = iter(values)
        lengths = {k: n if n.known is not None else n.as_operand(next(rest), outer) for k, n in self.lengths.items()}
        new = RaggedLanes(self.count, lengths, outer, self.first, self.make_numbers)
        new.home = self.home
        if self.make_numbers is not None:
            new.numbers = next(rest)
        return new

    def extent(self, rows: Segments) -> Extent:
        """The length of these rows in the lanes: rows of the same vector of lengths have one."""
        number = self._numbers.get(rows.key)
        if number is None:
            number = self._numbers[rows.key] = self.first + len(self.lengths)
            self.lengths[number] = rows.lengths
            self.known = self.known and rows.lengths.known is not None
        return length(number)

    @cached_property
    def numbers(self) -> Any:
        """The number of each lane."""
        with inside(self.outer):
            return line(self.count) if self.make_numbers is None else as_array(self.make_numbers())

    def owns(self, extents: Sequence[Extent]) -> bool:
        """Whether one of the extents is a length of these lanes."""
        return any([number in self.lengths for extent in extents for number in extent.lengths])

    def rows(self, size: Extent) -> Any:
        """The room of rows of an extent; a length of lanes around these is as any size."""
        return self.of(size).total if self.owns((size,)) else size

    def of(self, size: Any) -> LaneLengths:
        """The lengths that an extent, or a size that all lanes share, has in the lanes."""
        found = self._derived.get(size)
        if found is None:
            found = self._derived[size] = self._lengths_of(size)
        return found

    def _lengths_of(self, size: Any) -> LaneLengths:
        if type(size) is not Extent:
            return LaneLengths(from_numpy(np.full(self.count, size, INT32)), size * self.count, size, self.outer)
        if not size.lengths <= self.lengths.keys():
            raise CannotCross(
                f"vmap: along one axis there would be lengths of these lanes and of lanes around them, got {size}.",
                hint="keep them axes of their own, or pad one of them: x.to_padded().",
            )
        if size.terms == (((min(size.lengths),), 1),):
            return self.lengths[min(size.lengths)]
        parts = {number: self.lengths[number] for number in size.lengths}
        place = BASE if all([n.known is not None for n in parts.values()]) else self.outer
        with inside(place):
            values: Any = as_array(size.at({number: n.values for number, n in parts.items()}))
        longest = room_of(size, {number: n.longest for number, n in parts.items()})
        totals = {number: n.total for number, n in parts.items()}
        ((first, factor), *more) = size.terms
        if not more and len(first) == 1 and type(first[0]) is int:
            total = factor * totals[first[0]]  # so that a reshape moves no rows
        else:
            total = rows_room(size, totals, {number: n.longest for number, n in parts.items()}, self.count)
        if isinstance(values, ConcreteArray):
            longest = int(values.value.max(initial=0))
            if len(size.terms) > 1 or type(size.terms[0][0][-1]) is not int or len(size.terms[0][0]) > 1:
                total = int(values.value.sum())
        return LaneLengths(values, max(int(total), common_factor(size)), int(longest), self.outer)

    @cached_property
    def whole(self) -> Partition:
        """All lanes in one bucket."""
        sizes = {number: n.longest for number, n in self.lengths.items()}
        return Partition(self.count, [Bucket(np.arange(self.count), sizes)])

    @property
    def divided(self) -> bool:
        """Whether lanes are known to differ in their room, so that they are not all padded to the longest."""
        return self.known or any([n.rooms is not None for n in self.lengths.values()])

    @cached_property
    def rounded(self) -> Partition:
        """Lanes of one room together, which is the rounded length where it is known.

        It is rounded to a multiple of an eighth of the longest, of at least 32.
        """
        if not self.divided or not self.count:
            return self.whole
        return self._grouped({number: self._round(n) for number, n in self.lengths.items()})

    @cached_property
    def equal(self) -> Partition:
        """Lanes of equal lengths together, without any padding. The lengths are known."""
        return self._grouped({number: n.known for number, n in self.lengths.items()}, exact=True)

    @cached_property
    def refined(self) -> list[tuple[Any, Any, list[int]]]:
        """For each rounded bucket: its lanes by equal lengths, an order and its inverse, and the numbers of these."""
        found = []
        for bucket in self.rounded.buckets:
            inner = [j for j, part in enumerate(self.equal.buckets) if part.lanes[0] in bucket.lanes]
            order = np.searchsorted(bucket.lanes, np.concatenate([self.equal.buckets[j].lanes for j in inner]))
            found.append((constant(order), constant(np.argsort(order)), inner))
        return found

    def _round(self, n: LaneLengths) -> Any:
        if n.known is None:
            return np.full(self.count, n.longest) if n.rooms is None else np.clip(n.rooms, 1, n.longest)
        step = bucket_step(n.longest)
        return np.clip(-(-n.known // step) * step, 1, n.longest)

    def _grouped(self, sizes: dict[int, Any], exact: bool = False) -> Partition:
        """The partition by these sizes of the lanes."""
        columns = np.stack(list(sizes.values()), 1)
        kinds, which = np.unique(columns, axis=0, return_inverse=True)
        which = which.reshape(-1)
        return Partition(self.count, [
            Bucket(np.flatnonzero(which == k), {number: int(size) for number, size in zip(sizes, kind)}, exact)
            for k, kind in enumerate(kinds)
        ])

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What ``make()`` gave for this key at first."""
        found = self._layouts.get(key)
        if found is None:
            found = self._layouts[key] = make()
        return found

    def layout(self, size: Any, partition: Partition) -> tuple[Any, Any]:
        """The row at each padded place, and the padded place of each row, as ``Relocate`` takes them."""
        key = (size, partition)
        found = self._layouts.get(key)
        if found is None:
            n = self.of(size)
            with inside(n.place):
                found = self._layouts[key] = (self._to_padded(n, size, partition), self._to_rows(n, size, partition))
        return found

    def _to_padded(self, n: LaneLengths, size: Any, partition: Partition) -> Any:
        pieces = []
        for bucket, first, count in self._by_bucket(n, partition):
            shape = (len(bucket.lanes), bucket.room(size))
            place = broadcast_in_dim(line(shape[1]), shape, (1,))
            first, count = [broadcast_in_dim(v, shape, (0,)) for v in (first, count)]
            row = first + minimum(place, count - 1)  # of an empty lane the one before it
            row = minimum(maximum(row, scalar(0, INT32)), scalar(n.total - 1, INT32))
            pieces.append(reshape(select(lt(place, count), row, bitwise_not(row)), (shape[0] * shape[1],)))
        return concatenate(pieces, 0) if pieces else zeros(array_type((0,), INT32))

    def _to_rows(self, n: LaneLengths, size: Any, partition: Partition) -> Any:
        base = np.zeros(self.count, INT32)
        offset = 0
        for bucket in partition.buckets:
            width = bucket.room(size)
            base[bucket.lanes] = offset + width * np.arange(len(bucket.lanes))
            offset += width * len(bucket.lanes)
        if not self.count:
            return zeros(array_type((n.total,), INT32))
        at = take_rows(constant(base), n.lane) + minimum(n.within, scalar(n.longest - 1, INT32))
        at = minimum(at, scalar(max(offset - 1, 0), INT32))
        if n.full:
            return at
        last = take_rows(at, reshape(n.last, (1,)))  # spare rows are copies of it
        return select(n.real, at, broadcast_in_dim(bitwise_not(last), at.type.shape, (0,)))

    def _by_bucket(self, n: LaneLengths, partition: Partition) -> Any:
        """For each bucket: itself, and the first rows and lengths of its lanes."""
        for bucket in partition.buckets:
            index = constant(bucket.lanes)
            yield bucket, *[v if partition.whole else take_rows(v, index) for v in (n.starts, n.values)]

    def counts(self, size: Any, partition: Partition, k: int) -> Any:
        """The lengths of the lanes of bucket ``k``."""
        n = self.of(size)
        with inside(n.place):
            return n.values if partition.whole else take_rows(n.values, constant(partition.buckets[k].lanes))

    def unpadded(self, size: Any, partition: Partition, k: int) -> bool:
        """Whether all lanes of bucket ``k`` are known to be as long as their padding."""
        known, bucket = self.of(size).known, partition.buckets[k]
        return known is not None and bool((known[bucket.lanes] == bucket.room(size)).all())

    def aligned(self, size: Any, partition: Partition) -> bool:
        """Whether rows are the padded places in order: one bucket without padding."""
        return partition.whole and self.of(size).full and self.unpadded(size, partition, 0)

    def mask(self, size: Any, partition: Partition, k: int) -> Any:
        """Which places of bucket ``k`` the lanes have: bool[lanes, places]."""
        key = (size, partition, k)
        found = self._layouts.get(key)
        if found is None:
            n, bucket = self.of(size), partition.buckets[k]
            with inside(n.place):
                shape = (len(bucket.lanes), bucket.room(size))
                count = self.counts(size, partition, k)
                place = broadcast_in_dim(line(shape[1]), shape, (1,))
                found = self._layouts[key] = lt(place, broadcast_in_dim(count, shape, (0,)))
        return found


class LengthsAsOperands(StateFlow):
    """How lanes cross an operation with deferred rules: lengths that are values, and numbers, enter it as operands.

    A rule is evaluated where the values of the body around the operation, index arrays among them, have ended.
    """

    def __init__(self, lanes: RaggedLanes):
        self.operands = [n.values for n in lanes.lengths.values() if n.known is None]
        if lanes.make_numbers is not None:
            self.operands.append(lanes.numbers)
        self.lanes = lanes.of_operands([None] * len(self.operands), BASE)

    def key(self) -> Any:
        return "lengths"

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.lanes = self.lanes.of_operands(values, run.outer)
        run.bodies = INNER_BODIES.new_part()  # bodies capture index arrays


def room_of(size: Any, rooms: Mapping[int, int]) -> int:
    """A bound of a size, where the lengths are at most these."""
    if type(size) is not Extent:
        return size

    def bound(monomial: Sequence[Any]) -> int:
        return prod([rooms[x] if type(x) is int else room_of(part_extent(x), rooms) for x in monomial])

    return max(int(most(size, bound)), common_factor(size))


def rows_room(size: Any, totals: Mapping[int, int], longest: Mapping[int, int], count: int) -> int:
    """A bound of the sum of an extent over the lanes: one factor of each term by its total, the others by theirs."""

    def total(monomial: Sequence[Any]) -> int:
        first, *others = monomial
        room = totals[first] if type(first) is int else rows_room(part_extent(first), totals, longest, count)
        return room * prod([longest[x] if type(x) is int else room_of(part_extent(x), longest) for x in others])

    return max(min(int(most(size, total, count)), count * room_of(size, longest)), common_factor(size))


def bucket_step(longest: int) -> int:
    """Lengths are rounded up to its multiples."""
    return max(SMALLEST, -(-longest // BUCKETS))


def lane_sizes(longest: Mapping[int, int]) -> list[dict[int, int]]:
    """The sizes at which lanes with lengths up to these are computed one after the other, from small to large.

    As in buckets, and below the smallest of these the halves of it, so that a bound that is too large costs little.
    """
    found = {}
    for number, bound in longest.items():
        step = bucket_step(bound)
        sizes = [min(size, bound) for size in range(step, bound + step, step)]
        while sizes[0] // 2 >= SMALLEST:
            sizes.insert(0, sizes[0] // 2)
        found[number] = sizes
    count = max(map(len, found.values()))
    rows = {number: [sizes[0]] * (count - len(sizes)) + sizes for number, sizes in found.items()}
    return [{number: sizes[k] for number, sizes in rows.items()} for k in range(count)]
