"""vmap, and map by batches: the public transformations over batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from ...effects.base import config
from ...effects.base.errors import BadArgument, BadCall, NotAnArray, ShapeMismatch, TreeMismatch, need_function
from ...effects.base.source_locations import user_site
from ...effects.base.stack import STACK, installed
from ...effects.base.tracebacks import boundary, unnamed_boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.loops import scan
from ...effects.core.arrays import Array, as_array
from ...effects.core.escaped_boxes import check_leaks
from ...effects.core.named_axes import axis_tuple
from ...effects.operations.foundations.shapes import broadcast_in_dim, move_axis, reshape
from ...effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ...effects.trees import pytrees
from ..batching.batch import Batch, JvpDirections
from ..batching.placed_lanes import PlacedLanes
from ..ragged.ragged_array import ragged_axis
from ..ragged.ragged_map import RaggedArguments, is_ragged, names_ragged_axis
from ..references.arguments import call_pure, positions_of, pure_of
from ..references.reference import Ref


def vmap(
    fun: Callable[..., Any], in_axes: int | Sequence[Any] | None = 0, out_axes: Any = 0,
    axis_name: Hashable | None = None, axis_size: int | None = None, spmd_axis_name: Hashable | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Map ``fun`` over one axis of its arguments.

        vmap(f)(xs)[i] == f(xs[i])

    Shapes: ``f: a[*s] -> b[*t]`` gives ``vmap(f): a[n, *s] -> b[n, *t]``.
    Effects: answers the axis ``axis_name``, and every effect by its ``vmap`` declaration; forwards everything else.

    Args:
        in_axes: the mapped axis of each argument, None for one that all lanes share; a prefix of the argument tuple's
            tree. Keyword arguments are mapped over axis 0. ``ragged_axis`` is that of a ``Ragged``, whose lanes have
            lengths of their own.
        out_axes: where the mapped axis stands in each result; None for a result that is equal in all lanes,
            ``ragged_axis`` for one whose first axis is ragged.
        axis_name: the name of the axis in collectives.
        axis_size: its size, needed only where no argument is mapped.
        spmd_axis_name: an axis of a mesh, or several, over which the lanes are placed: ``with_sharding_constraint``
            cuts them along it, and in ``shard_map`` each device along it has its own lanes.

    Raises: ShapeMismatch: mapped axes differ in size, or out_axes=None for a mapped result. TreeMismatch: in_axes or
        out_axes is no prefix. BadArgument: an axis is out of range, or no size is known.

    >>> from handlax import numpy as hnp
    >>> vmap(hnp.sin)(hnp.array([0.0, 1.0])).shape
    (2,)
    """
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    need_function("vmap", fun)
    if names_ragged_axis(in_axes, out_axes):
        return _over_ragged(fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name)
    if not isinstance(in_axes, (int, tuple, type(None))) or isinstance(in_axes, bool):
        raise BadCall(f"vmap: in_axes is an int, None or a tuple with one entry for each argument, got {in_axes!r}.")
    new_run = Batch if spmd_axis_name is None else partial(PlacedLanes, placed=axis_tuple(spmd_axis_name))

    @wraps(fun)
    @unnamed_boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise TreeMismatch(
                f"vmap: in_axes must have an entry for each of {len(args)} positional arguments, got {len(in_axes)}.",
                hint="keyword arguments are always mapped over axis 0.",
            )
        leaves, tree = pytrees.flatten(args)
        axes = flat_axes("vmap", in_axes, args, len(leaves))
        if kwargs:
            more, kwargs_tree = pytrees.flatten(kwargs)
            leaves = leaves + more
            axes = axes + [0] * len(more)
        try:
            xs = [as_array(x) for x in leaves]
        except NotAnArray:
            if not positions_of(leaves):
                raise
            trees = (tree, kwargs_tree if kwargs else None)
            return _on_references(fun, leaves, trees, axes, (out_axes, axis_name, axis_size, spmd_axis_name))
        dims = [dimension("vmap", axis, x) for axis, x in zip(axes, xs)]
        run = new_run(STACK.get(), lane_count("vmap", dims, xs, axis_size), axis_name, user_site(2))
        boxes = [run.box(d, (x,)) for x, d in zip(xs, dims)]
        with installed(run):
            positional = pytrees.unflatten(tree, boxes[: tree.num_leaves])
            named = pytrees.unflatten(kwargs_tree, boxes[tree.num_leaves :]) if kwargs else {}
            results = fun(*positional, **named)
            ys, out_tree = pytrees.flatten(results)
            ys = [as_array(y) for y in ys]
        targets = flat_out_axes("vmap", out_axes, results, len(ys))
        stacked = [_stacked(run, y, target) for y, target in zip(ys, targets)]
        if config.current().check_leaks:
            del boxes, positional, named, results, ys
            check_leaks(run)
        return pytrees.unflatten(out_tree, stacked)

    return mapped


def _over_ragged(
    fun: Callable[..., Any], in_axes: Any, out_axes: Any, axis_name: Hashable | None, axis_size: int | None, placed: Any
) -> Callable[..., Any]:
    """``vmap`` with ragged arrays among the arguments or results."""
    if placed is not None:
        raise BadArgument(
            f"vmap: lanes of different lengths have no equal parts for the devices along {placed!r}.",
            hint="spmd_axis_name with padded arrays, or ragged_axis without it.",
        )

    @wraps(fun)
    @unnamed_boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytrees.flatten((args, kwargs), is_ragged)
        places = pytrees.unflatten(tree, range(len(leaves)))
        axes = pytrees.broadcast_prefix(in_axes, places[0], is_leaf=_is_none, what="vmap in_axes")
        axes = axes + [ragged_axis if is_ragged(x) else 0 for x in leaves[len(axes) :]]
        given = RaggedArguments(leaves, axes)
        dims = [None if is_ragged(x) else dimension("vmap", axis, x) for x, axis in zip(given.leaves, axes)]
        counts = given.counts | ({axis_size} if axis_size is not None else set())
        if len(counts) > 1:
            raise ShapeMismatch(f"vmap: mapped axes must have one size, got ragged arrays of {sorted(counts)} lanes.")
        dense = [(d, x) for d, x in zip(dims, given.leaves) if d is not None]
        size = lane_count("vmap", [d for d, _ in dense], [x for _, x in dense], counts.pop() if counts else None)
        run = given.install(STACK.get(), size, axis_name, user_site(2))
        boxes = given.boxes(run, dims)
        with installed(run):
            positional, named = pytrees.unflatten(tree, boxes)
            results = pytrees.tree_map(as_array, fun(*positional, **named))
        targets, spec = pytrees.flatten(out_axes, _is_none)
        parts = spec.flatten_up_to(results, "vmap out_axes")
        made = [
            given.result(run, part)
            if target is ragged_axis
            else pytrees.tree_map(lambda y, target=target: _stacked(run, _dense(y), target), part)
            for target, part in zip(targets, parts)
        ]
        return pytrees.unflatten(spec, made)

    return mapped


def _dense(y: Any) -> Any:
    """A result that has one shape in all lanes. Raises: ShapeMismatch: it has a ragged axis."""
    if any([not isinstance(n, int) for n in y.type.shape]):
        raise ShapeMismatch(
            f"vmap: a result with a ragged axis has out_axes=hx.ragged_axis, got {y.type}.",
            hint="or reduce it over that axis.",
        )
    return y


def _on_references(
    fun: Callable[..., Any], leaves: Sequence[Any], trees: Any, axes: Sequence[int | None], settings: Any
) -> Any:
    """``vmap`` where leaves of the arguments are references: a mapped one has an element for each lane.

    One that is not mapped is read as one of the surroundings.
    """
    tree, kwargs_tree = trees
    out_axes, *rest = settings
    entering = [i for i, x in enumerate(leaves) if axes[i] is not None or not isinstance(x, Ref)]

    def of_leaves(*values: Any) -> Any:
        given = dict(zip(entering, values))
        filled = [given.get(i, x) for i, x in enumerate(leaves)]
        named = {} if kwargs_tree is None else pytrees.unflatten(kwargs_tree, filled[tree.num_leaves :])
        return fun(*pytrees.unflatten(tree, filled[: tree.num_leaves]), **named)

    inner = [axes[i] for i in entering]
    values = [leaves[i] for i in entering]
    positions = positions_of(values)
    pure = vmap(pure_of(of_leaves, positions), inner, (out_axes, 0), *rest)
    return call_pure(pure, tuple(values), {}, positions, lambda i, y: move_axis(y, 0, inner[i] % y.ndim))


def directions(fun: Callable[[Any], Any], rows: Array, out_axes: Any) -> Any:
    """``vmap`` of ``fun`` over the rows, except that an effect without a mapped operand is performed once."""
    run = JvpDirections(STACK.get(), rows.type.shape[0], None, user_site(2))
    with installed(run):
        results = fun(run.box(0, (rows,)))
        ys, out_tree = pytrees.flatten(results)
        ys = [as_array(y) for y in ys]
    targets = flat_out_axes("vmap", out_axes, results, len(ys))
    return pytrees.unflatten(out_tree, [_stacked(run, y, target) for y, target in zip(ys, targets)])


def _is_none(x: Any) -> bool:
    return x is None


def flat_axes(where: str, in_axes: Any, args: Any, count: int) -> list[int | None]:
    """The mapped axis of each of ``count`` leaves, from a prefix of their tree."""
    if isinstance(in_axes, int):
        return [in_axes] * count
    if in_axes is None:
        return [None] * count
    return pytrees.broadcast_prefix(in_axes, args, is_leaf=_is_none, what=f"{where} in_axes")


def flat_out_axes(where: str, out_axes: Any, results: Any, count: int) -> list[int | None]:
    """Where the mapped axis stands in each of ``count`` results, from a prefix of their tree."""
    if isinstance(out_axes, int):
        return [out_axes] * count
    if out_axes is None:
        return [None] * count
    return pytrees.broadcast_prefix(out_axes, results, is_leaf=_is_none, what=f"{where} out_axes")


def dimension(where: str, axis: Any, x: Array) -> int | None:
    """The mapped dimension of an argument, counted from 0. Raises: BadArgument: it has no such dimension."""
    if axis is None:
        return None
    rank = len(x.type.shape)
    _need_int(where, axis)
    if not -rank <= axis < rank:
        raise BadArgument(
            f"{where}: in_axes must name a dimension of the argument {x.type}, got {axis} for {rank} of them.",
            hint="use None for an argument that all lanes share." if rank == 0 else None,
        )
    return axis % rank


def dimensions(where: str, in_axes: Any, args: Any, xs: Sequence[Array]) -> list[int | None]:
    """The mapped dimension of each argument, from a prefix of their tree."""
    return [dimension(where, axis, x) for axis, x in zip(flat_axes(where, in_axes, args, len(xs)), xs)]


def result_dimensions(where: str, out_axes: Any, results: Any, ranks: Sequence[int]) -> list[int | None]:
    """The mapped dimension of each result, of these ranks, from a prefix of their tree."""
    axes = flat_out_axes(where, out_axes, results, len(ranks))
    return [None if axis is None else result_dimension(where, axis, rank) for axis, rank in zip(axes, ranks)]


def result_dimension(where: str, axis: Any, rank: int) -> int:
    """The mapped dimension of a result of this rank, counted from 0. Raises: BadArgument: it has no such dimension."""
    _need_int(where, axis)
    if not -rank <= axis < rank:
        raise BadArgument(f"{where}: out_axes must name a dimension of the result, got {axis} for {rank} of them.")
    return int(axis) % rank


def _need_int(where: str, axis: Any) -> None:
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise BadCall(f"{where}: an axis must be an int or None, got {axis!r}.")


def lane_count(where: str, dims: Sequence[int | None], xs: Sequence[Array], axis_size: int | None) -> int:
    """The size of the mapped dimensions. Raises: ShapeMismatch: they differ. BadArgument: nothing is mapped."""
    sizes = {x.type.shape[d] for x, d in zip(xs, dims) if d is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise BadArgument(
            f"{where}: at least one argument must be mapped, or axis_size be set.",
            hint="all entries of in_axes are None.",
        )
    listed = ", ".join(f"{x.type} along {d}" for x, d in zip(xs, dims) if d is not None)
    raise ShapeMismatch(
        f"{where}: mapped axes must have one size, got {listed}"
        + (f" and axis_size={axis_size}." if axis_size is not None else "."),
        hint="in_axes=None shares an argument between the lanes.",
    )


def _stacked(run: Batch, y: Any, target: int | None) -> Any:
    """A result for all lanes as an array with the mapped axis at ``target``; None: the value that all lanes share."""
    mapped = y.run is run
    if target is None:
        if mapped:
            raise ShapeMismatch(f"vmap: out_axes=None needs a result that all lanes share, got a mapped {y.type}.")
        return y
    target = result_dimension("vmap", target, len(y.type.shape) + 1)
    if mapped:
        return move_axis(y.value, y.dim, target)
    shape = y.type.shape
    return broadcast_in_dim(
        y, (*shape[:target], run.size, *shape[target:]), [d + (d >= target) for d in range(len(shape))]
    )


def _step_of(f: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of a slice as a step of ``scan``, under its own name."""

    def step(_: Any, x: Any) -> Any:
        return (), f(x)

    step.__name__ = name_of(f)
    return step


@boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
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
    if batch_size is None:
        return scan(_step_of(f), (), xs)[1]
    if batch_size < 1:
        raise BadArgument(f"map: batch_size must be positive, got {batch_size}.")
    leaves, tree = pytrees.flatten(xs)
    slices = [as_array(x) for x in leaves]
    sizes = {x.type.shape[:1] for x in slices}
    if len(sizes) != 1 or sizes == {()}:
        raise ShapeMismatch(f"map: leading sizes must agree, got {', '.join([str(x.type) for x in slices])}.")
    ((size,),) = sizes
    count, remainder = divmod(size, batch_size)

    def rows(first: int, last: int) -> list[Any]:
        return [slice_in_dim(x, first, last) for x in slices]

    def batches(x: Any) -> Any:
        return reshape(x, (count, batch_size, *x.type.shape[1:]))

    results = []
    if count:
        batched = pytrees.unflatten(tree, [batches(x) for x in rows(0, size - remainder)])
        ys = scan(_step_of(vmap(f)), (), batched)[1]
        results.append(pytrees.tree_map(lambda y: reshape(y, (size - remainder, *y.type.shape[2:])), ys))
    if remainder or not count:
        results.append(vmap(f)(pytrees.unflatten(tree, rows(size - remainder, size))))
    return results[0] if len(results) == 1 else pytrees.tree_map(lambda *ys: concatenate(ys, 0), *results)
