"""Collectives that move values between the lanes of named axes: gather, scatter, exchange, permute."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

from ...base.errors import BadArgument, ShapeMismatch, need_one_of
from ...base.stack import current, perform
from ...core.arrays import as_array
from ...core.named_axes import SizedAxis, axis_tuple, bound_axes, tracked
from ...core.varying import vary
from ...sharding.partition_spec import PartitionSpec
from ...trees.pytrees import map as tree_map
from ...types.array_type import are_added
from ...types.dtypes import int32, is_bool
from ..elementwise.conversion import convert
from ..foundations.shapes import canonical_axis, move_axis, reshape, zeros
from ..foundations.sharding_constraint import with_sums
from ..indexing.scatter_functions import index_take
from ..manipulation.rearranging import transpose
from .collective import AllGather, AllToAll, Pbroadcast, Ppermute, PsumScatter, Punvary, collect
from .lane_groups import Groups
from .lane_reductions import equal_groups


def _dims(axes: tuple[SizedAxis, ...], groups: Groups | None, d: int) -> tuple[int, ...]:
    """The dimensions from ``d`` on, one for each axis; a single one if lanes are grouped."""
    return tuple(range(d, d + (len(axes) if groups is None else 1)))


def pbroadcast(x: Any, axis_name: Any, source: int, *, axis_index_groups: Any = None) -> Any:
    """``x`` of lane ``source`` in all lanes, on every leaf; with groups, of the lane at position ``source`` of each.

    Raises: BadArgument: there is no such lane; groups differ in size. UnboundAxis: nothing binds a name.
    """
    axes, groups, size = equal_groups("pbroadcast", axis_name, axis_index_groups)
    if not 0 <= source < size:
        raise BadArgument(f"pbroadcast: the source must be one of {size} lanes, got {source}.")
    return tree_map(lambda leaf: collect(Pbroadcast(axes, groups, int(source)), as_array(leaf)) if axes else leaf, x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Lane ``target`` gets ``x`` of lane ``source`` for every pair of ``perm``; lanes that are no target get zeros.

    Over several axes lanes are indexed row-major, the first axis major.
    Raises: BadArgument: two pairs have one source or one target, or a lane does not exist. UnboundAxis: nothing binds a
    name.
    """
    axes = bound_axes("ppermute", axis_name)
    total = prod([size for _, size in axes])
    pairs = tuple([(int(source), int(target)) for source, target in perm])
    for side in zip(*pairs):
        if len(set(side)) < len(side) or not all([0 <= lane < total for lane in side]):
            raise BadArgument(f"ppermute: lanes must be distinct and below {total}, got {pairs}.")

    def permute_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        return collect(Ppermute(axes, pairs), y) if axes or pairs else zeros(y.type)

    return tree_map(permute_leaf, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Lane ``i`` gets ``x`` of lane ``perm[i]``. Raises: BadArgument: ``perm`` is no permutation of all lanes."""
    total = prod([size for _, size in bound_axes("pshuffle", axis_name)])
    if sorted(perm) != list(range(total)):
        raise BadArgument(f"pshuffle: perm must be a permutation of {total} lanes, got {perm}.")
    return ppermute(x, axis_name, list(zip(perm, range(total))))


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """``x`` of all lanes, stacked along a new dimension ``axis``; with ``tiled``, concatenated along an existing one.

    With groups, the lanes of the own group, in its order.
    Args:
        to: "invarying": the type of the result tells that it is the same on all devices of the axes; "reduced": it is,
            and ``out_specs=P(reduced={axis})`` says so.
    Raises: BadArgument: there is no such dimension, groups differ in size, or with groups a result is to be the same
    in all lanes. UnboundAxis: nothing binds a name.
    """
    axes, groups, size = equal_groups("all_gather", axis_name, axis_index_groups)
    need_one_of("all_gather: to", to, ("varying", "invarying", "reduced"))
    if to == "invarying" and groups is not None:
        raise BadArgument("all_gather: to='invarying' needs the lanes of all groups.", hint="leave the groups out.")

    def gather_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        shape = y.type.shape
        d = canonical_axis(axis, len(shape) + (not tiled), "all_gather")
        y = collect(AllGather(axes, groups, _dims(axes, groups, d)), y)
        y = reshape(y, (*shape[:d], size * (shape[d] if tiled else 1), *shape[d + tiled :]))
        if to == "reduced":
            return _as_state(y, tracked(axes), to)
        equal = tuple([at for at in axes if to == "invarying" and at in y.type.varying])
        return perform(Punvary(equal), y) if equal else y

    return tree_map(gather_leaf, x)


def _divided(where: str, x: Any, dimension: int, size: int, tiled: bool) -> tuple[int, int]:
    """The normalised dimension, and its size divided by the number of lanes, 1 unless ``tiled``.

    Raises: BadArgument: there is no such dimension. ShapeMismatch: its size does not fit the lanes.
    """
    d = canonical_axis(dimension, len(x.type.shape), where)
    block, rest = divmod(x.type.shape[d], size)
    if rest or (block != 1 and not tiled):
        must = "be a multiple of" if tiled else "equal"
        raise ShapeMismatch(
            f"{where}: the size of dimension {d} must {must} the number of lanes, {size}, got {x.type}.",
            hint=None if rest else "tiled=True splits it into blocks.",
        )
    return d, block


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The sum of ``x`` over all lanes, scattered: each lane keeps its index along ``scatter_dimension``.

        psum_scatter(x, "i") == psum(x, "i")[axis_index("i")]

    The dimension, whose size is the number of lanes, is dropped; where ``tiled`` it is a multiple, and each lane keeps
    a block.

    Raises: ShapeMismatch: the size does not fit. BadArgument: groups differ in size. UnboundAxis: nothing binds a name.
    """
    axes, groups, size = equal_groups("psum_scatter", axis_name, axis_index_groups)

    def scatter_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        if is_bool(y.type.dtype):
            y = convert(y, int32)
        shape = y.type.shape
        d, block = _divided("psum_scatter", y, scatter_dimension, size, tiled)
        if not axes:
            return y if tiled else reshape(y, shape[:d] + shape[d + 1 :])
        sizes = [n for _, n in axes] if groups is None else [size]
        y = reshape(y, (*shape[:d], *sizes, *([block] if tiled else []), *shape[d + 1 :]))
        return collect(PsumScatter(axes, groups, _dims(axes, groups, d)), y)

    return tree_map(scatter_leaf, x)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Exchange the mapped axis for a dimension: lane ``j`` sends its index ``i`` along ``split_axis`` to lane ``i``.

        all_to_all(x, "i", 0, 0)[j] of lane i == x[i] of lane j

    The lanes that the values came from are indexed by a new dimension ``concat_axis`` in place of ``split_axis``; where
    ``tiled``, blocks of ``split_axis`` are sent, and joined along ``concat_axis``.

    Raises: ShapeMismatch: the size of ``split_axis`` is not the number of lanes, or no multiple of it. BadArgument:
    groups differ in size. UnboundAxis: nothing binds a name.
    """
    return _exchanged("all_to_all", x, axis_name, split_axis, concat_axis, axis_index_groups, tiled)


def _exchanged(
    where: str, x: Any, axis_name: Any, split_axis: int, concat_axis: int, groups: Any, tiled: bool
) -> Any:
    """``all_to_all``; ``where`` names the function in errors."""
    axes, groups, size = equal_groups(where, axis_name, groups)
    sizes = [n for _, n in axes] if groups is None else [size]

    def exchange_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        shape = y.type.shape
        split, block = _divided(where, y, split_axis, size, tiled)
        concat = canonical_axis(concat_axis, len(shape), where)
        if axes:
            y = reshape(y, (*shape[:split], *sizes, *([block] if tiled else []), *shape[split + 1 :]))
            y = collect(AllToAll(axes, groups, _dims(axes, groups, split)), y)
        y = reshape(y, (*shape[:split], size, *([block] if tiled else []), *shape[split + 1 :]))
        y = move_axis(y, split, concat)
        if not tiled:
            return y
        shape = y.type.shape
        return reshape(y, (*shape[:concat], shape[concat] * shape[concat + 1], *shape[concat + 2 :]))

    return tree_map(exchange_leaf, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The mapped axis and dimension ``axis`` exchanged: ``all_to_all(x, axis_name, axis, axis)``."""
    return _exchanged("pswapaxes", x, axis_name, axis, axis, axis_index_groups, False)


def pgather(src: Any, idx: Any, axes: Any) -> Any:
    """``src[idx]`` along named axes and dimensions, which count as one dimension in the order of ``axes``.

        pgather(x, i, "i") == all_gather(x, "i")[i]

    Shapes: ``src: a[*dims, *s], idx: [*t]`` give ``a[*t, *s]``, where ``dims`` are the integers of ``axes``.
    Raises: UnboundAxis: nothing binds a name. BadArgument: a dimension does not exist or stands twice.
    """
    x, index = as_array(src), as_array(idx)
    items = axis_tuple(axes)
    rank = len(x.type.shape)
    named = [item for item in items if not isinstance(item, int)]
    bound = bound_axes("pgather", named)
    whole = collect(AllGather(bound, None, tuple(range(len(bound)))), x)
    dims = [
        len(named) + canonical_axis(item, rank, "pgather") if isinstance(item, int) else named.index(item)
        for item in items
    ]
    if len(set(dims)) < len(dims):
        raise BadArgument(f"pgather: a dimension must stand once, got {items}.")
    others = [d for d in range(len(whole.type.shape)) if d not in dims]
    whole = transpose(whole, (*dims, *others))
    shape = whole.type.shape
    table = reshape(whole, (prod(shape[: len(items)]), *shape[len(items) :]))
    rows = index_take(table, [reshape(index, (index.type.size,))], (0,))
    return reshape(rows, (*index.type.shape, *table.type.shape[1:]))


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """``x`` as what its type says that devices have of it along the named axes of a mesh, on every leaf.

    The elements that a device has stay the same. Operations cast their operands to varying ones themselves; this is
    needed where types must agree, as for the initial carry of a loop, and for partial sums. Of these types tell along
    explicit axes of the mesh alone.

    Args:
        to: "varying": each device has a value of its own, of what is the same on all of them a copy, whose cotangents
            are summed. "reduced": each has a copy, whose cotangent remains a summand. "unreduced", of what varies: each
            has a summand, of which the sum counts, so that none but linear operations take it; ``psum`` sums.
    Raises: BadArgument: another ``to``, or ``x`` is not so. UnboundAxis: nothing binds a name.
    """
    need_one_of("pcast: to", to, tuple(_CASTS))
    axes = tracked(bound_axes("pcast", axis_name))
    names = {name for name, _ in axes}

    def cast(leaf: Any) -> Any:
        y = as_array(leaf)
        if to == "unreduced" and not are_added(y.type.dtype):
            raise BadArgument(f"pcast: partial sums must be of numbers, got {y.type}.", hint="convert it before.")
        needed, fits = _CASTS[to]
        if not fits(y.type, names):
            raise BadArgument(
                f"pcast: along {axis_name!r} what becomes {to} must {needed}, got {y.type}.",
                hint="psum makes partial sums a value that is the same on all devices; such a one is a whole sum.",
            )
        return _as_state(y, axes, to)

    return tree_map(cast, x)


_CASTS: dict[str, tuple[str, Callable[[Any, set[Hashable]], Any]]] = {
    "varying": ("be no partial sum", lambda t, names: not names & t.mat.unreduced),
    "unreduced": ("vary", lambda t, names: names <= t.manual - t.mat.reduced),
    "reduced": ("be the same on all devices", lambda t, names: not names & (t.manual - t.mat.reduced)),
}


def _as_state(x: Any, axes: frozenset[SizedAxis], to: str) -> Any:
    """``x``, of which each device has what it has now, as ``pcast`` says; nothing is checked."""
    if not axes:
        return x
    y, names = vary(x, axes), frozenset([name for name, _ in axes])
    spec = (PartitionSpec() if y.type.cut is None else y.type.cut.spec).without_sums(names)
    sums = {kind: getattr(spec, kind) | (names if to == kind else frozenset()) for kind in ("unreduced", "reduced")}
    return with_sums(y, next(at.mesh for at in current().scope if at.mesh is not None), **sums)


def pvary(x: Any, axis_name: Any) -> Any:
    """``pcast(x, axis_name, to="varying")``."""
    axes = tracked(bound_axes("pvary", axis_name))
    return tree_map(lambda leaf: vary(as_array(leaf), axes), x)
