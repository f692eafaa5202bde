"""The sharding constraint: how a value inside of a program is cut over the devices of a mesh.

Along explicit axes its type states that. Rules of differentiation and batching are called on *hidden* values, whose
types leave every dimension to the compiler, so that they have no code for shardings: what they give is revealed, as the
type of the operation's result says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from ...base.errors import BadArgument
from ...base.stack import current, perform
from ...core.arrays import ConcreteArray, concrete
from ...core.columns import data_movement, linear
from ...core.operation import operation
from ...sharding.named_sharding import NamedSharding, cut_over
from ...sharding.partition_spec import UNCONSTRAINED
from ...sharding.sharding_rules import entries_of
from ...types.array_type import ArrayType


# y = x, cut over the devices of the sharding's mesh as it says
@operation
class ShardingConstraint:
    sharding: NamedSharding
    states_cut = True
    keeps_memory = True

    @property
    def mesh(op) -> Any:
        return op.sharding.mesh

    def result_type(op, x):
        taken = {axis for binding in current().scope if binding.mesh is not None for axis, _ in binding.axes}
        spec = op.sharding.spec
        found = [axis for axis in (*spec.axes, *(spec.summed_axes - x.manual)) if axis in taken]
        if found:
            raise BadArgument(
                f"with_sharding_constraint: inside of shard_map over {found[0]!r} a value has no parts along it, "
                f"got {op.sharding.spec}.",
                hint="name the axes that are left to the compiler.",
            )
        op.sharding.parts(len(x.shape))  # raises where the rank is too low; a part may be padded
        return x.cut_by(op.sharding.cut(len(x.shape)))

    def evaluate(op, x):
        return x

    def batch(op, dims, x):  # the compiler chooses how the mapped dimension is cut
        return op.of_placed_lanes(dims[0], UNCONSTRAINED, x), dims[0]

    def of_placed_lanes(op, d, axes, x):
        """The same of all lanes, which stand in dimension ``d`` and are cut along these axes of the mesh."""
        spec = [*op.sharding.spec, *[None] * (d - len(op.sharding.spec))]
        cut = op.sharding.with_spec(op.sharding.spec.update((*spec[:d], axes, *spec[d:])))
        return perform(replace(op, sharding=cut), x)

    jvp = linear

    def transpose(op, ct, x):
        return ct if op.mesh.explicit_axes else perform(op, ct)  # a cotangent is revealed as its primal is cut

    def lower(op, emit, x):
        of_devices = op.sharding.spec.summed_axes & x.type.manual and not op.sharding.spec.axes
        return x if of_devices else emit.sharding_constraint(x, op.sharding)

    flops = data_movement


cut_of: Callable[[Any], NamedSharding | None] = attrgetter("type.cut")
"""How the type of a value says that it is cut. Of every operation it is asked: it costs no call of Python."""


def reveal(x: Any, cut: NamedSharding | None) -> Any:
    """The value, of whose type this is the cut; None: it is whole."""
    before = x.type.cut
    if before == cut:
        return x
    if type(x) is ConcreteArray and cut is not None and cut.hides and not (before and before.unreduced):
        return concrete(x.type.cut_by(cut), x._value, x._buffer)
    return perform(ShardingConstraint(cut or before.with_spec([None] * len(x.type.shape))), x)


def with_sums(x: Any, mesh: Any, unreduced: Iterable[Any], reduced: Iterable[Any]) -> Any:
    """The value, whose type says that it is unreduced and reduced along these explicit axes of the mesh alone; itself
    where it is hidden.
    """
    hides = x.type.cut is not None and x.type.cut.hides
    return x if hides else reveal(x, cut_over(mesh, entries_of(x.type), unreduced, reduced))


def cut_alike(x: Any, t: ArrayType) -> Any:
    """The value cut as a type says, except that within ``shard_map`` it remains what each device has of it."""
    if t.cut is None or not t.cut.spec.summed_axes & t.manual:
        return reveal(x, t.cut)
    spec, mat = t.cut.spec.without_sums(t.manual), x.type.mat
    return reveal(x, cut_over(t.cut.mesh, spec, spec.unreduced | mat.unreduced, spec.reduced | mat.reduced))


def hide(x: Any) -> Any:
    """The value, hidden; itself where its type states no cut. Also of types, and of None."""
    if isinstance(x, ArrayType):
        return x.cut_by(x.cut and x.cut.hidden)
    return x if x is None or x.type.cut is None else reveal(x, x.type.cut.hidden)


def states(cuts: Iterable[NamedSharding | None]) -> bool:
    """Whether values of these cuts state some, and none is hidden: then rules are called on hidden operands."""
    stated = [cut for cut in cuts if cut is not None]
    return bool(stated) and not any([cut.hides for cut in stated])
