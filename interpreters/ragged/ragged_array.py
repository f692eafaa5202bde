"""Ragged arrays: arrays of different lengths, concatenated into packed rows, and the vector of lengths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, BadIndex, CannotCross, DTypeMismatch, ShapeMismatch, whole_number
from ...effects.base.immutables import ImmutableObject
from ...effects.base.later_layers import displayed
from ...effects.base.stack import STACK, inside
from ...effects.core.arrays import ConcreteArray, as_array, is_number, type_of
from ...effects.core.containers import register_vmappable
from ...effects.operations.elementwise.bitwise import bitwise_not
from ...effects.operations.elementwise.comparison import select
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, full, reduce_sum, reshape
from ...effects.operations.indexing.relocation import relocate
from ...effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ...effects.operations.reductions.row_folds import row_starts
from ...effects.operations.reductions.sorting import sort_key_val
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ...effects.types.dtype_families import short_name
from ...effects.types.extent import length
from ...effects.types.sized import extents_in
from .lane_lengths import INT32, LaneLengths, RaggedLanes, Segments, capacity, fitting_ends, line


class RaggedAxis:
    """The type of ``ragged_axis``, which marks the ragged argument of ``vmap`` in ``in_axes`` and ``out_axes``."""

    only = "hx.ragged_axis"

    def __repr__(self) -> str:
        return "ragged_axis"


ragged_axis = RaggedAxis()
"""Marks, in ``in_axes`` and ``out_axes`` of ``vmap``, an array whose lanes have different lengths."""


@displayed
class Ragged(ImmutableObject):
    """Lanes of different lengths, concatenated: ``x[i]`` has the rows of lane i, ``f32[segment_lengths[i], ...]``.

        vmap(f, in_axes=ragged_axis)(x)[i] == f(x[i])

    A pytree: its leaves are those of ``data`` and, unless they are static, the lengths.

    Args:
        data: the rows of all lanes one after the other along dimension 0: an array, or a tree of arrays, whose lanes
            then have equal lengths. Rows after the last lane are padding.
        segment_lengths: a tuple of integers, static: programs are compiled for them. Or an array: one program serves
            all lengths whose sum is at most the number of rows.
        longest: a static bound of the lengths where they are an array, by default the number of rows; what mixes along
            the ragged axis is padded to it. Or a tuple of bounds, of each lane: lanes are padded to their own.

    Raises: ShapeMismatch: arrays differ in their number of rows, or have no rows. BadArgument: a length is negative,
        the lengths sum to more rows than there are, or one exceeds ``longest``. CannotCross: within a lane the number
        of rows is the length of the lane.

    >>> x = Ragged(np.arange(8, dtype=np.float32), (3, 1, 4))
    >>> x.type, [part.tolist() for part in x.to_list()]
    (i:3 => f32[[3,1,4].i], [[0.0, 1.0, 2.0], [3.0], [4.0, 5.0, 6.0, 7.0]])
    """

    __slots__ = ("data", "longest", "segment_lengths")
    _guard = ("ragged arrays", "hx.Ragged(data, segment_lengths) makes another one.")
    data: Any
    segment_lengths: Any
    longest: int | tuple[int, ...] | None

    def __init__(self, data: Any, segment_lengths: Any, longest: int | Sequence[int] | None = None):
        if isinstance(segment_lengths, (tuple, list)):
            segment_lengths = _integers("lengths", segment_lengths)
            known: Any = np.asarray(segment_lengths, int)
        else:
            segment_lengths = _length_vector(segment_lengths)
            known = segment_lengths.value if isinstance(segment_lengths, ConcreteArray) else None
        leaves, tree = pytrees.flatten(data)
        leaves = [as_array(x) for x in leaves]
        sizes = {x.type.shape[:1] for x in leaves}
        if len(sizes) != 1 or sizes == {()}:
            shown = ", ".join([str(x.type) for x in leaves])
            raise ShapeMismatch(
                f"Ragged: the data must be arrays with equally many rows, got {shown or 'none'}.",
                hint="arrays whose lanes have other lengths are a Ragged of their own.",
            )
        count = len(segment_lengths) if known is None else len(known)
        if longest is not None:
            bounds = _integers("longest", longest if isinstance(longest, (tuple, list)) else (longest,))
            longest = bounds if isinstance(longest, (tuple, list)) else bounds[0]
        if isinstance(longest, tuple) and len(longest) != count:
            raise ShapeMismatch(f"Ragged: longest needs a bound for each of {count} lanes, got {len(longest)}.")
        if extents_in((count, *sizes)):
            raise CannotCross(
                f"Ragged: its rows and its lanes are counted by integers, got {leaves[0].type} and {count} lengths.",
                hint="within a lane, pad what is ragged in it: arrays of one shape in all lanes, and their lengths.",
            )
        if known is not None:
            _check(known, leaves[0].type.shape[0], longest)
        self._fill(data=pytrees.unflatten(tree, leaves), segment_lengths=segment_lengths, longest=longest)

    @property
    def count(self) -> int:
        """The number of lanes."""
        n = self.segment_lengths
        return len(n) if isinstance(n, tuple) else n.shape[0]

    @property
    def type(self) -> RaggedType:
        """The type ``i:3 => f32[[3,1,4].i]``: for each of 3 lanes i, an f32 array whose length is entry i of [3,1,4].
        """
        n = self.segment_lengths
        shown = n if isinstance(n, tuple) else tuple(n.value.tolist()) if isinstance(n, ConcreteArray) else None
        return RaggedType(self.count, shown, pytrees.tree_map(type_of, self.data))

    def __repr__(self) -> str:
        """The type and, if all are known, the rows of the first lanes."""
        leaves = pytrees.leaves((self.data, self.segment_lengths))
        if not all([isinstance(x, ConcreteArray | int) for x in leaves]):
            return f"Ragged({self.type})"
        lanes = [str(pytrees.tree_map(lambda x: x.tolist(), self[i])) for i in range(min(self.count, 6))]
        shown = [lane if len(lane) < 80 else f"{lane[:76]} ..." for lane in lanes] + ["..."] * (self.count > 6)
        return "\n  ".join([f"Ragged({self.type},", *shown]) + ")"

    def __reduce__(self) -> Any:
        return _unflatten, ((self.segment_lengths, self.longest), (self.data,))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Any:
        """The rows of lane ``i``; the lengths must be static or evaluated."""
        i = whole_number("Ragged: a lane's index", i)
        if not -self.count <= i < self.count:
            raise BadIndex(
                f"Ragged: the index of a lane must be in [{-self.count}, {self.count}), got {i}.",
                hint="len(x) is the number of lanes; rows of all lanes are in x.data.",
            )
        ends = np.cumsum(self._known())
        stop = int(ends[i])
        start = stop - int(self._known()[i])
        return pytrees.tree_map(lambda x: slice_in_dim(x, start, stop), self.data)

    def to_list(self) -> list[Any]:
        """The lanes as a list of arrays; the lengths must be static or evaluated."""
        return [self[i] for i in range(self.count)]

    def to_padded(self, fill: Any = 0) -> tuple[Any, Any]:
        """``(x, mask)``: one array with every lane padded to the longest, and a mask that is True at the lanes'
        elements.
        """
        n = lengths_of(self, STACK.get())
        lanes = RaggedLanes(self.count, {0: n}, STACK.get())
        size, partition = length(0), lanes.whole
        index, inverse = lanes.layout(size, partition)
        mask = lanes.mask(size, partition, 0)

        def padded(x: Any) -> Any:
            x = as_array(x)
            rows = x if x.type.shape[0] else concatenate([x, full(x.type.update(shape=(1, *x.type.shape[1:])), 0)], 0)
            y = relocate(rows, index, inverse)
            y = reshape(y, (self.count, n.longest, *x.type.shape[1:]))
            real = broadcast_in_dim(mask, y.type.shape, (0, 1))
            return y if is_number(fill) and fill == 0 else select(real, y, full(y.type, fill))

        return pytrees.tree_map(padded, self.data), mask

    def _known(self) -> Any:
        known = _lengths_if_known(self)
        if known is None:
            raise BadArgument(
                f"Ragged: the lengths are values of a program, got {type_of(self.segment_lengths)}.",
                hint="to_padded() gives one array for any lengths.",
            )
        return known

    def to_masked(self) -> Any:
        """The padded array as one of ``numpy.ma``, whose mask covers the padding; a tree of them for a tree."""
        padded, mask = self.to_padded()

        def masked(x: Any) -> Any:
            absent = np.broadcast_to(~np.reshape(mask, (*mask.shape, *(1,) * (x.ndim - 2))), x.shape)
            return np.ma.MaskedArray(np.asarray(x), absent)

        return pytrees.tree_map(masked, padded)

    def over(self, other: Ragged) -> Ragged:
        """These rows with the lengths of ``other``: within ``vmap``, their axes then have the same symbolic dimension.

            y = y.over(x)

        Separate ragged arrays have separate symbolic dimensions, even if their lengths are equal, which ``jit`` could
        not see. Lengths that are known are checked to be equal.

        Raises: ShapeMismatch: the numbers of lanes differ, or known lengths do.
        """
        own, lengths = [_lengths_if_known(x) for x in (self, other)]
        if self.count != other.count:
            raise ShapeMismatch(f"Ragged.over: both must have as many lanes, got {self.count} and {other.count}.")
        if own is not None and lengths is not None and (own != lengths).any():
            lane = int((own != lengths).argmax())
            raise ShapeMismatch(
                f"Ragged.over: lengths must be equal, got {own[lane]} and {lengths[lane]} of lane {lane}.",
            )
        rows = _row_count(other)
        return Ragged(pytrees.tree_map(lambda x: _with_rows(x, rows), self.data), other.segment_lengths, other.longest)

    @staticmethod
    def from_list(lanes: Sequence[Any], longest: int | None = None) -> Ragged:
        """The ragged array, or tree, of these lanes; the lengths are an array, ``longest`` by default the next power of
        two.

        There are less than a quarter more rows than the lanes have, a number of which there are four between powers of
        two: lists of as many lanes, with one ``longest``, need ``4 * log2(most / least) + 2`` programs.

        >>> x = Ragged.from_list([np.ones(20), np.ones(0), np.ones(1)])
        >>> x.type, x.longest, x.data.shape
        (i:3 => f64[[20,0,1].i], 32, (24,))
        """
        data, lengths = _joined_lanes("Ragged.from_list", lanes)
        rows = capacity(sum(lengths))
        data = pytrees.tree_map(lambda x: _with_rows(x, rows), data)
        if longest is None:
            longest = 1 << (max(lengths) - 1).bit_length() if max(lengths) else 1
        return Ragged(data, np.asarray(lengths, INT32), longest)

    @staticmethod
    def bucketed(lanes: Sequence[Any], multiple: int = 64) -> Ragged:
        """The ragged array, or tree, of these lanes, each padded to the next multiple of ``multiple``.

        Padded lengths are static, lengths an array: operations that mix along the ragged axis are computed on lanes of
        equal padded length together, and one program serves all lengths with the same padded lengths in order. That
        is for lanes of which there are the same always, or few kinds; ``batches`` makes few kinds of any lanes.

        >>> x = Ragged.bucketed([np.ones(70), np.ones(3)])
        >>> x.type, x.longest, x.data.shape
        (i:2 => f64[[70,3].i], (128, 64), (192,))
        """
        if _integers("the multiple", (multiple,))[0] < 1:
            raise BadArgument(f"Ragged.bucketed: the multiple must be positive, got {multiple}.")
        data, lengths = _joined_lanes("Ragged.bucketed", lanes)
        bounds = tuple([max(1, -(-n // multiple)) * multiple for n in lengths])
        data = pytrees.tree_map(lambda x: _with_rows(x, sum(bounds)), data)
        return Ragged(data, np.asarray(lengths, INT32), bounds)

    @staticmethod
    def batches(lanes: Iterable[Any], rows: int) -> Iterator[tuple[tuple[int, ...], Ragged]]:
        """The lanes in batches of about equal length and of at most ``rows`` rows, each with the indices of its lanes.

        The lengths in a batch are padded to one of the sizes 1, ..., 8, 10, 12, 14, 16, 20, ..., four between powers of
        two: by less than a quarter, those of empty lanes to one row. All batches of a size have as many lanes, but for
        its last one, so that at most ``8 * log2(longest / shortest) + 10`` programs are compiled. The lanes may be an
        iterator without an end: half as many. A lane of more than ``rows`` rows is a batch of its own.

        >>> [(i, x.longest) for i, x in Ragged.batches([np.ones(n) for n in (9, 4, 10, 9, 4)], 24)]
        [((0, 2), (10, 10)), ((1, 4), (4, 4)), ((3,), (10,))]

        Raises: BadArgument: ``rows`` is not positive.
        """
        if _integers("rows of a batch", (rows,))[0] < 1:
            raise BadArgument(f"Ragged.batches: a batch must have a positive number of rows, got {rows}.")
        return _batches(lanes, rows)

    @staticmethod
    def from_padded(x: Any, segment_lengths: Any) -> Ragged:
        """The first ``segment_lengths[i]`` rows of each ``x[i]``, packed; the last rows become padding."""
        leaves, tree = pytrees.flatten(x)
        leaves = [as_array(leaf) for leaf in leaves]
        count, width = _lanes_and_places("Ragged.from_padded", leaves)
        static = isinstance(segment_lengths, (tuple, list))
        if static:
            segment_lengths = _integers("lengths", segment_lengths)
        values = as_array(np.asarray(segment_lengths, INT32)) if static else _length_vector(segment_lengths)
        if values.type.shape != (count,):
            raise ShapeMismatch(
                f"Ragged.from_padded: each of {count} lanes needs a length, got {values.type.shape[0]} lengths."
            )
        if isinstance(values, ConcreteArray):
            for lane in np.flatnonzero((values.value < 0) | (values.value > width))[:1]:
                raise BadArgument(
                    f"Ragged.from_padded: lengths lie between 0 and the {width} places of a lane, got "
                    f"{values.value[lane]} of lane {lane}."
                )
        n = LaneLengths(convert(values, INT32), count * width, width, STACK.get())
        lanes = RaggedLanes(count, {0: n}, STACK.get())
        index, inverse = lanes.layout(length(0), lanes.whole)
        flat = [reshape(leaf, (count * width, *leaf.type.shape[2:])) for leaf in leaves]
        rows = [relocate(leaf, inverse, index) for leaf in flat]
        if n.known is not None:
            rows = [slice_in_dim(row, 0, int(n.known.sum())) for row in rows]
        return Ragged(pytrees.unflatten(tree, rows), segment_lengths if static else values, width)

    @staticmethod
    def from_masked(x: Any, mask: Any = None) -> Ragged:
        """The rows ``x[i, j]`` with ``mask[i, j]``, in order, of an array or a tree; ``mask`` is bool[lanes, rows].

        Without ``mask``, ``x`` is an array of ``numpy.ma``, and its own mask counts.

        >>> Ragged.from_masked(np.ma.masked_equal([[1, 0, 2], [0, 0, 3]], 0)).to_list()
        [Array([1, 2], dtype=int64), Array([3], dtype=int64)]
        """
        if mask is None:
            absent = np.ma.getmaskarray(x)
            absent = absent.reshape(*absent.shape[:2], -1)
            if not (absent.all(-1) == absent.any(-1)).all():
                raise BadArgument("Ragged.from_masked: a row is masked as a whole or not at all, some are in part.")
            x, mask = np.asarray(x), ~absent.any(-1)
        mask = as_array(mask)
        if mask.type.dtype != dtypes.bool_:
            raise DTypeMismatch(f"Ragged.from_masked: the mask must be boolean, got {mask.type}.")
        leaves = [as_array(v) for v in pytrees.leaves(x)]
        count, width = sizes = _lanes_and_places("Ragged.from_masked", leaves)
        if mask.type.shape != sizes:
            raise ShapeMismatch(f"Ragged.from_masked: the mask must be bool[{count},{width}], got {mask.type}.")
        places = reshape(convert(bitwise_not(mask), INT32), (count * width,))
        order = sort_key_val(places, line(count * width))[1]
        inverse = sort_key_val(order, line(count * width))[1]
        lengths = reduce_sum(convert(mask, INT32), (1,))
        rows = int(lengths.value.sum()) if isinstance(lengths, ConcreteArray) else count * width

        def packed(v: Any) -> Any:
            flat = reshape(v, (count * width, *v.type.shape[2:]))
            return slice_in_dim(relocate(flat, order, inverse), 0, rows)

        return Ragged(pytrees.tree_map(lambda v: packed(as_array(v)), x), lengths, width)


class RaggedType:
    """The type of a ragged array: the number of lanes, their lengths if static, and the types of the rows."""

    def __init__(self, count: int, lengths: tuple[int, ...] | None, rows: Any):
        self.count, self.lengths, self.rows = count, lengths, rows

    def __repr__(self) -> str:
        lengths = "n" if self.lengths is None else f"[{','.join(map(str, self.lengths))}]"

        def lane(t: Any) -> Any:
            return _LaneText(f"{short_name(t.dtype)}[{','.join([f'{lengths}.i', *map(str, t.shape[1:])])}]")

        return f"i:{self.count} => {pytrees.tree_map(lane, self.rows)}"


class _LaneText(str):
    """A string whose ``repr`` has no quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _integers(what: str, sizes: Sequence[Any]) -> tuple[int, ...]:
    """The sizes as Python integers. Raises: DTypeMismatch: one of them is no integer."""
    for n in sizes:
        if not hasattr(n, "__index__"):
            raise DTypeMismatch(f"Ragged: {what} must be integral, got {type(n).__name__} {n!r}.")
    return tuple([n.__index__() for n in sizes])


def _length_vector(lengths: Any) -> Any:
    """Lengths as an integer vector. Raises: DTypeMismatch: it is none."""
    lengths = as_array(lengths)
    if len(lengths.type.shape) != 1 or not dtypes.is_integer(lengths.type.dtype):
        raise DTypeMismatch(f"Ragged: lengths are a vector of integers, got {lengths.type}.")
    return lengths


def _lanes_and_places(name: str, leaves: Sequence[Any]) -> tuple[int, int]:
    """The first two sizes that all arrays share. Raises: ShapeMismatch: they differ, or are missing."""
    sizes = {x.type.shape[:2] for x in leaves}
    if len(sizes) != 1 or len(min(sizes)) < 2:
        shown = ", ".join([str(x.type) for x in leaves])
        raise ShapeMismatch(
            f"{name}: arrays have lanes and places as their first two axes, got {shown or 'none'}.",
            hint="rows one after the other are hx.Ragged(data, lengths).",
        )
    return sizes.pop()


def _joined_lanes(name: str, lanes: Sequence[Any]) -> tuple[Any, list[int]]:
    """The concatenated rows of lanes, and the length of each."""
    if hasattr(lanes, "shape"):
        raise BadArgument(f"{name}: a list of lanes is needed, got an array {type_of(lanes)}.", hint="list(lanes).")
    if not lanes:
        raise BadArgument(f"{name}: needs at least one lane, got none.")
    trees = [pytrees.tree_map(as_array, lane) for lane in lanes]
    lengths = [_lane_length(name, tree) for tree in trees]
    return pytrees.tree_map(lambda *xs: concatenate(xs, 0), *trees), lengths


def _lane_length(name: str, lane: Any) -> int:
    """The number of rows of a lane. Raises: ShapeMismatch: its arrays have none, or differ in it."""
    types = [type_of(x) for x in pytrees.leaves(lane)]
    for t in types:
        if not t.shape:
            raise ShapeMismatch(
                f"{name}: a lane is an array of rows, or a tree of them, got {t}.",
                hint="hx.numpy.asarray(lane) of a list of numbers.",
            )
    sizes = {t.shape[0] for t in types}
    if len(sizes) != 1:
        raise ShapeMismatch(f"{name}: all arrays of a lane must have one length.")
    return int(sizes.pop())


def _batches(lanes: Iterable[Any], rows: int) -> Iterator[tuple[tuple[int, ...], Ragged]]:
    """See ``Ragged.batches``: the lanes of each size wait until they fill a batch."""
    waiting: dict[int, dict[int, Any]] = {}

    def batch(size: int) -> tuple[tuple[int, ...], Ragged]:
        found = waiting.pop(size)
        data, lengths = _joined_lanes("Ragged.batches", list(found.values()))
        data = pytrees.tree_map(lambda x: _with_rows(x, size * len(lengths)), data)
        return tuple(found), Ragged(data, np.asarray(lengths, INT32), (size,) * len(lengths))

    for i, lane in enumerate(lanes):
        size = capacity(max(1, _lane_length("Ragged.batches", lane)))
        waiting.setdefault(size, {})[i] = lane
        if len(waiting[size]) == max(1, rows // size):
            yield batch(size)
    yield from map(batch, sorted(waiting))


def _with_rows(x: Any, rows: int) -> Any:
    """The first ``rows`` rows, padded with zeros if there are fewer."""
    missing = rows - x.type.shape[0]
    if missing <= 0:
        return slice_in_dim(x, 0, rows)
    return concatenate([x, full(x.type.update(shape=(missing, *x.type.shape[1:])), 0)], 0)


def _lengths_if_known(x: Ragged) -> Any:
    n = x.segment_lengths
    value = np.asarray(n, int) if isinstance(n, tuple) else n.value if isinstance(n, ConcreteArray) else n
    return value if isinstance(value, np.ndarray) and value.dtype.kind in "iu" else None


def _check(lengths: Any, rows: int, longest: Any) -> None:
    """Check lengths that are known against the number of rows and ``longest``. Raises: BadArgument."""
    for lane in np.flatnonzero(lengths < 0)[:1]:
        raise BadArgument(
            f"Ragged: lengths must not be negative, lane {lane} has {lengths[lane]}.",
            hint="an empty lane has length 0.",
        )
    if lengths.sum() > rows:
        raise BadArgument(
            f"Ragged: the lengths sum to {lengths.sum()}, but the data has {rows} rows.",
            hint="the rows of all lanes stand one after the other along dimension 0, further ones are padding.",
        )
    for lane in np.flatnonzero(lengths > (rows if longest is None else np.asarray(longest)))[:1]:
        bound = longest[lane] if isinstance(longest, tuple) else longest
        raise BadArgument(f"Ragged: longest must bound the lengths, got {bound} and {lengths[lane]} of lane {lane}.")


def _flatten(x: Ragged) -> tuple[Any, Any]:
    if isinstance(x.segment_lengths, tuple):
        return (x.data,), (x.segment_lengths, x.longest)
    return (x.data, x.segment_lengths), (None, x.longest)


def _unflatten(static: Any, children: Any) -> Ragged:
    data, *lengths = children
    x = object.__new__(Ragged)
    x._fill(data=data, segment_lengths=lengths[0] if lengths else static[0], longest=static[1])
    return x


pytrees.register_pytree_node(Ragged, _flatten, _unflatten)


def _to_elt(cont: Any, get_idx: Any, x: Ragged, spec: RaggedAxis) -> Any:
    """One lane's rows, as ``vmap`` passes them. Equal static lengths, or one array of lengths, give one symbolic
    dimension.
    """
    static = isinstance(x.segment_lengths, tuple)
    key = (x.segment_lengths if static else id(x.segment_lengths), _row_count(x))
    rows = Segments(key, partial(lengths_of, x))
    return cont(x.data, rows)


def _from_elt(cont: Any, axis_size: Any, ys: Any, spec: RaggedAxis) -> Ragged:
    """The ragged array of all lanes' results, a tree of arrays whose first axes have one symbolic dimension.

    Raises: ShapeMismatch: they differ.
    """
    leaves, tree = pytrees.flatten(ys)
    rows = [cont(axis_size, y, Segments()) for y in leaves]
    lengths = {id(n): n for _, n in rows}
    if len(lengths) != 1:
        raise ShapeMismatch(
            f"vmap: arrays of one Ragged have one length, got {', '.join([str(y.type) for y in leaves])}.",
            hint="name ragged_axis for each of them in out_axes.",
        )
    (n,) = lengths.values()
    x = n.source
    if x is None:
        data = pytrees.unflatten(tree, [y for y, _ in rows])
        return Ragged(data, n.values, None if n.known is not None else n.longest)
    data = pytrees.unflatten(tree, [slice_in_dim(y, 0, _row_count(x)) for y, _ in rows])
    return Ragged(data, x.segment_lengths, x.longest)


register_vmappable(Ragged, RaggedAxis, int, _to_elt, _from_elt)


def _row_count(x: Ragged) -> int:
    return pytrees.leaves(x.data)[0].shape[0]


def with_zeros_behind(x: Ragged) -> Ragged:
    """The same lanes, with zeros in the padding rows."""
    n = lengths_of(x, STACK.get())
    if n.full or not _row_count(x):
        return x

    def masked(rows: Any) -> Any:
        return select(broadcast_in_dim(n.real, rows.type.shape, (0,)), rows, full(rows.type, 0))

    return Ragged(pytrees.tree_map(lambda rows: masked(as_array(rows)), x.data), x.segment_lengths, x.longest)


def lengths_of(x: Ragged, outer: Any) -> LaneLengths:
    """The ``LaneLengths`` of a ragged array; lengths that exceed its bounds at run time are clamped to them."""
    rows = _row_count(x)
    n = x.segment_lengths
    if not isinstance(n, tuple) and not dtypes.is_integer(n.dtype):
        raise DTypeMismatch(
            f"Ragged: lengths are a vector of integers, got {n.dtype}.",
            hint="a gradient has none: hx.Ragged(gradient.data, x.segment_lengths).",
        )
    values = as_array(np.asarray(n, INT32)) if isinstance(n, tuple) else convert(as_array(n), INT32)
    longest = rows if x.longest is None else max(x.longest, default=0) if isinstance(x.longest, tuple) else x.longest
    if isinstance(values, ConcreteArray):
        return LaneLengths(values, rows, int(values.value.max(initial=0)), outer, x)
    with inside(outer):
        ends = fitting_ends(values, rows, longest if x.longest is None else x.longest)
        return LaneLengths(ends - row_starts(ends), rows, longest, outer, x, ends)
