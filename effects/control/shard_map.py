"""``ShardMap``: a body executed by every device of a mesh, on its own pieces of arrays; devices meet in collectives."""

from __future__ import annotations

from math import prod
from typing import Any

from ..base.errors import CannotCross
from ..base.stack import Binding
from ..core.named_axes import Axis, SizedAxis
from ..core.operation import effects_text, has_lowering, operation
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from ..types.array_type import ArrayType


# y[i] = body(s, x[i])  on every device i of the mesh, all at once
@operation
class ShardMap(HigherOrder):
    """The operation of ``shard_map``: every device of ``mesh`` executes the body on its own shards.

    ``axes`` are the mesh axes that the body binds, with their sizes, in the order of the mesh. Outside, a value that
    varies along some of them in the body is an array with one row per device along these axes, in their order; a value
    that varies along none is the same array. Without ``tracks`` (``check_vma=False``), all values of the body except
    the first ``shared`` operands count as varying along all ``axes``.
    """

    bodies: tuple[Program, ...]
    mesh: Any
    axes: tuple[SizedAxis, ...]
    tracks: bool = True
    shared: int = 0
    runs = "mesh"
    carry = 0

    @property
    def binds(self) -> Binding:
        return Binding(self.axes, self.tracks, self.mesh)

    @property
    def length(self) -> int:  # type: ignore[override]
        """The number of executions of the body: the product of the sizes of the mesh axes that it binds."""
        return prod([size for _, size in self.axes])

    def times(self, *types: ArrayType) -> int:
        return self.length

    def result_type(op, *operands: ArrayType) -> tuple[ArrayType, ...]:
        need_device_effects(op.bodies[0])
        return HigherOrder.result_type(op, *operands)

    def in_order(self) -> None:
        """None, no iteration order: all devices execute the body at once, so that none hands a state to the next."""

    def lanes(self, type: ArrayType) -> tuple[SizedAxis, ...]:
        """The mesh axes along which a value of ``type`` in the body varies, in the order of the mesh."""
        return tuple([axis for axis in self.axes if axis in type.varying]) if self.tracks else self.axes

    @property
    def lanes_of_all(self) -> tuple[SizedAxis, ...]:
        """All axes; none without ``tracks``, where types do not have them."""
        return self.axes if self.tracks else ()

    @property
    def input_lanes(self) -> list[tuple[SizedAxis, ...]]:
        """The mesh axes along which each input of the body varies, in the order of the mesh; none for shared inputs."""
        return [() if i < self.shared else self.lanes(t) for i, t in enumerate(self.bodies[0].in_types)]

    @property
    def output_lanes(self) -> list[tuple[SizedAxis, ...]]:
        """The mesh axes along which each result of the body varies, in the order of the mesh."""
        return [*map(self.lanes, self.bodies[0].out_types)]

    def slices(self, type: ArrayType) -> bool:
        return bool(self.lanes(type))

    def stacked(self, type: ArrayType) -> ArrayType:
        lanes = self.lanes(type)
        if not lanes:
            return type
        outside = type.along(type.varying.difference(lanes))
        return outside.update(shape=(prod([size for _, size in lanes]), *type.shape))


def need_device_effects(body: Program, where: str = "shard_map") -> None:
    """Check that every effect of a ``shard_map`` body is a collective over an axis, has a lowering, or is per lane.

    Raises: CannotCross: the body performs another effect, which all devices would perform, in no order.
    """
    parallel = lambda effect: isinstance(effect, Axis) or getattr(effect, "vmap", None) == "per_lane"
    unhandled = [effect for effect in body.effects if not parallel(effect) and not has_lowering(effect)]
    if unhandled:
        raise CannotCross(
            f"{where}: every device would perform {effects_text(unhandled)}, in no order.",
            hint=f"handle it inside: {where}(hx.handle(h)(f), ...); or declare @hx.effect(vmap='per_lane').",
        )
