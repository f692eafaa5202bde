"""Programs made ready for the device: closed over nothing but small arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..effects.arrays import Array
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
