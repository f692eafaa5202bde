"""The lengths of lanes, and the index arrays that all values with the same vector of lengths share.

    packed     the rows of all lanes concatenated, T of them; padding after the last lane copies the last row
    padded     lanes of similar length in one bucket, padded to a common length

Index arrays are computed once, outside of the lanes; where the lengths are known they are constants.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
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
from ..core.body_transform import INNER_BODIES
from ..core.state_flow import StateFlow

INT32 = np.dtype("int32")
BUCKETS = 8  # lengths are rounded up to so many sizes, of at least ``SMALLEST`` rows
SMALLEST = 32
QUARTERS = 4  # how many sizes there are for lanes that are computed one after the other, beside small ones


def line(size: int) -> Any:
    """The int32 array 0, 1, ..., size - 1."""
    return iota(INT32, size)


def constant(x: Any) -> Any:
    """A NumPy index array as an array of the program."""
    return from_numpy(np.asarray(x, INT32))


def fitting_ends(lengths: Any, rows: int, longest: Any) -> Any:
    """The cumulative lengths, with each length clamped to [0, longest] and the sum to the number of rows."""
    bound = constant(np.broadcast_to(longest, lengths.type.shape))
    ends = perform(shared(Cumsum, 0, False), minimum(maximum(lengths, scalar(0, INT32)), bound))
    return minimum(ends, scalar(rows, INT32))


def index_array(compute: Callable[[Any], Any]) -> cached_property[Any]:
    """Decorator: a property that is computed once, in the run ``level`` of its object."""

    @wraps(compute)
    def computed(x: Any) -> Any:
        with inside(x.level):
            return compute(x)

    return cached_property(computed)


class LaneLengths:
    """One vector of lengths. ``total``: the number of packed rows with padding; ``longest``: a bound of the lengths;
    both at least 1.

    ``known``: the lengths, if they are static; ``outer``: the run around the lanes. ``source``: the ragged array with
    these lengths, if any; ``ends``: the cumulative lengths, if they are computed already.
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
        bounds = getattr(source, "longest", None)  # a bound for each lane, or one for all
        self.bounds = np.asarray(bounds) if isinstance(bounds, tuple) else None
        self.level = BASE if self.known is not None else outer  # where its index arrays are computed
        if ends is not None:
            self.ends = ends

    def as_operand(self, values: Any, outer: Run) -> LaneLengths:
        """The same lengths as the value ``values``, with the same static bounds; static lengths are forgotten."""
        new = copy.copy(self)
        new.__dict__ = {name: x for name, x in vars(self).items() if name in _DESCRIPTION}
        new.values, new.source, new.level = values, None, outer
        return new

    @index_array
    def ends(self) -> Any:
        """For each lane, the index one past its last packed row."""
        return perform(shared(Cumsum, 0, False), self.values)

    @index_array
    def starts(self) -> Any:
        """For each lane, the index of its first packed row."""
        return self.ends - self.values

    @index_array
    def end(self) -> Any:
        """The index one past the last row of the last lane, where padding begins."""
        return index_in_dim(self.ends, self.count - 1, 0, False) if self.count else scalar(0, INT32)

    @index_array
    def real(self) -> Any:
        """For each packed row, whether it belongs to a lane rather than being padding."""
        return lt(line(self.total), self.end)

    @property
    def full(self) -> bool:
        """Whether it is known statically that there is no padding."""
        return self.known is not None and int(self.known.sum()) == self.total

    @property
    def no_empty(self) -> bool:
        """Whether it is known statically that no lane is empty."""
        return self.known is not None and bool(self.known.all())

    @index_array
    def segment(self) -> Any:
        """For each packed row, the index of its lane; for padding the number of lanes."""
        return lanes_of_rows(self.ends, self.total)

    @index_array
    def index(self) -> Any:
        """The index arrays that segmented reductions and repetitions of packed rows take."""
        arrays = row_index(minimum(self.ends, scalar(self.total, INT32)), self.total)
        return arrays if self.known is not None else tuple([perform(OptimizationBarrier(), v)[0] for v in arrays])

    @property
    def lane(self) -> Any:
        """For each packed row, the index of its lane; padding counts to the last row's lane."""
        return self.index[2]

    @index_array
    def within(self) -> Any:
        """For each packed row, its index within its lane."""
        if not self.count:
            return zeros(array_type((self.total,), INT32))
        return line(self.total) - self.repeated(self.starts)

    @index_array
    def places(self) -> Any:
        """For each packed row, its index within its lane; padding has that of the last row."""
        return self.within if self.full else self.copied(self.within)

    def repeated(self, x: Any) -> Any:
        """Repeat each lane's value for each of its rows; ``x`` has the lanes first."""
        if self.count == 1:
            return broadcast_in_dim(x, (self.total, *x.type.shape[1:]), tuple(range(len(x.type.shape))))
        if x.type.dtype in INEXACT and self.count:
            return perform(shared(RepeatRows, True), x, *self.index)
        return take_rows(x, self.lane)

    def complemented(self, index: Any) -> Any:
        """An index for each packed row, that of padding replaced by the complement of the last row's."""
        last = take_rows(index, reshape(self.last, (1,)))
        return select(self.real, index, broadcast_in_dim(bitwise_not(last), index.type.shape, (0,)))

    def copied(self, x: Any) -> Any:
        """Packed rows whose padding is replaced by copies of the last row, or ones if there is none, without cotangent.
        """
        last = perform(Unread(), take_rows(x, reshape(self.last, (1,))))
        (last,) = perform(OptimizationBarrier(), select(self.end > 0, last, full(last.type, 1)))  # it is read once
        last = broadcast_in_dim(last, x.type.shape, tuple(range(x.ndim)))
        return select(broadcast_in_dim(self.real, x.type.shape, (0,)), x, last)

    @index_array
    def last(self) -> Any:
        """The index of the last packed row of a lane; 0 if all lanes are empty."""
        return maximum(self.end - 1, scalar(0, INT32))


_DESCRIPTION = ("count", "total", "longest", "known", "bounds")  # what is static of a ``LaneLengths``


class EnteredRows(BatchBox):
    """Packed rows as given in ``entered``, with arbitrary padding; in ``value`` padding copies the last row.

    The copy is made at first use; a sum, which ignores padding, needs none.
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
    """Lanes that are padded to a common length: their indices, and the padded size of each length, by its index."""

    lanes: np.ndarray[Any, Any]
    sizes: dict[int, int]
    exact: bool = False  # whether no lane is shorter than the padded size

    def padded(self, size: Any) -> int:
        """The size to which a symbolic dimension of a lane is padded in this bucket; lengths of outer lanes remain."""
        if type(size) is not Extent or size.lengths.isdisjoint(self.sizes):
            return size
        return size.at(self.sizes) if self.exact else bound_of(size, self.sizes)


def common_factor(size: Extent) -> int:
    """The greatest common factor k of the extent's coefficients, by which its packed rows can be divided in a reshape.
    """
    return gcd(*[factor for _, factor in size.terms])


class Partition:
    """The lanes partitioned into buckets. ``order``: the lane indices, bucket by bucket; ``whole``: there is one
    bucket, in order.
    """

    def __init__(self, count: int, buckets: Sequence[Bucket]):
        self.buckets = tuple(buckets)
        self.whole = len(self.buckets) == 1
        self.counts = tuple([len(bucket.lanes) for bucket in self.buckets])
        lanes = np.concatenate([bucket.lanes for bucket in self.buckets]) if self.buckets else np.zeros(0, int)
        self.order = constant(lanes)
        self.inverse = constant(np.argsort(lanes))

    def element_starts(self, padded_size: Callable[[Bucket], int]) -> tuple[np.ndarray[Any, Any], int]:
        """The index of each lane's first padded element, bucket by bucket, and the number of padded elements."""
        sizes = np.concatenate([np.full(len(bucket.lanes), padded_size(bucket)) for bucket in self.buckets])
        starts = np.empty(len(sizes), INT32)
        starts[np.concatenate([bucket.lanes for bucket in self.buckets])] = np.cumsum(sizes) - sizes
        return starts, int(sizes.sum())


class Segments(NamedTuple):
    """The spec of packed rows with a vector of lengths; specs with the same vector have equal ``key``s.

    ``lengths``: the ``LaneLengths``, or a function that computes them, given the run around the lanes. Without them, as
    an output spec, it accepts any lengths.
    """

    key: Any = None
    lengths: Any = None

    def within(self, outer: Run) -> Segments:
        """The spec with its ``LaneLengths`` computed."""
        return self._replace(lengths=self.lengths(outer)) if callable(self.lengths) else self


class RaggedLanes:
    """The state shared by all installations of one ragged ``vmap``: lengths by index, and cached index arrays.

    ``first``: the index of its first length. ``make_numbers``: computes the lane indices, if they are not 0, 1, 2, ...
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
        """The same lanes with these values for the lengths that are not static, then for lane indices other than 0, 1,
        2, ...
        """
        rest = iter(values)
        lengths = {k: n if n.known is not None else n.as_operand(next(rest), outer) for k, n in self.lengths.items()}
        new = RaggedLanes(self.count, lengths, outer, self.first, self.make_numbers)
        new.home = self.home
        if self.make_numbers is not None:
            new.numbers = next(rest)
        return new

    def extent(self, rows: Segments) -> Extent:
        """The symbolic dimension of these packed rows in the lane; equal vectors of lengths have the same one."""
        number = self._numbers.get(rows.key)
        if number is None:
            number = self._numbers[rows.key] = self.first + len(self.lengths)
            self.lengths[number] = rows.lengths
            self.known = self.known and rows.lengths.known is not None
        return length(number)

    @cached_property
    def numbers(self) -> Any:
        """The index of each lane."""
        with inside(self.outer):
            return line(self.count) if self.make_numbers is None else as_array(self.make_numbers())

    def owns(self, extents: Sequence[Extent]) -> bool:
        """Whether one of the symbolic dimensions is introduced by this ``vmap``."""
        return any([number in self.lengths for extent in extents for number in extent.lengths])

    def rows(self, size: Extent) -> Any:
        """The number of packed rows, with padding, of an axis of this size; lengths of outer lanes remain symbolic."""
        return self.of(size).total if self.owns((size,)) else size

    def of(self, size: Any) -> LaneLengths:
        """The vector of sizes that a symbolic dimension, or an integer, has in the lanes."""
        lengths = self._derived.get(size)
        if lengths is None:
            lengths = self._derived[size] = self._lengths_of(size)
        return lengths

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
        level = BASE if all([n.known is not None for n in parts.values()]) else self.outer
        with inside(level):
            values: Any = as_array(size.at({number: n.values for number, n in parts.items()}))
        longest = bound_of(size, {number: n.longest for number, n in parts.items()})
        totals = {number: n.total for number, n in parts.items()}
        ((first, factor), *more) = size.terms
        if not more and len(first) == 1 and type(first[0]) is int:
            total = factor * totals[first[0]]  # so that a reshape moves no rows
        else:
            total = rows_bound(size, totals, {number: n.longest for number, n in parts.items()}, self.count)
        if isinstance(values, ConcreteArray):
            longest = int(values.value.max(initial=0))
            if len(size.terms) > 1 or type(size.terms[0][0][-1]) is not int or len(size.terms[0][0]) > 1:
                total = int(values.value.sum())
        return LaneLengths(values, max(int(total), common_factor(size)), int(longest), self.outer)

    @cached_property
    def whole(self) -> Partition:
        """The partition of the lanes into buckets that has one bucket, with all lanes in order."""
        sizes = {number: n.longest for number, n in self.lengths.items()}
        return Partition(self.count, [Bucket(np.arange(self.count), sizes)])

    @property
    def divided(self) -> bool:
        """Whether lanes have different static bounds of their lengths, so that they need not all be padded to the
        longest.
        """
        return self.known or any([n.bounds is not None for n in self.lengths.values()])

    @cached_property
    def rounded(self) -> Partition:
        """The partition by length, or its static bound, rounded up to multiples of an eighth of the longest, of at
        least 32.
        """
        if not self.divided or not self.count:
            return self.whole
        return self._grouped({number: self._round(n) for number, n in self.lengths.items()})

    @cached_property
    def equal(self) -> Partition:
        """The partition by length, without any padding, for lengths that are static."""
        return self._grouped({number: n.known for number, n in self.lengths.items()}, exact=True)

    @cached_property
    def refined(self) -> list[tuple[Any, Any, list[int]]]:
        """For each rounded bucket: a permutation of its lanes that groups equal lengths, its inverse, and the indices
        of these groups.
        """
        refinements = []
        for bucket in self.rounded.buckets:
            inner = [j for j, part in enumerate(self.equal.buckets) if part.lanes[0] in bucket.lanes]
            order = np.searchsorted(bucket.lanes, np.concatenate([self.equal.buckets[j].lanes for j in inner]))
            refinements.append((constant(order), constant(np.argsort(order)), inner))
        return refinements

    def _round(self, n: LaneLengths) -> Any:
        if n.known is None:
            return np.full(self.count, n.longest) if n.bounds is None else np.clip(n.bounds, 1, n.longest)
        step = bucket_step(n.longest)
        return np.clip(-(-n.known // step) * step, 1, n.longest)

    def _grouped(self, sizes: dict[int, Any], exact: bool = False) -> Partition:
        """The partition of the lanes by these sizes, equal sizes in one bucket."""
        columns = np.stack(list(sizes.values()), 1)
        kinds, which = np.unique(columns, axis=0, return_inverse=True)
        which = which.reshape(-1)
        return Partition(self.count, [
            Bucket(np.flatnonzero(which == k), {number: int(size) for number, size in zip(sizes, kind)}, exact)
            for k, kind in enumerate(kinds)
        ])

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """The cached result of ``make()`` for this key."""
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = make()
        return layout

    def layout(self, size: Any, partition: Partition) -> tuple[Any, Any]:
        """The pair of index arrays of ``Relocate``: packed row of each padded element, and padded element of each
        packed row.
        """
        n = self.of(size)

        def both() -> tuple[Any, Any]:
            with inside(n.level):
                return self._to_padded(n, size, partition), self._to_rows(n, size, partition)

        return self.kept((size, partition), both)

    def _to_padded(self, n: LaneLengths, size: Any, partition: Partition) -> Any:
        """The packed row of each padded element; of padding the complement of a row."""
        pieces = []
        for bucket in partition.buckets:
            lanes, shape = constant(bucket.lanes), (len(bucket.lanes), bucket.padded(size))
            of_bucket = [v if partition.whole else take_rows(v, lanes) for v in (n.starts, n.values)]
            index = broadcast_in_dim(line(shape[1]), shape, (1,))
            first, count = [broadcast_in_dim(v, shape, (0,)) for v in of_bucket]
            row = first + minimum(index, count - 1)  # of an empty lane the one before it
            row = minimum(maximum(row, scalar(0, INT32)), scalar(n.total - 1, INT32))
            pieces.append(reshape(select(lt(index, count), row, bitwise_not(row)), (shape[0] * shape[1],)))
        return concatenate(pieces, 0) if pieces else zeros(array_type((0,), INT32))

    def _to_rows(self, n: LaneLengths, size: Any, partition: Partition) -> Any:
        """The padded element of each packed row; of padding the complement of the last row's."""
        if not self.count:
            return zeros(array_type((n.total,), INT32))
        starts, count = partition.element_starts(lambda bucket: bucket.padded(size))
        at = take_rows(constant(starts), n.lane) + minimum(n.within, scalar(n.longest - 1, INT32))
        at = minimum(at, scalar(max(count - 1, 0), INT32))
        return at if n.full else n.complemented(at)

    def counts(self, size: Any, partition: Partition, k: int) -> Any:
        """The lengths of the lanes of bucket ``k``."""
        n = self.of(size)
        with inside(n.level):
            return n.values if partition.whole else take_rows(n.values, constant(partition.buckets[k].lanes))

    def unpadded(self, size: Any, partition: Partition, k: int) -> bool:
        """Whether all lanes of bucket ``k`` are statically known to have the padded length."""
        known, bucket = self.of(size).known, partition.buckets[k]
        return known is not None and bool((known[bucket.lanes] == bucket.padded(size)).all())

    def aligned(self, size: Any, partition: Partition) -> bool:
        """Whether the packed rows equal the padded elements in order: one bucket without padding."""
        return partition.whole and self.of(size).full and self.unpadded(size, partition, 0)

    def mask(self, size: Any, partition: Partition, k: int) -> Any:
        """Which elements of bucket ``k`` are not padding: bool[lanes, padded length]."""


        def make() -> Any:
            bucket, count = partition.buckets[k], self.counts(size, partition, k)
            shape = (len(bucket.lanes), bucket.padded(size))
            with inside(self.of(size).level):
                return lt(broadcast_in_dim(line(shape[1]), shape, (1,)), broadcast_in_dim(count, shape, (0,)))

        return self.kept((size, partition, k), make)


class LengthsAsOperands(StateFlow):
    """How a ragged ``vmap`` crosses an operation with deferred rules: lengths and lane indices that are values become
    operands.

    A deferred rule may be evaluated outside of the body whose values, index arrays among them, it would capture.
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


def bound_of(size: Any, bounds: Mapping[int, int]) -> int:
    """An upper bound of a size, given bounds of the lengths by index."""
    if type(size) is not Extent:
        return size

    def bound(monomial: Sequence[Any]) -> int:
        return prod([bounds[x] if type(x) is int else bound_of(part_extent(x), bounds) for x in monomial])

    return max(int(most(size, bound)), common_factor(size))


def rows_bound(size: Any, totals: Mapping[int, int], longest: Mapping[int, int], count: int) -> int:
    """An upper bound of the sum of a size over the lanes: in each term, the total of one length times the bounds of the
    others.
    """

    def total(monomial: Sequence[Any]) -> int:
        first, *others = monomial
        bound = totals[first] if type(first) is int else rows_bound(part_extent(first), totals, longest, count)
        return bound * prod([longest[x] if type(x) is int else bound_of(part_extent(x), longest) for x in others])

    return max(min(int(most(size, total, count)), count * bound_of(size, longest)), common_factor(size))


def capacity(size: int) -> int:
    """The next of the sizes 0, 1, ..., 8, 10, 12, 14, 16, 20, ..., of which there are four between powers of two: less
    than a quarter above ``size``.
    """
    step = 1 << max(0, (size - 1).bit_length() - 3)
    return -(-size // step) * step


def bucket_step(longest: int) -> int:
    """The granularity of rounded lengths: an eighth of the longest, at least ``SMALLEST``."""
    return max(SMALLEST, -(-longest // BUCKETS))


def lane_sizes(longest: Mapping[int, int]) -> list[dict[int, int]]:
    """The padded sizes at which lanes with lengths up to these are computed one after the other, in ascending order.

    They are quarters of the longest, and repeated quarters of the smallest: few, since XLA compiles the program of a
    lane for each. Lanes of all lengths up to the longest take 0.47 of the time of padding where it grows with the
    square of the length, which is 0.33 without any padding; a loose bound costs a sixteenth of padding to it.
    """
    sizes_of = {}
    for number, bound in longest.items():
        step = max(SMALLEST, -(-bound // QUARTERS))
        sizes = [min(size, bound) for size in range(step, bound + step, step)]
        while sizes[0] // QUARTERS >= 2 * SMALLEST:
            sizes.insert(0, sizes[0] // QUARTERS)
        sizes_of[number] = sizes
    count = max(map(len, sizes_of.values()))
    padded = {number: [sizes[0]] * (count - len(sizes)) + sizes for number, sizes in sizes_of.items()}
    return [{number: sizes[k] for number, sizes in padded.items()} for k in range(count)]
