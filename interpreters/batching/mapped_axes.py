"""The mapped axes of arrays: which dimension each argument and result has, and how many lanes there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, BadCall, ShapeMismatch, ShardingTypeError, some_of
from ...effects.control.recorded_bodies import at_path
from ...effects.core.arrays import Array
from ...effects.core.containers import container_kind, is_axis, is_container, is_spec, need_no_container
from ...effects.core.named_axes import axis_tuple
from ...effects.operations.foundations.shapes import broadcast_in_dim, move_axis
from ...effects.operations.foundations.sharding_constraint import reveal
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.sharding_rules import one_mesh
from ...effects.trees import pytrees


def flat_axes(what: str, axes: Any, tree: Any, count: int) -> list[int | None]:
    """The mapped axis of each of ``count`` leaves, from a prefix of their tree, which errors call ``what``."""
    if isinstance(axes, int) or is_axis(axes):
        return [axes] * count
    return pytrees.broadcast_prefix(axes, tree, is_leaf=is_axis, what=what)


def flat_arguments(in_axes: Any, out_axes: Any, args: Any, kwargs: Any) -> tuple[list[Any], Any, list[Any]]:
    """The arrays and containers among the arguments, the tree that has them as leaves, and the spec of each."""
    leaves, tree = pytrees.flatten((args, kwargs), is_container)
    positions = pytrees.unflatten(tree, range(len(leaves)))
    specs = flat_axes("vmap in_axes", in_axes, positions[0], tree.children()[0].num_leaves)
    return leaves, tree, specs + [_spec_of_keyword(x, (in_axes, out_axes)) for x in leaves[len(specs) :]]


def _spec_of_keyword(x: Any, axes: Any) -> Any:
    """The spec of a keyword argument: axis 0, or for a container that of its type among ``in_axes``."""
    kind = container_kind(x)
    if kind is None or kind.spec_type is int:
        return 0
    named = [spec for spec in pytrees.leaves(axes, is_spec) if type(spec) is kind.spec_type]
    specs = [spec for i, spec in enumerate(named) if spec not in named[:i]]
    if len(specs) != 1:
        raise BadArgument(
            f"vmap: a {kind.data_type.__name__} by keyword has the spec of that type that the axes name, and they name "
            f"{'several' if specs else 'none'}.",
            hint="pass it as a positional argument, with its spec in in_axes.",
        )
    return specs[0]


def dimension(where: str, axis: Any, x: Array) -> int | None:
    """The mapped dimension of an argument, counted from 0. Raises: BadArgument: it has no such dimension."""
    if axis is None:
        return None
    rank = len(x.type.shape)
    if type(axis) is not int:
        _need_int(where, axis)
    if not -rank <= axis < rank:
        raise BadArgument(
            f"{where}: in_axes must name a dimension of the argument {x.type}, whose rank is {rank}, got {axis}.",
            hint="use None for an argument that all lanes share." if rank == 0 else None,
        )
    return axis % rank


def dimensions(where: str, in_axes: Any, args: Any, xs: Sequence[Array]) -> list[int | None]:
    """The mapped dimension of each argument, from a prefix of their tree. Raises: BadArgument: one is a container."""
    axes = flat_axes(f"{where} in_axes", in_axes, args, len(xs))
    need_no_container(where, pytrees.structure(args), axes)
    return [dimension(where, axis, x) for axis, x in zip(axes, xs)]


def result_dimensions(where: str, out_axes: Any, results: Any, ranks: Sequence[int]) -> list[int | None]:
    """The mapped dimension of each result, of these ranks, from a prefix of their tree."""
    axes = flat_axes(f"{where} out_axes", out_axes, results, len(ranks))
    return [None if axis is None else result_dimension(where, axis, rank) for axis, rank in zip(axes, ranks)]


def result_dimension(where: str, axis: Any, rank: int) -> int:
    """The mapped dimension of a result of this rank, counted from 0. Raises: BadArgument: it has no such dimension."""
    if type(axis) is not int:
        _need_int(where, axis)
    if not -rank <= axis < rank:
        raise BadArgument(f"{where}: out_axes must name a dimension of the result, got {axis} for {rank} of them.")
    return int(axis) % rank


def _need_int(where: str, axis: Any) -> None:
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise BadCall(
            f"{where}: an axis must be an int or None, got {axis!r}.",
            hint="hx.register_vmappable registers containers, which vmap maps by specs of their own."
            if where == "vmap"
            else None,
        )


def lane_count(
    where: str, dims: Sequence[int | None], xs: Sequence[Array], axis_size: int | None,
    name: Callable[[int], str] = "argument {}".format,
) -> int:
    """The size of the mapped dimensions; ``name`` gives the name of each of ``xs``.

    Raises: ShapeMismatch: they differ. BadArgument: nothing is mapped, or ``axis_size`` is negative.
    """
    sizes = {x.type.shape[d] for x, d in zip(xs, dims) if d is not None}
    if axis_size is not None:
        if isinstance(axis_size, int) and axis_size < 0:
            raise BadArgument(f"{where}: axis_size must be at least 0, got {axis_size}.")
        sizes.add(axis_size)
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise BadArgument(
            f"{where}: at least one argument must be mapped, or axis_size be set.",
            hint="all entries of in_axes are None.",
        )
    of_size: dict[int, list[str]] = {}
    for i, (x, d) in enumerate(zip(xs, dims)):
        if d is not None:
            of_size.setdefault(x.type.shape[d], []).append(f"{name(i)} ({x.type} along {d})")
    groups = sorted(of_size.items(), key=lambda group: -len(group[1]))
    listed = [f"{size} of {some_of(names)}" for size, names in groups]
    listed += [f"axis_size={axis_size}"] if axis_size is not None else []
    raise ShapeMismatch(
        f"{where}: mapped axes must have one size, got {'; '.join(listed)}.",
        hint="in_axes=None shares an argument between the lanes.",
    )


def lanes_cut(
    where: str, dims: Sequence[int | None], xs: Sequence[Any], placed: Hashable | None = None
) -> NamedSharding | None:
    """How a vector of the lanes is cut along explicit axes, as the mapped dimensions are; None: they are whole.

    ``placed``: the axes over which they were asked to be placed, or None.

    Raises: ShardingTypeError: the mapped dimensions are cut in different ways, or otherwise than ``placed`` says, or an
    argument that all lanes share is cut along the same axis.
    """
    mapped = [(x.type, d) for x, d in zip(xs, dims) if d is not None]
    cuts = {t.cut and t.cut.of_dimension(d) for t, d in mapped}
    if cuts <= {None}:
        return None
    hidden = [cut for cut in cuts if cut is not None and cut.hides]
    if hidden:
        return hidden[0]
    one_mesh(where, [t for t, _ in mapped])
    if len(cuts) > 1:
        raise ShardingTypeError(
            f"{where}: mapped dimensions must be cut alike, got {'; '.join([f'{t} along {d}' for t, d in mapped])}.",
            hint="hx.reshard(x, spec) cuts one of the arguments as the others are.",
        )
    (cut,) = cuts
    if placed is not None and axis_tuple(placed) != cut.spec.axes:
        raise ShardingTypeError(
            f"{where}: spmd_axis_name must name the axes along which types state that lanes are cut, got {placed!r} "
            f"for lanes cut along {cut.spec[0]!r}.",
            hint="leave it out; or hx.reshard(x, spec) cuts the mapped dimension along it.",
        )
    for x, d in zip(xs, dims):
        if d is None and isinstance(x, Array) and x.type.cut and {*cut.spec.axes} & {*x.type.cut.spec.axes}:
            raise ShardingTypeError(
                f"{where}: lanes are cut along {cut.spec[0]!r}, so that no argument that they share can be, got "
                f"{x.type}.",
                hint="hx.reshard(x, spec) cuts it along another axis.",
            )
    return cut


def stacked(run: Any, y: Any, target: int | None, results: Any = None, i: int = 0) -> Any:
    """A result for all lanes as an array with the mapped axis at ``target``; None: the value that all lanes share.

    It is leaf ``i`` of a tree of the structure ``results``, if that is given.
    """
    mapped = y.run is run
    if target is None:
        if mapped:
            where = "" if results is None else at_path(results, i)
            raise ShapeMismatch(
                f"vmap: out_axes=None needs a result that all lanes share, got a mapped {y.type}{where}."
            )
        return y
    target = result_dimension("vmap", target, len(y.type.shape) + 1)
    if mapped:
        return move_axis(y.value, y.dim, target)
    shape = y.type.shape
    z = broadcast_in_dim(
        y, (*shape[:target], run.size, *shape[target:]), [d + (d >= target) for d in range(len(shape))]
    )
    return z if run.cut is None else reveal(z, run.part_types(target, y.type)[0].cut)
