"""Reductions and prefix reductions over the lanes of named axes; and the index of the current lane."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ...base.errors import BadArgument
from ...base.wrapping import renamed
from ...core.arrays import Array, as_array, scalar
from ...core.named_axes import SizedAxis, axis_tuple, bound_axes, tracked
from ...core.varying import vary
from ...trees.pytrees import map as tree_map
from ...types.dtypes import int32, is_bool, to_inexact
from ..dot_general import dot_general
from ..elementwise.bitwise import bitwise_and, bitwise_or
from ..elementwise.comparison import eq, ne, select
from ..elementwise.conversion import convert
from ..foundations.shapes import broadcast, canonical_axes
from ..reductions.cumulative import cummax, cummin, cumprod, cumsum
from .collective import Pmax, Pmin, Pprod, Psum, collect, lane_position, on_table
from .lane_groups import Groups, along_groups


def lanes_that_meet(where: str, axis_name: Any, groups: Any) -> tuple[tuple[SizedAxis, ...], Groups | None, set[int]]:
    """The axes of a call, its groups as tuples, and the set of the groups' sizes.

    Raises: UnboundAxis: nothing binds a name. BadArgument: the groups do not hold each lane once.
    """
    axes = bound_axes(where, axis_name)
    total = prod([size for _, size in axes])
    if groups is None:
        return axes, None, {total}
    groups = tuple([tuple([int(lane) for lane in group]) for group in groups])
    if sorted([lane for group in groups for lane in group]) != list(range(total)) or not all(groups):
        raise BadArgument(f"{where}: axis_index_groups must hold each of {total} lanes once, got {groups}.")
    return axes, groups if axes else None, {len(group) for group in groups}


def equal_groups(where: str, axis_name: Any, groups: Any) -> tuple[tuple[SizedAxis, ...], Groups | None, int]:
    """The axes and groups of a call, and the size of every group.

    Raises: UnboundAxis: nothing binds a name. BadArgument: groups do not hold each lane once, or differ in size.
    """
    axes, groups, sizes = lanes_that_meet(where, axis_name, groups)
    if len(sizes) > 1:
        raise BadArgument(
            f"{where}: axis_index_groups must be of equal size, got {groups}.",
            hint="the shape of the result depends on it.",
        )
    return axes, groups, sizes.pop()


def _dims_and_names(axis_name: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The integers in ``axis_name``, which are dimensions of the operand, and the names of axes."""
    names = axis_tuple(axis_name)
    return tuple([name for name in names if isinstance(name, int)]), [x for x in names if not isinstance(x, int)]


def _reduced(kind: Any, where: str, x: Any, axis_name: Any, groups: Any) -> Any:
    """The reduction of each leaf over dimensions, which are the integers in ``axis_name``, and over the named axes."""
    dims, names = _dims_and_names(axis_name)
    axes, groups, sizes = lanes_that_meet(where, names, groups)

    def reduce_leaf(leaf: Any) -> Any:
        if isinstance(leaf, (bool, int, float, complex)) and not dims and len(sizes) == 1 and kind is Psum:
            return leaf * min(sizes)
        y = _counted(kind, as_array(leaf))
        if dims:
            y = kind.reduce(y, canonical_axes(dims, len(y.type.shape), where))
        return collect(kind(axes, groups), y)

    return tree_map(reduce_leaf, x)


def _counted(kind: Any, y: Any) -> Any:
    """Booleans as int32, for sums and products."""
    return convert(y, int32) if is_bool(y.type.dtype) and kind in (Psum, Pprod) else y


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """``psum(x, "i")[lane] = sum of x over all lanes``, on every leaf of ``x``.

    A Python number is the same in all lanes: ``psum(1, "i")`` is the axis size, a Python number too. Booleans are
    counted as integers of 32 bits.

    Args:
        axis_name: a name, or several, of which the first is major; integers among them are dimensions of ``x``.
        axis_index_groups: lists of lanes, of any sizes, each of which is summed alone.
    Raises: UnboundAxis: nothing binds a name. BadArgument: groups do not hold each lane once.
    """
    return _reduced(Psum, "psum", x, axis_name, axis_index_groups)


def pprod(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The product of ``x`` over all lanes; arguments as of ``psum``. Its derivative is right where factors are 0."""
    return _reduced(Pprod, "pprod", x, axis_name, axis_index_groups)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest ``x`` of all lanes; arguments as of ``psum``. Lanes that attain it share the tangent equally."""
    return _reduced(Pmax, "pmax", x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest ``x`` of all lanes; arguments as of ``psum``. Lanes that attain it share the tangent equally."""
    return _reduced(Pmin, "pmin", x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of ``x`` over all lanes: ``psum(x) / psum(1)``, integers as floats; arguments as of ``psum``."""
    dims, names = _dims_and_names(axis_name)
    count = _reduced(Psum, "pmean", 1, tuple(names), axis_index_groups)

    def mean_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        shape, dtype = y.type.shape, y.type.dtype
        term = leaf if isinstance(leaf, (int, float, complex)) or is_bool(dtype) else convert(y, to_inexact(dtype))
        total = _reduced(Psum, "pmean", term, axis_name, axis_index_groups)
        return total / (count * prod([shape[d] for d in canonical_axes(dims, len(shape), "pmean")]))

    return tree_map(mean_leaf, x)


def _extreme_lane(kind: Any, where: str, x: Any, axis_name: Any, groups: Any) -> Any:
    """The index of the first lane in the group with the extreme value; NaN is extreme."""
    axes, groups, _ = lanes_that_meet(where, axis_name, groups)

    def lane_of_leaf(leaf: Any) -> Any:
        y = as_array(leaf)
        best = collect(kind(axes, groups), y)
        attains = bitwise_or(eq(y, best), bitwise_and(ne(y, y), ne(best, best)))
        none = broadcast(scalar(prod([size for _, size in axes]), int32), y.type.shape)
        lane = select(attains, broadcast(lane_position(axes, groups, tracked(axes)), y.type.shape), none)
        return collect(Pmin(axes, groups), lane)

    return tree_map(lane_of_leaf, x)


def pargmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Array:
    """The index of the lane with the largest ``x``, the first one of several; a NaN is larger than any number."""
    return _extreme_lane(Pmax, "pargmax", x, axis_name, axis_index_groups)


def pargmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Array:
    """The index of the lane with the smallest ``x``, the first one of several; a NaN is smaller than any number."""
    return _extreme_lane(Pmin, "pargmin", x, axis_name, axis_index_groups)


def axis_index(axis_name: Any, *, axis_index_groups: Any = None) -> Array:
    """The index of the current lane along the axis, row-major over several; with groups, its position in its group."""
    axes, groups, _ = lanes_that_meet("axis_index", axis_name, axis_index_groups)
    return lane_position(axes, groups, tracked(axes))


def pdot(
    x: Any, y: Any, axis_name: Any, pos_contract: Any = ((), ()), pos_batch: Any = ((), ()), precision: Any = None
) -> Any:
    """The product of two arrays, summed over named axes and over pairs of dimensions: ``psum(dot_general(x, y))``."""
    return _reduced(Psum, "pdot", dot_general(x, y, (pos_contract, pos_batch), precision), axis_name, None)


def _prefixes(where: str, kind: Any, scan: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """The prefix reduction of ``kind`` over lanes, by a cumulative function along the gathered axis."""

    def prefixes(
        x: Any, axis_name: Any, *, reverse: bool = False, exclusive: bool = False, axis_index_groups: Any = None
    ) -> Any:
        axes, groups, _ = lanes_that_meet(where, axis_name, axis_index_groups)

        def of_table(table: Any) -> Any:
            return along_groups(scan, table, groups, reverse, exclusive, kind.unit)

        return tree_map(lambda leaf: on_table(of_table, vary(_counted(kind, as_array(leaf)), tracked(axes)), axes), x)

    renamed(prefixes, where)
    prefixes.__doc__ = f"""{doc} over the lanes up to this one, on every leaf of ``x``.

    Args:
        reverse: over this lane and those after it.
        exclusive: without this lane; the first one has {doc.lower()} of nothing.
        axis_index_groups: lists of lanes, of any sizes, along each of which is counted alone.
    Raises: UnboundAxis: nothing binds a name. BadArgument: groups do not hold each lane once.
    """
    return prefixes


pcumsum = _prefixes("pcumsum", Psum, cumsum, "The sum")
pcumprod = _prefixes("pcumprod", Pprod, cumprod, "The product")
pcummax = _prefixes("pcummax", Pmax, cummax, "The maximum")
pcummin = _prefixes("pcummin", Pmin, cummin, "The minimum")
