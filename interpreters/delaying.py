"""Delaying: what an adjoint computes again, it begins to compute when the cotangent that needs it is there.

    delayed(p, n)(*residuals, *cts) == p(*residuals, *cts)

The first ``n`` inputs are residuals. Where a value is made of them that the adjoint needs next, they first pass a
barrier together with the cotangent it is needed with: no compiler can find it in the forward pass, nor make it sooner,
so that what is kept cuts the second computation into parts of which one is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.programs import Builder, Program
from ..effects.rematerialise import OptimizationBarrier
from .simplify import is_root


def delayed(program: Program, residuals: int) -> Program:
    """The adjoint program with its second computation behind barriers."""
    return _Delay(program, residuals).program()


class _Delay:
    """Writes the equations anew: those on cotangents in their order, each behind what it alone still needs."""

    def __init__(self, program: Program, residuals: int):
        self.old = program
        self.residuals = residuals
        self.guarded = False
        self.types = program.value_types()
        self.new = Builder()
        self.numbers: dict[int, int] = {}  # of values, in the new program
        self.makers: dict[int, int] = {}  # equation and first result of every value that is made
        self.firsts: list[int] = []
        self.early: list[bool] = [i < residuals for i in range(len(program.in_types))]  # made of residuals alone
        self.waiting = set(range(residuals))  # residuals that have passed no barrier

    def program(self) -> Program:
        old, new = self.old, self.new
        for i, t in enumerate(old.in_types):
            self.numbers[i] = new.input(t)
        for i, (op, args, made) in enumerate(zip(old.ops, old.args, old.types)):
            first = len(self.early)
            self.firsts.append(first)
            early = not is_root(op) and all(n < 0 or self.early[n] for n in args)
            for n in range(first, first + (len(made) if op.multiple else 1)):
                self.makers[n] = i
                self.early.append(early)
            if not early:
                self.supply(args)
                self.write(i)
        self.supply(old.outs)
        return new.freeze([self.number(n) for n in old.outs], old.name)

    def supply(self, args: Sequence[int]) -> None:
        """Write what is still to be computed again for these operands, behind a barrier with a cotangent among them."""
        needed, waiting = self.missing(args)
        if needed and waiting:
            self.guard([*waiting, *self.cotangent(args)])
            self.waiting.difference_update(waiting)
        for i in needed:
            self.write(i)

    def cotangent(self, args: Sequence[int]) -> list[int]:
        """What to wait for: at first an input, the smallest, which need not be kept for that; then an operand."""
        later = [n for n in args if n >= 0 and not self.early[n]]
        found = later if self.guarded else range(self.residuals, len(self.old.in_types))
        self.guarded = True
        return sorted(found, key=lambda n: self.types[n].nbytes)[:1]

    def missing(self, args: Sequence[int]) -> tuple[list[int], list[int]]:
        """The equations to be written before these operands are there, in order; and the residuals they begin from."""
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
        types = tuple([self.types[n] for n in numbers])
        barrier: Any = OptimizationBarrier()
        first = self.new.append(barrier, tuple([self.numbers[n] for n in numbers]), types, self.old.sites[0])
        self.numbers.update({n: first + k for k, n in enumerate(numbers)})

    def write(self, i: int) -> None:
        old = self.old
        op, made = old.ops[i], old.types[i]
        number = self.new.append(op, tuple([self.number(n) for n in old.args[i]]), made, old.sites[i])
        for k in range(len(made) if op.multiple else 1):
            self.numbers[self.firsts[i] + k] = number + k

    def number(self, n: int) -> Any:
        return self.new.const(self.old.consts[-1 - n]) if n < 0 else self.numbers[n]
