"""``pmap`` over devices of several processes: each process passes the lanes of its own devices, and gets their results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...effects.base.errors import CannotCross
from ...effects.base.stack import BASE, STACK
from ...effects.core.arrays import as_array
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import cut_along
from ...effects.trees import pytrees
from ...interpreters.batching.mapped_axes import dimensions, lane_count
from ...interpreters.core.trace_cache import leaf_names
from ..arrays.assembled_arrays import make_array_from_process_local_data, own_part
from ..jit.devices import devices, process_count


def devices_of_all(count: int, backend: str | None = None) -> list[Any]:
    """The first ``count`` devices of each process, in the order of the processes."""
    of_process: dict[int, list[Any]] = {}
    for device in devices(backend):
        of_process.setdefault(device.process_index, []).append(device)
    return [device for number in sorted(of_process) for device in of_process[number][:count]]


def argument_leaf_names(tree: Any) -> Callable[[int], str]:
    """The name of each leaf of ``pmap``'s arguments, whose structure is ``tree``; static ones are not counted."""
    return leaf_names(lambda i: f"mapped argument {i}", tree).__getitem__


def with_all_processes(
    mapped: Callable[..., Any], values: Any, in_axes: Any, name: Hashable, axis_size: int | None, backend: str | None
) -> Any:
    """``mapped`` applied to the lanes of all processes, of which ``values`` are this process's; its results for these.

    Raises: CannotCross: a value is only being traced, within a transformation.
    """
    if STACK.get() is not BASE:
        raise CannotCross(
            "pmap: with several processes each gives the lanes of its devices, got values within a transformation.",
            hint="shard_map over a mesh of hx.devices() can be transformed, and transform the function inside of pmap.",
        )
    leaves, tree = pytrees.flatten(values)
    xs = [as_array(x) for x in leaves]
    dims = dimensions("pmap", in_axes, values, xs)
    size = None if axis_size is None else axis_size // process_count(backend)
    own = lane_count("pmap", dims, xs, size, argument_leaf_names(tree))
    mesh = Mesh(np.array(devices_of_all(own, backend)), (name,))
    cuts = [NamedSharding(mesh, cut_along(d, name)) for d in dims]
    whole = [make_array_from_process_local_data(cut, x) for cut, x in zip(cuts, xs)]
    return pytrees.map(own_part, mapped(*pytrees.unflatten(tree, whole)))
