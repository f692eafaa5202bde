"""Barriers for rematerialisation: an adjoint recomputes a residual's consequences only when a cotangent needs them.

    delayed(p, n)(*residuals, *cts) == p(*residuals, *cts)

The first ``n`` inputs of ``p`` are residuals. Equations on residuals alone are the recomputation. Each is placed
directly before the first equation on cotangents that needs it, and its residuals first pass an optimization barrier
tied to a cotangent that is available there. So the compiler can neither merge the recomputation with the forward pass
nor schedule it earlier: the parts of the recomputation are in memory one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.control.checkpoint import OptimizationBarrier
from ...effects.core.named_axes import is_root
from ...effects.programs.program import Builder, Program
from ...effects.types.extent import estimate


def delayed(program: Program, residuals: int) -> Program:
    """The adjoint program with its recomputation behind barriers."""
    return _Delay(program, residuals).program()


class _Delay:
    """Rewrites an adjoint: each recomputation is placed before the first equation on cotangents that needs it."""

    def __init__(self, program: Program, residuals: int):
        self.old = program
        self.residuals = residuals
        self.guarded = False  # whether there is a barrier
        self.types = program.value_types()
        self.new = Builder()
        self.numbers: dict[int, int] = {}  # variable -> variable of the new program
        self.makers: dict[int, int] = {}  # variable -> the equation that defines it
        self.results: list[range] = []  # of every equation
        self.early: list[bool] = [i < residuals for i in range(len(program.in_types))]  # depends on residuals alone
        self.waiting = set(range(residuals))  # residuals that have passed no barrier

    def program(self) -> Program:
        """The rewritten adjoint program."""
        old, new = self.old, self.new
        for i, t in enumerate(old.in_types):
            self.numbers[i] = new.input(t)
        for i, (op, args, results, _) in enumerate(old.steps()):
            self.results.append(results)
            early = not is_root(op) and all(n < 0 or self.early[n] for n in args)
            for n in results:
                self.makers[n] = i
                self.early.append(early)
            if not early:
                self.supply(args)
                self.write(i)
        self.supply(old.outs)
        return new.freeze([self.number(n) for n in old.outs], old.name)

    def supply(self, args: Sequence[int]) -> None:
        """Append the recomputation that these operands still need, after a barrier for its residuals."""
        needed, waiting = self.missing(args)
        if needed and waiting:
            self.guard([*waiting, *self.cotangent(args)])
            self.waiting.difference_update(waiting)
        for i in needed:
            self.write(i)

    def cotangent(self, args: Sequence[int]) -> list[int]:
        """The cotangent that the barrier is tied to: first the smallest input, later the smallest such operand."""
        later = [n for n in args if n >= 0 and not self.early[n]]
        candidates = later if self.guarded else range(self.residuals, len(self.old.in_types))
        self.guarded = True
        return sorted(candidates, key=lambda n: estimate(self.types[n].nbytes))[:1]

    def missing(self, args: Sequence[int]) -> tuple[list[int], list[int]]:
        """The equations, in order, that these operands still need, and their residual operands without a barrier."""
        equations: set[int] = set()
        residuals: set[int] = set()
        stack = [(n, False) for n in args]
        while stack:
            n, inside = stack.pop()
            if n in self.waiting and inside:
                residuals.add(n)
            elif n not in self.numbers and n >= 0 and self.makers[n] not in equations:
                i = self.makers[n]
                equations.add(i)
                stack += [(m, True) for m in self.old.args[i]]
        return sorted(equations), sorted(residuals)

    def guard(self, numbers: Sequence[int]) -> None:
        """Append a barrier on these variables; from now on its results are used instead of them."""
        types = tuple([self.types[n] for n in numbers])
        barrier: Any = OptimizationBarrier()
        first = self.new.append(barrier, tuple([self.numbers[n] for n in numbers]), types, self.old.sites[0])
        self.numbers.update({n: first + k for k, n in enumerate(numbers)})

    def write(self, i: int) -> None:
        """Append equation ``i`` to the new program."""
        old = self.old
        operands = tuple([self.number(n) for n in old.args[i]])
        first = self.new.append(old.ops[i], operands, old.types[i], old.sites[i])
        self.numbers.update(zip(self.results[i], range(first, self.new.count)))

    def number(self, n: int) -> Any:
        """The number in the new program of variable ``n`` of the old one."""
        return self.new.const(self.old.consts[-1 - n]) if n < 0 else self.numbers[n]
