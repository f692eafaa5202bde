"""vtile: vmap over the tiles of an axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, BadCall, ShapeMismatch, TreeMismatch, need_function
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import Array, as_array
from ...effects.core.containers import need_no_spec
from ...effects.operations.foundations.shapes import move_axis, reshape
from ...effects.trees import pytrees
from ..batching.mapped_axes import dimensions, result_dimensions
from .vmap import vmap


def vtile(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, tile_size: int | None = None,
    axis_name: Hashable | None = None,
) -> Callable[..., Any]:
    """Map ``fun`` over the tiles of an axis: consecutive parts of equal size.

        vtile(f, tile_size=n)(x) == concatenate([f(tile) for tile in split(x, n)])

    Shapes: ``f: a[k, *s] -> b[m, *t]`` gives ``vtile(f, tile_size=n): a[n*k, *s] -> b[n*m, *t]``.
    Effects: those of ``vmap``, whose lanes are the tiles.

    Args:
        in_axes: the axis of each argument that is cut, None for one that all tiles share; a prefix of the argument
            tuple's tree. Keyword arguments are cut along axis 0. Arguments may have tiles of different sizes.
        out_axes: the axis of each result along which those of the tiles are joined; None for a result that is equal in
            all of them. A prefix of the result's tree.
        tile_size: how many tiles there are, which is the size of ``axis_name``, as in JAX. None: as many as the first
            axis that is cut has elements.
        axis_name: the name of the axis of tiles in collectives.

    Raises: ShapeMismatch: an axis is no multiple of ``tile_size``, or out_axes=None for a result that differs.
        TreeMismatch: in_axes or out_axes is no prefix. BadArgument: an axis is out of range, or no number is known.

    >>> from handlax import numpy as hnp
    >>> vtile(hnp.cumsum, tile_size=2)(hnp.arange(6))
    Array([ 0,  1,  3,  3,  7, 12], dtype=int32)
    """
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    need_function("vtile", fun)
    need_no_spec("vtile", in_axes, out_axes)
    if tile_size is not None and (not isinstance(tile_size, int) or isinstance(tile_size, bool) or tile_size < 1):
        raise BadCall(f"vtile: tile_size must be a positive integer or None, got {tile_size!r}.")

    @wraps(fun)
    @unnamed_boundary
    def tiled(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise TreeMismatch(
                f"vtile: in_axes must have an entry for each of {len(args)} positional arguments, got {len(in_axes)}.",
                hint="keyword arguments are always cut along axis 0.",
            )
        leaves, tree = pytrees.flatten((args, kwargs))
        xs = [as_array(x) for x in leaves]
        count = pytrees.structure(args).num_leaves
        dims = dimensions("vtile", in_axes, args, xs[:count]) + dimensions("vtile", 0, kwargs, xs[count:])
        tiles = _tile_count(xs, dims, tile_size)
        structure: Any = None
        joined: list[int | None] = []

        def of_tile(*pieces: Any) -> tuple[list[Any], list[Any]]:
            nonlocal structure
            positional, named = pytrees.unflatten(tree, pieces)
            results = fun(*positional, **named)
            ys, structure = pytrees.flatten(results)
            ys = [as_array(y) for y in ys]
            joined[:] = result_dimensions("vtile", out_axes, results, [len(y.type.shape) for y in ys])
            return [y for y, d in zip(ys, joined) if d is not None], [y for y, d in zip(ys, joined) if d is None]

        cut = [x if d is None else _cut(x, d, tiles) for x, d in zip(xs, dims)]
        stacks, shared = map(iter, vmap(of_tile, tuple(dims), (0, None), axis_name, tiles)(*cut))
        return pytrees.unflatten(structure, [next(shared) if d is None else _join(next(stacks), d) for d in joined])

    return tiled


def _tile_count(xs: Sequence[Array], dims: Sequence[int | None], tile_size: int | None) -> int:
    """The number of tiles. Raises: BadArgument: it is not known. ShapeMismatch: an axis is no multiple of it."""
    cut = [(x.type, d) for x, d in zip(xs, dims) if d is not None]
    if tile_size is None and not cut:
        raise BadArgument("vtile: an argument must be cut, or tile_size be set.", hint="in_axes has only None.")
    count = cut[0][0].shape[cut[0][1]] if tile_size is None else tile_size
    for type, d in cut:
        if type.shape[d] % count if count else type.shape[d]:
            raise ShapeMismatch(
                f"vtile: an axis must be a multiple of the number of tiles, {count}, got {type} along {d}.",
                hint="tile_size is how many tiles there are, not the size of one.",
            )
    return count


def _cut(x: Array, axis: int, count: int) -> Any:
    """``x`` with an axis cut into tiles, which are indexed by a new dimension before that axis."""
    shape = x.type.shape
    return reshape(x, (*shape[:axis], count, shape[axis] // count if count else 1, *shape[axis + 1 :]))


def _join(y: Any, axis: int) -> Any:
    """The results of the tiles, indexed by axis 0, concatenated along another dimension."""
    y = move_axis(y, 0, axis)
    shape = y.type.shape
    return reshape(y, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
