"""The cost of a program: floating-point operations, bytes read and written, and the number of each operation.

    count(f)(x)        computed from the program, which is not executed
    measure(f)(x)      summed during execution: exact for loops of unknown length and for branches too
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyrsistent import PMap, pmap

from ....effects.base.errors import need_function
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import as_array, perform, scalar
from ....effects.core.operation import is_pure, result_type
from ....effects.operations.elementwise.arithmetic import add
from ....effects.types.dtypes import int64
from ...analysis.flops import flops as flops_of
from ...handlers.handle import handle
from ...handlers.handler import handler
from ...handlers.state_movements import tally
from ...transformations.make_program import make_program


class Cost(NamedTuple):
    """The cost of a program before any fusion by a compiler.

    Unless it is ``exact``, a loop of unknown length counts as one iteration and a branch as its most expensive case.
    """

    flops: int = 0
    bytes: int = 0
    operations: Mapping[str, int] = pmap()
    exact: bool = True

    def __str__(self) -> str:
        most = sorted(self.operations.items(), key=lambda item: (-item[1], item[0]))
        about = "" if self.exact else "about "
        return f"{about}{self.flops} flops, {self.bytes} bytes; " + ", ".join([f"{n} {name}" for name, n in most])


def _sum(a: Cost, b: Cost) -> Cost:
    counts: PMap[str, int] = pmap(a.operations).update_with(lambda m, n: m + n, b.operations)
    return Cost(a.flops + b.flops, a.bytes + b.bytes, counts, a.exact and b.exact)


def _most_expensive(a: Cost, b: Cost) -> Cost:
    return (a if (a.flops, a.bytes) >= (b.flops, b.bytes) else b)._replace(exact=a == b and a.exact)


def _times(a: Cost, n: int | None) -> Cost:
    if n is None:
        return a._replace(exact=False)
    return Cost(n * a.flops, n * a.bytes, pmap({name: n * m for name, m in a.operations.items()}), a.exact)


def cost_of(op: Any, *types: Any) -> Cost:
    """The cost of one operation on operands of these types."""
    results = op.as_results(result_type(op, types))
    return Cost(flops_of(op, types, results), sum([t.nbytes for t in (*types, *results)]), pmap({op.name: 1}))


costs = handler(otherwise=cost_of, over=is_pure, moves=tally(Cost(), _sum, _most_expensive, _times))
"""Tallies the cost of all pure operations: ``handle(costs, Cost())(f)(x) == (cost, f(x))``."""


def count(f: Callable[..., Any]) -> Callable[..., Cost]:
    """``count(f)(*args)`` is the cost of ``f`` on arguments of these types; nothing is executed.

    A contraction costs two FLOPs per multiplication, an elementwise operation one per element, data movement none.
    Loops of known length count every iteration.

    >>> from handlax import numpy
    >>> print(count(lambda x: numpy.sin(x) @ x)(numpy.ones(3)))
    9 flops, 52 bytes; 1 dot_general, 1 sin
    """
    need_function("count", f)

    @wraps(f)
    @unnamed_boundary
    def counted(*args: Any, **kwargs: Any) -> Cost:
        costs_of_f: list[Cost] = []

        def traced(*args: Any, **kwargs: Any) -> Any:
            cost, y = handle(costs, Cost())(f)(*args, **kwargs)
            costs_of_f.append(cost)
            return y

        make_program(traced)(*args, **kwargs)
        return costs_of_f[0]

    return counted


def measure(f: Callable[..., Any]) -> Callable[..., Any]:
    """``measure(f)(*args)`` gives ``({"flops": n, "bytes": m}, f(*args))``, summed on the device during execution.

    The numbers are int64 arrays. Only branches taken and iterations executed count. Under a ``vmap`` outside, work that
    lanes share counts in each lane.

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
        return handle(handler(otherwise=add_cost, over=is_pure), start)(f)(*args, **kwargs)

    return measured
