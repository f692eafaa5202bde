"""The cost of a program as a table: what one device computes, reads, writes, and sends along each mesh axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyrsistent import PMap, pmap

from ....effects.base.errors import BadArgument, need_count
from ....effects.base.later_layers import displayed
from ....effects.core.named_axes import SizedAxis
from ...analysis.peak_memory import MemoryCost

UNKNOWN_LENGTH = "a loop of unknown length counts as one iteration, lanes of unknown lengths as their mean"
DEAREST_BRANCH = "of branches each entry is the largest of any"


class OperationCost(NamedTuple):
    """The total cost of all operations of one class: their number, floating-point operations, and bytes read and
    written.
    """

    number: int = 0
    flops: int = 0
    bytes: int = 0


class LinkCost(NamedTuple):
    """The total that one device sends along one mesh axis: the number of collectives, messages, and bytes."""

    number: int = 0
    messages: int = 0
    bytes: int = 0


class Seconds(NamedTuple):
    """Lower bounds of a program's time at given rates, for computation and for each mesh axis.

    Attributes:
        compute: the operations.
        links: for each axis, what is sent along it.
    """

    compute: float
    links: Mapping[Hashable, float]

    @property
    def overlapped(self) -> float:
        """The largest bound: the least time if everything overlaps."""
        return max([self.compute, *self.links.values()])

    @property
    def in_turn(self) -> float:
        """The sum of the bounds: the least time if nothing overlaps."""
        return sum([self.compute, *self.links.values()])


@displayed
class Costs(NamedTuple):
    """The cost of a program for one device.

    The body of a ``shard_map`` counts as one device executes it, and the rest as if unsharded, before any fusion by a
    compiler. Where the compiler divides arrays, ``costs`` counts the operations of its program for one device.

    Attributes:
        classes: by the mesh axes over which it is executed and the operation's name.
        sent: by mesh axis and the name of the collective.
        assumed: the assumptions that make the numbers bounds or estimates; empty if they are exact.
        scopes: by the names of the enclosing ``named_scope``s, outermost first.
        memory: what a device holds at once, by ``costs``; None in a tally, since it is no sum over operations.
    """

    classes: PMap[tuple[tuple[SizedAxis, ...], str], OperationCost] = pmap()
    sent: PMap[tuple[SizedAxis, str], LinkCost] = pmap()
    assumed: frozenset[str] = frozenset()
    scopes: PMap[tuple[str, ...], OperationCost] = pmap()
    memory: MemoryCost | None = None

    @property
    def flops(self) -> int:
        return sum([cost.flops for cost in self.classes.values()])

    @property
    def bytes(self) -> int:
        """The bytes that all operations read and write, without fusion."""
        return sum([cost.bytes for cost in self.classes.values()])

    @property
    def exact(self) -> bool:
        return not self.assumed

    @property
    def operations(self) -> Mapping[str, int]:
        """The number of operations of each class."""
        numbers: dict[str, int] = {}
        for (_, name), cost in sorted(self.classes.items(), key=str):
            numbers[name] = numbers.get(name, 0) + cost.number
        return numbers

    def by_scope(self, depth: int | None = None) -> Mapping[str, OperationCost]:
        """The cost of each named scope, by its name: ``"encoder/attention"``; ``""`` is outside of all scopes.

        What is performed in a scope within another one counts for the inner one alone, so that the costs add up to all
        there are. ``depth``: scopes within that many others count for these.

        Raises: NotAnInteger: the depth is none. BadArgument: it is negative.

        >>> from handlax import costs, named_scope, numpy
        >>> def f(x):
        ...     with named_scope("layer"), named_scope("norm"):
        ...         return numpy.sin(x) * x
        >>> costs(f)(numpy.ones(3)).by_scope()
        {'layer/norm': OperationCost(number=2, flops=6, bytes=60)}
        >>> [*costs(f)(numpy.ones(3)).by_scope(depth=1)]
        ['layer']
        """
        if depth is not None:
            depth = need_count("by_scope: depth", depth)
        total: dict[str, OperationCost] = {}
        for names, cost in sorted(self.scopes.items()):
            name = "/".join(names[:depth])
            total[name] = _each(_plus, total.get(name, OperationCost()), cost)
        return total

    @property
    def links(self) -> Mapping[Hashable, LinkCost]:
        """What is sent along each mesh axis, by its name."""
        by_axis: dict[Hashable, LinkCost] = {}
        for (axis, _), cost in sorted(self.sent.items(), key=str):
            by_axis[axis[0]] = _each(_plus, by_axis.get(axis[0], LinkCost()), cost)
        return by_axis

    def seconds(self, *, flops: float, links: Mapping[Hashable, float], latency: float = 0.0) -> Seconds:
        """A lower bound of the execution time at these rates.

        Args:
            flops: the operations of a device in a second.
            links: for each axis the bytes that a device sends along it in a second.
            latency: seconds that each message takes beside its bytes.
        Raises: BadArgument: something is sent along an axis without a rate.
        """
        for name in self.links:
            if name not in links:
                raise BadArgument(
                    f"seconds: links must have a rate for each of {list(self.links)}, got none for {name!r}."
                )
        times = {name: cost.bytes / links[name] + cost.messages * latency for name, cost in self.links.items()}
        return Seconds(self.flops / flops, times)

    def tables(self) -> Iterator[Sequence[Sequence[str]]]:
        """The costs as tables of text: of operations, by the axes of their mesh, of what is sent, and of named scopes.

        Each has a row of headings, and a last one of sums.
        """
        for axes in sorted({axes for axes, _ in self.classes}, key=lambda axes: (len(axes), str(axes))):
            rows = [(name, cost) for (at, name), cost in self.classes.items() if at == axes]
            rows.sort(key=lambda row: (-row[1].flops, -row[1].bytes, row[0]))
            yield _rows((self._where(axes), *OperationCost._fields), rows, OperationCost())
        if self.sent:
            links = sorted(self.sent.items(), key=lambda row: (str(row[0][0][0]), -row[1].bytes, row[0][1]))
            sent = [(f"{axis[0]}: {name}", cost) for (axis, name), cost in links]
            yield _rows(("sent along each axis", *LinkCost._fields), sent, LinkCost())
        if any(self.scopes):
            named = [(name or "outside of scopes", cost) for name, cost in self.by_scope().items()]
            yield _rows(("scopes", *OperationCost._fields), named, OperationCost())

    def __str__(self) -> str:
        return "\n\n".join([*map(_aligned, self.tables()), *sorted(self.assumed)])

    def __repr__(self) -> str:
        """The tables, for prompts."""
        return str(self) or "Costs()"

    def _where(self, axes: Sequence[SizedAxis]) -> str:
        """The heading of operations executed over these mesh axes."""
        if axes:
            return f"on each device of {', '.join([f'{name} {size}' for name, size in axes])}"
        return "outside of the mesh" if any([axes for axes, _ in self.classes]) else "operations"


def then(a: Costs, b: Costs) -> Costs:
    """The cost of two programs, one after the other."""
    return _combined(_plus, a, b, a.assumed | b.assumed)


def either(a: Costs, b: Costs) -> Costs:
    """An upper bound of the cost of one of two programs: the entry-wise maximum."""
    assumed = a.assumed | b.assumed | ({DEAREST_BRANCH} if a != b else frozenset())
    return _combined(max, a, b, assumed)


def repeated(a: Costs, n: int | None) -> Costs:
    """The cost of ``n`` executions; of one if ``n`` is not known."""
    if n is None:
        return a._replace(assumed=a.assumed | {UNKNOWN_LENGTH})
    return _combined(lambda x, _: n * x, a, a, a.assumed)


def _plus(x: int, y: int) -> int:
    return x + y


def _each(f: Callable[[int, int], int], a: Any, b: Any) -> Any:
    return type(a)(*map(f, a, b))


def _combined(f: Callable[[int, int], int], a: Costs, b: Costs, assumed: frozenset[str]) -> Costs:
    """Costs whose numbers are ``f`` of those of ``a`` and ``b``."""
    classes, sent = _merged(f, a.classes, b.classes), _merged(f, a.sent, b.sent)
    return Costs(classes, sent, assumed, _merged(f, a.scopes, b.scopes))


def _merged(f: Callable[[int, int], int], a: PMap[Any, Any], b: PMap[Any, Any]) -> PMap[Any, Any]:
    """The maps combined entry by entry; an entry of only one map is kept."""
    return a.update_with(lambda x, y: _each(f, x, y), b)


def _rows(head: Sequence[str], rows: Sequence[tuple[str, Any]], zero: Any) -> list[Sequence[str]]:
    """A row for each name with its numbers, below the headings, and one for their sum."""
    total = zero
    for _, cost in rows:
        total = _each(_plus, total, cost)
    return [head, *[(name, *[f"{n:,}" for n in cost]) for name, cost in (*rows, ("all", total))]]


def _aligned(table: Sequence[Sequence[str]]) -> str:
    """A table as lines of text: names to the left, numbers to the right."""
    first, *widths = [max(map(len, column)) for column in zip(*table)]
    cells = [[line[0].ljust(first), *[n.rjust(width) for n, width in zip(line[1:], widths)]] for line in table]
    return "\n".join(["  ".join(row) for row in cells])
