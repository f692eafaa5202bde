"""The handler of ``vmap`` whose lanes are placed over axes of a mesh, wherever a mesh is named: those that
``spmd_axis_name`` says, or along which types state that they are cut.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.base.stack import STACK, Binding, inside, installed, perform
from ...effects.control.shard_map import ShardMap
from ...effects.core.named_axes import Axis, Bound, SizedAxis
from ...effects.core.operation import Operation
from ...effects.core.varying import vary
from ...effects.operations.foundations.shapes import reshape
from ...effects.operations.foundations.sharding_constraint import hide, reveal
from ...effects.operations.manipulation.slicing import axis_at
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.program import interpret
from ...effects.sharding.named_sharding import cut_over
from ...effects.sharding.partition_spec import UNCONSTRAINED
from ...effects.types.array_type import ArrayType
from ..core.record import record
from .batch import Batch


class PlacedLanes(Batch):
    """``vmap`` whose lanes are sharded over the mesh axes ``placed``; ``ShardMap`` and sharding constraints inside keep
    to it.

    Each of the devices along these axes executes a ``ShardMap`` on its own lanes; one that uses the axes, and one
    without ``check_vma``, whose types do not tell, on all lanes.
    """

    __slots__ = ()

    @property
    def placed(self) -> tuple[Hashable, ...]:
        return self.how

    @property
    def equal_lanes(self) -> tuple[str, str]:
        return f"have no equal parts for the devices along {self.placed}", "spmd_axis_name"

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if not hasattr(op, "mesh") or not any([x.run is self for x in operands]):
            return super().answer(op, operands)
        over = tuple([axis for axis in op.mesh.shape_tuple if axis[0] in self.placed])
        if len(over) < len(self.placed):
            raise BadArgument(
                f"vmap: spmd_axis_name must name axes of the mesh {list(op.mesh.axis_names)}, got {self.placed}."
            )
        around = STACK.get()
        try:
            STACK.set(self.outer)
            if isinstance(op, ShardMap):
                if {*over} <= {*op.axes}:
                    return self.together(op, operands) if _uses(op, over) else self.divided(op, operands, over)
            else:
                (x,) = operands
                return self.box(x.dim, (op.of_placed_lanes(x.dim, self.placed, x.value),))  # type: ignore[attr-defined]
        finally:
            STACK.set(around)
        return super().answer(op, operands)

    def divided(self, op: ShardMap, operands: tuple[Any, ...], over: tuple[SizedAxis, ...]) -> Any:
        """A ``ShardMap`` over the mesh axes of the lanes around the ``ShardMap`` over the remaining axes.

        Raises: ShapeMismatch: the lanes cannot be divided.
        """
        count = prod([size for _, size in over])
        if self.size % count:
            raise ShapeMismatch(
                f"vmap: the lanes must be a multiple of {count}, divided over {self.placed}, got {self.size}."
            )
        rest = tuple([axis for axis in op.axes if axis not in over])
        inner = ShardMap(op.bodies, op.mesh, rest, True, op.shared)
        split = [self.split(x) for x in operands]
        given = [x if d is None else self._pieces(axis_at(x, d, 0, self.size), count) for d, (x,) in split]
        types = [
            x.type if d is None else x.type.update(shape=x.type.shape[1:]).along(x.type.varying | {*over})
            for x, (d, _) in zip(given, split)
        ]
        dims: list[int | None] = []

        def lanes_of_one(*xs: Any) -> Sequence[Any]:
            run = LanesOfOneDevice(STACK.get(), self.size // count, self.axis_name, how=frozenset(over))
            boxes = [x if d is None else run.box(0, (x,)) for x, (d, _) in zip(xs, split)]
            with installed(run):
                ys = perform(inner, *boxes) if rest else interpret(op.bodies[0], boxes)
            dims[:] = [run.split(y)[0] for y in ys]
            return [y if d is None else run.force(y, 0)[0] for y, d in zip(ys, dims)]

        with inside(Bound(self.outer, Binding(over, True, op.mesh))):
            program = record(lanes_of_one, types, op.name, "shard_map")
        (closed,), captured = close_all([program])
        results = perform(ShardMap((closed,), op.mesh, over, True, len(captured)), *captured, *given)
        return tuple([
            self.box(None, (y,)) if d is None else self.box(0, (self._joined(y),)) for y, d in zip(results, dims)
        ])

    def together(self, op: ShardMap, operands: tuple[Any, ...]) -> Any:
        """A ``ShardMap`` each of whose devices has all lanes."""
        run = Batch(STACK.get(), self.size, self.axis_name)
        boxes = [x if d is None else run.box(d, (hide(x),)) for d, (x,) in map(self.split, operands)]
        with installed(run):
            ys = perform(op, *boxes)
        return tuple([
            self.box(None, run.force(y, None)) if run.split(y)[0] is None
            else self.box(0, (self._placed(*run.force(y, 0)),)) for y in ys
        ])

    def _joined(self, y: Any) -> Any:
        """The lanes that ``_pieces`` divided."""
        return self._placed(reshape(y, (self.size, *y.type.shape[2:])))

    def _placed(self, z: Any) -> Any:
        """``z``, whose axis 0 is the lanes: over explicit axes with a type that states the cut of this axis alone."""
        if self.cut is None:
            return z
        return reveal(z, cut_over(self.cut.mesh, [*self.cut.spec, *[UNCONSTRAINED] * (len(z.type.shape) - 1)]))

    def _pieces(self, x: Any, count: int) -> Any:
        """The value with its lanes, along axis 0, divided into ``count`` shards, one for each device."""
        return reshape(x, (count, self.size // count, *x.type.shape[1:]))


class LanesOfOneDevice(Batch):
    """Batch over the lanes of one device; a mapped value varies along the mesh axes ``how`` that divide the lanes."""

    __slots__ = ()
    how: frozenset[SizedAxis]

    def part_types(self, mark: int | None, type: ArrayType) -> Sequence[ArrayType]:
        (t,) = super().part_types(mark, type)
        return (t if mark is None else t.along(t.varying | self.how),)

    def force(self, x: Any, mark: int | None) -> Sequence[Any]:
        (y,) = super().force(x, mark)
        return (y if mark is None else vary(y, y.type.varying | self.how),)


def _uses(op: ShardMap, axes: tuple[SizedAxis, ...]) -> bool:
    """Whether, as far as types tell, a ``ShardMap`` divides a value over one of the axes, or its body names it."""
    body = op.bodies[0]
    varying = [t.varying for t in (*body.in_types, *body.out_types)]
    named = [Axis(name) in body.effects for name, _ in axes]
    return not op.tracks or any(named) or not {*axes}.isdisjoint(frozenset().union(*varying))
