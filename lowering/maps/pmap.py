"""pmap: vmap with each lane on its own device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.errors import BadArgument, need_function
from ...effects.base.stack import BASE, STACK, current
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import ConcreteArray, as_array
from ...effects.core.containers import need_no_container, need_no_spec
from ...effects.core.named_axes import UNNAMED
from ...effects.core.signatures import P as Args
from ...effects.core.signatures import R
from ...effects.operations.foundations.shapes import move_axis, reshape
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import P, cut_along
from ...effects.trees import pytrees
from ...interpreters.batching.mapped_axes import dimensions, flat_axes, lane_count, result_dimensions
from ...interpreters.core.static_arguments import merge_arguments
from ...interpreters.transformations.shard_map import over_devices
from ...interpreters.transformations.vmap import vmap
from ..arrays.device_put import device_put
from ..arrays.sharding_constraints import reshard
from ..jit.devices import local_devices, process_count
from ..jit.jit import jit
from ..xla.array_backend import PLACED
from .process_lanes import argument_leaf_names, devices_of_all, with_all_processes


def pmap(
    fun: Callable[Args, R],
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[Args, R]:
    """Map ``fun`` over one axis of its arguments, each lane on a device of its own, compiled.

        pmap(f)(xs)[i] == f(xs[i])

    Arguments and collectives are those of ``vmap``; a nested ``pmap`` maps its lanes on the device of the outer lane.
    Results are sharded over the devices. Outside of other transformations and of handlers, arguments that lie on other
    devices are moved.

    Of several processes, each passes the lanes of its own devices, equally many, and gets the results of these;
    collectives are over the lanes of all processes, in their order.

    Args:
        static_broadcasted_argnums: positions of arguments that are Python values, the same in all lanes.
        devices: the device of each lane; by default the first ones of the process.
        donate_argnums: positions of arguments whose memory may be used for results.

    Raises: BadArgument: there are fewer devices than lanes. ShapeMismatch: mapped axes differ in size.
    TreeMismatch: in_axes or out_axes is no prefix.

    >>> from handlax import lax, numpy as hnp
    >>> pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(hnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    need_function("pmap", fun)
    need_no_spec("pmap", in_axes, out_axes)
    if devices is not None and not len(devices):
        raise BadArgument("pmap: there must be devices for the lanes, got none.", hint="leave devices out.")
    numbers = static_broadcasted_argnums
    fixed = frozenset([numbers] if isinstance(numbers, int) else numbers)
    name = UNNAMED if axis_name is None else axis_name

    @wraps(fun)
    def mapped(*args: Args.args, **kwargs: Args.kwargs) -> R:
        dynamic, axes, refill = _dynamic(args, fixed, in_axes)
        lane = lambda values, named: fun(*refill(values), **named)
        if any([binding.mesh is not None for binding in current().scope]):
            tree = pytrees.structure((dynamic, kwargs))
            need_no_container("pmap", tree, flat_axes("pmap in_axes", (axes, 0), (dynamic, kwargs), tree.num_leaves))
            return vmap(lane, (axes, 0), out_axes, axis_name, axis_size)(dynamic, kwargs)
        return _on_devices(lane, (dynamic, kwargs), (axes, 0), out_axes, name, axis_size, devices, backend)

    compiled: Any = jit(mapped, static_argnums=tuple(fixed), donate_argnums=donate_argnums)
    compiled.__wrapped__ = fun

    @wraps(fun)
    def called(*args: Args.args, **kwargs: Args.kwargs) -> R:
        meets = devices is None and config.PROCESS.joined > 1
        moves = PLACED and STACK.get() is BASE
        if not (meets or moves) or any([binding.mesh is not None for binding in current().scope]):
            return compiled(*args, **kwargs)
        dynamic, axes, refill = _dynamic(args, fixed, in_axes)
        of_all = lambda values, named: compiled(*refill(values), **named)
        if meets:
            return with_all_processes(of_all, (dynamic, kwargs), (axes, 0), name, axis_size, backend)
        return of_all(*_moved((dynamic, kwargs), (axes, 0), name, axis_size, devices, backend))

    called.__dict__.update(compiled.__dict__)
    return called


def _dynamic(
    args: tuple[Any, ...], fixed: frozenset[int], in_axes: Any
) -> tuple[tuple[Any, ...], Any, Callable[[Sequence[Any]], list[Any]]]:
    """The non-static arguments, their axes, and a function that puts other values in their positions."""
    at = [i for i in range(len(args)) if i not in fixed]
    axes = in_axes if not isinstance(in_axes, (tuple, list)) else tuple([in_axes[i] for i in at])
    statics = [(i, x) for i, x in enumerate(args) if i in fixed]
    return tuple([args[i] for i in at]), axes, lambda values: merge_arguments(statics, values)


def _moved(
    args: Any, in_axes: Any, name: Hashable, axis_size: int | None, devices: Sequence[Any] | None, backend: str | None
) -> Any:
    """The arguments of a call, lying on the devices of its lanes: arrays that are committed to others are moved, and
    those whose types state how they are cut over another mesh.
    """
    leaves, tree = pytrees.flatten(args)
    committed = [isinstance(x, ConcreteArray) and x.committed for x in leaves]
    if not any(committed):
        return args
    xs = [as_array(x) for x in leaves]
    dims = dimensions("pmap", in_axes, args, xs)
    chosen = _devices(lane_count("pmap", dims, xs, axis_size, argument_leaf_names(tree)), devices, backend)
    mesh = Mesh(np.array(chosen), (name,))
    return pytrees.unflatten(tree, [
        device_put(x, NamedSharding(mesh, cut_along(d, name)))
        if lies and (x.type.cut is not None or x.sharding._device_assignment != tuple(chosen)) else x
        for x, d, lies in zip(xs, dims, committed)
    ])


def _on_devices(
    lane: Callable[..., Any], args: Any, in_axes: Any, out_axes: Any, name: Hashable, axis_size: int | None,
    devices: Sequence[Any] | None, backend: str | None,
) -> Any:
    """``shard_map`` over a mesh of one axis, whose shards are slices of size 1 of the mapped axes."""
    leaves, tree = pytrees.flatten(args)
    xs = [as_array(x) for x in leaves]
    dims = dimensions("pmap", in_axes, args, xs)
    size = lane_count("pmap", dims, xs, axis_size, argument_leaf_names(tree))
    mesh = Mesh(np.array(_devices(size, devices, backend)), (name,))

    def body(*pieces: Any) -> Any:
        values = [x if d is None else reshape(x, _without(x.type.shape, d)) for x, d in zip(pieces, dims)]
        y = lane(*pytrees.unflatten(tree, values))
        ys = [as_array(leaf) for leaf in pytrees.leaves(y)]
        targets[:] = result_dimensions("pmap", out_axes, y, [len(leaf.type.shape) + 1 for leaf in ys])
        rows = [v if d is None else as_row(v) for v, d in zip(ys, targets)]
        specs[:] = [P() if d is None else P(name) for d in targets]
        structures.append(pytrees.structure(y))
        return rows

    targets: list[int | None] = []
    specs: list[P] = []
    structures: list[Any] = []
    into = tuple([cut_along(d, name) for d in dims])
    results = over_devices("pmap", body, into, specs, mesh, (), False)(*xs)
    placed = [y if d is None else move_axis(y, 0, d) for y, d in zip(results, targets)]
    if mesh.is_multi_process:  # each process gets the lanes of its own devices
        placed = [reshard(y, NamedSharding(mesh, cut_along(d, name))) for y, d in zip(placed, targets)]
    return pytrees.unflatten(structures[-1], placed)


def as_row(x: Any) -> Any:
    """``x`` with a new first dimension of size 1."""
    return reshape(x, (1, *x.type.shape))


def _without(shape: tuple[int, ...], d: int) -> tuple[int, ...]:
    return shape[:d] + shape[d + 1 :]


def _devices(count: int, devices: Sequence[Any] | None, backend: str | None) -> list[Any]:
    """The first ``count`` devices. Raises: BadArgument: there are fewer."""
    chosen = [*devices] if devices is not None else local_devices(backend=backend)
    if devices is None and config.PROCESS.joined > 1:
        chosen = devices_of_all(count // process_count(backend), backend)
    if len(chosen) < count:
        raise BadArgument(
            f"pmap: every lane needs a device, got {count} lanes for {len(chosen)} devices.",
            hint="vmap maps any number of lanes on one device; hx.config.update('num_cpu_devices', n) makes devices.",
        )
    return chosen[:count]
