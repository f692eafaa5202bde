"""Ragged arrays: rows of lanes of different lengths, one after the other, and the vector of lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ...effects.base.immutables import ImmutableObject
from ...effects.base.stack import STACK
from ...effects.core.arrays import ConcreteArray, as_array, is_number
from ...effects.operations.elementwise.comparison import select
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, full, reshape
from ...effects.operations.indexing.relocation import relocate
from ...effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ...effects.types.dtype_families import short_name
from ...effects.types.extent import length
from ..batching.containers import register_vmappable
from .lane_lengths import INT32, LaneLengths, RaggedLanes, Segments


class RaggedAxis:
    """The mapped axis of a ``Ragged`` in ``in_axes`` and ``out_axes``: there is one, ``ragged_axis``."""

    def __repr__(self) -> str:
        return "ragged_axis"


ragged_axis = RaggedAxis()


class Ragged(ImmutableObject):
    """Lanes of different lengths: ``x[i]`` has the rows of lane i, ``f32[segment_lengths[i], ...]``.

        vmap(f, in_axes=ragged_axis)(x)[i] == f(x[i])

    A pytree: its leaves are those of ``data`` and, unless they are static, the lengths.

    Args:
        data: the rows of all lanes one after the other along dimension 0: an array, or a tree of arrays, whose lanes
            then have equal lengths. Rows behind the last lane are spare.
        segment_lengths: a tuple of integers, static: programs are compiled for them. Or an array: one program serves
            all lengths whose sum is at most the number of rows.
        longest: a static bound of the lengths where they are an array, by default the number of rows; what mixes along
            the ragged axis is padded to it.

    Raises: ShapeMismatch: arrays differ in their number of rows, or have no rows. BadArgument: a length is negative,
        the lengths sum to more rows than there are, or one exceeds ``longest``.

    >>> x = Ragged(np.arange(8, dtype=np.float32), (3, 1, 4))
    >>> x.type, [part.tolist() for part in x.to_list()]
    (i:3 => f32[[3,1,4].i], [[0.0, 1.0, 2.0], [3.0], [4.0, 5.0, 6.0, 7.0]])
    """

    __slots__ = ("data", "longest", "segment_lengths")
    _guard = ("ragged arrays", "hx.Ragged(data, segment_lengths) makes another one.")
    data: Any
    segment_lengths: Any
    longest: int | None

    def __init__(self, data: Any, segment_lengths: Any, longest: int | None = None):
        if isinstance(segment_lengths, (tuple, list)):
            segment_lengths = tuple([n.__index__() for n in segment_lengths])
            known: Any = np.asarray(segment_lengths, int)
        else:
            segment_lengths = as_array(segment_lengths)
            if len(segment_lengths.type.shape) != 1 or not dtypes.is_integer(segment_lengths.type.dtype):
                raise DTypeMismatch(f"Ragged: lengths are a vector of integers, got {segment_lengths.type}.")
            known = segment_lengths.value if isinstance(segment_lengths, ConcreteArray) else None
        leaves, tree = pytrees.flatten(data)
        leaves = [as_array(x) for x in leaves]
        sizes = {x.type.shape[:1] for x in leaves}
        if len(sizes) != 1 or sizes == {()}:
            shown = ", ".join([str(x.type) for x in leaves])
            raise ShapeMismatch(f"Ragged: the data must be arrays with equally many rows, got {shown or 'none'}.")
        if known is not None:
            _check(known, leaves[0].type.shape[0], longest)
        _set(self, pytrees.unflatten(tree, leaves), segment_lengths, longest)

    @property
    def count(self) -> int:
        """The number of lanes."""
        n = self.segment_lengths
        return len(n) if isinstance(n, tuple) else n.type.shape[0]

    @property
    def type(self) -> RaggedType:
        """``i:3 => f32[[3,1,4].i]``: lane i has the length that stands at place i."""
        n = self.segment_lengths
        shown = n if isinstance(n, tuple) else tuple(n.value.tolist()) if isinstance(n, ConcreteArray) else None
        return RaggedType(self.count, shown, pytrees.tree_map(lambda x: x.type, self.data))

    def __repr__(self) -> str:
        return f"Ragged({self.type})"

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Any:
        """The rows of lane ``i``, whose length must be known."""
        if not -self.count <= i.__index__() < self.count:
            raise IndexError(f"Ragged: lane {i} of {self.count}.")
        ends = np.cumsum(self._known())
        stop = int(ends[i])
        start = stop - int(self._known()[i])
        return pytrees.tree_map(lambda x: slice_in_dim(x, start, stop), self.data)

    def to_list(self) -> list[Any]:
        """The lanes; their lengths must be known."""
        return [self[i] for i in range(self.count)]

    def to_padded(self, fill: Any = 0) -> tuple[Any, Any]:
        """``(x, mask)``: lanes as rows of one array, each as long as the longest, and which places a lane has."""
        n = lengths_of(self, STACK.get())
        lanes = RaggedLanes(self.count, {0: n}, STACK.get())
        size, partition = length(0), lanes.whole
        index, inverse = lanes.layout(size, partition)
        mask = lanes.mask(size, partition, 0)

        def padded(x: Any) -> Any:
            rows = x if x.type.shape[0] else concatenate([x, full(x.type.update(shape=(1, *x.type.shape[1:])), 0)], 0)
            y = relocate(rows, index, inverse)
            y = reshape(y, (self.count, n.longest, *x.type.shape[1:]))
            real = broadcast_in_dim(mask, y.type.shape, (0, 1))
            return y if is_number(fill) and fill == 0 else select(real, y, full(y.type, fill))

        return pytrees.tree_map(padded, self.data), mask

    def _known(self) -> Any:
        n = self.segment_lengths
        if isinstance(n, tuple):
            return np.asarray(n, int)
        if isinstance(n, ConcreteArray):
            return n.value
        raise BadArgument(
            f"Ragged: the lengths are values of a program, got {n.type}.",
            hint="to_padded() gives one array for any lengths.",
        )

    @staticmethod
    def from_list(lanes: Sequence[Any]) -> Ragged:
        """The ragged array, or tree, of these lanes; its lengths are an array.

        >>> Ragged.from_list([np.ones(2), np.ones(0), np.ones(1)]).type
        i:3 => f64[[2,0,1].i]
        """
        if not lanes:
            raise BadArgument("Ragged.from_list: needs at least one lane, got none.")
        trees = [pytrees.tree_map(as_array, lane) for lane in lanes]
        sizes = [{x.type.shape[0] for x in pytrees.leaves(tree)} for tree in trees]
        if any([len(size) != 1 for size in sizes]):
            raise ShapeMismatch("Ragged.from_list: all arrays of a lane must have one length.")
        data = pytrees.tree_map(lambda *xs: concatenate(xs, 0), *trees)
        return Ragged(data, np.asarray([size.pop() for size in sizes], INT32))

    @staticmethod
    def from_padded(x: Any, segment_lengths: Any) -> Ragged:
        """The first ``segment_lengths[i]`` rows of each ``x[i]``; as many spare rows as there is padding."""
        leaves, tree = pytrees.flatten(x)
        leaves = [as_array(leaf) for leaf in leaves]
        count, width = leaves[0].type.shape[:2]
        static = isinstance(segment_lengths, (tuple, list))
        values = as_array(np.asarray(segment_lengths, INT32)) if static else as_array(segment_lengths)
        n = LaneLengths(convert(values, INT32), count * width, width, STACK.get())
        lanes = RaggedLanes(count, {0: n}, STACK.get())
        index, inverse = lanes.layout(length(0), lanes.whole)
        flat = [reshape(leaf, (count * width, *leaf.type.shape[2:])) for leaf in leaves]
        rows = [relocate(leaf, inverse, index) for leaf in flat]
        if n.known is not None:
            rows = [slice_in_dim(row, 0, int(n.known.sum())) for row in rows]
        return Ragged(pytrees.unflatten(tree, rows), tuple(segment_lengths) if static else values, width)


class RaggedType:
    """The type of a ragged array: as many lanes, their lengths if they are known, and the types of the rows."""

    def __init__(self, count: int, lengths: tuple[int, ...] | None, rows: Any):
        self.count, self.lengths, self.rows = count, lengths, rows

    def __repr__(self) -> str:
        lengths = "n" if self.lengths is None else f"[{','.join(map(str, self.lengths))}]"

        def lane(t: Any) -> Any:
            return _LaneText(f"{short_name(t.dtype)}[{','.join([f'{lengths}.i', *map(str, t.shape[1:])])}]")

        return f"i:{self.count} => {pytrees.tree_map(lane, self.rows)}"


class _LaneText(str):
    """A text that shows without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _set(x: Ragged, data: Any, segment_lengths: Any, longest: int | None) -> Ragged:
    for name, value in (("data", data), ("segment_lengths", segment_lengths), ("longest", longest)):
        object.__setattr__(x, name, value)
    return x


def _check(lengths: Any, rows: int, longest: int | None) -> None:
    """Raises: BadArgument: known lengths do not fit."""
    for lane in np.flatnonzero(lengths < 0)[:1]:
        raise BadArgument(f"Ragged: lengths must not be negative, lane {lane} has {lengths[lane]}.")
    if lengths.sum() > rows:
        raise BadArgument(f"Ragged: the lengths sum to {lengths.sum()}, but the data has {rows} rows.")
    if longest is not None and lengths.max(initial=0) > longest:
        lane = int(lengths.argmax())
        raise BadArgument(f"Ragged: longest must bound the lengths, got {longest} and {lengths[lane]} of lane {lane}.")


def _flatten(x: Ragged) -> tuple[Any, Any]:
    if isinstance(x.segment_lengths, tuple):
        return (x.data,), (x.segment_lengths, x.longest)
    return (x.data, x.segment_lengths), (None, x.longest)


def _unflatten(static: Any, children: Any) -> Ragged:
    data, *lengths = children
    return _set(object.__new__(Ragged), data, lengths[0] if lengths else static[0], static[1])


pytrees.register_pytree_node(Ragged, _flatten, _unflatten)


def _to_elt(cont: Any, get_idx: Any, x: Ragged, spec: RaggedAxis) -> Any:
    """The rows of one lane, as many as its length. Equal lengths are static ones of one value, or the same array."""
    static = isinstance(x.segment_lengths, tuple)
    key = (x.segment_lengths, _row_count(x)) if static else id(x.segment_lengths)
    rows = Segments(key, lengths_of(x, STACK.get()))
    return pytrees.tree_map(lambda leaf: cont(leaf, rows), x.data)


def _from_elt(cont: Any, axis_size: Any, ys: Any, spec: RaggedAxis) -> Ragged:
    """The ragged array of a tree of results, whose first axes have one length.

    Raises: ShapeMismatch: they have not.
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
    return pytrees.leaves(x.data)[0].type.shape[0]


def lengths_of(x: Ragged, outer: Any) -> LaneLengths:
    """The lengths of a ragged array, with its rows as room."""
    rows = _row_count(x)
    n = x.segment_lengths
    values = as_array(np.asarray(n, INT32)) if isinstance(n, tuple) else convert(n, INT32)
    longest = rows if x.longest is None else x.longest
    if isinstance(values, ConcreteArray):
        longest = int(values.value.max(initial=0))
    return LaneLengths(values, rows, longest, outer, x)
