"""Constraints on the sharding of values inside of programs."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...effects.base.errors import BadArgument, ShardingTypeError
from ...effects.base.later_layers import LaterLayers
from ...effects.base.stack import BASE, current, perform
from ...effects.core.arrays import Array, as_array, type_of
from ...effects.operations.foundations.layout_constraint import LayoutConstraint
from ...effects.operations.foundations.sharding_constraint import ShardingConstraint, hide
from ...effects.sharding.layout import Layout
from ...effects.sharding.mesh import AbstractMesh
from ...effects.sharding.partition_spec import UNCONSTRAINED
from ...effects.sharding.sharding_rules import entries_of
from ...effects.trees import pytrees
from ..compile.placement import over
from .requested_shardings import for_leaves, layouts_for_leaves, leaf_name, over_mesh


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The arrays of a tree with these shardings, also inside of programs.

        with_sharding_constraint(x, s) == x

    It is its own derivative and transpose; under ``vmap`` the compiler chooses how the mapped dimension is cut. Inside
    of a program a dimension that cannot be cut into equal parts is padded by the compiler. Along explicit axes, whose
    equal parts types state, it asserts that ``x`` is cut so; ``reshard`` cuts it.

    Args:
        shardings: a sharding, a PartitionSpec over the mesh in force, or a tree of them, a prefix of ``x``.

    Raises: TreeMismatch: it is no prefix. ShapeMismatch: the rank is too low, or an array outside of programs cannot be
    cut into equal parts. BadArgument: a leaf is no sharding. DeviceMismatch: ``x``, or the rest of the program, is on
    other devices. ShardingTypeError: along explicit axes it is cut otherwise.
    """
    return _resharded("with_sharding_constraint", x, shardings, asserts=True)


def _resharded(where: str, x: Any, shardings: Any, asserts: bool = False) -> Any:
    """``reshard`` under the name ``where`` in errors; ``asserts``: ``with_sharding_constraint``."""
    leaves, tree = pytrees.flatten(x)
    wanted = for_leaves(where, shardings, x)
    if None in wanted:
        raise BadArgument(f"{where}: each array needs a sharding, got None.", hint="leave it out of x.")
    placed = []
    layouts = layouts_for_leaves(where, shardings, x, [*map(type_of, leaves)]) or (None,) * len(leaves)
    for i, (leaf, sharding, asked) in enumerate(zip(leaves, wanted, layouts)):
        cut = over_mesh(sharding)
        over(cut.mesh)  # later calls must check their arguments' devices
        value = as_array(leaf)
        shape, mat = value.type.shape, value.type.mat
        if mat.unreduced or mat.reduced:  # what each device has remains so
            spec = cut.spec
            cut = cut.with_spec(
                spec.update(unreduced=spec.unreduced | mat.unreduced, reduced=spec.reduced | mat.reduced))
        of_equal_parts = cut if current() is BASE or len(cut.spec) > len(shape) else cut.cut(len(shape))
        if of_equal_parts is not None:
            of_equal_parts.check_fit(where, partial(leaf_name, "x", x, i), shape)
        if cut.mesh.explicit_axes:
            if UNCONSTRAINED in cut.spec:
                entries = zip(cut.spec, entries_of(value.type))
                cut = cut.with_spec([own if entry is UNCONSTRAINED else entry for entry, own in entries])
            if asserts and cut.cut(len(shape)) != value.type.cut:
                raise ShardingTypeError(
                    f"{where}: along explicit axes it asserts how a value is cut, got {value.type} and {cut.spec}.",
                    hint="hx.reshard(x, spec) cuts it so.",
                )
        laid_out = perform(LayoutConstraint(asked), value) if isinstance(asked, Layout) else value
        placed.append(perform(ShardingConstraint(cut), laid_out))
    return pytrees.unflatten(tree, placed)


LaterLayers.resharded = staticmethod(_resharded)


def hidden(tree: Any) -> Any:
    """A tree with its arrays hidden: their types leave it to the compiler how they are cut.

    Raises: ShardingTypeError: the devices that a ``shard_map`` maps over have partial sums of one.
    """

    def of_type(x: Any) -> Any:
        if not isinstance(x, Array):
            return x
        if x.type.mat.unreduced:
            raise ShardingTypeError(
                f"out_sharding: what devices have partial sums of must be summed before, got {x.type}.",
                hint="lax.psum(x, axes), or hx.reshard(y, out_sharding) of the result.",
            )
        return hide(x)

    return pytrees.map(of_type, tree)


def left_to(mesh: AbstractMesh, tree: Any) -> Any:
    """A tree whose arrays lie as they do, over a mesh of the same axes: types state how they are cut along those that
    are explicit there.
    """

    def left(x: Any) -> Any:
        cut = x.type.cut if isinstance(x, Array) else None
        return x if cut is None or cut.mesh == mesh else perform(ShardingConstraint(cut.update(mesh=mesh)), x)

    return pytrees.map(left, tree)


LaterLayers.hidden = staticmethod(hidden)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """The arrays of a tree with these layouts inside of programs; under ``vmap`` the lanes are the slowest dimension.

        with_layout_constraint(x, Layout(major_to_minor=(1, 0))) == x

    Args:
        layouts: a layout, or a tree of them, a prefix of ``x``.

    Raises: TreeMismatch: it is no prefix. BadArgument: a leaf is no layout, or arrays of the type cannot have it.
    """
    leaves, tree = pytrees.flatten(x)
    wanted = pytrees.broadcast_prefix(layouts, x, lambda leaf: isinstance(leaf, Layout), what="with_layout_constraint")
    values = [as_array(leaf) for leaf in leaves]
    for value, layout in zip(values, wanted):
        if not isinstance(layout, Layout):
            raise BadArgument(f"with_layout_constraint: a Layout is needed, got {layout!r} for {value.type}.")
        layout.check("with_layout_constraint", value.type)
    return pytrees.unflatten(tree, [perform(LayoutConstraint(y), x) for x, y in zip(values, wanted)])


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The arrays of a tree, cut over devices as the shardings say; along explicit axes their types say so.

        reshard(x, s) == x

    Args and Raises: as of ``with_sharding_constraint``, which along explicit axes asserts how values are cut.
    """
    return _resharded("reshard", xs, out_shardings)
