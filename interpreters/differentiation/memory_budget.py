"""memory_budget: the checkpoint policy that saves at most so many bytes, and recomputes as few operations as it can.

    bytes that the rest takes <= budget, and the cost of the equations that it repeats is small

Lagrangian relaxation: for a price per byte and a price per operation, the cheapest choice is a minimum cut. Each value
that the rest needs, directly or to recompute another, is either saved at the price of its bytes or recomputed at the
price of its operations. Bisection finds the lowest price of a byte at which the choice fits the budget; a greedy pass
then saves, while it fits, the results of the equations that cost most per byte.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence

from ...effects.base import config
from ...effects.base.caches import Cache
from ...effects.base.errors import BadArgument, CannotCross
from ...effects.control.checkpoint_policies import (
    RECOMPUTE,
    SAVEABLE,
    OutOfBudget,
    Policy,
    Verdict,
    WholeBodyPolicy,
    nothing_saveable,
)
from ...effects.core.named_axes import is_root
from ...effects.core.operation import Operation
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...effects.types.sized import extents_in
from ..analysis.flops import equation_flops, program_flops
from ..analysis.min_cut import INFINITE, Network
from .partial_eval import Splitter

_PLANS = Cache("memory plans")
"""Which values are kept under a budget, by program, unknown inputs, bytes and settings."""
_LEAST, _GREATEST = -40, 80  # binary logarithms of the price of a byte in operations
_STEPS = 8  # prices between one power of two and the next


@dataclasses.dataclass(frozen=True)
class KeptResults(WholeBodyPolicy):
    """A checkpoint policy that saves the results of exactly these equations."""

    saved: frozenset[int]

    @property
    def inner(self) -> Policy:
        return nothing_saveable

    def plan(self, program: Program, unknown: tuple[bool, ...]) -> KeptResults:
        return self

    def verdict(self, index: int, op: Operation, types: Sequence[ArrayType]) -> Verdict:
        return SAVEABLE if index in self.saved else RECOMPUTE


@dataclasses.dataclass(frozen=True)
class BudgetPlan(KeptResults):
    """Which results of a program to save under a budget.

    ``saved``: the indices of their equations. ``bytes``: of all residuals that the rest takes, operands included;
    ``minimum``: the least that any choice has. ``recomputed``: the cost of the equations that the rest repeats;
    ``flops``: the cost of the program.
    """

    budget: int
    minimum: int
    bytes: int
    recomputed: int
    flops: int


@dataclasses.dataclass(frozen=True)
class MemoryBudget(WholeBodyPolicy):
    """A policy that plans an entire body at once, and saves at most ``bytes`` bytes of it."""

    bytes: int

    def plan(self, program: Program, unknown: tuple[bool, ...]) -> BudgetPlan:
        """The cached plan for a program with these unknown inputs; the smallest plan if none fits the budget."""
        key = (program, unknown, self.bytes, config.current())
        return _PLANS.get(key, lambda: _plan(program, unknown, self.bytes))

    def resolved(self, program: Program, unknown: tuple[bool, ...]) -> Policy:
        """The policy of the rest: no further residuals; an error if the residuals it takes do not fit the budget."""
        minimum = self.plan(program, unknown).minimum
        return nothing_saveable if minimum <= self.bytes else OutOfBudget(program.name, minimum, self.bytes)

    def __repr__(self) -> str:
        return f"memory_budget({self.bytes})"


def memory_budget(bytes: int) -> MemoryBudget:
    """A policy of ``checkpoint``: save at most ``bytes`` bytes, and recompute what costs the fewest operations.

        sum of the bytes of saved_residuals(checkpoint(f, policy=memory_budget(n)), x) <= n

    Operands that reverse mode uses, and results of effects, count too. Operations with bodies are saved or recomputed
    as units.

    Raises: BadArgument: ``bytes`` is no integer, or negative; where the function is differentiated: fewer bytes than
    must be saved, with the least number that suffices.

    Source: Herrmann et al. 2019, Optimal checkpointing for heterogeneous chains; Jain et al. 2020, Checkmate.

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
    """``MemoryBudget.plan``, uncached."""
    if extents_in(tuple([t.shape for t in program.value_types()])):
        raise CannotCross(
            "memory_budget: the bytes that a lane saves depend on its length, which differs from lane to lane.",
            hint="give the budget to all lanes together: hx.checkpoint(hx.vmap(f, ...), policy=memory_budget(bytes)).",
        )
    choices = SavingChoices(program, unknown)
    least = choices.cheapest(1, 0)
    minimum = choices.bytes(least)
    saved = least if minimum > budget else choices.filled(choices.within(budget, least), budget)
    return BudgetPlan(
        saved, budget, minimum, choices.bytes(saved), choices.recomputed(saved), program_flops(program)
    )


class SavingChoices:
    """The choices of which known results of a program to save, and their costs.

    ``flops``: the cost of each equation; ``makers``: the equation that defines each variable, None for inputs;
    ``known``: the known variables; ``targets``: those that the rest takes if all may be saved.
    """

    def __init__(self, program: Program, unknown: Sequence[bool]):
        self.program = program
        self.unknown = unknown
        self.flops = equation_flops(program)
        self.types = program.value_types()
        self.makers: list[int | None] = [None] * len(program.in_types)
        for i, (_, _, results, _) in enumerate(program.steps()):
            self.makers += [i] * len(results)
        everything = frozenset(range(len(program.ops)))
        splitter = self.split(everything)
        variables = {own: n for n, own in enumerate(splitter.in_known) if own is not None}
        self.known = set(variables.values())
        self.targets = [variables[own] for own in splitter.residual_numbers if own in variables]

    def split(self, saved: frozenset[int]) -> Splitter:
        """The program partitioned with the results of these equations saved."""
        splitter = Splitter(self.program, self.unknown, KeptResults(saved))
        splitter.split((False,) * len(self.program.outs), False)
        return splitter

    def bytes(self, saved: frozenset[int]) -> int:
        """The exact number of bytes of the residuals, found by partitioning the program."""
        splitter = self.split(saved)
        types = splitter.known.numbered_types()
        return sum([types[own].nbytes for own in splitter.residual_numbers])

    def operands(self, index: int) -> list[int]:
        """The known operands of an equation, without constants."""
        return [n for n in self.program.args[index] if n >= 0 and n in self.known]

    def repeatable(self, n: int) -> int | None:
        """The equation that defines a variable, if the rest may repeat it; None for inputs and results of effects."""
        index = self.makers[n]
        return None if index is None or is_root(self.program.ops[index]) else index

    def needed(self, saved: frozenset[int]) -> tuple[set[int], set[int]]:
        """The variables that the rest takes, and the equations that the rest repeats, if ``saved`` are saved."""
        residuals: set[int] = set()
        repeated: set[int] = set()
        waiting = list(self.targets)
        while waiting:
            n = waiting.pop()
            index = self.repeatable(n)
            if index is None or index in saved:
                residuals.add(n)
            elif index not in repeated:
                repeated.add(index)
                waiting += self.operands(index)
        return residuals, repeated

    def recomputed(self, saved: frozenset[int]) -> int:
        """The cost of the equations that the rest repeats."""
        return sum([self.flops[i] for i in self.needed(saved)[1]])

    def cheapest(self, byte: int, flop: int) -> frozenset[int]:
        """The equations to save that minimize bytes times ``byte`` plus operations times ``flop``, by a minimum cut.

        Each variable and each repeated equation is a node. A variable on the source's side is needed: its edge to the
        equation that defines it, or to the sink, is cut at the price of saving it, or else that equation is on the
        source's side too, its edge to the sink cut at the price of repeating it, and its operands are needed.
        """
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
        """The choice at the lowest price of a byte at which the residuals fit, by bisection; ``least`` if none fits."""
        low, high = _LEAST * _STEPS, _GREATEST * _STEPS
        best = least
        while low < high:
            middle = (low + high) // 2
            power, step = divmod(middle, _STEPS)
            byte, flop = (_STEPS + step) << max(power, 0), _STEPS << max(-power, 0)
            saved = self.cheapest(byte, flop)
            if self.bytes(saved) <= budget:
                best, high = saved, middle
            else:
                low = middle + 1
        return best

    def filled(self, saved: frozenset[int], budget: int) -> frozenset[int]:
        """``saved`` with more equations while they fit the budget, those of the highest cost per byte first."""
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
