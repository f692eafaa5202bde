"""The estimated work of a program: by NumPy operation by operation, and by XLA as a whole.

    estimate(program) == Estimate(numpy, xla, compile)        nanoseconds

NumPy pays for a call of each operation, and reads and writes each array; XLA pays for one call, and reads and writes
only the program's operands and results. What an operation takes beside, for each element, is measured: ``RATES``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...effects.core.columns import EVALUATE, LOWER
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import ExtendedDType
from .eager_rates import CALLS, RATES
from .fused_rounding import loose_operations

NUMPY_CALL, XLA_CALL = 500.0, 7_000.0
XLA_BYTE = 0.025  # of an operand or result
COMPILE, COMPILE_EACH = 20e6, 2.5e6  # of any program, and of each of its operations
KINDS = ("f16", "bf16", "float", "complex", "int")
UNMEASURED = (0.25, 0.1)  # rates of a user's own operation: as of one that moves elements


class Estimate(NamedTuple):
    """Nanoseconds of one call by NumPy, of one by XLA, and of compiling; infinite: NumPy must not execute it."""

    numpy: float
    xla: float
    compile: float


_KINDS = {"e": "f16", "E": "bf16", "f": "float", "d": "float", "F": "complex", "D": "complex"}


def dtype_kind(dtype: Any) -> str:
    """The column of ``RATES`` for a dtype."""
    return _KINDS.get(dtype.char, "int") if isinstance(dtype, np.dtype) else "int"


def column(types: Any) -> str:
    """The column of ``RATES`` for an operation with operands and results of these types."""
    return next((kind for t in types if (kind := dtype_kind(t.dtype)) != "int"), "int")


def estimate(program: Program) -> Estimate | None:
    """What the program takes by NumPy and by XLA; None: it cannot be compiled as a whole."""
    types, steps = program.value_types(), [*_steps(program)]
    values = [*types, *[t for _, operands, results in steps for t in (*operands, *results)]]
    if not all([isinstance(t.size, int) for t in values]):
        return None
    moved = {*range(len(program.in_types)), *program.outs}
    if any([op.has_row or not LOWER.has(type(op)) for op, *_ in steps]):
        return None
    works = [_work(*step) for step in steps]
    numpy, xla = [sum(work) for work in zip(*works)] or (0.0, 0.0)
    found = Estimate(numpy, xla + _xla_call([types[n] for n in moved]), COMPILE + COMPILE_EACH * len(steps))
    if len(steps) == 1 or not any([isinstance(t.dtype, ExtendedDType) for t in values]):
        return found
    alone = [Estimate(n, x + _xla_call([*ins, *outs]), COMPILE + COMPILE_EACH)
             for (n, x), (_, ins, outs) in zip(works, steps)]
    return _of_a_draw(found, program, alone)


def _of_a_draw(found: Estimate, program: Program, alone: Sequence[Estimate]) -> Estimate | None:
    """The estimate of a program with keys, which gives the same numbers before and after it is compiled.

    An operation that rounds loosely is otherwise by NumPy than by XLA; so the program is not compiled before each of
    these would be by itself, which is when it has saved what compiling it takes. None: fused it is rounded otherwise.
    """
    loose = loose_operations(program)
    if loose is None or any([alone[i].xla >= alone[i].numpy for i in loose]):
        return None
    calls = max([alone[i].compile / (alone[i].numpy - alone[i].xla) for i in loose], default=0.0)
    return found._replace(compile=max(found.compile, calls * (found.numpy - found.xla)))


def _work(op: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> tuple[float, float]:
    """The nanoseconds that one operation takes: executed by NumPy, and within a program that XLA compiled."""
    kind = type(op)
    size = op.workload_size(*operands) if EVALUATE.has(kind) else inf
    row = RATES.get(kind.__module__, {}).get(kind.__qualname__)
    by_numpy, by_xla = (row and row[KINDS.index(column([*operands, *results]))]) or UNMEASURED
    call = CALLS.get(kind.__module__, {}).get(kind.__qualname__, NUMPY_CALL)
    return call + (by_numpy * size if 0 < size < inf else size), by_xla * size if 0 < size < inf else 0.0


def _xla_call(moved: Sequence[ArrayType]) -> float:
    """The nanoseconds that XLA takes to call a program with these operands and results."""
    return XLA_CALL + XLA_BYTE * sum([t.nbytes for t in moved])


def _steps(program: Program) -> Iterator[tuple[Any, Sequence[ArrayType], Sequence[ArrayType]]]:
    """Each operation with the types of its operands and results; a pure call of one body counts as its body."""
    types = program.value_types()
    for op, args, _, results in program.steps():
        if op.bodied and op.runs == "once" and len(op.bodies) == 1 and not op.effects:  # type: ignore[attr-defined]
            yield from _steps(op.bodies[0])  # type: ignore[attr-defined]
        else:
            yield op, [types[n] for n in args], results
