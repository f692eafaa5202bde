"""The cost of a program: floating-point operations, bytes read and written, and bytes sent along axes of a mesh.

cost_counter      tallies them from a program, which is not executed
measure(f)(x)     sums them during execution: exact for loops of unknown length and for branches too
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrsistent import pmap

from ....effects.base.errors import need_function
from ....effects.base.stack import site
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.control.shard_map import ShardMap
from ....effects.core.arrays import as_array, perform, scalar
from ....effects.core.columns import TRAFFIC
from ....effects.core.named_axes import Axis, SizedAxis
from ....effects.core.operation import result_type
from ....effects.operations.elementwise.arithmetic import add
from ....effects.types.dtypes import int64
from ...analysis.flops import flops as flops_of
from ...handlers.handle import handle
from ...handlers.handler import Handler, handler
from ...handlers.state_movements import tally
from ...handlers.static_tally import tally_program
from .cost_table import Costs, LinkCost, OperationCost, either, repeated, then


def cost_of(op: Any, *types: Any) -> Costs:
    """The cost of one operation on operands of these types, outside of any mesh, in the scopes of the current site."""
    return _cost_on(None, (), op, types)


def _cost_on(mesh: Any, axes: tuple[SizedAxis, ...], op: Any, types: tuple[Any, ...]) -> Costs:
    """The cost of one operation for a device that executes it under ``shard_map`` over these mesh axes."""
    results = op.as_results(result_type(op, types))
    moved = sum([t.nbytes for t in (*types, *results)])
    cost = OperationCost(1, flops_of(op, types, results), moved)
    computed = Costs(pmap({(axes, op.name): cost}), scopes=pmap({site().scopes: cost}))
    if mesh is None or not TRAFFIC.has(type(op)):
        return computed
    sent = TRAFFIC.find(type(op))(op, mesh, types, results)
    return computed._replace(sent=pmap({(axis, op.name): LinkCost(1, *link) for axis, link in sent.items()}))


def _counts(op: Any) -> bool:
    """Whether an operation performs no effects except collectives."""
    return all([isinstance(effect, Axis) for effect in op.effects])


def _counter(mesh: Any, axes: tuple[SizedAxis, ...]) -> Handler:
    """The handler that tallies costs for one device of a mesh."""

    def of_device(op: ShardMap, *types: Any) -> Costs:
        bound = tuple([axis for axis in op.mesh.shape_tuple if axis in (*axes, *op.axes)])
        return tally_program(_counter(op.mesh, bound), op.bodies[0])

    return handler(
        {ShardMap: of_device},
        otherwise=lambda op, *types: _cost_on(mesh, axes, op, types),
        over=_counts,
        moves=tally(Costs(), then, either, repeated),
    )


cost_counter = _counter(None, ())
"""Tallies the cost of all pure operations: ``handle(cost_counter, Costs())(f)(x) == (costs, f(x))``."""


def measure(f: Callable[..., Any]) -> Callable[..., Any]:
    """``measure(f)(*args)`` gives ``({"flops": n, "bytes": m}, f(*args))``, summed on the device during execution.

    The numbers are int64 arrays. Only branches taken and iterations executed count, and nothing of what answers an
    effect, which stands further out. Under a ``vmap`` outside, work that lanes share counts in each lane. On a mesh
    each device measures what it executes: ``shard_map(measure(f), ...)``.

    >>> from handlax import lax
    >>> cost, y = measure(lambda x: lax.while_loop(lambda c: c < 100.0, lambda c: c * 2.0, x))(1.0)
    >>> int(cost["flops"])        # seven products, eight comparisons
    15
    """
    need_function("measure", f)

    def add_cost(total: Any, op: Any, *operands: Any) -> Any:
        cost = cost_of(op, *[x.type for x in operands])
        new = {name: add(as_array(total[name]), scalar(getattr(cost, name), int64)) for name in total}
        return new, perform(op, *operands)

    @wraps(f)
    @unnamed_boundary
    def measured(*args: Any, **kwargs: Any) -> Any:
        start = {"flops": scalar(0, int64), "bytes": scalar(0, int64)}
        return handle(handler(otherwise=add_cost, over=_counts), start)(f)(*args, **kwargs)

    return measured
