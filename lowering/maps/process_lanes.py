"""``pmap`` over devices of several processes: each process passes the lanes of its own devices, and gets their results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import BASE, STACK, Binding, perform
from ...effects.base.wrapping import name_of
from ...effects.core.arrays import as_array
from ...effects.core.named_axes import Axis
from ...effects.core.operation import effects_text, has_lowering
from ...effects.operations.collectives.host_local import GlobalToHostLocal, HostLocalToGlobal
from ...effects.operations.manipulation.slicing import axis_at, index_in_dim
from ...effects.programs.program import interpret
from ...effects.sharding.devices import processes_of
from ...effects.sharding.mesh import Mesh
from ...effects.trees import pytrees
from ...interpreters.batching.joined_processes import with_arrays_outside
from ...interpreters.batching.mapped_axes import result_dimensions
from ...interpreters.transformations.shard_map import recorded_body
from ..jit.devices import process_count
from ..jit.jit import jit
from .device_lanes import LaneDevices, lane_type, on_devices


def with_all_processes(
    lane: Callable[..., Any], of_rows: Callable[..., Any], args: Any, in_axes: Any, out_axes: Any, where: LaneDevices
) -> Any:
    """The results of the lanes of this process, which are those of ``args``, of ``lane`` mapped over those of all.

    ``of_rows`` is ``on_devices`` of it, compiled, with a row for each lane of all arguments and results: what lanes
    share is a value of each process, so that derivatives sum over the lanes of that process. So are values of
    transformations that the function captured.
    """
    processes = process_count(where.backend) if where.devices is None else len(processes_of(where.devices))
    dims, mesh = where.lanes(args, in_axes, processes)
    xs, tree = pytrees.flatten(args)
    if STACK.get() is BASE:
        y = of_rows(*pytrees.unflatten(tree, _rows_of_all(xs, dims, mesh, processes)))
    else:
        y = _closed(lane, args, dims, out_axes, mesh, processes)
    ys, structure = pytrees.flatten(y)
    targets = result_dimensions("pmap", out_axes, y, [len(x.type.shape) for x in ys])
    own = [perform(GlobalToHostLocal(mesh, d or 0), x) for x, d in zip(ys, targets)]
    return pytrees.unflatten(structure, [
        index_in_dim(x, 0, 0, keepdims=False) if d is None else x for x, d in zip(own, targets)])


def _rows_of_all(xs: Sequence[Any], dims: Sequence[int | None], mesh: Mesh, processes: int) -> list[Any]:
    """The rows of all processes of these values, of which this one has its own; of a shared one a row for each lane."""
    rows = [axis_at(as_array(x), d, d or 0, mesh.size // processes) for x, d in zip(xs, dims)]
    return [perform(HostLocalToGlobal(mesh, d or 0), x) for x, d in zip(rows, dims)]


def _closed(
    lane: Callable[..., Any], args: Any, dims: Sequence[int | None], out_axes: Any, mesh: Mesh, processes: int
) -> Any:
    """``on_devices`` of ``lane``, with what it captured as arguments that lanes share.

    Raises: CannotCross: it performs an effect for a handler outside, which is of this process alone.
    """
    leaves, tree = pytrees.flatten(args)
    xs = [as_array(x) for x in leaves]
    types = [lane_type(x.type, d) for x, d in zip(xs, dims)]

    def body(*values: Any) -> Any:
        y = lane(*pytrees.unflatten(tree, values))
        return pytrees.structure(y), [as_array(leaf) for leaf in pytrees.leaves(y)]

    structure, program, captured = recorded_body(
        "pmap", body, types, Binding(mesh.shape_tuple, False, mesh), name_of(lane))
    outside = [effect for effect in program.effects if not isinstance(effect, Axis) and not has_lowering(effect)]
    if outside:
        raise CannotCross(
            f"pmap: with several processes, a function must handle its effects inside, got {effects_text(outside)}.",
            hint="pmap(hx.handle(h, state)(f), ...), and return what it collects, or combine it by collectives.",
        )
    program, more = with_arrays_outside(program)
    captured = (*more, *captured)
    every = [*[None] * len(captured), *dims]
    closed = lambda *values: pytrees.unflatten(structure, interpret(program, values))
    of_rows = jit(lambda *rows: on_devices(closed, rows, every, mesh, out_axes, own_rows=True))
    return of_rows(*_rows_of_all([*captured, *xs], every, mesh, processes))
