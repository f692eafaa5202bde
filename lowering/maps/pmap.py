"""pmap: vmap with each lane on its own device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, need_function
from ...effects.base.stack import BASE, STACK, current
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import ConcreteArray, as_array
from ...effects.core.containers import need_no_container, need_no_spec
from ...effects.core.named_axes import UNNAMED
from ...effects.core.signatures import P as Args
from ...effects.core.signatures import R
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import cut_along
from ...effects.trees import pytrees
from ...interpreters.batching.mapped_axes import flat_axes
from ...interpreters.core.static_arguments import merge_arguments
from ...interpreters.transformations.vmap import vmap
from ..arrays.device_put import device_put
from ..jit.jit import jit
from ..xla.array_backend import PLACED
from .device_lanes import LaneDevices, on_devices
from .process_lanes import with_all_processes


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
    collectives are over the lanes of all processes, in their order. What lanes share is a value of each process, and a
    result with ``out_axes=None`` is that of the first lane of each. Under transformations it means the same: a process
    gets the gradient, with respect to its own arguments, of the sum of what all processes differentiate; ``jit``,
    loops and branches around it are one program, the same in every process, of which each has its own arguments and
    results. Effects are handled inside: handlers around it are of one process.

    Args:
        static_broadcasted_argnums: positions of arguments that are Python values, the same in all lanes.
        devices: the device of each lane, equally many of each process; by default its first ones.
        axis_size: the number of lanes, of all processes.
        donate_argnums: positions of arguments whose memory may be used for results.

    Raises: BadArgument: there are fewer devices than lanes. ShapeMismatch: mapped axes differ in size.
    TreeMismatch: in_axes or out_axes is no prefix. CannotCross: with several processes, an effect is not handled
    inside, or the function is lowered without a call.

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
    where = LaneDevices(UNNAMED if axis_name is None else axis_name, axis_size, devices, backend)

    def compiled(own_rows: bool) -> Any:
        @wraps(fun)
        def mapped(*args: Args.args, **kwargs: Args.kwargs) -> R:
            dynamic, axes, refill = _dynamic(args, fixed, in_axes)
            lane = lambda values, named: fun(*refill(values), **named)
            given, given_axes = (dynamic, kwargs), (axes, 0)
            if _in_lanes():
                _need_arrays(given, given_axes)
                return vmap(lane, given_axes, out_axes, axis_name, axis_size)(*given)
            dims, mesh = (where if own_rows else where.of_one_process()).lanes(given, given_axes)
            return on_devices(lane, given, dims, mesh, out_axes, own_rows)

        return jit(mapped, static_argnums=tuple(fixed), donate_argnums=donate_argnums)

    by_all, of_rows = compiled(False), compiled(True)
    by_all.__wrapped__ = fun

    @wraps(fun)
    def called(*args: Args.args, **kwargs: Args.kwargs) -> R:
        several, moves = where.several, PLACED and STACK.get() is BASE
        if not (several or moves) or _in_lanes():
            return by_all(*args, **kwargs)
        dynamic, axes, refill = _dynamic(args, fixed, in_axes)
        of = lambda f: lambda values, named: f(*refill(values), **named)
        if several:
            return with_all_processes(of(fun), of(of_rows), (dynamic, kwargs), (axes, 0), out_axes, where)
        return of(by_all)(*_moved((dynamic, kwargs), (axes, 0), where))

    called.__dict__.update(by_all.__dict__)
    return called


def _in_lanes() -> bool:
    """Whether this is within a map over devices, whose lanes those of a further one are on."""
    return any([binding.mesh is not None for binding in current().scope])


def _need_arrays(given: Any, in_axes: Any) -> None:
    """Raises BadArgument: a container is mapped."""
    tree = pytrees.structure(given)
    need_no_container("pmap", tree, flat_axes("pmap in_axes", in_axes, given, tree.num_leaves))


def _dynamic(
    args: tuple[Any, ...], fixed: frozenset[int], in_axes: Any
) -> tuple[tuple[Any, ...], Any, Callable[[Sequence[Any]], list[Any]]]:
    """The non-static arguments, their axes, and a function that puts other values in their positions."""
    at = [i for i in range(len(args)) if i not in fixed]
    axes = in_axes if not isinstance(in_axes, (tuple, list)) else tuple([in_axes[i] for i in at])
    statics = [(i, x) for i, x in enumerate(args) if i in fixed]
    return tuple([args[i] for i in at]), axes, lambda values: merge_arguments(statics, values)


def _moved(args: Any, in_axes: Any, where: LaneDevices) -> Any:
    """The arguments of a call, lying on the devices of its lanes: arrays that are committed to others are moved, and
    those whose types state how they are cut over another mesh.
    """
    leaves, tree = pytrees.flatten(args)
    committed = [isinstance(x, ConcreteArray) and x.committed for x in leaves]
    if not any(committed):
        return args
    dims, mesh = where.lanes(args, in_axes)
    return pytrees.unflatten(tree, [
        device_put(x, NamedSharding(mesh, cut_along(d, where.name)))
        if lies and (x.type.cut is not None or x.sharding._device_assignment != mesh._assignment) else x
        for x, d, lies in zip(map(as_array, leaves), dims, committed)
    ])
