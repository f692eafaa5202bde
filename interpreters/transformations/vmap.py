"""vmap, and map by batches: the public transformations over batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any

from ...effects.base import config
from ...effects.base.errors import BadArgument, BadCall, NotAnArray, ShapeMismatch, TreeMismatch, need_function
from ...effects.base.lazy_module import LazyModule
from ...effects.base.source_locations import user_site
from ...effects.base.stack import STACK, installed
from ...effects.base.tracebacks import boundary, unnamed_boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.loops import scan_as
from ...effects.core.arrays import Array, as_array, unaliased
from ...effects.core.containers import holds_container, need_no_container, specs_in
from ...effects.core.escaped_boxes import check_leaks
from ...effects.core.named_axes import axis_tuple
from ...effects.core.signatures import P, R, X, Y
from ...effects.operations.foundations.shapes import move_axis, reshape
from ...effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.trees import pytrees
from ..batching.batch import Batch, JvpDirections
from ..batching.mapped_axes import dimension, flat_arguments, flat_axes, lane_count, lanes_cut, stacked
from ..core.trace_cache import leaf_name
from ..references.arguments import call_pure, positions_of, pure_of
from ..references.reference import Ref

if TYPE_CHECKING:
    from ..batching import grouped_lanes, placed_lanes
    from ..ragged import container_map
    from ..ragged import per_length as calls_per_length
else:
    grouped_lanes = LazyModule("handlax.interpreters.batching.grouped_lanes")
    placed_lanes = LazyModule("handlax.interpreters.batching.placed_lanes")
    container_map = LazyModule("handlax.interpreters.ragged.container_map")
    calls_per_length = LazyModule("handlax.interpreters.ragged.per_length")


def vmap(
    fun: Callable[P, R], in_axes: int | Sequence[Any] | None = 0, out_axes: Any = 0,
    axis_name: Hashable | None = None, axis_size: int | None = None, spmd_axis_name: Hashable | None = None,
    *, group: bool | int = False, per_length: bool = False,
) -> Callable[P, R]:
    """Map ``fun`` over one axis of its arguments.

        vmap(f)(xs)[i] == f(xs[i])

    Shapes: ``f: a[*s] -> b[*t]`` gives ``vmap(f): a[n, *s] -> b[n, *t]``.
    Effects: answers the axis ``axis_name``, and every effect by its ``vmap`` declaration; forwards everything else.
    Order: an effect declared ``per_lane`` is performed by lane 0, 1, ..., n - 1, and then the next statement is; what
    each lane chooses for itself, a branch or a ``while_loop``, it performs as a whole before the next lane does.

    Args:
        in_axes: the mapped axis of each argument, None for one that all lanes share, which may be no array; a prefix of
            the argument tuple's tree. Keyword arguments are mapped over axis 0. ``ragged_axis`` is that of a
            ``Ragged``, whose lanes have lengths of their own.
        out_axes: where the mapped axis stands in each result; None for a result that is equal in all lanes,
            ``ragged_axis`` for one whose first axis is ragged.
        axis_name: the name of the axis in collectives.
        axis_size: its size, needed only where no argument is mapped.
        spmd_axis_name: an axis of a mesh, or several, over which the lanes are placed: ``with_sharding_constraint``
            cuts them along it, and in a ``shard_map`` that leaves it alone, by its types, each device has its own.
        group: whether a branch with a mapped index is executed on the lanes that take it alone, sorted by branch; an
            int: so many lanes at a time. By default all lanes execute all branches, and select.
        per_length: whether ``fun`` is called once for each distinct length of ragged arguments, whose lengths must be
            known, so that sizes in it are integers. There are no collectives over the lanes then.

    Raises: ShapeMismatch: mapped axes differ in size, or out_axes=None for a mapped result. TreeMismatch: in_axes or
        out_axes is no prefix. BadArgument: an axis is out of range, or no size is known.

    >>> from handlax import numpy as hnp
    >>> vmap(hnp.sin)(hnp.array([0.0, 1.0])).shape
    (2,)
    """
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    need_function("vmap", fun)
    by_spec = _of_containers(in_axes, out_axes, axis_size) or per_length
    settings = in_axes, out_axes, axis_name, axis_size, spmd_axis_name, group
    new_run = _lanes(spmd_axis_name, group)

    @wraps(fun)
    @unnamed_boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if type(in_axes) is tuple and len(in_axes) != len(args):
            raise _one_for_each(len(args), len(in_axes))
        leaves, tree = pytrees.flatten(args)
        if kwargs:
            more, kwargs_tree = pytrees.flatten(kwargs)
            leaves = leaves + more
        if by_spec or holds_container(tree, leaves) or (kwargs and holds_container(kwargs_tree)):
            return _over_containers(fun, settings, per_length, args, kwargs)
        axes = flat_axes("vmap in_axes", in_axes, args, tree.num_leaves) + ([0] * len(more) if kwargs else [])
        try:
            xs = [x if axis is None else as_array(x) for x, axis in zip(leaves, axes)]
        except NotAnArray:
            if not positions_of(leaves):
                raise
            return _on_references(fun, settings, args, kwargs)
        dims = [dimension("vmap", axis, x) for axis, x in zip(axes, xs)]
        names = lambda i: leaf_name(fun, i, None, pytrees.structure((args, kwargs)))
        size, cut = lane_count("vmap", dims, xs, axis_size, names), lanes_cut("vmap", dims, xs, spmd_axis_name)
        run = _along(cut, group, new_run)(STACK.get(), size, axis_name, user_site(2))
        run.cut = cut
        boxes = [x if d is None else run.box(d, (x,)) for x, d in zip(xs, dims)]
        with installed(run):
            named = pytrees.unflatten(kwargs_tree, boxes[tree.num_leaves :]) if kwargs else {}
            results = fun(*pytrees.unflatten(tree, boxes[: tree.num_leaves]), **named)
            ys, out_tree = pytrees.flatten(results)
            if holds_container(out_tree, ys):
                results = container_map.ContainerMap(lambda *_: run, run.size).results(out_axes, results)
                del boxes, named, ys
                return _without_leaks(run, results)
            ys = [as_array(y) for y in ys]
        targets = flat_axes("vmap out_axes", out_axes, results, len(ys))
        outs = [stacked(run, y, target, out_tree, i) for i, (y, target) in enumerate(zip(ys, targets))]
        del boxes, named, results, ys
        return _without_leaks(run, pytrees.unflatten(out_tree, unaliased(outs)))

    return mapped


def _lanes(spmd_axis_name: Hashable | None, group: bool | int) -> Callable[..., Batch]:
    """The function that makes the run of ``vmap``, whose lanes may be placed over mesh axes, or grouped by branch."""
    if group is False:
        return Batch if spmd_axis_name is None else partial(placed_lanes.PlacedLanes, how=axis_tuple(spmd_axis_name))
    if not isinstance(group, int) or group < 1:
        raise BadCall(f"vmap: group must be a bool or the number of lanes executed at a time, got {group!r}.")
    if spmd_axis_name is not None:
        raise BadArgument(
            f"vmap: lanes that are placed along {spmd_axis_name!r} stay on their devices, and group moves them.",
            hint="group inside of shard_map, where each device has its own lanes.",
        )
    return partial(grouped_lanes.GroupedLanes, how=None if group is True else group)


def _along(cut: NamedSharding | None, group: bool | int, new_run: Callable[..., Batch]) -> Callable[..., Batch]:
    """``new_run``, but where types state how lanes are cut, what places them so."""
    return new_run if cut is None or cut.hides or group is not False else _lanes(cut.spec[0], False)


def _of_containers(in_axes: Any, out_axes: Any, axis_size: Any) -> bool:
    """Whether these axes or this number of lanes are of containers. Raises: BadCall: ``in_axes`` is no axis."""
    if specs_in(in_axes, out_axes):
        return True
    if not isinstance(in_axes, (int, tuple, type(None))) or isinstance(in_axes, bool):
        raise BadCall(
            f"vmap: in_axes is an int, None or a tuple with one entry for each argument, got {in_axes!r}.",
            hint="hx.register_vmappable registers containers, which vmap maps by specs of their own.",
        )
    return type(axis_size) not in (int, NoneType)


def _one_for_each(arguments: int, entries: int) -> TreeMismatch:
    return TreeMismatch(
        f"vmap: in_axes must have an entry for each of {arguments} positional arguments, got {entries}.",
        hint="keyword arguments are always mapped over axis 0.",
    )


def _over_containers(fun: Callable[..., Any], settings: Any, per_length: bool, args: Any, kwargs: Any) -> Any:
    """``vmap`` of a call with containers, such as ragged arrays, among the arguments, or their specs among the axes."""
    in_axes, out_axes, axis_name, axis_size, *lanes = settings
    crossing = container_map.ContainerMap(container_map.new_lanes(_lanes(*lanes), axis_name, user_site(2)), axis_size)
    try:
        positional, named = crossing.arguments(in_axes, out_axes, args, kwargs)
    except NotAnArray:
        if per_length or not positions_of(pytrees.leaves((args, kwargs))):
            raise
        return _on_references(fun, settings, args, kwargs)
    if per_length:
        results = calls_per_length.call_per_length(fun, crossing.run, positional, named, out_axes)
        return crossing.results(out_axes, results)
    with installed(crossing.run):
        results = fun(*positional, **named)
        results_of_lanes = crossing.results(out_axes, results)
    del positional, named, results
    return _without_leaks(crossing.run, results_of_lanes)


def _without_leaks(run: Batch, results: Any) -> Any:
    """``results``, after a check under ``check_leaks`` that nothing else refers to boxes of the run."""
    if config.current().check_leaks:
        check_leaks(run)
    return results


def _on_references(fun: Callable[..., Any], settings: Any, args: Any, kwargs: Any) -> Any:
    """``vmap`` of a function with references among its arguments, mapped as arrays are: one element per lane."""
    in_axes, out_axes, *rest, group = settings
    leaves, tree, axes = flat_arguments(in_axes, out_axes, args, kwargs)
    entering = [i for i, axis in enumerate(axes) if axis is not None]
    entering.sort(key=lambda i: not isinstance(leaves[i], Ref))  # first: elements may have other numbers of leaves

    def of_leaves(*values: Any) -> Any:
        given = dict(zip(entering, values))
        positional, named = pytrees.unflatten(tree, [given.get(i, x) for i, x in enumerate(leaves)])
        return fun(*positional, **named)

    inner = [axes[i] for i in entering]
    values = [leaves[i] for i in entering]
    positions = positions_of(values)
    pure = vmap(pure_of(of_leaves, positions), inner, (out_axes, 0), *rest, group=group)
    return call_pure(pure, tuple(values), {}, positions, lambda i, y: move_axis(y, 0, inner[i] % y.ndim))


def vmap_leaves(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``vmap`` over axis 0 of all arrays in arguments and results, containers treated as ordinary pytrees."""

    @wraps(fun)
    def mapped(*args: Any) -> Any:
        leaves, tree = pytrees.flatten(args)
        structure: Any = None

        def of_leaves(*xs: Any) -> Any:
            nonlocal structure
            ys, structure = pytrees.flatten(fun(*pytrees.unflatten(tree, xs)))
            return ys

        results = vmap(of_leaves)(*leaves)
        return pytrees.unflatten(structure, results)

    return mapped


def directions(fun: Callable[[Any], Any], rows: Array, out_axes: Any) -> Any:
    """``vmap`` of ``fun`` over axis 0, except that an effect without a mapped operand is performed once."""
    run = JvpDirections(STACK.get(), rows.type.shape[0], None, user_site(2))
    with installed(run):
        results = fun(run.box(0, (rows,)))
        ys, out_tree = pytrees.flatten(results)
        ys = [as_array(y) for y in ys]
    targets = flat_axes("vmap out_axes", out_axes, results, len(ys))
    outs = [stacked(run, y, target, out_tree, i) for i, (y, target) in enumerate(zip(ys, targets))]
    return pytrees.unflatten(out_tree, unaliased(outs))


def _step_of(f: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of a slice as the step of a ``scan``, with the function's name."""

    def step(_: Any, x: Any) -> Any:
        return (), f(x)

    step.__name__ = name_of(f)
    return step


@boundary
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """Apply a function to the slices of ``xs``, one after the other.

        map(f, xs)[i] == f(xs[i])

    Shapes: ``f: a -> b`` gives ``[n, a] -> [n, b]``.

    Args:
        batch_size: the number of slices computed at once, by ``vmap``; the last batch may be smaller.

    Raises: BadArgument: the batch size is not positive. ShapeMismatch: leading sizes differ.

    >>> from handlax import numpy as hnp
    >>> map(lambda x: x * x, hnp.arange(5), batch_size=2)
    Array([ 0,  1,  4,  9, 16], dtype=int32)
    """
    need_function("map", f)
    need_no_container("map", pytrees.structure(xs))
    if batch_size is None:
        return scan_as("map", _step_of(f), (), xs)[1]
    if batch_size < 1:
        raise BadArgument(f"map: batch_size must be positive, got {batch_size}.")
    leaves, tree = pytrees.flatten(xs)
    slices = [as_array(x) for x in leaves]
    sizes = {x.type.shape[:1] for x in slices}
    if len(sizes) != 1 or sizes == {()}:
        raise ShapeMismatch(f"map: leading sizes must agree, got {', '.join([str(x.type) for x in slices])}.")
    ((size,),) = sizes
    if not isinstance(size, int):  # rows of a lane, whose batches would differ in size
        return scan_as("map", _step_of(f), (), xs)[1]
    count, remainder = divmod(size, batch_size)

    def rows(first: int, last: int) -> list[Any]:
        return [slice_in_dim(x, first, last) for x in slices]

    def batches(x: Any) -> Any:
        return reshape(x, (count, batch_size, *x.type.shape[1:]))

    results = []
    if count:
        batched = pytrees.unflatten(tree, [batches(x) for x in rows(0, size - remainder)])
        ys = scan_as("map", _step_of(vmap_leaves(f)), (), batched)[1]
        results.append(pytrees.tree_map(lambda y: reshape(y, (size - remainder, *y.type.shape[2:])), ys))
    if remainder or not count:
        results.append(vmap_leaves(f)(pytrees.unflatten(tree, rows(size - remainder, size))))
    return results[0] if len(results) == 1 else pytrees.tree_map(lambda *ys: concatenate(ys, 0), *results)
