"""Closed programs: over nothing but small arrays. What they captured besides becomes leading inputs.

close(p).program(*close(p).captured, *xs) == p(*xs)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .arrays import Array
from .programs import Program

# Constants above this size become inputs: their text is slow to write and to parse, their bytes slow to compare.
LIFTED_BYTES = 1024


class Closed(NamedTuple):
    """A program whose constants are small arrays, and what it captured: its leading operands."""

    program: Program
    captured: tuple[Array, ...]


def close(program: Program) -> Closed:
    """Turn boxes and large arrays among the constants into leading inputs."""
    found = program._cache.get("closed")
    if found is None:
        (closed,), captured = close_all((program,))
        found = program._cache["closed"] = Closed(closed, captured)
    return found


def close_all(programs: Sequence[Program]) -> tuple[tuple[Program, ...], tuple[Array, ...]]:
    """Close several programs over the same captured values, which become leading inputs of each."""
    captured: dict[int, Array] = {}
    for program in programs:
        for const in program.consts:
            if const.run is not None or const.type.nbytes > LIFTED_BYTES:
                captured[id(const)] = const
    if not captured:
        return tuple(programs), ()
    return tuple([_close(program, captured) for program in programs]), tuple(captured.values())


def _close(program: Program, captured: dict[int, Array]) -> Program:
    places = {key: i for i, key in enumerate(captured)}
    moved: dict[int, int] = {}
    kept = []
    for k, const in enumerate(program.consts):
        place = places.get(id(const))
        if place is None:
            kept.append(const)
            place = -len(kept)
        moved[-1 - k] = place
    shift = len(captured)

    def renumber(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple([n + shift if n >= 0 else moved[n] for n in numbers])

    types = (*[x.type for x in captured.values()], *program.in_types)
    args = tuple(map(renumber, program.args))
    return program._with(in_types=types, args=args, outs=renumber(program.outs), consts=tuple(kept))
