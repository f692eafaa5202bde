"""Repeats: equal runs of equations that stand one after the other, as the blocks of a deep model do.

    with_boundaries(p)(*xs) == p(*xs)

XLA computes a chain of cheap values again in each kernel that reads one of them: each product, reduction, loop or
result of the program. In the gradient of a model of n equal blocks chains may reach through all blocks, so that kernels
grow with n, and compile time with its square. A boundary where one repeat hands its values over to the next ends the
chains: compile time is linear in n. A program whose chains are short, or computed once, stays whole
(``fusion.duplication``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ...effects.control.checkpoint import Boundary
from ...effects.core.columns import FLOPS, data_movement
from ...effects.core.operation import Operation
from ...effects.programs.program import Program, derived_once
from .fusion import duplication
from .liveness import last_uses
from .simplify import RetainedEquation, assemble

LEAST_SAVED = 100  # equations that compute in the repeats of one kind but the first, for boundaries to be put
LEAST_FOLLOWED = 20  # as many for those of other kinds, whose chains reach into the first
LEAST_DUPLICATION = 2.0  # how often the kernels of one kind compute each operation: from here on boundaries save time
MOST_TRIED = 8  # kinds for which that is counted
COUNTED = 512  # equations of a kind in which it is counted, or eight runs
MAX_PERIODS = 32  # distances between repeats that are tried, the most frequent first
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Numbers = np.ndarray[Any, np.dtype[Any]]
Stretch = tuple[int, int, int, int]
"""Equal runs: how many equations compute in all but the first run; the first equation, the one after the last, and the
period."""


class Repeat(NamedTuple):
    """``times`` equal runs of ``period`` equations each, one after the other from equation ``start`` on."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The equation after the last run."""
        return self.start + self.period * self.times

    @property
    def handovers(self) -> range:
        """The first equation of each run but the first."""
        return range(self.start + self.period, self.stop, self.period)


@derived_once
def weight(program: Program) -> int:
    """The number of equations that compute rather than move data, those of the bodies of each equation included."""
    return sum(_weights(program))


def _weights(program: Program) -> list[int]:
    """For each equation, how many compute: itself and those of its bodies."""
    computes = {kind: int(FLOPS.find(kind) is not data_movement) for kind in {*map(type, program.ops)}}
    return [computes[type(op)] + (_weight_of_bodies(op) if op.bodied else 0) for op in program.ops]


def _weight_of_bodies(op: Any) -> int:
    return sum([weight(body) for body in op.bodies])


@derived_once
def repeats(program: Program) -> tuple[Repeat, ...]:
    """The repeats of a program that boundaries pay for, in order; they do not overlap.

    Equations are equal here that perform operations of one class on operands of equal types, whichever values they
    read: a repeat decides where boundaries are, not what is computed.
    """
    if weight(program) <= LEAST_SAVED:
        return ()
    weights = [*accumulate(_weights(program), initial=0)]
    tokens = _tokens(program)
    disjoint = _disjoint(_candidates(tokens, weights), weights)
    largest = [(start, min(stop, start + max(COUNTED, 8 * period)))
               for saved, start, stop, period in disjoint[:MOST_TRIED] if saved >= LEAST_SAVED]
    if not any([duplication(program, *stretch) >= LEAST_DUPLICATION for stretch in largest]):
        return ()
    values = _Values.of(program)
    return tuple(sorted([values.narrowest(*place) for _, *place in disjoint]))


def _candidates(tokens: Numbers, weights: Sequence[int]) -> list[Stretch]:
    """The equal runs of each period, wherever there are enough of them."""
    return [
        (saved, start, stop, period) for period in _periods(tokens) for start, stop in _equal_stretches(tokens, period)
        if (saved := weights[stop] - weights[start + period]) >= LEAST_FOLLOWED
    ]


def _disjoint(candidates: Sequence[Stretch], weights: Sequence[int]) -> list[Stretch]:
    """Those that save most, each cut to where none that saves more is."""
    free = np.ones(len(weights) - 1, bool)
    disjoint = []
    for _, first, last, period in sorted(candidates, reverse=True):
        start, stop = max(_runs(free[first:last]), key=lambda run: run[1] - run[0], default=(0, 0))
        start, stop = first + start, first + stop
        if stop - start >= 2 * period and (saved := weights[stop] - weights[start + period]) >= LEAST_FOLLOWED:
            free[start:stop] = False
            disjoint.append((saved, start, stop, period))
    return disjoint


def _tokens(program: Program) -> Numbers:
    """A number for each equation, equal for equal ones."""
    types = program.value_types()
    known: dict[Any, int] = {}
    columns = zip(program.ops, program.args, program.types)
    keys = [(type(op), results, *[types[n] for n in args]) for op, args, results in columns]
    return np.array([known.setdefault(key, len(known)) for key in keys], np.uint64)


def _periods(tokens: Numbers) -> list[int]:
    """The most frequent distances from a sequence of 1, 2, 4, ... or 64 equations to the next equal one."""
    votes: Counter[int] = Counter()
    hashes, length = tokens, 1
    while length <= 64 and len(hashes):
        order = np.argsort(hashes, kind="stable")
        votes.update(np.diff(order)[np.diff(hashes[order]) == 0].tolist())
        hashes = hashes[:-length] * MULTIPLIER + hashes[length:] * (hashes[length:] | 1)
        length *= 2
    return [period for period, _ in votes.most_common(MAX_PERIODS)]


def _equal_stretches(tokens: Numbers, period: int) -> list[tuple[int, int]]:
    """The longest ``(start, stop)`` of two periods at least in which every token equals the one a period later."""
    same = _runs(tokens[:-period] == tokens[period:])
    return [(start, stop + period) for start, stop in same if stop - start >= period]


def _runs(marks: np.ndarray[Any, np.dtype[np.bool]]) -> list[tuple[int, int]]:
    """Each longest ``(start, stop)`` of marks that are all true."""
    edges = np.flatnonzero(np.diff(marks, prepend=False, append=False)).tolist()
    return [*zip(edges[::2], edges[1::2])]


class _Values(NamedTuple):
    """Of each value that an equation computes: the equation, the one that uses it last, and its bytes.

    ``starts[i]`` is the first value of equation ``i``.
    """

    owners: Numbers
    last: Numbers
    sizes: Numbers
    starts: list[int]

    @classmethod
    def of(cls, program: Program) -> _Values:
        inputs = len(program.in_types)
        starts = [n - inputs for n in program.starts()]
        owners = np.repeat(np.arange(len(program.ops)), np.diff(starts))
        sizes = np.array([t.nbytes for t in program.value_types()[inputs : program.count]], np.int64)
        return cls(owners, np.array(last_uses(program)[inputs:]), sizes, starts)

    def narrowest(self, start: int, stop: int, period: int) -> Repeat:
        """The repeat in a stretch whose runs hand over the fewest bytes, on average, that the next run reads."""
        part = slice(self.starts[start], self.starts[stop])
        owners, last = self.owners[part] - start, self.last[part] - start
        until = np.maximum(np.minimum(last, owners + period), owners)
        change = np.zeros(stop - start + period + 2, np.int64)
        np.add.at(change, owners + 1, self.sizes[part])
        np.add.at(change, until + 1, -self.sizes[part])
        crossing = np.cumsum(change)  # bytes of values that are computed before each equation, and read by or after it
        phases = range(min(period, stop - start - 2 * period + 1))
        length = stop - start
        first = min(phases, key=lambda phase: crossing[phase + period : length - period + 1 : period].mean())
        return Repeat(start + first, period, (length - first) // period)


@derived_once
def with_boundaries(program: Program, meshed: bool = False) -> Program:
    """The program with a boundary on what each repeat hands over to the next, in sub-programs too.

    with_boundaries(p)(*xs) == p(*xs)

    For several devices (``meshed``) what the next repeat does nothing but add to crosses no boundary: the terms of such
    a sum, as of the gradient of weights that all repeats share, are then reduced over the devices at once.
    """
    runs = {i: repeat.period for repeat in repeats(program) for i in repeat.handovers}
    whole = not runs and all([_split_bodies(op, meshed) is op for op in program.ops])
    return program if whole else split(program, runs, meshed)


def split(program: Program, runs: Mapping[int, int], meshed: bool) -> Program:
    """The program with a boundary before each equation ``i`` of ``runs``, on those results of the ``runs[i]`` equations
    before it that as many from it on read; its bodies ``with_boundaries``.
    """
    crossing = _crossing(program, runs, meshed)
    boundary: Any = Boundary()
    latest: dict[int, int] = {}  # value -> the result of the last boundary that it has crossed
    retained = []
    count = program.count
    for i, ((op, args, results, _), types, site) in enumerate(zip(program.steps(), program.types, program.sites)):
        if i in crossing:
            numbers = crossing[i]
            handed_over = range(count, count := count + len(numbers))
            given = tuple([program.type_of(n) for n in numbers])
            retained.append(RetainedEquation(boundary, numbers, tuple(handed_over), given, site))
            latest.update(zip(numbers, handed_over))
        read = tuple([latest.get(n, n) for n in args])
        retained.append(RetainedEquation(_split_bodies(op, meshed), read, tuple(results), types, site))
    return assemble(program, retained, [latest.get(n, n) for n in program.outs])


def _crossing(program: Program, runs: Mapping[int, int], meshed: bool) -> dict[int, tuple[int, ...]]:
    """The values of each boundary of ``split``; a boundary without values is left out."""
    starts = program.starts()
    crossing = {}
    for i, length in runs.items():
        readers: dict[int, list[Operation]] = {}
        for op, args in zip(program.ops[i : i + length], program.args[i : i + length]):
            for n in args:
                if starts[i - length] <= n < starts[i]:
                    readers.setdefault(n, []).append(op)
        numbers = [n for n, ops in readers.items() if not (meshed and len(ops) == 1 and ops[0].rounding == "sum")]
        if numbers:
            crossing[i] = tuple(sorted(numbers))
    return crossing


def _split_bodies(op: Any, meshed: bool) -> Any:
    """The operation over its bodies ``with_boundaries``; the function of a fold is part of one kernel, and stays."""
    if not op.bodied or (op.runs == "loop" and not op.prunes):
        return op
    return op.map_bodies(lambda body: with_boundaries(body, meshed))
