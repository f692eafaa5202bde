"""shard_map: a function of the pieces of arrays that one device of a mesh has, executed by all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from math import prod
from typing import Any, overload

from ...effects.base.errors import BadArgument, ShapeMismatch, ShardingTypeError, UnknownSharding, need_function
from ...effects.base.stack import Binding, current, inside, perform
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.shard_map import ShardMap, need_device_effects
from ...effects.core.arrays import Array, as_array, type_of
from ...effects.core.columns import zeros_like
from ...effects.core.named_axes import Bound, SizedAxis
from ...effects.core.signatures import F, P, R
from ...effects.core.varying import vary
from ...effects.operations.collectives.collective import Punvary
from ...effects.operations.elementwise.comparison import eq, select_n
from ...effects.operations.foundations.shapes import broadcast_in_dim, reduce_sum, reshape
from ...effects.operations.foundations.sharding_constraint import hide, reveal, with_sums
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.rearranging import transpose
from ...effects.operations.manipulation.slicing import index_in_dim
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.program import Program
from ...effects.sharding.mesh_scope import get_abstract_mesh, get_mesh
from ...effects.sharding.named_sharding import NamedSharding, cut_over
from ...effects.sharding.partition_spec import UNCONSTRAINED, PartitionSpec, entry_axes
from ...effects.sharding.sharding_rules import entries_of
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType, are_added
from ..batching.divergent_devices import coherent
from ..core.record import record
from ..references.arguments import call_pure, positions_of, pure_of

# For each dimension of an array the axes over which it is divided, the first one major.
SizedAxes = tuple[SizedAxis, ...]
Division = tuple[SizedAxes, ...]


class Infer:
    """``shard_map(in_specs=Infer)``: arguments are divided as they lie on the mesh."""


@overload
def shard_map(
    f: Callable[P, R], /, *, out_specs: Any, in_specs: Any = ..., mesh: Any = ...,
    axis_names: Collection[Hashable] = ..., check_vma: bool = ...,
) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None, /, *, out_specs: Any, in_specs: Any = ..., mesh: Any = ...,
    axis_names: Collection[Hashable] = ..., check_vma: bool = ...,
) -> Callable[[F], F]: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Any = None,
    axis_names: Collection[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Execute ``f`` on every device of a mesh, each with its own pieces of the arguments.

        shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(x) == concatenate([f(piece) for piece in split(x)])

    where ``f`` uses no collective; collectives over the axes of the mesh are where devices meet.

    Shapes: a dimension that a spec divides over axes is in ``f`` smaller by the product of their sizes, and in the
    results larger.

    Args:
        in_specs, out_specs: a ``PartitionSpec`` for each argument and result, or a prefix of their trees. A spec names
            for each dimension the axes over which it is divided; along others every device has the same piece. An
            argument whose spec is None is handed on as it is. Without in_specs they are those of the arguments, arrays
            that lie on the mesh.
        mesh: by default that of the ``shard_map`` around it, else the mesh in force (``set_mesh``).
        axis_names: the axes that ``f`` sees; empty for all, but for those that a ``shard_map`` around it divides. Over
            the others the compiler divides the work.
        check_vma: the types of values tell along which axes they vary from device to device. A result must not vary
            along an axis that its spec does not name, and the derivative of a value that all devices share is the sum
            of what each contributes. False: nothing is checked, every value is one of each device, and of a result that
            should not vary the first device's counts; where devices choose differently and meet inside, they do what
            the lanes of ``vmap`` do: each executes all branches, and every iteration.

    Raises: BadArgument: no mesh, an axis that it does not have, a spec too long for its array, or a result that varies
    along an axis that its spec does not name. ShapeMismatch: a dimension that cannot be divided. TreeMismatch: specs
    are no prefix. CannotCross: ``f`` performs an effect that nothing inside of it handles, or a collective where
    devices choose differently.

    >>> from handlax import P, lax, make_mesh, numpy as hnp
    >>> mesh = make_mesh((4,), ("i",))
    >>> total = shard_map(lambda x: lax.psum(x.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    >>> total(hnp.arange(8.0))
    Array(28., dtype=float32)
    """
    if f is None:
        return lambda g: shard_map(
            g, in_specs=in_specs, out_specs=out_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    return over_devices("shard_map", f, in_specs, out_specs, mesh, axis_names, check_vma)


def over_devices(
    where: str, f: Callable[..., Any], in_specs: Any, out_specs: Any, mesh: Any, axis_names: Collection[Hashable],
    check_vma: bool,
) -> Callable[..., Any]:
    """``shard_map`` under the name ``where`` in errors."""
    need_function(where, f)

    @wraps(f)
    def mapped(*args: Any) -> Any:
        over, axes = _manual_axes(where, mesh, axis_names)
        leaves, tree = pytrees.flatten(args)
        if positions := positions_of(leaves):
            of_values = _of_values(where, f, positions, in_specs, out_specs, (over, axes), check_vma)
            return call_pure(of_values, args, {}, positions)
        specs = _specs_of(where, in_specs, args, over, axes)
        places = [i for i, spec in enumerate(specs) if spec is not None]
        arrays = [_stacked(as_array(leaves[i]), specs[i], axes) for i in places]
        xs, beyond = [*map(hide, arrays)], [_cut_beyond(x.type, axes) for x in arrays]
        into = [
            _division(where, "in_specs", _stacked_spec(specs[i], axes), axes, len(x.type.shape))
            for i, x in zip(places, xs)]
        out: list[Division] = []
        stated: list[NamedSharding | None] = []
        summed: list[PartitionSpec] = []

        def body(*values: Any) -> Any:
            given = {i: _received(x, specs[i], over, check_vma) for i, x in zip(places, values)}
            y = f(*pytrees.unflatten(tree, [given.get(i, leaf) for i, leaf in enumerate(leaves)]))
            ys = [as_array(leaf) for leaf in pytrees.leaves(y)]
            asked = _flat_specs(f"{where} out_specs", out_specs, y)
            summed[:] = [PartitionSpec() if spec is None else spec for spec in asked]
            ys = [_returned(where, y, spec, axes, over, check_vma) for y, spec in zip(ys, summed)]
            kinds = [_stacked_spec(spec, axes) for spec in summed]
            out[:] = [_division(where, "out_specs", spec, axes, len(leaf.type.shape)) for spec, leaf in zip(kinds, ys)]
            stated[:] = [leaf.type.cut for leaf in ys]
            checked = [_checked(where, leaf, d, axes) for leaf, d in zip(ys, out)] if check_vma else ys
            return pytrees.structure(y), checked

        rows = [divide(where, x, division, axes) for x, division in zip(xs, into)]
        if check_vma:
            structure, results = _tracked(where, body, over, axes, rows, into, beyond, name_of(f))
        else:
            structure, results = _untracked(where, body, over, axes, rows, into, beyond, out, name_of(f))
        joined = [join(y, division, axes) for y, division in zip(results, out)]
        rest = UNCONSTRAINED if any([x.type.cut is not None and x.type.cut.hides for x in arrays]) else None
        whole = [_stated(y, division, over, cut, rest) for y, division, cut in zip(joined, out, stated)]
        return pytrees.unflatten(structure, [_unstacked(y, spec, over) for y, spec in zip(whole, summed)])

    return mapped


def _stacked_spec(spec: PartitionSpec, axes: SizedAxes) -> PartitionSpec:
    """The spec of an array with a row for each device along the axes along which ``spec`` is summed."""
    return PartitionSpec(tuple([name for name, _ in axes if name in spec.summed_axes]), *spec) if (
        spec.summed_axes) else spec


def _stacked(x: Any, spec: PartitionSpec, axes: SizedAxes) -> Any:
    """An argument with a row for each device along the axes along which ``spec`` is summed: of partial sums rows that
    add up to it, else its copies.
    """
    if not spec.summed_axes:
        return x
    shape, count = x.type.shape, prod([n for name, n in axes if name in spec.summed_axes])
    rows = broadcast_in_dim(hide(x), (count, *shape), tuple(range(1, len(shape) + 1)))
    if spec.unreduced:
        first = eq(iota("int32", count), 0)
        rows = select_n(broadcast_in_dim(first, rows.type.shape, (0,)), zeros_like(rows), rows)
    cut = x.type.cut
    return rows if cut is None else reveal(rows, cut_over(cut.mesh, tuple(_stacked_spec(cut.spec, axes))))


def _received(x: Any, spec: PartitionSpec, mesh: Any, tracks: bool) -> Any:
    """What a device has of an argument of this spec, of whose rows it has one."""
    if not spec.summed_axes:
        return x
    y = reshape(x, x.type.shape[1:])
    return with_sums(y, mesh, spec.unreduced | y.type.mat.unreduced, spec.reduced | y.type.mat.reduced) if tracks else y


def _returned(where: str, y: Any, spec: PartitionSpec, axes: SizedAxes, mesh: Any, tracks: bool) -> Any:
    """What a device has of a result of this spec, as a row where that is summed, by its type a value of its own.

    Raises: BadArgument: it is no partial sum, or no reduced copy, or by its type a partial sum and not by its spec.
    """
    names, mat = {name for name, _ in axes}, y.type.mat
    varying = mat.varying if tracks else names
    wrong = (spec.unreduced - mat.unreduced - varying, names & mat.unreduced - spec.unreduced,
             spec.reduced & (mat.unreduced | varying & {*mesh.explicit_axes} if tracks else set()))
    if any(wrong) or (spec.unreduced and not are_added(y.type.dtype)):
        raise BadArgument(
            f"{where}: out_specs must be as the type of a result states, got {spec} for {y.type}.",
            hint="lax.pcast(x, axes, to='unreduced') makes values partial sums, of numbers, and lax.psum sums them.",
        )
    if tracks and y.type.cut is not None:
        others = y.type.cut.spec.without_sums(names)
        y = with_sums(y, mesh, others.unreduced, others.reduced)
    return reshape(y, (1, *y.type.shape)) if spec.summed_axes else y


def _unstacked(y: Any, spec: PartitionSpec, mesh: Any) -> Any:
    """A result with a row for each device along the axes along which ``spec`` is summed: the sum of the rows, or one of
    them, which are equal.
    """
    if not spec.summed_axes:
        return y
    entries, rows = entries_of(y.type)[1:], hide(y)
    z = reduce_sum(rows, (0,)) if spec.unreduced else index_in_dim(rows, 0, 0, keepdims=False)
    return reveal(z, cut_over(mesh, entries, spec.unreduced, spec.reduced))


def _of_values(
    where: str, f: Callable[..., Any], positions: tuple[int, ...], in_specs: Any, out_specs: Any,
    manual: tuple[Any, SizedAxes], check_vma: bool,
) -> Callable[..., Any]:
    """``f``, of which the argument leaves at ``positions`` are references, over devices as a function of their values.

    It gives the result of ``f`` and by position the last values of the references that ``f`` wrote, which are divided
    as the first ones.
    """
    over, axes = manual

    def mapped(*args: Any) -> Any:
        specs = _specs_of(where, in_specs, args, over, axes)
        written: list[int] = []

        @wraps(f)
        def pure(*given: Any) -> Any:
            y, last = pure_of(f, positions)(*given)
            written[:] = last
            pieces = pytrees.leaves(given)
            return y, [last.get(i, pieces[i]) for i in positions]

        of_all = out_specs, [specs[i] for i in positions]
        names = {name for name, _ in axes}
        y, values = over_devices(where, pure, in_specs, of_all, over, names, check_vma)(*args)
        return y, {i: value for i, value in zip(positions, values) if i in written}

    return mapped


def _tracked(
    where: str, body: Callable[..., Any], mesh: Any, axes: SizedAxes, rows: Sequence[Any], into: Sequence[Division],
    beyond: Sequence[NamedSharding | None], name: str,
) -> tuple[Any, Sequence[Any]]:
    """The structure and stacked results of a body, if types say along which mesh axes a value varies."""
    named = [_named(division) for division in into]
    types = [
        _piece(x.type, over).along(x.type.varying | over).cut_by(cut) for x, over, cut in zip(rows, named, beyond)]
    structure, program, captured = recorded_body(where, body, types, Binding(axes, True, mesh), name)
    return structure, perform(ShardMap((program,), mesh, axes, True, len(captured)), *captured, *rows)


def _untracked(
    where: str, body: Callable[..., Any], mesh: Any, axes: SizedAxes, rows: Sequence[Any], into: Sequence[Division],
    beyond: Sequence[NamedSharding | None], out: Sequence[Division], name: str,
) -> tuple[Any, Sequence[Any]]:
    """The structure and stacked results of a body in which every value counts as one per device."""
    everywhere = frozenset(axes)
    shared = [i for i, division in enumerate(into) if not _named(division)]
    order = [*shared, *[i for i in range(len(into)) if i not in shared]]
    given = [rows[i] if i in shared else relabelled(rows[i], _named(into[i]), everywhere, mesh, axes) for i in order]
    pieces = [x.type if k < len(shared) else _piece(x.type, everywhere) for k, x in enumerate(given)]
    types = [t.cut_by(beyond[i]) for t, i in zip(pieces, order)]
    places = [order.index(i) for i in range(len(into))]
    structure, program, captured = recorded_body(
        where, lambda *values: body(*[values[k] for k in places]), types, Binding(axes, False, mesh), name
    )
    untracked = [axis for at in current().scope if at.mesh is not None and not at.tracks for axis in at.axes]
    program = coherent(program, (*reversed(untracked), *axes))
    results = perform(ShardMap((program,), mesh, axes, False, len(captured) + len(shared)), *captured, *given)
    return structure, [relabelled(y, everywhere, _named(d), mesh, axes) for y, d in zip(results, out)]


def recorded_body(
    where: str, body: Callable[..., Any], types: Sequence[ArrayType], binding: Binding, name: str
) -> tuple[Any, Program, tuple[Any, ...]]:
    """The structure of the results of a body, its program, and the values that this takes first.

    Raises: CannotCross: the program performs an effect that devices do not answer.
    """
    structures: list[Any] = []

    def flat(*values: Any) -> Sequence[Any]:
        structure, ys = body(*values)
        structures.append(structure)
        return ys

    with inside(Bound(current(), binding)):
        program = record(flat, types, name, where)
    need_device_effects(program, where)
    (closed,), captured = close_all([program])
    return structures[0], closed, captured


def relabelled(x: Any, before: frozenset[SizedAxis], after: frozenset[SizedAxis], mesh: Any, axes: SizedAxes) -> Any:
    """The stacked pieces of a value that varies along axes ``before`` as those of one that varies along ``after``."""
    if before == after:
        return x
    piece = _piece(x.type, before).along(x.type.varying | before)

    def relabel(y: Any) -> Sequence[Any]:
        excess = tuple([axis for axis in axes if axis in before - after])
        return [vary(perform(Punvary(excess), y) if excess else y, after)]

    (y,) = perform(ShardMap((record(relabel, [piece], "relabel"),), mesh, axes), x)
    return y


def _named(division: Division) -> frozenset[SizedAxis]:
    """The mesh axes over which a division divides an array."""
    return frozenset([axis for dim in division for axis in dim])


def _piece(rows: ArrayType, over: frozenset[SizedAxis]) -> ArrayType:
    """The type of one device's piece of an array, given the type of all pieces stacked as ``rows``."""
    return rows.update(shape=rows.shape[1:]) if over else rows.cut_by(None)


def _cut_beyond(t: ArrayType, axes: SizedAxes) -> NamedSharding | None:
    """How a type states that values are cut along the axes that the body does not see; None: it does not."""
    if t.cut is None or t.cut.hides:
        return None
    spec = t.cut.spec.restricted({*t.cut.mesh.axis_names} - {name for name, _ in axes})
    return cut_over(t.cut.mesh, spec, t.mat.unreduced, t.mat.reduced)


def _stated(y: Any, division: Division, mesh: Any, cut: NamedSharding | None, rest: Any) -> Any:
    """A result, whose type states its division along the explicit axes of the mesh, and the cut of its pieces along
    further ones; ``rest``: the entry where neither says one.
    """
    spec = PartitionSpec(*[rest] * len(division)) if cut is None else cut.spec
    entries = [(*[name for name, _ in dim], *entry_axes(entry)) or entry for dim, entry in zip(division, spec)]
    return reveal(y, cut_over(mesh, entries, spec.unreduced, spec.reduced))


def divide(where: str, x: Any, division: Division, axes: SizedAxes) -> Any:
    """The pieces of an array stacked along a new axis 0, one per lane of its mesh axes; the array itself if undivided.

    Raises: ShapeMismatch: a dimension is no multiple of the number of its pieces.
    """
    if not _named(division):
        return x
    shape: list[int] = []
    places: dict[SizedAxis, int] = {}
    local: list[int] = []
    for d, (size, dim) in enumerate(zip(x.type.shape, division)):
        count = prod([n for _, n in dim])
        if size % count:
            listed = ", ".join([f"{name!r} of size {n}" for name, n in dim])
            raise ShapeMismatch(
                f"{where}: dimension {d} must be a multiple of {count}, divided over {listed}, got {x.type}.",
                hint="pad it, or divide another dimension.",
            )
        for axis in dim:
            places[axis] = len(shape)
            shape.append(axis[1])
        local.append(len(shape))
        shape.append(size // count)
    lanes = [places[axis] for axis in axes if axis in places]
    y = transpose(reshape(x, tuple(shape)), (*lanes, *local))
    return reshape(y, (prod([shape[d] for d in lanes]), *[shape[d] for d in local]))


def join(y: Any, division: Division, axes: SizedAxes) -> Any:
    """The array whose pieces ``divide`` gave."""
    lanes = [axis for axis in axes if any([axis in dim for dim in division])]
    if not lanes:
        return y
    local = y.type.shape[1:]
    whole = reshape(y, (*[n for _, n in lanes], *local))
    order: list[int] = []
    for d, dim in enumerate(division):
        order += [*[lanes.index(axis) for axis in dim], len(lanes) + d]
    sizes = [n * prod([size for _, size in dim]) for n, dim in zip(local, division)]
    return reshape(transpose(whole, tuple(order)), tuple(sizes))


def _checked(where: str, y: Any, division: Division, axes: SizedAxes) -> Any:
    """A result of the body as a value that varies along exactly the axes over which it is divided.

    Raises: BadArgument: it may vary along another.
    """
    over = _named(division)
    excess = [axis[0] for axis in axes if axis in y.type.varying - over]
    if excess:
        names = ", ".join(map(repr, excess))
        raise BadArgument(
            f"{where}: out_specs must name every axis along which a result varies, got {y.type} without {names}.",
            hint="reduce it (psum, pmax) or gather it over them; check_vma=False takes the first device's.",
        )
    return vary(y, over)


def _manual_axes(where: str, mesh: Any, axis_names: Collection[Hashable]) -> tuple[Any, SizedAxes]:
    """The mesh, and those of its axes that the body sees, in its order.

    Raises: BadArgument: there is no mesh, it has no such axis, or each device has its own pieces along one already.
    """
    around = [binding for binding in current().scope if binding.mesh is not None]
    over = mesh if mesh is not None else around[0].mesh if around else get_mesh()
    if over.empty:
        over = get_abstract_mesh()
    if over.empty:
        raise BadArgument(f"{where}: a mesh must be given or in force, got none.", hint="mesh=..., or set_mesh(mesh).")
    if around and over.shape_tuple != around[0].mesh.shape_tuple:
        raise BadArgument(f"{where}: the mesh must be that of the shard_map around it, {around[0].mesh}, got {over}.")
    over = around[0].mesh if around else over
    names = {axis_names} if isinstance(axis_names, str) else set(axis_names)
    for name in names:
        over.axis_size(where, name)
    taken = {axis for binding in around for axis in binding.axes}
    axes = tuple([axis for axis in over.shape_tuple if (axis[0] in names if names else axis not in taken)])
    if taken.intersection(axes):
        listed = ", ".join(sorted([repr(name) for name, _ in taken.intersection(axes)]))
        raise BadArgument(
            f"{where}: axes must be other than those of the shard_map around it, got {listed} again.",
            hint="axis_names={...} names those that this one divides.",
        )
    return over, axes


def _specs_of(where: str, in_specs: Any, args: tuple[Any, ...], mesh: Any, axes: SizedAxes) -> list[Any]:
    """The spec of each leaf of the arguments: as ``in_specs`` say, or as it lies on the mesh, as to ``axes``; the
    compiler sees to the others.

    Raises: UnknownSharding: it is not known to lie there. ShardingTypeError: its type states another spec.
    """
    names = {name for name, _ in axes}
    if in_specs is not Infer:
        specs = _flat_specs(f"{where} in_specs", in_specs, args)
        for x, spec in zip(pytrees.leaves(args), specs):
            _check_stated(where, x, spec, names, mesh)
        return specs
    specs = []
    for x in map(as_array, pytrees.leaves(args)):
        _check_mesh(where, x, mesh)
        spec = _known_spec(x, mesh)
        if spec is None:
            raise UnknownSharding(
                f"{where}: without in_specs an argument must lie on the mesh, got {x.type} "
                f"{'while it is traced' if x.run is not None else f'on {x.sharding}'}.",
                hint="name in_specs, or device_put(x, NamedSharding(mesh, spec)).",
            )
        specs.append(spec.restricted(names))
    return specs


def _known_spec(x: Any, mesh: Any) -> PartitionSpec | None:
    """How an argument lies on the mesh, by its type or where it is; None: that is not known."""
    cut = x.type.cut
    if cut is not None:
        return cut.spec if cut.mesh == mesh.abstract_mesh and not cut.hides else None
    sharding: Any = None if x.run is not None else x.sharding
    if getattr(sharding, "mesh", None) == mesh:
        return sharding.spec
    return PartitionSpec() if mesh.explicit_axes else None


def _check_mesh(where: str, x: Any, mesh: Any) -> None:
    """Raises ShardingTypeError: the type of an argument states a cut over other axes than those of the mesh."""
    cut = x.type.cut
    if cut is not None and not cut.hides and cut.mesh.shape_tuple != mesh.shape_tuple:
        raise ShardingTypeError(
            f"{where}: arguments must be cut over the axes of its mesh, {dict(mesh.shape_tuple)}, got {x.type} over "
            f"{dict(cut.mesh.shape_tuple)}.",
            hint="hx.reshard(x, NamedSharding(mesh, spec)) before, with the mesh of shard_map.",
        )


def _check_stated(where: str, x: Any, spec: Any, names: set[Hashable], mesh: Any) -> None:
    """Raises ShardingTypeError: the type of an argument states another spec, as to the axes ``names``, or mesh."""
    if spec is None:
        return
    cut = x.type.cut if isinstance(x, Array) else None
    if cut is not None and cut.hides:
        return
    fits = not spec.unreduced
    # types of whole values are the same with and without a mesh: one on no mesh yet is divided as the spec says
    if cut is not None and ({*cut.spec} - {None} or cut.spec.summed_axes - x.type.manual):
        _check_mesh(where, x, mesh)
        fits = cut.with_spec(spec).cut(len(cut.spec)) == cut.with_spec(cut.spec.restricted(names)).cut(len(cut.spec))
    if not fits:
        raise ShardingTypeError(
            f"{where}: in_specs must be as the types of the arguments state, got {spec} for {type_of(x)}.",
            hint="leave in_specs out, or hx.reshard the argument before.",
        )


def _flat_specs(what: str, specs: Any, tree: Any) -> list[Any]:
    """The spec of each leaf, from a prefix of the tree."""
    is_spec = lambda x: x is None or isinstance(x, PartitionSpec)
    return pytrees.broadcast_prefix(specs, tree, is_leaf=is_spec, what=what)


def _division(where: str, what: str, spec: Any, axes: SizedAxes, rank: int) -> Division:
    """How a spec divides an array of this rank.

    Raises: BadArgument: it has more entries than the array dimensions, or names an axis that the body does not see, or
    twice.
    """
    entries: Sequence[Any] = () if spec is None else tuple(spec)
    if len(entries) > rank:
        raise BadArgument(f"{where}: a spec must have at most one entry for each dimension, got {spec} for {rank}.")
    sizes = dict(axes)
    division = []
    for entry in entries:
        names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        for name in names:
            if name not in sizes:
                raise BadArgument(f"{where}: {what} must name axes of {list(sizes)}, got {name!r} in {spec}.")
        division.append(tuple([(name, sizes[name]) for name in names]))
    used = [name for dim in division for name, _ in dim]
    if len(set(used)) < len(used):
        raise BadArgument(f"{where}: a spec must name an axis once, got {spec}.")
    return (*division, *[()] * (rank - len(entries)))
