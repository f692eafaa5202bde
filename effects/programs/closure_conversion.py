"""Closure conversion: boxes and large arrays among a program's constants become leading inputs.

close(p).program(*close(p).captured, *xs) == p(*xs)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.arrays import Array
from ..types.array_type import ArrayType
from .program import Program, derived_once

# Larger constants become inputs: their text is slow to write and parse, their bytes slow to compare.
MAX_CONSTANT_BYTES = 1024


class Closed(NamedTuple):
    """A program whose constants are all small concrete arrays, and the values of its leading inputs."""

    program: Program
    captured: tuple[Array, ...]


@derived_once
def close(program: Program) -> Closed:
    """The closure conversion of a program: boxes and large constants become its first inputs."""
    (closed,), captured = close_all((program,))
    return Closed(closed, captured)


def close_all(
    programs: Sequence[Program], lifted: Sequence[Array] = ()
) -> tuple[tuple[Program, ...], tuple[Array, ...]]:
    """Closure conversion of several programs: the captured values of all become leading inputs of each.

    ``lifted``: small concrete constants that become inputs too.
    """
    captured: dict[int, Array] = {id(const): const for const in lifted}
    for program in programs:
        for const in program.consts:
            if const.run is not None or const.type.nbytes > MAX_CONSTANT_BYTES:
                captured[id(const)] = const
    if not captured:
        return tuple(programs), ()
    values, types = list(captured.values()), [const.type for const in captured.values()]
    return tuple([with_inputs(program, values, types) for program in programs]), tuple(values)


def with_inputs(program: Program, captured: Sequence[Any], types: Sequence[ArrayType]) -> Program:
    """The program with leading inputs of these types instead of the constants that are in ``captured``."""
    inputs = {id(const): i for i, const in enumerate(captured)}
    renumbered: dict[int, int] = {}  # number of a constant -> number of its input, or of the constant afterwards
    consts = []
    for k, const in enumerate(program.consts):
        number = inputs.get(id(const))
        if number is None:
            consts.append(const)
            number = -len(consts)
        renumbered[-1 - k] = number
    shift = len(captured)

    def renumber(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple([n + shift if n >= 0 else renumbered[n] for n in numbers])

    args = tuple(map(renumber, program.args))
    return program._with(
        in_types=(*types, *program.in_types), args=args, outs=renumber(program.outs), consts=tuple(consts)
    )
