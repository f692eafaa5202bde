"""Operations over named axes. Each adds its axes to the effect row until a handler that has the axis answers it.

    psum(x, "i")[lane] = sum of x over all lanes of axis i
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from . import columns
from .arithmetic import mul
from .arrays import Array, lift, scalar
from .axes import Collective, axis_size, ends, lanes
from .columns import linear
from .creation import iota
from .dtypes import int32
from .dynamic import dynamic_index_in_dim
from .errors import BadArgument
from .operations import operation
from .reductions import reduce_max, reduce_min
from .shapes import broadcast_in_dim, move_axis, reduce_sum, reshape, zeros
from .slicing import concatenate, slice_in_dim
from .stack import perform
from .trees import map as tree_map
from .types import array_type


def _batch_elsewhere(op: Any, dims: Sequence[int | None], x: Any) -> tuple[Any, int | None]:
    """Mapped along another axis: lane by lane the same operation."""
    return perform(op, x), dims[0]


def _without(op: Any, axis: Hashable, y: Any) -> Any:
    """What remains of the operation once one axis is answered."""
    rest = tuple(a for a in op.axes if a != axis)
    return perform(type(op)(rest, *op.fields[1:]), y) if rest else y


# y = sum of x over the lanes of the axes
@operation
class Psum(Collective):
    axes: tuple[Hashable, ...]

    def result_type(op, x):
        return x

    batch = _batch_elsewhere
    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    def collective(op, axis, size, dims, x):
        if dims[0] is None:
            return _without(op, axis, mul(x, scalar(size, x.type.dtype))), None
        return _without(op, axis, reduce_sum(x, (dims[0],))), None


def _extremum(name: str, reduce: Callable[[Any, int], Any]) -> Any:
    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        y = perform(op, x)
        chosen = (x == y).astype(x.dtype)
        total = Psum(op.axes)
        return y, perform(total, dx * chosen) / perform(total, chosen)

    def collective(op, axis, size, dims, x):
        return _without(op, axis, x if dims[0] is None else reduce(x, dims[0])), None

    block = {
        "__annotations__": {"axes": "tuple[Hashable, ...]"},
        "__doc__": f"{name} over named axes.", "__module__": __name__,
        "name": name, "result_type": lambda op, x: x, "batch": _batch_elsewhere, "jvp": jvp, "collective": collective,
    }  # fmt: skip
    return operation(type(name.capitalize(), (Collective,), block))


Pmax = _extremum("pmax", lambda x, d: reduce_max(x, (d,)))
Pmin = _extremum("pmin", lambda x, d: reduce_min(x, (d,)))


# y = x of the lane that sends to this one; zero where nobody sends
@operation
class Ppermute(Collective):
    axes: tuple[Hashable, ...]
    permutation: tuple[tuple[int, int], ...]

    def result_type(op, x):
        return x

    batch = _batch_elsewhere
    jvp = linear

    def transpose(op, ct, x):
        return perform(Ppermute(op.axes, tuple((to, start) for start, to in op.permutation)), ct)

    def collective(op, axis, size, dims, x):
        if dims[0] is None:
            x = broadcast_in_dim(x, (size, *x.type.shape), tuple(range(1, len(x.type.shape) + 1)))
        else:
            x = move_axis(x, dims[0], 0)
        source = {to: start for start, to in op.permutation}
        nothing = zeros(x.type.update(shape=x.type.shape[1:]))
        return stack_arrays([index_first(x, source[lane]) if lane in source else nothing for lane in range(size)]), 0


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
        total = perform(Psum(op.axes), ct)
        lane = perform(AxisIndex(op.axes))
        return dynamic_index_in_dim(total, lane, op.dimension, keepdims=False)

    def collective(op, axis, size, dims, x):
        if dims[0] is None:
            shape = (*x.type.shape[: op.dimension], size, *x.type.shape[op.dimension :])
            kept = [d + (d >= op.dimension) for d in range(len(x.type.shape))]
            return broadcast_in_dim(x, shape, kept), None
        return move_axis(x, dims[0], op.dimension), None


# y = number of this lane
@operation
class AxisIndex(Collective):
    axes: tuple[Hashable, ...]

    def result_type(op):
        return array_type((), int32)

    jvp = columns.zero

    def collective(op, axis, size, dims):
        return iota(int32, size), 0


def _checked(where: str, axis_name: Any, groups: Any) -> tuple[Hashable, ...]:
    if groups is not None:
        raise BadArgument(f"{where}: axis_index_groups is for device axes, and there is none here.")
    lanes(where, axis_name)
    return ends(axis_name)


def _each(kind: Any, x: Any, axes: tuple[Hashable, ...], *fields: Any) -> Any:
    return tree_map(lambda leaf: perform(kind(axes, *fields), lift(leaf)), x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """``psum(x, "i")[lane] = sum of x over all lanes``, on every leaf of ``x``.

    A Python number is the same in all lanes: ``psum(1, "i")`` is the axis size, a Python number too.
    """
    axes = _checked("psum", axis_name, axis_index_groups)
    size = axis_size(axis_name)
    return tree_map(
        lambda leaf: leaf * size if isinstance(leaf, (int, float)) else perform(Psum(axes), lift(leaf)), x
    )


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of ``x`` over all lanes: ``psum(x) / axis_size``."""
    size = lanes("pmean", axis_name)
    return tree_map(lambda leaf: leaf / size, psum(x, axis_name, axis_index_groups=axis_index_groups))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest ``x`` of all lanes."""
    return _each(Pmax, x, _checked("pmax", axis_name, axis_index_groups))


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest ``x`` of all lanes."""
    return _each(Pmin, x, _checked("pmin", axis_name, axis_index_groups))


def axis_index(axis_name: Any) -> Array:
    """The number of this lane along the axis; row-major over several axes."""
    axes = _checked("axis_index", axis_name, None)
    index = perform(AxisIndex(axes[:1]))
    for name in axes[1:]:
        index = index * axis_size(name) + perform(AxisIndex((name,)))
    return index


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Lane ``target`` gets ``x`` of lane ``source`` for every pair of ``perm``; lanes that nobody sends to get zeros.

    Raises: BadArgument: a lane stands twice among the sources or among the targets.
    """
    axes = _checked("ppermute", axis_name, None)
    pairs = tuple((int(source), int(target)) for source, target in perm)
    for side in zip(*pairs):
        if len(set(side)) != len(side) or any(not 0 <= lane < axis_size(axis_name) for lane in side):
            raise BadArgument(f"ppermute: lanes must be distinct and below {axis_size(axis_name)}, got {pairs}.")
    if len(axes) == 1:
        return _each(Ppermute, x, axes, pairs)
    sources = {target: source for source, target in pairs}

    def one(leaf: Any) -> Any:
        everything = all_gather(leaf, axis_name)
        lane = axis_index(axis_name)
        size = axis_size(axis_name)
        nothing = zeros(everything.type.update(shape=everything.type.shape[1:]))
        permuted = [index_first(everything, sources[i]) if i in sources else nothing for i in range(size)]
        return dynamic_index_in_dim(stack_arrays(permuted), lane, 0, keepdims=False)

    return tree_map(one, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Lane ``i`` gets ``x`` of lane ``perm[i]``."""
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False
) -> Any:
    """``x`` of all lanes, stacked along a new dimension ``axis``; joined along an existing one where ``tiled``."""
    axes = _checked("all_gather", axis_name, axis_index_groups)

    def one(leaf: Any) -> Any:
        y = lift(leaf)
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

    return tree_map(one, x)


def stack_arrays(xs: Sequence[Any]) -> Any:
    """Equal arrays along a new first dimension."""
    return concatenate([reshape(x, (1, *x.type.shape)) for x in xs], 0)


def index_first(x: Any, i: int) -> Any:
    """``x[i]`` for a known ``i``."""
    row = slice_in_dim(x, i, i + 1, axis=0)
    return reshape(row, x.type.shape[1:])

