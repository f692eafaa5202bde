"""Liveness: how much memory a program holds after each of its equations.

    after[i] = bytes of the values made by equations 0 .. i that a later equation or the result still needs

Inputs and constants belong to the caller, who holds them all the time: they are counted apart. What a sub-program needs
while it runs counts for the equation that runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..effects.operations import Operation
from ..effects.programs import Program


class Liveness(NamedTuple):
    """Bytes, equation by equation.

    ``held``: inputs and constants. ``during``: what equation ``i`` needs while it runs, its operands, results and
    sub-programs included. ``after``: what is still needed when it has run. ``last``: for every value, the equation that
    uses it last; -1 where nobody does, the number of equations where it is a result. ``peak``: the most that is held
    at any time beside inputs and constants, and ``at`` the first equation that needs it; None where there is none.
    """

    held: int
    during: tuple[int, ...]
    after: tuple[int, ...]
    last: tuple[int, ...]
    peak: int
    at: int | None


def liveness(program: Program) -> Liveness:
    """The memory of a program, in one pass; remembered by it.

    after[i] <= during[i] <= peak
    """
    found = program._cache.get("liveness")
    if found is None:
        found = program._cache["liveness"] = _liveness(program)
    return found


def last_uses(program: Program) -> list[int]:
    """For every value the equation that uses it last: -1 if none does, the number of equations for a result."""
    last = [-1] * program.count
    for i, args in enumerate(program.args):
        for n in args:
            if n >= 0:
                last[n] = i
    for n in program.outs:
        if n >= 0:
            last[n] = len(program.ops)
    return last


def _liveness(program: Program) -> Liveness:
    types = program.value_types()
    inputs, count = len(program.in_types), program.count
    last = last_uses(program)
    freed = [0] * (len(program.ops) + 1)
    for n in range(inputs, count):
        if last[n] >= 0:
            freed[last[n]] += types[n].nbytes
    live, number = 0, inputs
    during, after = [], []
    for i, (op, made) in enumerate(zip(program.ops, program.types)):
        results = range(number, number + (len(made) if op.multiple else 1))
        number = results.stop
        size = sum([types[n].nbytes for n in results])
        during.append(live + size + transient(op, size))
        live += size - freed[i] - sum([types[n].nbytes for n in results if last[n] < 0])
        after.append(live)
    held = sum([t.nbytes for t in program.in_types]) + sum([const.type.nbytes for const in program.consts])
    peak = max(during, default=0)
    return Liveness(held, tuple(during), tuple(after), tuple(last), peak, during.index(peak) if during else None)


def transient(op: Operation, results: int) -> int:
    """What an operation's sub-programs need while they run, beyond its results of so many bytes.

    A body that runs once leaves its results where the operation's are. A loop runs one body at a time beside the
    stacked results, lanes run all at once.
    """
    if not op.bodied:
        return 0
    bodies: Sequence[Any] = op.bodies  # type: ignore[attr-defined]
    inner = [liveness(body) for body in bodies]
    most = max([each.peak for each in inner], default=0)
    constants = sum([const.type.nbytes for body in bodies for const in body.consts])
    runs = op.runs  # type: ignore[attr-defined]
    if runs in ("once", "one"):
        return max(most - results, 0) + constants
    if runs == "lanes":
        return max(most * op.length - results, 0) + constants  # type: ignore[attr-defined]
    return most + constants
