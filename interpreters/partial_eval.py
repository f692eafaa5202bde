"""Partial evaluation: what depends on unknown values is recorded, the rest is performed outside.

    program(known, unknown) = rest(residuals, unknown)  where  results, residuals = first(known)

A tape is a record that answers by ownership; its residuals are what it captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..effects import config
from ..effects.axes import Axis
from ..effects.caches import Cache
from ..effects.operations import Operation
from ..effects.policies import Policy, Recompute, plan_of, refusal
from ..effects.programs import Builder, Program, numbered_types
from ..effects.shapes import BroadcastInDim
from .formulas import stretch
from .record import Record, recorder_of
from .simplify import dead_code_elimination, is_root
from .splitting import Halves, Parts, split
from .straight import parted

_PROGRAMS = Cache("partial_eval_program")
_OPERATIONS = Cache("split_operation")


class Tape(Record):
    """Records the operations that have one of its boxes as operand; what it captures are the residuals."""

    __slots__ = ()

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if x.run is self:
                return self._split(op, operands) if op.bodied else Record.answer(self, op, operands)
        return self.outer.answer(op, operands)

    def take(self, program: Program, operands: Sequence[Any]) -> tuple[Any, ...]:
        unknown = tuple([x.run is self for x in operands])
        if True not in unknown:
            return self.outer.take(program, operands)
        run = program._cache.get(unknown)
        if run is None:
            splitter = Splitter(program, unknown, None, repeats=False)  # all that a tape holds depends on its inputs
            known, rest, residuals, later, *_ = splitter.split((False,) * len(program.outs), False)
            run = program._cache[unknown] = parted(
                known, recorder_of(rest), stretch(rest, len(residuals)), unknown, residuals, later
            )
        return run(self, *operands)

    def _split(self, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """An operation with bodies and unknown operands: its known part is performed outside, the rest is recorded."""
        parts = split_operation(op, [x.run is self for x in operands])
        values = list(operands)
        for known, sources in parts.known:
            values += self.outer.answer(known, tuple([values[n] for n in sources]))
        if parts.rest is not None and (refused := refusal(parts.rest)) is not None:
            raise refused.error()
        made = () if parts.rest is None else Record.answer(self, parts.rest, tuple([values[n] for n in parts.sources]))
        return tuple([made[later] if first is None else values[first] for first, later in parts.results])


class Split(NamedTuple):
    """A program in two parts.

    ``known``: known inputs to known results, then the other residuals that it computes. ``rest``: residuals, then
    unknown inputs, to unknown results. ``residuals``: for each, (True, i) where it is known input ``i``, else
    (False, j) for result ``j`` of ``known``. ``unknown``: for each result of the program, whether ``rest`` gives it.
    """

    known: Program
    rest: Program
    residuals: tuple[tuple[bool, int], ...]
    unknown: tuple[bool, ...]


def partial_eval_program(
    program: Program,
    unknown: Sequence[bool],
    *,
    instantiate: Sequence[bool] | None = None,
    policy: Policy | None = None,
) -> Split:
    """Split a program by which inputs are unknown.

    Effects stay in order: one after an unknown one of its kind is unknown.

    Args:
        instantiate: results that ``rest`` shall give though they are known.
        policy: says of a known result whether it may be a residual (``effects.policies``); where not, ``rest`` computes
            it again. Results of effects always may.
    """
    return Split(*halve(program, unknown, instantiate, policy, False)[:4])


def halve(
    program: Program, unknown: Sequence[bool], forced: Sequence[bool] | None, policy: Policy | None, again: bool
) -> Halves:
    """As ``partial_eval_program``; with ``again`` the rest gives every result, known ones too."""
    wanted = (False,) * len(program.outs) if forced is None else tuple(forced)
    key = (program, tuple(unknown), wanted, policy, again, config.current())
    return _PROGRAMS.get(key, lambda: _halve(program, unknown, wanted, policy, again))


def _halve(
    program: Program, unknown: Sequence[bool], forced: Sequence[bool], policy: Policy | None, again: bool
) -> Halves:
    return Splitter(program, unknown, policy).split(forced, again)


def split_operation(op: Any, unknown: Sequence[bool], policy: Policy | None = None) -> Parts:
    """An operation with bodies in two parts, by which operands are unknown.

    One that remembers what is made of it is not compared with others: its hash would take as long as the half of this.
    """
    key = (tuple(unknown), policy, config.current())
    if op.memo is None:
        return _OPERATIONS.get((op, *key), lambda: split(op, unknown, policy, halve))
    parts = op.memo.get(key)
    if parts is None:
        parts = op.memo[key] = split(op, unknown, policy, _halve)
    return parts


def effect_kinds(op: Operation) -> set[Any]:
    """The kinds of the effects that an operation, or its bodies, perform."""
    return {type(effect) for effect in op.effects if not isinstance(effect, Axis)}


class Splitter:
    """Walks a program once; ``place[n]`` is where value ``n`` lives: (unknown?, number in that part)."""

    def __init__(self, program: Program, unknown: Sequence[bool], policy: Policy | None, repeats: bool = True):
        self.program = program
        self.marks = unknown
        self.repeats = repeats  # whether the rest computes known broadcasts again
        self.plan = None if policy is None else plan_of(policy, program, unknown)
        self.known = Builder()
        self.rest = Builder()
        self.place: list[tuple[bool, int]] = []
        self.made: dict[tuple[int, tuple[int, ...]], int] = {}  # what equal operations share, and operands -> result
        self.again: dict[int, int] = {}  # number -> its number in rest, for known values that are computed there too
        self.spread: dict[int, int] = {}  # number of a known broadcast -> its equation: cheaper to repeat than to keep
        self.residuals: dict[int, int] = {}  # number in known -> index of the residual
        self.effects: set[type] = set()  # kinds of effects that are unknown already
        self.taken: list[int] = []  # numbers in known of the residuals that the rest takes in the end

    def split(self, forced: Sequence[bool], again: bool) -> Halves:
        program = self.program
        for yes, t in zip(self.marks, program.in_types):
            self.place.append((yes, (self.rest if yes else self.known).input(t)))
        for i, (op, args, made, site) in enumerate(zip(program.ops, program.args, program.types, program.sites)):
            unknown = self.is_unknown(op, args)
            if op.bodied and unknown and not self.effects.isdisjoint(kinds := effect_kinds(op)):
                self.effects |= kinds
                self.append(True, op, self.numbers(True, args), made, site)
            elif op.bodied and (unknown or (op.prunes and not self.kept(i, op, args))):  # type: ignore[attr-defined]
                self.higher_order(i, op, args, site)
            elif unknown:
                if op.effectful:
                    self.effects.add(type(op))
                self.append(True, op, self.numbers(True, args), made, site)
            else:
                self.known_equation(i, op, args, made, site)
        return self.freeze([(False, n) if n < 0 else self.place[n] for n in program.outs], forced, again)

    def is_unknown(self, op: Operation, args: Sequence[int]) -> bool:
        if self.effects and not self.effects.isdisjoint(effect_kinds(op)):
            return True
        place = self.place
        for n in args:
            if n >= 0 and place[n][0]:
                return True
        return False

    def kept(self, index: int, op: Operation, args: Sequence[int]) -> bool:
        """Whether the rest may take the known results of an equation."""
        if self.plan is None or is_root(op):
            return True
        return not isinstance(self.plan.verdict(index, op, [*map(self.program.type_of, args)]), Recompute)

    def known_equation(self, index: int, op: Operation, args: tuple[int, ...], made: Any, site: Any) -> None:
        """Performed first, and once where it is computed twice; what the rest may not take from there, it repeats."""
        first = len(self.place)
        operands = self.numbers(False, args)
        memo = op.memo
        if memo is None or self.plan is not None or op.multiple or op.effectful:
            self.append(False, op, operands, made, site)
        else:
            key = (id(memo), operands)
            number = self.made.get(key)
            if number is None:
                number = self.made[key] = self.known.append(op, operands, made, site)
            self.place.append((False, number))
        if self.plan is None or self.kept(index, op, args):
            if self.repeats and isinstance(op, BroadcastInDim):
                self.spread[first] = index
        else:
            number = self.rest.append(op, self.numbers(True, args), made, site)
            for i in range(len(made) if op.multiple else 1):
                self.again[first + i] = number + i

    def numbers(self, unknown: bool, args: Sequence[int]) -> tuple[int, ...]:
        """Operands as numbers of one part; a residual is written as a number below all constants until ``freeze``."""
        if unknown:
            return tuple([self.number(True, n) for n in args])
        place = self.place
        return tuple([place[n][1] if n >= 0 else self.number(False, n) for n in args])

    def number(self, unknown: bool, n: int) -> int:
        if n < 0:
            return (self.rest if unknown else self.known).const(self.program.consts[-1 - n])
        yes, own = self.place[n]
        if yes or not unknown:
            return own
        if n in self.again:
            return self.again[n]
        index = self.spread.get(n)
        if index is None:
            return self.residual(own)
        program = self.program
        operands = self.numbers(True, program.args[index])
        self.again[n] = self.rest.append(program.ops[index], operands, program.types[index], program.sites[index])
        return self.again[n]

    def residual(self, own: int) -> int:
        return RESIDUAL - self.residuals.setdefault(own, len(self.residuals))

    def append(self, unknown: bool, op: Operation, args: tuple[int, ...], made: Any, site: Any) -> None:
        part = self.rest if unknown else self.known
        first = part.append(op, args, made, site)
        if not op.multiple:
            self.place.append((unknown, first))
        else:
            self.place.extend([(unknown, first + i) for i in range(len(made))])

    def higher_order(self, index: int, op: Any, args: tuple[int, ...], site: Any) -> None:
        """An operation with bodies: each part performs its own part of it."""
        inner = None if self.plan is None else self.plan.inner
        parts = split_operation(op, [n >= 0 and self.place[n][0] for n in args], inner)
        kept = self.kept(index, op, args)
        found: list[int] = []
        types = [*map(self.program.type_of, args)]
        count = len(args)

        for known, sources in parts.known:
            operands = tuple([self.number(False, args[n]) if n < count else found[n - count] for n in sources])
            made = known.result_type(*[types[n] for n in sources])
            at = self.known.append(known, operands, made, site)
            found += range(at, at + len(made))
            types += made
        at = 0
        if parts.rest is not None:
            sources = parts.sources
            operands = tuple(
                [self.number(True, args[n]) if n < count else self.residual(found[n - count]) for n in sources]
            )
            at = self.rest.append(parts.rest, operands, parts.rest.result_type(*[types[n] for n in sources]), site)
            self.effects |= effect_kinds(parts.rest)
        for first, later in parts.results:
            if first is not None and later is not None and not kept:
                self.again[len(self.place)] = at + later
            self.place.append((True, at + later) if first is None else (False, found[first - count]))

    def freeze(self, places: list[tuple[bool, int]], forced: Sequence[bool], again: bool) -> Halves:
        program = self.program
        unknown = tuple([yes or force for (yes, _), force in zip(places, forced)])
        rest_outs = [self.number(True, n) for n, yes in zip(program.outs, unknown) if yes or again]
        known_outs = [self.number(False, n) for n, yes in zip(program.outs, unknown) if not yes]
        rest, self.taken = self.frozen_rest(rest_outs)
        inputs = len(self.known.in_types)
        given = {own: i for i, own in enumerate(known_outs)}
        for own in self.taken:
            if own >= inputs and own not in given:
                given[own] = len(known_outs)
                known_outs.append(own)
        residuals = [(True, own) if own < inputs else (False, given[own]) for own in self.taken]
        known = self.known.freeze(known_outs, program.name)
        if self.plan is not None:
            known = dead_code_elimination(known, instantiate=True).program
        return Halves(known, rest, tuple(residuals), unknown)

    def frozen_rest(self, outs: Sequence[int]) -> tuple[Program, list[int]]:
        """The rest, and the numbers in the known part of the residuals that it takes."""
        rest, kept = self.rest, list(self.residuals)
        types = numbered_types(self.known)
        shift = len(kept)

        def renumber(n: int) -> int:
            return RESIDUAL - n if n <= RESIDUAL else n if n < 0 else n + shift

        rest.in_types = [types[own] for own in kept] + rest.in_types
        rest.args = [tuple(map(renumber, args)) for args in rest.args]
        program = rest.freeze(list(map(renumber, outs)), self.program.name)
        if self.plan is None:
            return program, kept
        unknown = len(program.in_types) - shift
        program, used = dead_code_elimination(program, instantiate=(False,) * shift + (True,) * unknown)
        return program, [own for own, yes in zip(kept, used) if yes]


# numbers from here downwards stand for residuals while a program is being split
RESIDUAL = -(1 << 40)
