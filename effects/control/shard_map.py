"""``ShardMap``: a body executed by every device of a mesh, on its own pieces of arrays; devices meet in collectives."""

from __future__ import annotations

from math import prod
from typing import Any

from ..base.errors import CannotCross
from ..base.stack import Binding
from ..core.columns import LOWER
from ..core.named_axes import Axis, SizedAxis
from ..core.operation import operation
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from ..types.array_type import ArrayType


# y[i] = body(s, x[i])  on every device i of the mesh, all at once
@operation
class ShardMap(HigherOrder):
    """``axes`` of the mesh are bound in the body, with their sizes, in the order of the mesh.

    A value of the body that varies along some of these axes is outside an array with a row for each of their lanes, in
    the order of the axes; a value that varies along none is the same array. Without ``tracks`` every value of the body,
    but for ``shared`` operands, varies along all of them.
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
        """The number of lanes: the product of the axes."""
        return prod([size for _, size in self.axes])

    def times(self, *types: ArrayType) -> int:
        return self.length

    def result_type(op, *operands: ArrayType) -> tuple[ArrayType, ...]:
        need_device_effects(op.bodies[0])
        return HigherOrder.result_type(op, *operands)

    def lanes(self, type: ArrayType) -> tuple[SizedAxis, ...]:
        """The axes along which a value of the body varies, in the order of the mesh."""
        return tuple([axis for axis in self.axes if axis in type.varying]) if self.tracks else self.axes

    @property
    def lanes_of_all(self) -> tuple[SizedAxis, ...]:
        """The axes that types of the body have of a value that varies along all of them."""
        return self.axes if self.tracks else ()

    @property
    def input_lanes(self) -> list[tuple[SizedAxis, ...]]:
        """The axes along which each input of the body varies."""
        return [() if i < self.shared else self.lanes(t) for i, t in enumerate(self.bodies[0].in_types)]

    @property
    def output_lanes(self) -> list[tuple[SizedAxis, ...]]:
        """The axes along which each result of the body varies."""
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
    """Raises CannotCross: the body of a ``ShardMap`` performs an effect that no device answers by itself.

    Devices meet over axes, and each calls the host; anything else would be performed by all of them, in no order.
    """
    unhandled = [effect for effect in body.effects if not isinstance(effect, Axis) and not LOWER.has(type(effect))]
    if unhandled:
        names = ", ".join(sorted({effect.name for effect in unhandled}))
        raise CannotCross(
            f"{where}: every device would perform {names}, in no order.",
            hint=f"handle it inside: {where}(hx.handle(h)(f), ...).",
        )
