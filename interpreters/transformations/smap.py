"""smap: a function mapped over one axis of a mesh, with axes of arrays in place of specs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ...effects.base.errors import BadArgument, need_function
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import as_array
from ...effects.core.containers import need_no_spec
from ...effects.sharding.partition_spec import P, cut_along
from ...effects.trees import pytrees
from ..batching.mapped_axes import dimensions, result_dimensions
from .shard_map import Infer, over_devices


def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Hashable
) -> Any:
    """``shard_map`` over one axis of the mesh in force: along it each device has a piece of an axis of each array.

        smap(f, in_axes=0, out_axes=0, axis_name=i) == shard_map(f, in_specs=P(i), out_specs=P(i), axis_names={i})

    Over the other axes of the mesh the compiler divides the work, or an ``smap`` inside of ``f`` does.

    Args:
        in_axes: the axis of each argument, or a prefix of their tree; None: every device has all of it. Without it they
            are those along which the arguments lie on the mesh.
        out_axes: the axis of each result along which the pieces are joined, or a prefix of their tree.

    Raises: BadArgument: no mesh is in force, it has no such axis, or ``axis_name`` is a sequence. ShapeMismatch: an
    axis that cannot be divided. TreeMismatch: in_axes or out_axes are no prefix.

    >>> from handlax import lax, make_mesh, numpy as hnp, set_mesh
    >>> with set_mesh(make_mesh((4,), ("i",))):
    ...     smap(lambda x: x - lax.pmean(x, "i"), in_axes=0, out_axes=0, axis_name="i")(hnp.arange(4.0))
    Array([-1.5, -0.5,  0.5,  1.5], dtype=float32)
    """
    if f is None:
        return lambda g: smap(g, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    need_function("smap", f)
    need_no_spec("smap", in_axes, out_axes)
    if isinstance(axis_name, (list, tuple)):
        raise BadArgument(f"smap: axis_name must be one axis, got {axis_name!r}.", hint="nest smap, or use shard_map.")

    @wraps(f)
    def mapped(*args: Any) -> Any:
        leaves, tree = pytrees.flatten(args)
        xs = [as_array(x) for x in leaves]
        into: Any = Infer
        if in_axes is not Infer:
            into = tuple([cut_along(d, axis_name) for d in dimensions("smap", in_axes, args, xs)])
        out: list[P] = []
        structures: list[Any] = []

        def body(*pieces: Any) -> list[Any]:
            y = f(*pytrees.unflatten(tree, pieces))
            ys = [as_array(leaf) for leaf in pytrees.leaves(y)]
            structures.append(pytrees.structure(y))
            targets = result_dimensions("smap", out_axes, y, [len(leaf.type.shape) for leaf in ys])
            out[:] = [cut_along(d, axis_name) for d in targets]
            return ys

        results = over_devices("smap", body, into, out, None, {axis_name}, True)(*xs)
        return pytrees.unflatten(structures[-1], results)

    return mapped
