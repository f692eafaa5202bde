"""``ShardMap`` as a manual computation of Shardy: a region that every device of a mesh executes on its own pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import BadArgument, CannotCross, NotExportable
from ...effects.control.shard_map import ShardMap
from ...effects.core.columns import LOWER
from ...effects.core.named_axes import SizedAxis
from ...effects.sharding.mesh import sdy_axis
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import UNCONSTRAINED, PartitionSpec
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import int32
from ...interpreters.batching.divergent_devices import coherent


class ManualMesh(NamedTuple):
    """The mesh whose devices execute the region being emitted, and the axes over which it is manual, outer first."""

    mesh: Any
    axes: tuple[SizedAxis, ...]

    @property
    def automatic(self) -> tuple[SizedAxis, ...]:
        """The axes over which the compiler divides the work."""
        return tuple([axis for axis in self.mesh.shape_tuple if axis not in self.axes])


@LOWER.rule(ShardMap)
def _(op: ShardMap, emit: Any, *values: Any) -> Any:
    outer = emit.manual
    emit.manual = ManualMesh(op.mesh, op.axes if outer is None else (*outer.axes, *op.axes))
    _check_order(emit.manual.axes, op.mesh)
    body = coherent(op.bodies[0], () if op.tracks else emit.manual.axes)
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


def _check_order(bound: Sequence[SizedAxis], mesh: Any) -> None:
    """Raises BadArgument: axes, bound by regions from the outermost on, for which XLA ends the process.

    It merges them to one list, without axes of size 1, which must be in the order of the mesh, or have all its axes.
    """
    merged = [name for name, size in bound if size > 1]
    positions = [mesh.axis_names.index(name) for name in merged]
    if positions != sorted(positions) and len(positions) < len(mesh.axis_names):
        raise BadArgument(
            f"shard_map: where axes are left to the compiler, the mesh must have those of the outer shard_map before "
            f"those of the inner one, got {mesh.axis_names} with {', then '.join(map(repr, merged))}.",
            hint="name the axes of the mesh in another order, and leave out those of size 1.",
        )


def _block(piece: ArrayType, lanes: tuple[SizedAxis, ...]) -> ArrayType:
    """The type of a device's piece within the array that stacks all pieces along a first dimension, if there is one."""
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
    """Emit the region: ``blocks`` are the types of a device's pieces, ``ins`` and ``outs`` how the whole is cut.

    Raises: NotExportable: sizes are symbolic. XLA's shape refinement hands no numbers into such a region, and ends the
    process where it folds a constant in one.
    """
    if emit.symbols:
        sizes = ", ".join(map(str, emit.symbols))
        raise NotExportable(f"export: in shard_map the sizes must be numbers, got a program with the sizes {sizes}.")
    region = emit.region(blocks, body, "sdy.return")
    over = ", ".join([sdy_axis(name) for name, _ in axes])
    attributes = (
        f"in_shardings = #sdy.sharding_per_value<[{', '.join(ins)}]>, "
        f"out_shardings = #sdy.sharding_per_value<[{', '.join(outs)}]>, manual_axes = #sdy<manual_axes{{{over}}}>"
    )
    return emit.ops("sdy.manual_computation", *values, types=types, attributes=attributes, regions=region)


def device_number(emit: Any) -> Any:
    """The number of the device that executes the region; where axes are automatic, from a region without such."""
    number = array_type((), int32)

    def own() -> Any:
        unsigned = array_type((), "uint32")
        return emit.convert(emit.new("stablehlo.partition_id : tensor<ui32>", unsigned), int32)

    automatic = emit.manual.automatic
    if not automatic:
        return own()
    _check_order((*emit.manual.axes, *automatic), emit.manual.mesh)
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
