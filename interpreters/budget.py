"""memory_budget: keep what is dearest to compute again, as long as it fits.

    bytes of what the rest takes <= budget, and the operations that it computes again are few

For a price of memory, the cheapest choice is a least cut: of the values that the rest needs, and of those that it needs
to compute them, each is kept at the price of its bytes or computed at that of its operations. The price is raised until
the choice fits; what room is left then is filled with what saves most for its bytes.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

from ..effects import config
from ..effects.caches import Cache
from ..effects.errors import BadArgument
from ..effects.operations import Operation
from ..effects.policies import RECOMPUTE, SAVEABLE, OutOfBudget, Policy, Verdict, nothing_saveable
from ..effects.programs import Program
from ..effects.types import ArrayType
from .costs import equation_flops, program_flops
from .cuts import INFINITE, Network
from .partial_eval import Splitter
from .simplify import is_root

_PLANS = Cache("memory plans")
_FINEST, _COARSEST = -40, 80  # logarithms of the price of a byte in operations
_STEPS = 8  # prices between one power of two and the next


@dataclasses.dataclass(frozen=True)
class Kept:
    """The plan that keeps the results of these equations."""

    saved: frozenset[int]

    @property
    def inner(self) -> Policy:
        return nothing_saveable

    def plan(self, program: Program, unknown: Sequence[bool]) -> Kept:
        return self

    def __call__(self, op: Operation, *types: ArrayType, **fields: Any) -> bool:
        return False

    def verdict(self, index: int, op: Operation, types: Sequence[ArrayType]) -> Verdict:
        return SAVEABLE if index in self.saved else RECOMPUTE


@dataclasses.dataclass(frozen=True)
class BudgetPlan:
    """What a budget keeps of one program.

    ``bytes``: of all that the rest takes, operands included; ``minimum``: the least that they can be. ``recomputed``:
    the operations that the rest repeats; ``flops``: those of the whole program. ``saved``: the numbers of the equations
    whose results are kept.
    """

    budget: int
    minimum: int
    bytes: int
    recomputed: int
    flops: int
    saved: frozenset[int]

    @property
    def inner(self) -> Policy:
        return nothing_saveable

    def verdict(self, index: int, op: Operation, types: Sequence[ArrayType]) -> Verdict:
        return SAVEABLE if index in self.saved else RECOMPUTE


@dataclasses.dataclass(frozen=True)
class MemoryBudget:
    """A policy that sees a whole body, and keeps at most so many bytes of it."""

    bytes: int

    def __call__(self, op: Operation, *types: ArrayType, **fields: Any) -> bool:
        return False  # asked about one equation it cannot know the others

    def plan(self, program: Program, unknown: Sequence[bool]) -> BudgetPlan:
        """Which values of a program to keep, where these inputs are unknown; the fewest bytes where nothing fits."""
        key = (program, unknown, self.bytes, config.current())
        return _PLANS.get(key, lambda: _plan(program, unknown, self.bytes))

    def settled(self, program: Program, unknown: tuple[bool, ...]) -> Policy:
        """Of the rest no more is kept than it takes, which must have fitted."""
        minimum = self.plan(program, unknown).minimum
        return nothing_saveable if minimum <= self.bytes else OutOfBudget(program.name, minimum, self.bytes)

    def __repr__(self) -> str:
        return f"memory_budget({self.bytes})"


def memory_budget(bytes: int) -> MemoryBudget:
    """A policy of ``checkpoint``: keep at most so many bytes, and compute again what costs the fewest operations.

        sum of the bytes of saved_residuals(checkpoint(f, policy=memory_budget(n)), x) <= n

    What the reverse mode takes of the operands counts, and what effects gave. Operations with bodies are kept or
    computed again as a whole.

    Raises: BadArgument: ``bytes`` is no integer, or negative; where the function is differentiated: fewer than must be
    kept, with the least that can be.

    Source: Herrmann et al. 2019, Optimal checkpointing for heterogeneous chains; least cuts as in Jain et al. 2020,
    Checkmate.

    >>> memory_budget(4096)
    memory_budget(4096)
    """
    try:
        count = operator.index(bytes)
    except TypeError:
        raise BadArgument(f"memory_budget: the bytes must be an integer, got {bytes!r}.") from None
    if count < 0:
        raise BadArgument(f"memory_budget: the bytes must not be negative, got {count}.")
    return MemoryBudget(count)


def _plan(program: Program, unknown: Sequence[bool], budget: int) -> BudgetPlan:
    choices = Choices(program, unknown)
    least = choices.cheapest(1, 0)
    minimum = choices.bytes(least)
    saved = least if minimum > budget else choices.filled(choices.within(budget, least), budget)
    return BudgetPlan(
        budget, minimum, choices.bytes(saved), choices.recomputed(saved), program_flops(program), saved
    )


class Choices:
    """The known equations that the rest may need, and what it costs to keep or to repeat them."""

    def __init__(self, program: Program, unknown: Sequence[bool]):
        self.program = program
        self.unknown = unknown
        self.flops = equation_flops(program)
        self.types = program.value_types()
        self.makers: list[int | None] = [None] * len(program.in_types)
        for i, (op, made) in enumerate(zip(program.ops, program.types)):
            self.makers += [i] * (len(made) if op.multiple else 1)
        everything = frozenset(range(len(program.ops)))
        splitter = self.split(everything)
        places = {own: n for n, (yes, own) in enumerate(splitter.place) if not yes}
        self.known = set(places.values())
        self.targets = [places[own] for own in splitter.taken if own in places]

    def split(self, saved: frozenset[int]) -> Splitter:
        splitter = Splitter(self.program, self.unknown, Kept(saved))
        splitter.split((False,) * len(self.program.outs), False)
        return splitter

    def bytes(self, saved: frozenset[int]) -> int:
        """What the rest takes, exactly: the program is split so."""
        splitter = self.split(saved)
        types = splitter.known.in_types + [
            t for op, made in zip(splitter.known.ops, splitter.known.types) for t in (made if op.multiple else (made,))
        ]
        return sum([types[own].nbytes for own in splitter.taken])

    def operands(self, index: int) -> list[int]:
        return [n for n in self.program.args[index] if n >= 0 and n in self.known]

    def repeatable(self, n: int) -> int | None:
        """The equation that makes a value, where the rest may repeat it."""
        index = self.makers[n]
        return None if index is None or is_root(self.program.ops[index]) else index

    def needed(self, saved: frozenset[int]) -> tuple[set[int], set[int]]:
        """The values that the rest takes, and the equations that it repeats."""
        taken: set[int] = set()
        repeated: set[int] = set()
        waiting = list(self.targets)
        while waiting:
            n = waiting.pop()
            index = self.repeatable(n)
            if index is None or index in saved:
                taken.add(n)
            elif index not in repeated:
                repeated.add(index)
                waiting += self.operands(index)
        return taken, repeated

    def recomputed(self, saved: frozenset[int]) -> int:
        return sum([self.flops[i] for i in self.needed(saved)[1]])

    def cheapest(self, byte: int, flop: int) -> frozenset[int]:
        """The equations to keep at these prices of a byte and of an operation: those on the sink's side of a cut."""
        _, repeated = self.needed(frozenset())
        values = {n for i in repeated for n in self.operands(i)} | set(self.targets)
        nodes = {key: k + 2 for k, key in enumerate([*[("value", n) for n in values], *[("op", i) for i in repeated]])}
        network = Network(len(nodes) + 2)
        for n in values:
            index = self.repeatable(n)
            network.connect(nodes["value", n], 1 if index is None else nodes["op", index], byte * self.types[n].nbytes)
        for n in self.targets:
            network.connect(0, nodes["value", n], INFINITE)
        for i in repeated:
            network.connect(nodes["op", i], 1, flop * self.flops[i])
            for n in self.operands(i):
                network.connect(nodes["op", i], nodes["value", n], INFINITE)
        source = network.least_cut(0, 1)
        return frozenset([i for i in repeated if not source[nodes["op", i]]])

    def within(self, budget: int, least: frozenset[int]) -> frozenset[int]:
        """The choice at the lowest price of a byte at which it fits."""
        low, high = _FINEST * _STEPS, _COARSEST * _STEPS
        found = least
        while low < high:
            middle = (low + high) // 2
            power, step = divmod(middle, _STEPS)
            byte, flop = (_STEPS + step) << max(power, 0), _STEPS << max(-power, 0)
            saved = self.cheapest(byte, flop)
            if self.bytes(saved) <= budget:
                found, high = saved, middle
            else:
                low = middle + 1
        return found

    def filled(self, saved: frozenset[int], budget: int) -> frozenset[int]:
        """With what still fits, the dearest for its bytes first."""
        _, repeated = self.needed(saved)
        sizes = dict.fromkeys(repeated, 0)
        for n, t in enumerate(self.types[: len(self.makers)]):
            if (index := self.makers[n]) in sizes:
                sizes[index] += t.nbytes
        cost = self.recomputed(saved)
        for i in sorted(repeated, key=lambda i: (-self.flops[i] / max(sizes[i], 1), i)):
            more = saved | {i}
            size = sum([self.types[n].nbytes for n in self.needed(more)[0]])
            if size <= budget and self.recomputed(more) < cost and self.bytes(more) <= budget:
                saved, cost = more, self.recomputed(more)
        return saved
