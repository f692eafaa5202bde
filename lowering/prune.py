"""Programs made ready for the device: closed over nothing large, and without what nobody needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..effects.arrays import Array
from ..effects.operations import Operation
from ..effects.programs import Program

# Constants above this size become arguments: their text is slow to write and to parse, their bytes slow to compare.
LIFTED_BYTES = 1024


class Closed(NamedTuple):
    """A program whose constants are small arrays, and what it captured: its leading operands."""

    program: Program
    captured: tuple[Array, ...]


def close(program: Program) -> Closed:
    """Turn boxes and large arrays among the constants into leading inputs.

        close(p).program(*close(p).captured, *xs) == p(*xs)
    """
    found = program._cache.get("closed")
    if found is None:
        found = program._cache["closed"] = _close(program)
    return found


def _close(program: Program) -> Closed:
    lifted: dict[int, int] = {}
    kept: dict[int, int] = {}
    for k, const in enumerate(program.consts):
        if const.run is not None or const.type.nbytes > LIFTED_BYTES:
            lifted[-1 - k] = len(lifted)
        else:
            kept[-1 - k] = -1 - len(kept)
    if not lifted:
        return Closed(program, ())
    shift = len(lifted)
    moved = {**lifted, **kept}

    def renumber(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple([n + shift if n >= 0 else moved[n] for n in numbers])

    captured = tuple([program.consts[-1 - n] for n in lifted])
    types = [x.type for x in captured] + list(program.in_types)
    consts = [program.consts[-1 - n] for n in kept]
    args = list(map(renumber, program.args))
    closed = Program(
        types, program.ops, args, program.types, renumber(program.outs), consts, program.sites, program.name
    )
    return Closed(closed, captured)


def _performs(op: Operation) -> bool:
    return op.effectful or ((op.bodied or op.named) and bool(op.effects))


def prune(program: Program, keep_unused: bool = False) -> tuple[Program, tuple[int, ...]]:
    """Drop the equations and inputs on which neither a result nor an effect depends. Gives the inputs that are left.

    prune(p)[0](*[xs[i] for i in prune(p)[1]]) == p(*xs)
    """
    inputs = len(program.in_types)
    widths = [len(made) if op.multiple else 1 for op, made in zip(program.ops, program.types)]
    live = bytearray(inputs + sum(widths))
    used_consts = set()
    start = len(live)
    needed = [False] * len(widths)
    _mark(program.outs, live, used_consts)
    for i in range(len(widths) - 1, -1, -1):
        start -= widths[i]
        if any(live[start : start + widths[i]]) or _performs(program.ops[i]):
            needed[i] = True
            _mark(program.args[i], live, used_consts)
    kept = tuple([n for n in range(inputs) if keep_unused or live[n]])
    if len(kept) == inputs and all(needed):
        return program, kept
    return _select(program, kept, needed, widths, sorted(used_consts, reverse=True)), kept


def _mark(numbers: Sequence[int], live: bytearray, consts: set[int]) -> None:
    for n in numbers:
        if n >= 0:
            live[n] = 1
        else:
            consts.add(n)


def _select(
    program: Program, kept: Sequence[int], needed: Sequence[bool], widths: Sequence[int], consts: Sequence[int]
) -> Program:
    """The program of these inputs, equations and constants alone."""
    places: dict[int, int] = {n: i for i, n in enumerate(kept)}
    places.update({n: -1 - k for k, n in enumerate(consts)})
    start, count = len(program.in_types), len(kept)
    for yes, width in zip(needed, widths):
        if yes:
            places.update({start + k: count + k for k in range(width)})
            count += width
        start += width

    def chosen(items: Sequence[Any]) -> list[Any]:
        return [item for item, yes in zip(items, needed) if yes]

    return Program(
        [program.in_types[n] for n in kept],
        chosen(program.ops),
        [tuple([places[n] for n in args]) for args in chosen(program.args)],
        chosen(program.types),
        [places[n] for n in program.outs],
        [program.consts[-1 - n] for n in consts],
        chosen(program.sites),
        program.name,
    )
