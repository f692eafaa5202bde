"""``ShardMap`` as a manual computation of Shardy: a region that every device of a mesh executes on its own pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import CannotCross
from ...effects.control.shard_map import ShardMap
from ...effects.core.columns import LOWER
from ...effects.core.named_axes import SizedAxis
from ...effects.sharding.mesh import sdy_axis
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import UNCONSTRAINED, PartitionSpec
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import int32
from ..xla.stablehlo_types import tensor


class ManualMesh(NamedTuple):
    """The mesh whose devices execute the region being emitted, and those of its axes over which it is manual."""

    mesh: Any
    axes: tuple[SizedAxis, ...]

    @property
    def automatic(self) -> tuple[SizedAxis, ...]:
        """The axes over which the compiler divides the work."""
        return tuple([axis for axis in self.mesh.shape_tuple if axis not in self.axes])


@LOWER.rule(ShardMap)
def _(op: ShardMap, emit: Any, *values: Any) -> Any:
    outer = emit.manual
    bound = op.axes if outer is None else (*outer.axes, *op.axes)
    emit.manual = ManualMesh(op.mesh, tuple([axis for axis in op.mesh.shape_tuple if axis in bound]))
    body = op.bodies[0]
    inputs, outputs = op.input_lanes, op.output_lanes
    blocks = [_block(t, lanes) for t, lanes in zip(body.in_types, inputs)]
    results = [_block(t, lanes) for t, lanes in zip(body.out_types, outputs)]

    def pieces(*rows: Any) -> Sequence[Any]:
        xs = [emit.reshape(x, t.shape)._replace(type=t) for x, t in zip(rows, body.in_types)]
        return [emit.reshape(y, t.shape) for y, t in zip(emit.program(body, xs), results)]

    try:
        if op.mesh.size == 1:  # there is nothing to divide, and XLA compiles for one device without Shardy
            return pieces(*values)
        ins = [_cut(emit, t, lanes) for t, lanes in zip(blocks, inputs)]
        outs = [_cut(emit, t, lanes) for t, lanes in zip(results, outputs)]
        return manual_computation(emit, op.axes, values, ins, blocks, outs, emit.made, pieces)
    finally:
        emit.manual = outer


def _block(piece: ArrayType, lanes: tuple[SizedAxis, ...]) -> ArrayType:
    """The type of one row of the array that has all pieces of this type."""
    return piece.update(shape=(1, *piece.shape)) if lanes else piece


def _cut(emit: Any, block: ArrayType, lanes: tuple[SizedAxis, ...]) -> str:
    """How the array of all pieces is cut: its first dimension over the axes along which they vary."""
    over = tuple([name for name, _ in lanes])
    rest = UNCONSTRAINED if emit.manual.automatic else None
    spec = PartitionSpec(*([over] if over else []), *[rest] * (len(block.shape) - bool(over)))
    return emit.sharding(NamedSharding(emit.manual.mesh, spec), block)


def manual_computation(
    emit: Any,
    axes: Sequence[SizedAxis],
    values: Sequence[Any],
    ins: Sequence[str],
    blocks: Sequence[ArrayType],
    outs: Sequence[str],
    types: Sequence[ArrayType],
    body: Any,
) -> Sequence[Any]:
    """Emit the region: ``blocks`` are the types of a device's pieces, ``ins`` and ``outs`` how the whole is cut."""
    region = emit.region(blocks, body, "sdy.return")
    names = ", ".join([sdy_axis(name) for name, _ in axes])
    takes, gives = (", ".join(map(tensor, kinds)) for kinds in ([v.type for v in values], types))
    operands = ", ".join([v.name for v in values])
    attributes = (
        f"in_shardings = #sdy.sharding_per_value<[{', '.join(ins)}]>, "
        f"out_shardings = #sdy.sharding_per_value<[{', '.join(outs)}]>, manual_axes = #sdy<manual_axes{{{names}}}>"
    )
    head = f'"sdy.manual_computation"({operands}) <{{{attributes}}}>'
    return emit.results(f"{head} {region} : ({takes}) -> ({gives})", types)


def device_number(emit: Any) -> Any:
    """The number of the device that executes the region; where axes are automatic, from a region without such."""
    number = array_type((), int32)

    def own() -> Any:
        unsigned = array_type((), "uint32")
        return emit.convert(emit.new("stablehlo.partition_id : tensor<ui32>", unsigned), int32)

    automatic = emit.manual.automatic
    if not automatic:
        return own()
    scalar = f"<{emit.mesh(emit.manual.mesh)}, []>"
    return manual_computation(emit, automatic, (), (), (), [scalar], [number], lambda: [own()])[0]


def need_no_automatic(name: str, manual: ManualMesh) -> None:
    """Raises CannotCross: a device would call the host with a piece that the compiler divides over further axes."""
    if manual.automatic:
        over = ", ".join([repr(axis) for axis, _ in manual.automatic])
        raise CannotCross(
            f"{name}: each device calls the host with its pieces, and over {over} the compiler divides them.",
            hint="let shard_map divide over all axes of the mesh: without axis_names, or by another one inside.",
        )
