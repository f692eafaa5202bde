"""``handlax.experimental.multihost_utils``: values of all processes brought together, under JAX's names.

Each function is called by every process, in the same order; with one process it does what it does with several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument
from ..effects.core.arrays import Array, as_array
from ..effects.sharding.mesh import Mesh
from ..effects.sharding.named_sharding import NamedSharding
from ..effects.sharding.partition_spec import P, PartitionSpec
from ..effects.trees import pytrees
from ..lowering.arrays.assembled_arrays import make_array_from_process_local_data, own_part
from ..lowering.arrays.sharding_constraints import reshard
from ..lowering.clients.agreement import check_same, digest
from ..lowering.jit.devices import devices, process_count, process_index
from ..lowering.jit.jit import jit
from ..lowering.xla.lazy import runtime


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The arrays that each process passes, gathered on every process as NumPy arrays.

        process_allgather(x)[p] == x of process p

    Args:
        tiled: concatenate along the first dimension instead of stacking along a new one; scalars are stacked.

    An array sharded over devices of several processes is returned as the whole array, without a new dimension.
    """

    def gathered(x: Any) -> np.ndarray[Any, Any]:
        if isinstance(x, Array) and not x.is_fully_addressable:
            return np.asarray(reshard(x, x.sharding.with_spec(P())))  # type: ignore[attr-defined]
        rows = _of_all_processes(_host(x), lambda rows: rows)
        return rows.reshape(-1, *rows.shape[2:]) if tiled and rows.ndim > 1 else rows

    return pytrees.map(gathered, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The arrays of one process, on every process, as NumPy arrays: of process 0, or of the one that passes
    ``is_source=True``.

    All processes must pass trees of the same structure, shapes and dtypes.
    """
    source = process_index() == 0 if is_source is None else is_source
    if process_count() == 1:
        return pytrees.map(_host, in_tree)

    def received(x: Any) -> np.ndarray[Any, Any]:
        host = _host(x)
        found = _of_all_processes(_bytes(host) if source else np.zeros_like(_bytes(host)), _sum_of_bytes)
        return found.view(host.dtype).reshape(host.shape)

    return pytrees.map(received, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until every process calls ``sync_global_devices``.

    Raises: ProcessesDiffer, in every process: the processes pass different names.
    """
    check_same([("", name, repr(name))], "sync_global_devices: every process must give the same name")
    broadcast_one_to_all(np.uint8(0))  # the devices wait for each other too


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this is the step at which all processes save what they have, because one of them is to end soon: it is
    the same step in all, and never where this process is alone.

    Every process calls it at each step. A process is told of its end by SIGTERM, which from the first call on does not
    end it at once.
    """
    joined = runtime.connection()
    return joined is not None and joined.reached_sync_point(step_id)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that the arrays of every process equal those of process 0 bit for bit.

    Raises: ProcessesDiffer, with ``fail_message`` and in every process: the arrays of some process differ.
    """
    facts = [
        (pytrees.keystr(path), f"{host.dtype}{host.shape}{digest(host.tobytes())}", repr(leaf))
        for path, leaf in pytrees.leaves_with_path(in_tree) for host in [_host(leaf)]
    ]
    check_same(facts, fail_message or "assert_equal: every process must have the same")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays sharded over a mesh by ``pspecs``, of which each process passes the part that lies on its own devices.

        one process:  host_local_array_to_global_array(x, mesh, spec) == device_put(x, NamedSharding(mesh, spec))

    Args:
        pspecs: a PartitionSpec, or a tree prefix of ``local_inputs`` with PartitionSpecs as leaves.

    Raises: TreeMismatch: ``pspecs`` is no tree prefix. BadArgument: a leaf of ``pspecs`` is no PartitionSpec.
        ShapeMismatch: the number of devices along an axis does not divide a dimension.
    """
    return _by_specs(
        "host_local_array_to_global_array", local_inputs, pspecs,
        lambda x, spec: make_array_from_process_local_data(NamedSharding(global_mesh, spec), _host(x)),
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The part of each array, sharded over a mesh, that lies on this process's devices, as an array over these alone.

        one process:  global_array_to_host_local_array(x, mesh, spec) == x

    Raises: TreeMismatch, BadArgument, ShapeMismatch, as ``host_local_array_to_global_array``.
    """

    return _by_specs(
        "global_array_to_host_local_array", global_inputs, pspecs,
        lambda x, spec: own_part(NamedSharding(global_mesh, spec), as_array(x)),
    )


def _of_all_processes(x: np.ndarray[Any, Any], combine: Callable[[Any], Any]) -> np.ndarray[Any, Any]:
    """``combine(rows)`` on every process, where ``rows[p]`` is the array ``x`` that process p passes.

    Each process holds its row on its first device.
    """
    first = {device.process_index: device for device in reversed(devices())}
    mesh = Mesh(np.array([first[number] for number in sorted(first)]), ("process",))
    rows = make_array_from_process_local_data(NamedSharding(mesh, P("process")), x[None])
    return np.asarray(jit(lambda rows: reshard(combine(rows), NamedSharding(mesh, P())))(rows))


def _sum_of_bytes(rows: Any) -> Any:
    return rows.sum(0, dtype="uint8")


def _host(x: Any) -> np.ndarray[Any, Any]:
    """The value of an array or number as a NumPy array; a NumPy array is returned without a copy."""
    return x if isinstance(x, np.ndarray) else np.asarray(x if isinstance(x, Array) else as_array(x))


def _bytes(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8)


def _by_specs(where: str, inputs: Any, pspecs: Any, each: Callable[[Any, PartitionSpec], Any]) -> Any:
    """The tree of ``each(leaf, spec)`` over the leaves of ``inputs``, where ``pspecs`` is a tree prefix of ``inputs``.

    Raises: TreeMismatch: ``pspecs`` is no tree prefix. BadArgument: a leaf of ``pspecs`` is no PartitionSpec.
    """
    is_leaf = lambda x: x is None or isinstance(x, PartitionSpec)
    leaves, tree = pytrees.flatten(inputs)
    specs = pytrees.broadcast_prefix(pspecs, inputs, is_leaf, what=where)
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise BadArgument(f"{where}: each array needs a PartitionSpec, got {spec!r}.", hint="P() says whole.")
    return pytrees.unflatten(tree, [each(x, spec) for x, spec in zip(leaves, specs)])
