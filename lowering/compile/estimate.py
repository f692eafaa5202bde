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

from ...effects.core.columns import LOWER
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import ExtendedDType
from .eager_rates import RATES

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
    if len(steps) > 1 and any([isinstance(t.dtype, ExtendedDType) for t in values]):
        return None  # fused, a draw from the same key would be rounded otherwise than in the calls before
    moved = {*range(len(program.in_types)), *program.outs}
    numpy, xla = 0.0, XLA_CALL + XLA_BYTE * sum([types[n].nbytes for n in moved])
    for op, operands, results in steps:
        kind = type(op)
        if op.has_row or not LOWER.has(kind):
            return None
        size = op.workload_size(*operands)
        row = RATES.get(kind.__module__, {}).get(kind.__qualname__)
        by_numpy, by_xla = (row and row[KINDS.index(column([*operands, *results]))]) or UNMEASURED
        numpy += NUMPY_CALL + (by_numpy * size if 0 < size < inf else size)
        xla += by_xla * size if 0 < size < inf else 0.0
    return Estimate(numpy, xla, COMPILE + COMPILE_EACH * len(steps))


def _steps(program: Program) -> Iterator[tuple[Any, Sequence[ArrayType], Sequence[ArrayType]]]:
    """Each operation with the types of its operands and results; a pure call of one body counts as its body."""
    types = program.value_types()
    for op, args, _, results in program.steps():
        if op.bodied and op.runs == "once" and len(op.bodies) == 1 and not op.effects:  # type: ignore[attr-defined]
            yield from _steps(op.bodies[0])  # type: ignore[attr-defined]
        else:
            yield op, [types[n] for n in args], results
