"""debug_nans, debug_infs: find the operation that made the first NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..effects.config import Configuration
from ..effects.errors import FoundNaN
from ..effects.programs import Program, bind
from ..effects.sources import Site
from ..effects.stack import BASE
from .traces import Trace


def bad(x: Any, settings: Configuration) -> str | None:
    """What is wrong with an array: "NaN", "infinity", or None."""
    value = getattr(x, "value", None)
    if value is None or value.dtype.kind not in "fcV" or not value.size:
        return None
    try:
        if settings.debug_nans and bool(np.isnan(value).any()):
            return "NaN"
        return "infinity" if settings.debug_infs and bool(np.isinf(value).any()) else None
    except TypeError:  # a dtype without these questions, such as the small floats
        return None


def check(trace: Trace, operands: Sequence[Any], results: Sequence[Any], name: str, settings: Configuration) -> None:
    """Where a result has a NaN, run the program again, one operation after the other, and name the first that made one.

    Raises: FoundNaN.
    """
    kinds = [kind for kind in [bad(y, settings) for y in results] if kind]
    if not kinds:
        return
    alive = [x for x in operands if not x.is_deleted()]
    if len(alive) == len(operands):
        search(trace.program, [*trace.captured, *operands], settings)
    raise FoundNaN(f"{name}: results must be numbers, got {kinds[0]}.", hint="run it under disable_jit to see where.")


def search(program: Program, args: Sequence[Any], settings: Configuration) -> list[Any]:
    """Perform a program under the base alone, looking at every result."""
    env = bind(program, args)
    number = len(args)
    for op, operands, site in zip(program.ops, program.args, program.sites):
        given = tuple([env[n] for n in operands])
        if op.bodied and op.runs == "once" and len(op.bodies[0].in_types) == len(given):  # type: ignore[attr-defined]
            made: Any = tuple(search(op.bodies[0], given, settings))  # type: ignore[attr-defined]
        else:
            made = BASE.answer(op, given)
        results = made if op.multiple else (made,)
        for y in results:
            kind = bad(y, settings)
            if kind:
                raise FoundNaN(
                    f"{op.name}: results must be numbers, got {kind} in {y.type} at {Site(*site)}.",
                    hint="the operands: " + ", ".join([f"{x.type}" for x in given]) + ".",
                )
            env[number] = y
            number += 1
    return [env[n] for n in program.outs]
