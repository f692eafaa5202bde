"""Transfers of arrays to devices: to one, or sharded over several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...effects.base.config import current
from ...effects.base.errors import BadArgument, ProcessesDiffer
from ...effects.base.later_layers import LaterLayers
from ...effects.base.lazy_module import LazyModule
from ...effects.base.stack import BASE, STACK, perform, runs
from ...effects.core.arrays import Array, ConcreteArray, as_array, concrete, from_numpy
from ...effects.core.escaped_boxes import escaped_box_error
from ...effects.core.jax_contexts import check_transfer, explicit_transfers
from ...effects.operations.foundations.layout_constraint import LayoutConstraint
from ...effects.operations.foundations.put_on import PutOn
from ...effects.operations.foundations.sharding_constraint import ShardingConstraint, reveal
from ...effects.operations.foundations.to_memory import in_memory
from ...effects.sharding.devices import processes_of
from ...effects.sharding.layout import Format, Layout
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding, Sharding, SingleDeviceSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.trees import pytrees
from ...effects.types.array_type import Space, stated
from ...interpreters.differentiation.jvp import JvpBox
from ..compile.placement import over
from ..xla.array_backend import note_placement
from ..xla.lazy import runtime
from ..xla.stablehlo_types import storage
from .requested_shardings import is_requested, leaf_name, requested

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = LazyModule("hashlib")


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """The arrays of a tree on ``device``, committed to it: computations with them are executed on it.

        device_put(x, d) == x

    Inside of a program it is ``with_sharding_constraint``; a single device is then chosen when that is compiled.
    Cotangents of what is put on a device are put back on that of ``x``.

    Args:
        device: a device, a sharding, a format, a PartitionSpec over the mesh in force, a memory (``memory.Space``), or
            a tree of them, a prefix of ``x``; without it arrays stay where they are, and numbers become arrays. Without
            a format that says otherwise, they become row-major.
        donate: whether the arrays may be deleted. may_alias: False: an array that is there already is copied, too.
            Each for all arrays, or a tree of them, a prefix of ``x``.

    Raises: BadArgument: ``device`` is none of these. ShapeMismatch: a dimension cannot be cut into equal parts.
    NotAnArray: a leaf is no array.
    """
    leaves, tree = pytrees.flatten(x)
    places = pytrees.broadcast_prefix(device, x, is_destination, what="device_put")
    donated = pytrees.broadcast_prefix(donate, x, what="device_put donate")
    aliased = pytrees.broadcast_prefix(may_alias, x, lambda y: y is None, what="device_put may_alias")
    placed = []
    for i, (leaf, target, given, shared) in enumerate(zip(leaves, places, donated, aliased)):
        moved = _put(leaf, destination("device_put", target), partial(leaf_name, "x", x, i), target)
        if shared is False and moved is leaf and isinstance(leaf, ConcreteArray):
            moved = concrete(leaf.type, None, runtime.duplicate(leaf.buffer))
        if given and moved is not leaf and isinstance(leaf, ConcreteArray):
            leaf.delete()
        placed.append(moved)
    return pytrees.unflatten(tree, placed)


def is_destination(x: Any) -> bool:
    """Whether a value is a leaf of a tree of places to put arrays; None is one, too."""
    return isinstance(x, Space) or is_requested(x) or bool(runtime.is_device(x))


def destination(where: str, target: Any) -> Any:
    """The sharding that a device, sharding or spec denotes; a memory or None itself. Raises: BadArgument: it is none of
    these.
    """
    if target is Space.Any:
        raise BadArgument(f"{where}: Space.Any is no memory to move to.", hint="Space.Device or Space.Host.")
    if target is None or isinstance(target, Space):
        return target
    if runtime.is_device(target):
        return SingleDeviceSharding(target)
    if not is_requested(target):
        raise BadArgument(
            f"{where}: the device must be one of hx.devices(), or a sharding, got {type(target).__name__}.",
            hint="name one, or leave it out.",
        )
    return requested(where, target)


def _put(leaf: Any, target: Sharding | Space | None, name: Callable[[], str], form: Any) -> Array:
    """The array with this sharding or in this memory, in the layout of ``form``, if that is a format; while a program
    is traced, constrained to the sharding. ``name`` names it in errors.
    """
    to_one = STACK.get() is BASE and isinstance(target, SingleDeviceSharding)  # the transfer copies what NumPy has
    x = from_numpy(leaf, copy=False) if to_one and type(leaf) is np.ndarray else as_array(leaf)
    if isinstance(target, Space) and (STACK.get() is not BASE or target is x.type.memory_space):
        return in_memory(x, target)
    sharding: Sharding | None = x.sharding.lying_in(target) if isinstance(target, Space) else target
    if current().guarded and STACK.get() is BASE:
        with explicit_transfers():
            _guard(leaf, x, sharding)
    layout = form.layout_of("device_put", x.type) if isinstance(form, Format) else None
    if STACK.get() is not BASE:
        if isinstance(sharding, SingleDeviceSharding) and not any([run.records_everything for run in runs()]):
            return perform(PutOn(sharding, _device_of(x)), x)
        x = perform(ShardingConstraint(sharding), x) if isinstance(sharding, NamedSharding) else x
        x = perform(LayoutConstraint(layout), x) if isinstance(layout, Layout) else x
        return x if sharding is None else in_memory(x, sharding.memory_space)
    if x.run is not None:
        raise escaped_box_error(x)
    if sharding is None:
        return x
    sharding.check_fit("device_put", name, x.type.shape)
    if x.type.cut is not None and x.type.cut.unreduced:
        x = reveal(x, x.type.cut.whole)
    return _placed(x, sharding, layout)


def _placed(x: Any, sharding: Sharding, layout: Any = None) -> ConcreteArray:
    """``place``, with a type that states it."""
    placed = place(x, sharding, layout if isinstance(layout, Layout) else None)
    kind = stated(placed.type, sharding)
    return placed if placed.type is kind else concrete(kind, placed._value, placed._buffer)


LaterLayers.placed = staticmethod(_placed)


def _device_of(x: Any) -> SingleDeviceSharding | None:
    """Where a value lies of which derivatives are taken, if it is known and on one device."""
    while isinstance(x, JvpBox):
        x = x.primal
    sharding = x.sharding if isinstance(x, ConcreteArray) else None
    return sharding if isinstance(sharding, SingleDeviceSharding) else None


def _guard(leaf: Any, x: Array, sharding: Sharding | None) -> None:
    """Log or refuse the transfer of a leaf, as the settings of transfer guards say. Raises: TransferRefused."""
    if not isinstance(leaf, Array):
        check_transfer("host_to_device", str(x.type))
    elif sharding is not None:
        source, target = x.devices(), sharding.device_set
        if source != target:
            check_transfer("device_to_device", f"{x.type} from {source} to {target}")


def place(x: ConcreteArray, sharding: Sharding, layout: Layout | None = None) -> ConcreteArray:
    """The array, committed to a sharding that is known to be compatible with its shape; in this layout, or row-major.
    """
    named, device = isinstance(sharding, NamedSharding), sharding._device_assignment[0]
    if named:
        over(sharding.mesh)  # type: ignore[attr-defined]
        where = runtime.sharding_over(sharding, len(storage(x.type)[0]), layout)  # type: ignore[arg-type]
    else:
        where = runtime.sharding(device, sharding.memory_kind, layout)
    note_placement(device, sharding.memory_kind, layout)
    buffer = x._buffer
    committed = buffer is not None and runtime.is_committed(buffer)
    if committed and (buffer._sharding is where or (not named and runtime.lies_at(buffer, where))):
        return x
    if layout is not None:
        return concrete(x.type, None, runtime.copy_to(place(x, sharding).buffer, where))
    if named:
        return concrete(x.type, None, _spread(x, sharding, where, committed))  # type: ignore[arg-type]
    # a copy: the memory of the array may be donated or shared
    if buffer is None:
        return concrete(x.type, None, runtime.put_at(x.value, where, copy=True))
    x.block_until_ready()  # XLA ends the process where elements are moved that a failed program never had
    return concrete(x.type, None, runtime.copied_to(buffer, where))


def _spread(x: ConcreteArray, sharding: NamedSharding, where: Any, committed: bool) -> Any:
    """The buffer of an array over the devices of a mesh, cut as ``where``, the sharding in the runtime's words, says.
    """
    if committed and runtime.devices_of(x._buffer) == sharding._device_assignment:  # they move it themselves
        cut = sharding.unreduced and x.type.cut  # along unreduced axes that cut it, parts stay where they are
        known = cut if cut and not cut.hides and cut.mesh == sharding.mesh.abstract_mesh else None
        given = concrete(x.type.cut_by(known), None, x._buffer)
        moved = perform(ShardingConstraint(sharding if sharding.unreduced else sharding.automatic), given)
        return runtime.in_words_of(in_memory(moved, sharding.memory_space).buffer, where)
    if not sharding.is_fully_addressable:
        _check_same(x, sharding)
    return runtime.spread(x.value, where)


def put_like(y: Any, x: Any, device: Any = None) -> Any:
    """``y`` on ``device``; without one, on the devices of ``x`` where these are known: cut as ``x`` is, if both have
    one shape, and whole where ``x`` is; in the same memory.
    """
    if device is None and isinstance(x, Array):
        alike = x.type.shape == y.type.shape
        if isinstance(x, ConcreteArray) and x.committed and (alike or x.sharding.is_fully_replicated):
            device = x.sharding if alike or not isinstance(x.sharding, NamedSharding) else x.sharding.with_spec(())
        elif x.run is not None and alike:
            return in_memory(reveal(y, x.type.cut), x.type.memory_space)
    return y if device is None else device_put(y, device)


def _check_same(x: ConcreteArray, sharding: Sharding) -> None:
    """Check that all processes of the devices put the same array. Raises: ProcessesDiffer."""
    joined = runtime.connection()
    if joined is not None:
        digest = hashlib.sha256(x.value.tobytes()).hexdigest()
        who = processes_of(sharding._device_assignment)
        said = joined.all_say(f"{x.type} {digest}", who, "device_put")
        others = [number for number in sorted(said) if said[number] != said[joined.index]]
        if others:
            raise ProcessesDiffer(
                f"device_put: every process must put the same array over devices of all, got {x.type} here, and "
                f"another one in process {', '.join(map(str, others))}.",
                hint="make_array_from_process_local_data makes one array of what each process has.",
            )


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Stack trees of arrays, one for each device, along a new first dimension that is sharded over the devices.

        device_put_sharded(xs, devices)[i] == xs[i], and is on devices[i]
    """
    if len(shards) != len(devices):
        raise BadArgument(
            f"device_put_sharded: there must be a tree for each device, got {len(shards)} for {len(devices)} devices."
        )
    cut = NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec("devices"))
    stack = lambda *xs: device_put(np.stack([as_array(x).value for x in xs]), cut)  # type: ignore[attr-defined]
    return pytrees.map(stack, *shards)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """The arrays of a tree with a new first dimension, along which each device holds a copy.

        device_put_replicated(x, devices)[i] == x
    """
    return device_put_sharded([x] * len(devices), devices)
