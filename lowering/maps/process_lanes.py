"""``pmap`` over devices of several processes: each process passes the lanes of its own devices, and gets their results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.later_layers import LaterLayers
from ...effects.base.stack import BASE, STACK, Binding, perform
from ...effects.base.wrapping import name_of
from ...effects.core.arrays import as_array
from ...effects.operations.collectives.host_local import GlobalToHostLocal, HostLocalToGlobal
from ...effects.operations.manipulation.slicing import axis_at, index_in_dim
from ...effects.programs.program import interpret
from ...effects.sharding.devices import processes_of
from ...effects.sharding.mesh import Mesh
from ...effects.trees import pytrees
from ...interpreters.batching.mapped_axes import result_dimensions
from ...interpreters.transformations.shard_map import recorded_body
from ..arrays.assembled_arrays import make_array_from_process_local_data, own_part
from ..jit.devices import process_count
from ..jit.jit import jit
from .device_lanes import LaneDevices, on_devices


LaterLayers.assembled = staticmethod(make_array_from_process_local_data)
LaterLayers.own_part = staticmethod(own_part)


def with_all_processes(
    lane: Callable[..., Any], of_rows: Callable[..., Any], args: Any, in_axes: Any, out_axes: Any, where: LaneDevices
) -> Any:
    """The results of the lanes of this process, which are those of ``args``, of ``lane`` mapped over those of all.

    ``of_rows`` is ``on_devices`` of it, compiled, with a row for each lane of all arguments and results. What lanes
    share is a value of each process, which has a row of it for each of its lanes: derivatives sum over these.
    """
    processes = process_count(where.backend) if where.devices is None else len(processes_of(where.devices))
    dims, mesh = where.lanes(args, in_axes, processes)
    leaves, tree = pytrees.flatten(args)
    xs = [as_array(x) for x in leaves]
    if STACK.get() is not BASE:  # values of transformations that the function captured are arguments too
        structure, captured, dims, of_rows = _of_captured(lane, xs, tree, dims, mesh, out_axes)
        y = of_rows(*_rows_of_all([*captured, *xs], dims, mesh))
        y = pytrees.unflatten(structure, y)
    else:
        y = of_rows(*pytrees.unflatten(tree, _rows_of_all(xs, dims, mesh)))
    ys, structure = pytrees.flatten(y)
    targets = result_dimensions("pmap", out_axes, y, [len(x.type.shape) for x in ys])
    own = [perform(GlobalToHostLocal(mesh, d or 0), x) for x, d in zip(ys, targets)]
    own = [index_in_dim(x, 0, 0, keepdims=False) if d is None else x for x, d in zip(own, targets)]
    return pytrees.unflatten(structure, own)


def _rows_of_all(xs: Sequence[Any], dims: Sequence[int | None], mesh: Mesh) -> list[Any]:
    """The rows of all processes of these values, of which this one has its own; of a shared one a row for each lane."""
    own = mesh.size // len(processes_of(mesh._assignment))
    rows = [x if d is not None else axis_at(x, None, 0, own) for x, d in zip(xs, dims)]
    return [perform(HostLocalToGlobal(mesh, d or 0), x) for x, d in zip(rows, dims)]


def _of_captured(
    lane: Callable[..., Any], xs: Sequence[Any], tree: Any, dims: Sequence[int | None], mesh: Mesh, out_axes: Any
) -> Any:
    def body(*values: Any) -> Any:
        y = lane(*pytrees.unflatten(tree, values))
        ys = [as_array(leaf) for leaf in pytrees.leaves(y)]
        targets[:] = [0 if d is None else d for d in result_dimensions("pmap", out_axes, y, [
            len(leaf.type.shape) + 1 for leaf in ys])]
        return pytrees.structure(y), ys

    targets: list[int] = []
    types = [
        (x.type if d is None else x.type.update(shape=(*x.type.shape[:d], *x.type.shape[d + 1 :]))).cut_by(None)
        for x, d in zip(xs, dims)
    ]
    binding = Binding(mesh.shape_tuple, False, mesh)
    structure, program, captured = recorded_body("pmap", body, types, binding, name_of(lane))
    every = [*[None] * len(captured), *dims]

    def of_rows(*rows: Any) -> Any:
        flat = lambda *values: [*interpret(program, values)]
        return on_devices(flat, rows, [d or 0 for d in every], mesh, targets, own_rows=True)

    return structure, captured, every, jit(of_rows)
