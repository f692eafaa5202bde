"""Record: everything performed becomes an equation of a program (omnistaging)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects.arrays import Box
from ..effects.escape import check_foreign
from ..effects.operations import Operation, result_type
from ..effects.programs import Builder, Program
from ..effects.sources import NOWHERE, Site, user_site, with_calls
from ..effects.stack import STACK, Run, installed
from ..effects.types import ArrayType
from .straight import recorded


class RecordBox(Box):
    """A value of the program being recorded, by its number. Made by ``box``."""

    __slots__ = ("number",)

    run: Record
    number: int

    @property
    def made_at(self) -> Site:
        return self.run.made_at(self.number)


def box(type: ArrayType, run: Record, number: int) -> RecordBox:
    """A value of a run's program: one for every equation, so it goes without a slower ``__init__``."""
    new = RecordBox()
    new.type = type
    new.run = run
    new.number = number
    return new


class Record(Run):
    """Answers everything. Values that come from outside become constants of the program."""

    __slots__ = ("builder",)

    def __init__(self, outer: Run, label: str, site: tuple[Any, int] | None = None):
        super().__init__(outer, label, site)
        self.builder = Builder()

    @property
    def whole(self) -> bool:
        return type(self) is Record  # a tape answers for its own boxes alone

    def input(self, type: ArrayType) -> RecordBox:
        return box(type, self, self.builder.input(type))

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        # the two commonest arities by hand: this is the hottest path of all
        if len(operands) == 2:
            x, y = operands
            numbers: tuple[int, ...] = (
                x.number if x.run is self else self.number(x), y.number if y.run is self else self.number(y)
            )  # fmt: skip
            types: tuple[ArrayType, ...] = (x.type, y.type)
        elif len(operands) == 1:
            (x,) = operands
            numbers = (x.number if x.run is self else self.number(x),)
            types = (x.type,)
        else:
            numbers = tuple([x.number if x.run is self else self.number(x) for x in operands])
            types = tuple([x.type for x in operands])
        memo = op.memo
        made = (memo.get(types) or result_type(op, types)) if memo is not None else op.result_type(*types)
        builder = self.builder
        builder.ops.append(op)
        builder.args.append(numbers)
        builder.types.append(made)
        code, offset = self.cell.site or user_site(2)
        builder.sites.codes.append(code)
        builder.sites.offsets.append(offset)
        number = builder.count
        if not op.multiple:
            builder.count = number + 1
            return box(made, self, number)
        if op.bodied and op.effects:
            builder.sites.codes[-1] = with_calls(code)
        builder.count = number + len(made)
        return tuple([box(t, self, number + i) for i, t in enumerate(made)])

    def take(self, program: Program, operands: Sequence[Any]) -> tuple[Any, ...]:
        return recorder_of(program)(self, *operands)

    def splice(self, program: Program, operands: Sequence[Any]) -> tuple[Any, ...] | None:
        """Take over the equations of a pure program, renumbered: what would be recorded for operands of its types."""
        if not self.whole or program.effects or program.in_types != tuple([x.type for x in operands]):
            return None
        builder = self.builder
        taken = [self.number(x) for x in operands]
        consts = [self.number(const) for const in program.consts]
        count, shift = len(taken), builder.count - len(taken)

        def renumber(numbers: Sequence[int]) -> tuple[int, ...]:
            return tuple([n + shift if n >= count else taken[n] if n >= 0 else consts[-1 - n] for n in numbers])

        types = program.value_types()
        builder.ops += program.ops
        builder.args += map(renumber, program.args)
        builder.types += program.types
        for site in program.sites.through(self.seen):
            builder.sites.append(site)
        builder.count += len(types) - len(program.consts) - count
        known = [*operands, *reversed(program.consts)]
        return tuple([box(types[n], self, n + shift) if n >= count else known[n] for n in program.outs])

    def number(self, x: Any) -> int:
        """The number of any value here; one from outside becomes a constant."""
        run = x.run
        if run is self:
            return x.number
        if run is not None and (run is not self.outer or run.ended):  # the commonest by hand: what a tape captures
            check_foreign(x, self.outer)
        return self.builder.const(x)

    def made_at(self, number: int) -> Site:
        builder = self.builder
        at = len(builder.in_types)
        if number < at:
            return self.installed_at
        for op, made, site in zip(builder.ops, builder.types, builder.sites):
            at += len(made) if op.multiple else 1
            if number < at:
                return Site(*site)
        return NOWHERE

    def freeze(self, outs: Sequence[Any], name: str = "program") -> Program:
        made = self.builder.freeze([self.number(x) for x in outs], name)
        made._cache["out_types"] = tuple([x.type for x in outs])  # which it would have to count through all values for
        return made


def recorder_of(program: Program) -> Callable[..., tuple[Any, ...]]:
    """The function by which a run that records takes a formula over."""
    found = program._cache.get("recorder")
    if found is None:
        found = program._cache["recorder"] = recorded(program, RecordBox, user_site)
    return found


def record(
    f: Callable[..., Sequence[Any]], in_types: Sequence[ArrayType], name: str = "program", label: str = "make_program"
) -> Program:
    """The program of ``f``, which takes and gives flat arrays, recorded over the stack in force."""
    run = Record(STACK.get(), label, user_site(2))
    with installed(run):
        return run.freeze(f(*[run.input(t) for t in in_types]), name)
