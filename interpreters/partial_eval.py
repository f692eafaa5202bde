"""Partial evaluation: what depends on unknown values is recorded, the rest is performed outside.

    program(known, unknown) = rest(residuals, unknown)  where  results, residuals = first(known)

A tape is a record that answers by ownership; its residuals are what it captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..effects import config
from ..effects.caches import Cache
from ..effects.control import Call
from ..effects.operations import Operation
from ..effects.programs import Builder, Program
from .record import Record

_PROGRAMS = Cache("partial_eval_program")


class Tape(Record):
    """Records the operations that have one of its boxes as operand; what it captures are the residuals."""

    __slots__ = ()

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if x.run is self:
                return self._split(op, operands) if type(op) is Call else Record.answer(self, op, operands)
        return self.outer.answer(op, operands)

    def _split(self, op: Call, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """A call with unknown operands: its known part is performed outside, the rest goes on the tape."""
        split = partial_eval_program(op.bodies[0], [x.run is self for x in operands])
        known = [x for x in operands if x.run is not self]
        unknown = [x for x in operands if x.run is self]
        found = list(self.outer.answer(Call((split.known,), op.label), tuple(known)) if split.known.outs else ())
        residuals = [known[n] if from_input else found[n] for from_input, n in split.residuals]
        later = Call((split.rest,), op.label)
        rest = iter(Record.answer(self, later, (*residuals, *unknown)) if split.rest.outs else ())
        results = iter(found)
        return tuple([next(rest) if yes else next(results) for yes in split.unknown])


class Split(NamedTuple):
    """A program in two parts.

    ``known``: known inputs to known results, then the residuals that it computes. ``rest``: residuals, then unknown
    inputs, to unknown results. ``residuals``: for each, (True, i) where it is known input ``i``, else (False, j) for
    result ``j`` of ``known``. ``unknown``: for each result of the program, whether ``rest`` gives it.
    """

    known: Program
    rest: Program
    residuals: tuple[tuple[bool, int], ...]
    unknown: tuple[bool, ...]


def partial_eval_program(program: Program, unknown: Sequence[bool]) -> Split:
    """Split a program by which inputs are unknown.

    Effects stay in order: one after an unknown one of its kind is unknown.
    """
    key = (program, tuple(unknown), config.current())
    return _PROGRAMS.get(key, lambda: _Splitter(program, unknown).split())


class _Splitter:
    """Walks a program once; ``place[n]`` is where value ``n`` lives: (unknown?, number in that part)."""

    def __init__(self, program: Program, unknown: Sequence[bool]):
        self.program = program
        self.marks = unknown
        self.known = Builder()
        self.rest = Builder()
        self.place: list[tuple[bool, int]] = []
        self.residuals: dict[int, int] = {}  # number in known -> index of the residual
        self.effects: set[type] = set()  # kinds of effects that are unknown already

    def split(self) -> Split:
        program = self.program
        for yes, t in zip(self.marks, program.in_types):
            self.place.append((yes, (self.rest if yes else self.known).input(t)))
        for op, args, made, site in zip(program.ops, program.args, program.types, program.sites):
            if not self.is_unknown(op, args):
                self.append(False, op, self.numbers(False, args), made, site)
            elif type(op) is Call:
                self.call(op, args, made, site)
            else:
                if op.effectful:
                    self.effects.add(type(op))
                self.append(True, op, self.numbers(True, args), made, site)
        places = [(False, n) if n < 0 else self.place[n] for n in program.outs]
        return self.freeze(places)

    def is_unknown(self, op: Operation, args: Sequence[int]) -> bool:
        return type(op) in self.effects or any(n >= 0 and self.place[n][0] for n in args)

    def numbers(self, unknown: bool, args: Sequence[int]) -> tuple[int, ...]:
        """Operands as numbers of one part; a residual is written as a number below all constants until ``freeze``."""
        return tuple([self.number(unknown, n) for n in args])

    def number(self, unknown: bool, n: int) -> int:
        if n < 0:
            return (self.rest if unknown else self.known).const(self.program.consts[-1 - n])
        yes, own = self.place[n]
        if yes or not unknown:
            return own
        return RESIDUAL - self.residuals.setdefault(own, len(self.residuals))

    def append(self, unknown: bool, op: Operation, args: tuple[int, ...], made: Any, site: Any) -> None:
        part = self.rest if unknown else self.known
        first = part.append(op, args, made, site)
        count = len(made) if op.multiple else 1
        self.place.extend([(unknown, first + i) for i in range(count)])

    def call(self, op: Call, args: tuple[int, ...], made: Any, site: Any) -> None:
        """A call that is unknown in part: both parts call their own half of the body."""
        marks = [n >= 0 and self.place[n][0] for n in args]
        split = partial_eval_program(op.bodies[0], marks)
        known_args = [n for n, yes in zip(args, marks) if not yes]
        first = Call((split.known,), op.label)
        at = self.known.append(first, self.numbers(False, known_args), split.known.out_types, site)
        residuals = []
        for from_input, n in split.residuals:
            if from_input:
                residuals.append(self.number(True, known_args[n]))
            else:
                residuals.append(RESIDUAL - self.residuals.setdefault(at + n, len(self.residuals)))
        unknown_args = [self.number(True, n) for n, yes in zip(args, marks) if yes]
        second = Call((split.rest,), op.label)
        rest_at = self.rest.append(second, (*residuals, *unknown_args), split.rest.out_types, site)
        for yes in split.unknown:
            self.place.append((yes, rest_at if yes else at))
            rest_at, at = rest_at + yes, at + (not yes)

    def freeze(self, places: list[tuple[bool, int]]) -> Split:
        unknown = tuple([yes for yes, _ in places])
        known_outs = [
            self.known.const(self.program.consts[-1 - n]) if n < 0 else own
            for n, (yes, own) in zip(self.program.outs, places)
            if not yes
        ]
        inputs = len(self.known.in_types)
        residuals = []
        for own in self.residuals:
            if own < inputs:
                residuals.append((True, own))
            else:
                residuals.append((False, len(known_outs)))
                known_outs.append(own)
        known = self.known.freeze(known_outs, self.program.name)
        types = known.value_types()
        shift = len(self.residuals)

        def renumber(n: int) -> int:
            return RESIDUAL - n if n <= RESIDUAL else n if n < 0 else n + shift

        rest = self.rest
        rest.in_types = [types[own] for own in self.residuals] + rest.in_types
        rest.args = [tuple(map(renumber, args)) for args in rest.args]
        outs = [renumber(own) for yes, own in places if yes]
        return Split(known, rest.freeze(outs, self.program.name), tuple(residuals), unknown)


# numbers from here downwards stand for residuals while a program is being split
RESIDUAL = -(1 << 40)
