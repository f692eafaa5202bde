"""What a program costs: operations in floating point, bytes that are read and written, and how often each is performed.

    count(f)(x)        read off the program, which is not run
    measure(f)(x)      added up while it runs: exact in loops of unknown length and in branches too
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyrsistent import PMap, pmap

from ...effects.arithmetic import add
from ...effects.arrays import lift, perform, scalar
from ...effects.dtypes import int64
from ...effects.errors import need_function
from ...effects.operations import is_pure, result_type
from ...effects.wrapping import wraps
from ..costs import flops as flops_of
from ..handle import handle
from ..handler import handler
from ..movements import tally
from ..staging import make_program


class Cost(NamedTuple):
    """The cost of a program, without what a compiler may save by fusing.

    Unless it is ``exact``, a loop of unknown length counts once and of a branch the dearest counts.
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


def _dearest(a: Cost, b: Cost) -> Cost:
    return (a if (a.flops, a.bytes) >= (b.flops, b.bytes) else b)._replace(exact=a == b and a.exact)


def _times(a: Cost, n: int | None) -> Cost:
    if n is None:
        return a._replace(exact=False)
    return Cost(n * a.flops, n * a.bytes, pmap({name: n * m for name, m in a.operations.items()}), a.exact)


def cost_of(op: Any, *types: Any) -> Cost:
    """The cost of one operation on operands of these types."""
    made = result_type(op, types)
    results = made if op.multiple else (made,)
    return Cost(flops_of(op, types, results), sum([t.nbytes for t in (*types, *results)]), pmap({op.name: 1}))


costs = handler(otherwise=cost_of, over=is_pure, moves=tally(Cost(), _sum, _dearest, _times))
"""Tallies what is performed: ``handle(costs, Cost())(f)(x) == (cost, f(x))``."""


def count(f: Callable[..., Any]) -> Callable[..., Cost]:
    """``count(f)(*args)`` is the cost of ``f`` on arguments of these types; nothing is run.

    Contractions cost two for each multiplication, what goes over elements one for each, what only moves them nothing.
    Loops of known length count every run.

    >>> from handlax import numpy
    >>> print(count(lambda x: numpy.sin(x) @ x)(numpy.ones(3)))
    9 flops, 52 bytes; 1 dot_general, 1 sin
    """
    need_function("count", f)

    @wraps(f)
    def counted(*args: Any, **kwargs: Any) -> Cost:
        found: list[Cost] = []

        def traced(*args: Any, **kwargs: Any) -> Any:
            cost, y = handle(costs, Cost())(f)(*args, **kwargs)
            found.append(cost)
            return y

        make_program(traced)(*args, **kwargs)
        return found[0]

    return counted


def measure(f: Callable[..., Any]) -> Callable[..., Any]:
    """``measure(f)(*args)`` gives ``({"flops": n, "bytes": m}, f(*args))``, added up on the device while it runs.

    The numbers are int64 arrays. Branches count as they are taken, loops as often as they run. What a ``vmap`` outside
    shares among lanes counts for each.

    >>> from handlax import lax
    >>> cost, y = measure(lambda x: lax.while_loop(lambda c: c < 100.0, lambda c: c * 2.0, x))(1.0)
    >>> int(cost["flops"])        # seven products, eight comparisons
    15
    """
    need_function("measure", f)

    def added(total: Any, op: Any, *operands: Any) -> Any:
        cost = cost_of(op, *[x.type for x in operands])
        grown = {name: add(lift(total[name]), scalar(getattr(cost, name), int64)) for name in total}
        return grown, perform(op, *operands)

    @wraps(f)
    def measured(*args: Any, **kwargs: Any) -> Any:
        start = {"flops": scalar(0, int64), "bytes": scalar(0, int64)}
        return handle(handler(otherwise=added, over=is_pure), start)(f)(*args, **kwargs)

    return measured
