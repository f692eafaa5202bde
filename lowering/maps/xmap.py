"""xmap: functions over named axes, on one device or sharded over a mesh."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from ...effects.base.errors import BadArgument, ShapeMismatch, need_function
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import Array, as_array
from ...effects.core.containers import need_no_container, need_no_spec
from ...effects.operations.manipulation.rearranging import transpose
from ...effects.sharding.mesh import AxisType
from ...effects.sharding.mesh_scope import get_mesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import P
from ...effects.trees import pytrees
from ...interpreters.transformations.vmap import vmap
from ..arrays.sharding_constraints import with_sharding_constraint
from ..jit.jit import jit

NamedDims = dict[int, Hashable]  # dimension -> the name of its axis


def xmap(
    fun: Callable[..., Any],
    in_axes: Any,
    out_axes: Any,
    *,
    axis_sizes: Mapping[Hashable, int] | None = None,
    axis_resources: Mapping[Hashable, Any] | None = None,
    mesh: Any = None,
) -> Callable[..., Any]:
    """Map ``fun`` over named axes: it gets arrays without them, and collectives reduce and gather along them by name.

        xmap(f, in_axes={0: "i"}, out_axes={0: "i"})(x) == vmap(f, axis_name="i")(x)

    It is ``vmap`` over each name, in the dimensions that carry it; on a mesh the same program is sharded over devices,
    and has the same values.

    Args:
        in_axes, out_axes: for each argument and result, or a prefix of their trees, where which axis stands: a dict
            from dimensions to names, or a list of names, None and ``...`` as in ``["batch", ..., "feature"]``.
        axis_sizes: the sizes of axes that no argument has.
        axis_resources: for names of axes the axis of the mesh, or a tuple of several, over which they are divided.
        mesh: by default the mesh in force (``set_mesh``).

    Raises: BadArgument: an entry names an axis twice, a dimension that there is not, or an axis of unknown size;
    axis_resources name another one, or there is no mesh.
    ShapeMismatch: an axis has two sizes; a result differs along an axis that its entry does not name. TreeMismatch: the
    entries are no prefix.

    >>> from handlax import lax, numpy as hnp
    >>> centered = xmap(lambda x: x - lax.pmean(x, "row"), in_axes=["row", ...], out_axes=[..., "row"])
    >>> centered(hnp.array([[1.0, 2.0], [3.0, 6.0]]))
    Array([[-1.,  1.],
           [-2.,  2.]], dtype=float32)
    """
    need_function("xmap", fun)
    need_no_spec("xmap", in_axes, out_axes)
    resources = dict(axis_resources or {})

    @wraps(fun)
    def mapped(*args: Any) -> Any:
        given = get_mesh() if mesh is None else mesh
        over = given.update(axis_types=(AxisType.Auto,) * len(given.axis_names))  # the compiler divides the rest
        leaves, tree = pytrees.flatten(args)
        entries = pytrees.broadcast_prefix(in_axes, args, is_leaf=is_entry, what="xmap in_axes")
        xs = [as_array(x) for x in leaves]
        need_no_container("xmap", tree, [entry or None for entry in entries])
        places = [places_of("in_axes", entry, len(x.type.shape)) for entry, x in zip(entries, xs)]
        sizes = _sizes(xs, places, axis_sizes or {})
        _check_resources(resources, sizes, over)
        xs = [_divided(x, where, resources, over) for x, where in zip(xs, places)]
        f: Callable[..., Any] = lambda *ys: fun(*pytrees.unflatten(tree, ys))
        unknown = {name for e in pytrees.leaves(out_axes, is_leaf=is_entry) for name in names_of(e)} - {*sizes}
        if unknown:
            raise BadArgument(f"xmap: out_axes must name axes of {[*sizes]}, got {min(unknown, key=str)!r}.")
        for name in reversed(sizes):
            dims = tuple([0 if name in where.values() else None for where in places])
            out = pytrees.map(lambda e, n=name: 0 if n in names_of(e) else None, out_axes, is_leaf=is_entry)
            f = vmap(f, dims, out, name, sizes[name])
        y = f(*[_named_first(x, where, [*sizes]) for x, where in zip(xs, places)])
        return _with_named(y, out_axes, [*sizes], lambda leaf, where: _divided(leaf, where, resources, over))

    return jit(mapped)


def _check_resources(resources: Mapping[Hashable, Any], sizes: Mapping[Hashable, int], mesh: Any) -> None:
    """Check that there is a mesh, and that every axis to be sharded is one of the function. Raises: BadArgument."""
    unknown = [name for name in resources if name not in sizes]
    if unknown:
        raise BadArgument(f"xmap: axis_resources must name axes of {[*sizes]}, got {unknown[0]!r}.")
    if resources and mesh.empty:
        raise BadArgument(
            "xmap: axis_resources are axes of a mesh, and none is given or in force.",
            hint="mesh=..., or set_mesh(mesh).",
        )


def _with_named(y: Any, out_axes: Any, names: list[Hashable], arrange: Callable[[Any, NamedDims], Any]) -> Any:
    """The results with their named dimensions where ``out_axes`` puts them; ``y`` has them first.

    Raises: BadArgument: an entry names an axis that there is not.
    """
    results = []
    entries = pytrees.broadcast_prefix(out_axes, y, is_leaf=is_entry, what="xmap out_axes")
    for leaf, entry in zip(pytrees.leaves(y), entries):
        where = places_of("out_axes", entry, len(leaf.type.shape))
        results.append(arrange(_named_placed(leaf, where, names), where))
    return pytrees.unflatten(pytrees.structure(y), results)


def is_entry(x: Any) -> bool:
    """Whether ``x`` describes the named axes of one array, rather than being a tree of such descriptions."""
    if isinstance(x, dict):
        return all([isinstance(d, int) for d in x])
    return isinstance(x, list) and all([name is None or name is ... or isinstance(name, Hashable) for name in x])


def names_of(entry: Any) -> Iterator[Hashable]:
    """The names in an entry."""
    items = entry.values() if isinstance(entry, dict) else entry
    return iter([name for name in items if name is not None and name is not ...])


def places_of(where: str, entry: Any, rank: int) -> NamedDims:
    """For each named dimension of an array of this rank, counted from 0, its name.

    Raises: BadArgument: there is no such dimension, or a name stands twice.
    """
    if isinstance(entry, dict):
        pairs = [(d + rank if d < 0 else d, name) for d, name in entry.items()]
    else:
        at = entry.index(...) if ... in entry else len(entry)
        after = len(entry) - at - 1
        pairs = [*enumerate(entry[:at]), *[(rank - after + k, name) for k, name in enumerate(entry[at + 1 :])]]
        if ... not in entry and len(entry) != rank:
            raise BadArgument(f"xmap: {where} must have an entry for each of {rank} dimensions, got {entry}.",
                              hint="... stands for any number of dimensions without names.")
    places = {d: name for d, name in pairs if name is not None}
    if len(set(places.values())) < len([*names_of(entry)]) or not all([0 <= d < rank for d in places]):
        raise BadArgument(f"xmap: {where} must name dimensions of {rank}, and an axis once, got {entry}.")
    return places


def _sizes(xs: list[Array], places: list[NamedDims], given: Mapping[Hashable, int]) -> dict[Hashable, int]:
    """The size of each axis, by name, in order of first occurrence. Raises: ShapeMismatch: an axis has two sizes."""
    sizes: dict[Hashable, int] = {}
    found = [(name, x.type.shape[d]) for x, where in zip(xs, places) for d, name in sorted(where.items())]
    for name, size in (*found, *given.items()):
        if sizes.setdefault(name, size) != size:
            raise ShapeMismatch(f"xmap: the axis {name!r} must have one size, got {sizes[name]} and {size}.")
    return sizes


def _order(where: NamedDims, names: list[Hashable], rank: int) -> tuple[int, ...]:
    """The permutation that puts the named dimensions first, in the order of the names."""
    named = sorted(where, key=lambda d: names.index(where[d]))
    return (*named, *[d for d in range(rank) if d not in where])


def _named_first(x: Array, where: NamedDims, names: list[Hashable]) -> Any:
    return transpose(x, _order(where, names, len(x.type.shape)))


def _named_placed(x: Array, where: NamedDims, names: list[Hashable]) -> Any:
    """The inverse of ``_named_first``."""
    order = _order(where, names, len(x.type.shape))
    return transpose(x, tuple([order.index(d) for d in range(len(order))]))


def _divided(x: Any, where: NamedDims, resources: Mapping[Hashable, Any], mesh: Any) -> Any:
    """The array with its named dimensions sharded over the mesh axes that are their resources."""
    if not any([name in resources for name in where.values()]):
        return x
    spec = P(*[resources.get(where[d]) if d in where else P.UNCONSTRAINED for d in range(len(x.type.shape))])
    return with_sharding_constraint(x, NamedSharding(mesh, spec))
