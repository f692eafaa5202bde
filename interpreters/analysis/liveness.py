"""Liveness: how much memory a program needs during and after each of its equations.

    after[i] = bytes of the results of equations 0 .. i that a later equation, or a result of the program, uses

Inputs and constants belong to the caller and live throughout: they are counted separately. The memory of a sub-program
counts for the equation that executes it. The peak of such an operation is a bound by the peaks of its bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...effects.core.operation import Operation
from ...effects.programs.program import Program, derived_once


class Liveness(NamedTuple):
    """Bytes per equation of a program.

    ``held``: of inputs and constants. ``during``: while equation ``i`` executes, its operands, results and sub-programs
    included. ``after``: once it has executed. ``last``: for every variable, the equation that uses it last; -1 where
    none does, the number of equations where it is a result. ``peak``: the maximum of ``during``, without ``held``, and
    ``at`` the first equation that reaches it; None where there is no equation.
    """

    held: int
    during: tuple[int, ...]
    after: tuple[int, ...]
    last: tuple[int, ...]
    peak: int
    at: int | None


@derived_once
def liveness(program: Program) -> Liveness:
    """The bytes that a program holds before, during and after each equation, and their peak.

    after[i] <= during[i] <= peak
    """
    types = program.value_types()
    inputs, count = len(program.in_types), program.count
    last = last_uses(program)
    freed = [0] * (len(program.ops) + 1)
    for n in range(inputs, count):
        if last[n] >= 0:
            freed[last[n]] += types[n].nbytes
    live = 0
    during, after = [], []
    for i, (op, _, results, _) in enumerate(program.steps()):
        size = sum([types[n].nbytes for n in results])
        during.append(live + size + transient(op, size))
        live += size - freed[i] - sum([types[n].nbytes for n in results if last[n] < 0])
        after.append(live)
    held = sum([t.nbytes for t in program.in_types]) + sum([const.type.nbytes for const in program.consts])
    peak = max(during, default=0)
    return Liveness(held, tuple(during), tuple(after), tuple(last), peak, during.index(peak) if during else None)


def last_uses(program: Program) -> list[int]:
    """For every variable the equation that uses it last: -1 if none does, the number of equations for a result."""
    last = [-1] * program.count
    for i, args in enumerate(program.args):
        for n in args:
            if n >= 0:
                last[n] = i
    for n in program.outs:
        if n >= 0:
            last[n] = len(program.ops)
    return last


def transient(op: Operation, results: int) -> int:
    """The bytes that an operation's sub-programs need beside its results, which take ``results`` bytes.

    The results of a body that is executed once are those of the operation. A loop has the buffers of one iteration
    beside the stacked results; lanes have those of all.
    """
    if not op.bodied:
        return 0
    bodies: Sequence[Any] = op.bodies  # type: ignore[attr-defined]
    inner = [liveness(body) for body in bodies]
    peak = max([each.peak for each in inner])
    constants = sum([const.type.nbytes for body in bodies for const in body.consts])
    runs = op.runs  # type: ignore[attr-defined]
    if runs in ("once", "one"):
        return max(peak - results, 0) + constants
    if runs == "lanes":
        return max(peak * op.length - results, 0) + constants  # type: ignore[attr-defined]
    return peak + constants
