"""Operations over named axes. The effect row has their axes until the handlers that map these axes answer them.

    psum(x, "i")[lane] = sum of x over all lanes of axis i
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..base.errors import BadArgument, ShapeMismatch
from ..base.stack import perform
from ..core import columns
from ..core.arrays import Array, as_array, scalar
from ..core.columns import linear
from ..core.named_axes import Collective, axis_size, axis_tuple, mapped_size
from ..core.operation import operation
from ..trees.pytrees import map as tree_map
from ..types.array_type import array_type
from ..types.dtypes import int32
from .elementwise.arithmetic import mul
from .foundations.shapes import broadcast_in_dim, canonical_axis, move_axis, reduce_sum, reshape, zeros
from .indexing.dynamic_slicing import dynamic_index_in_dim
from .manipulation.creation import iota
from .manipulation.slicing import axis_at, concatenate, slice_in_dim
from .reductions.reductions import reduce_max, reduce_min


def _batch_other_axis(op: Any, dims: Sequence[int | None], x: Any) -> tuple[Any, int | None]:
    """The batch rule for an axis that the operation does not name: the same operation."""
    return perform(op, x), dims[0]


def _over_other_axes(op: Any, axis: Hashable, y: Any) -> Any:
    """The operation over its axes but this one, or ``y`` if there are no others."""
    rest = tuple(a for a in op.axes if a != axis)
    return perform(type(op)(rest, *op.fields[1:]), y) if rest else y


def _sum_of_lanes(x: Any, dim: int | None, size: int) -> Any:
    return mul(x, scalar(size, x.type.dtype)) if dim is None else reduce_sum(x, (dim,))


# y = sum of x over the lanes of the axes
@operation
class Psum(Collective):
    axes: tuple[Hashable, ...]

    def result_type(op, x):
        return x

    batch = _batch_other_axis
    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    def collective(op, axis, size, dims, x):
        return _over_other_axes(op, axis, _sum_of_lanes(x, dims[0], size)), None


class ExtremeCollective(Collective):
    """The largest or smallest value of all lanes; tangents are averaged over the lanes that attain it."""

    __slots__ = ()
    batch = _batch_other_axis

    def result_type(op, x):
        return x

    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        y = perform(op, x)
        chosen = (x == y).astype(x.dtype)
        total = Psum(op.axes)
        return y, perform(total, dx * chosen) / perform(total, chosen)


# y = max of x over the lanes of the axes
@operation
class Pmax(ExtremeCollective):
    axes: tuple[Hashable, ...]

    def collective(op, axis, size, dims, x):
        return _over_other_axes(op, axis, x if dims[0] is None else reduce_max(x, (dims[0],))), None


# y = min of x over the lanes of the axes
@operation
class Pmin(ExtremeCollective):
    axes: tuple[Hashable, ...]

    def collective(op, axis, size, dims, x):
        return _over_other_axes(op, axis, x if dims[0] is None else reduce_min(x, (dims[0],))), None


# y[target] = x[source] for every pair of the permutation; 0 in lanes that are no target
@operation
class Ppermute(Collective):
    axes: tuple[Hashable, ...]
    permutation: tuple[tuple[int, int], ...]

    def result_type(op, x):
        return x

    batch = _batch_other_axis
    jvp = linear

    def transpose(op, ct, x):
        return perform(Ppermute(op.axes, tuple((to, start) for start, to in op.permutation)), ct)

    def collective(op, axis, size, dims, x):
        if dims[0] is None:
            x = broadcast_in_dim(x, (size, *x.type.shape), tuple(range(1, len(x.type.shape) + 1)))
        else:
            x = move_axis(x, dims[0], 0)
        source = {to: start for start, to in op.permutation}
        zero = zeros(x.type.update(shape=x.type.shape[1:]))
        return stack_arrays([index_first(x, source[lane]) if lane in source else zero for lane in range(size)]), 0


# y = x of all lanes, stacked along a new dimension
@operation
class AllGather(Collective):
    axes: tuple[Hashable, ...]
    dimension: int
    size: int

    def result_type(op, x):
        shape = (*x.shape[: op.dimension], op.size, *x.shape[op.dimension :])
        return array_type(shape, x.dtype, x.weak)

    def batch(op, dims, x):
        (d,) = dims
        shifted = AllGather(op.axes, op.dimension + (op.dimension > d), op.size)
        return perform(shifted, x), d + (op.dimension <= d)

    jvp = linear

    def transpose(op, ct, x):
        return perform(PsumScatter(op.axes, op.dimension), ct)

    def collective(op, axis, size, dims, x):
        return axis_at(x, dims[0], op.dimension, size), None


# y = the sum over all lanes of x[..., lane, ...], the index along one dimension
@operation
class PsumScatter(Collective):
    axes: tuple[Hashable, ...]
    dimension: int

    def result_type(op, x):
        return x.update(shape=x.shape[: op.dimension] + x.shape[op.dimension + 1 :])

    def batch(op, dims, x):
        (d,) = dims
        shifted = PsumScatter(op.axes, op.dimension + (op.dimension >= d))
        return perform(shifted, x), d - (op.dimension < d)

    jvp = linear

    def transpose(op, ct, x):
        return perform(AllGather(op.axes, op.dimension, x.shape[op.dimension]), ct)

    def collective(op, axis, size, dims, x):
        return _sum_of_lanes(x, dims[0], size), op.dimension


# y[..., j, ...] = x[..., lane, ...] of lane j, the indices along one dimension
@operation
class AllToAll(Collective):
    axes: tuple[Hashable, ...]
    dimension: int

    def result_type(op, x):
        return x

    def batch(op, dims, x):
        (d,) = dims
        return perform(AllToAll(op.axes, op.dimension + (op.dimension >= d)), x), d

    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    def collective(op, axis, size, dims, x):
        return axis_at(x, dims[0], op.dimension, size), op.dimension + 1


# y = the index of this lane
@operation
class AxisIndex(Collective):
    axes: tuple[Hashable, ...]

    def result_type(op):
        return array_type((), int32)

    jvp = columns.zero

    def collective(op, axis, size, dims):
        return iota(int32, size), 0


def _checked_axes(name: str, axis_name: Any, groups: Any) -> tuple[Hashable, ...]:
    """The named axes as a tuple. Raises: BadArgument: ``axis_index_groups``; UnboundAxis: an axis is not mapped."""
    if groups is not None:
        raise BadArgument(f"{name}: axis_index_groups must be None, as no axis is one of devices, got {groups!r}.")
    mapped_size(name, axis_name)
    return axis_tuple(axis_name)


def _perform_on_leaves(kind: Any, x: Any, axes: tuple[Hashable, ...], *fields: Any) -> Any:
    """The operation of this class on every leaf of ``x``."""
    return tree_map(lambda leaf: perform(kind(axes, *fields), as_array(leaf)), x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """``psum(x, "i")[lane] = sum of x over all lanes``, on every leaf of ``x``.

    A Python number is the same in all lanes: ``psum(1, "i")`` is the axis size, a Python number too.
    """
    axes = _checked_axes("psum", axis_name, axis_index_groups)
    size = axis_size(axis_name)
    return tree_map(
        lambda leaf: leaf * size if isinstance(leaf, (int, float)) else perform(Psum(axes), as_array(leaf)), x
    )


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of ``x`` over all lanes: ``psum(x) / axis_size``."""
    size = mapped_size("pmean", axis_name)
    return tree_map(lambda leaf: leaf / size, psum(x, axis_name, axis_index_groups=axis_index_groups))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest ``x`` of all lanes."""
    return _perform_on_leaves(Pmax, x, _checked_axes("pmax", axis_name, axis_index_groups))


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest ``x`` of all lanes."""
    return _perform_on_leaves(Pmin, x, _checked_axes("pmin", axis_name, axis_index_groups))


def axis_index(axis_name: Any) -> Array:
    """The index of this lane along the axis; row-major over several axes."""
    axes = _checked_axes("axis_index", axis_name, None)
    index = perform(AxisIndex(axes[:1]))
    for name in axes[1:]:
        index = index * axis_size(name) + perform(AxisIndex((name,)))
    return index


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Lane ``target`` gets ``x`` of lane ``source`` for every pair of ``perm``; lanes that are no target get zeros.

    Raises: BadArgument: two pairs have one source or one target.
    """
    axes = _checked_axes("ppermute", axis_name, None)
    pairs = tuple((int(source), int(target)) for source, target in perm)
    for side in zip(*pairs):
        if len(set(side)) != len(side) or any(not 0 <= lane < axis_size(axis_name) for lane in side):
            raise BadArgument(f"ppermute: lanes must be distinct and below {axis_size(axis_name)}, got {pairs}.")
    if len(axes) == 1:
        return _perform_on_leaves(Ppermute, x, axes, pairs)
    sources = {target: source for source, target in pairs}

    def permute_leaf(leaf: Any) -> Any:
        gathered = all_gather(leaf, axis_name)
        lane = axis_index(axis_name)
        size = axis_size(axis_name)
        zero = zeros(gathered.type.update(shape=gathered.type.shape[1:]))
        permuted = [index_first(gathered, sources[i]) if i in sources else zero for i in range(size)]
        return dynamic_index_in_dim(stack_arrays(permuted), lane, 0, keepdims=False)

    return tree_map(permute_leaf, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Lane ``i`` gets ``x`` of lane ``perm[i]``."""
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False
) -> Any:
    """``x`` of all lanes, stacked along a new dimension ``axis``; joined along an existing one where ``tiled``."""
    axes = _checked_axes("all_gather", axis_name, axis_index_groups)

    def gather_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        rank = len(y.type.shape) + (not tiled)
        at = axis + rank if axis < 0 else axis
        sizes = [axis_size(name) for name in axes]
        for name, size in zip(reversed(axes), reversed(sizes)):
            y = perform(AllGather((name,), at, size), y)
        shape = y.type.shape
        joined = shape[at : at + len(axes)]
        total = axis_size(axis_name)
        after = shape[at + len(axes) :]
        if tiled:
            return reshape(y, (*shape[:at], total * after[0], *after[1:]))
        return reshape(y, (*shape[:at], total, *after)) if len(joined) > 1 else y

    return tree_map(gather_leaf, x)


def _size_along(where: str, x: Any, dimension: int, axis_name: Any, tiled: bool) -> tuple[int, int]:
    """Dimension, counted from 0, and its size divided by that of the named axis, which is 1 unless ``tiled``.

    Raises: BadArgument: there is no such dimension. ShapeMismatch: its size does not fit the axis.
    """
    d = canonical_axis(dimension, len(x.type.shape), where)
    blocks, rest = divmod(x.type.shape[d], axis_size(axis_name))
    if rest or (blocks != 1 and not tiled):
        must = "be a multiple of" if tiled else "equal"
        raise ShapeMismatch(
            f"{where}: the size of dimension {d} must {must} that of the axis, {axis_size(axis_name)}, got {x.type}.",
            hint=None if rest else "tiled=True splits it into blocks.",
        )
    return d, blocks


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The sum of ``x`` over all lanes, of which each lane keeps its index along ``scatter_dimension``.

        psum_scatter(x, "i") == psum(x, "i")[axis_index("i")]

    The dimension, whose size is that of the axis, is dropped; where ``tiled`` it is a multiple, and each lane keeps a
    block. Raises: ShapeMismatch: the size does not fit.
    """
    axes = _checked_axes("psum_scatter", axis_name, axis_index_groups)

    def scatter_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        d, block = _size_along("psum_scatter", y, scatter_dimension, axis_name, tiled)
        before, after = y.type.shape[:d], y.type.shape[d + 1 :]
        y = reshape(y, (*before, *map(axis_size, axes), *([block] if tiled else []), *after))
        for name in axes:
            y = perform(PsumScatter((name,), d), y)
        return y

    return tree_map(scatter_leaf, x)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Exchange the mapped axis for a dimension: lane ``j`` sends its index ``i`` along ``split_axis`` to lane ``i``.

        all_to_all(x, "i", 0, 0)[j] of lane i == x[i] of lane j

    The lanes that the values came from are indexed by a new dimension ``concat_axis`` in place of ``split_axis``; where
    ``tiled``, blocks of ``split_axis`` are sent, and joined along ``concat_axis``.

    Raises: ShapeMismatch: the size of ``split_axis`` is not that of the axis, or no multiple of it.
    """
    axes = _checked_axes("all_to_all", axis_name, axis_index_groups)

    def exchange_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        rank = len(y.type.shape)
        split, block = _size_along("all_to_all", y, split_axis, axis_name, tiled)
        concat = canonical_axis(concat_axis, rank, "all_to_all")
        rows = move_axis(y, split, 0).type.shape[1:]
        y = reshape(move_axis(y, split, 0), (*map(axis_size, axes), block, *rows))
        for k, name in enumerate(axes):
            y = perform(AllToAll((name,), k), y)
        y = reshape(y, (axis_size(axis_name), block, *rows))
        if not tiled:
            return move_axis(reshape(y, (axis_size(axis_name), *rows)), 0, concat)
        y = move_axis(move_axis(y, 1, split + 1), 0, concat)
        shape = y.type.shape
        return reshape(y, (*shape[:concat], shape[concat] * shape[concat + 1], *shape[concat + 2 :]))

    return tree_map(exchange_leaf, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The mapped axis and dimension ``axis`` exchanged: ``all_to_all(x, axis_name, axis, axis)``."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """``x`` of lane ``source``, in all lanes."""
    return tree_map(lambda leaf: index_first(leaf, source), all_gather(x, axis_name))


def stack_arrays(xs: Sequence[Any]) -> Any:
    """Equal arrays along a new first dimension."""
    return concatenate([reshape(x, (1, *x.type.shape)) for x in xs], 0)


def index_first(x: Any, i: int) -> Any:
    """``x[i]`` for a Python integer ``i``."""
    row = slice_in_dim(x, i, i + 1, axis=0)
    return reshape(row, x.type.shape[1:])

