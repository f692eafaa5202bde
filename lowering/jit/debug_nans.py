"""debug_nans, debug_infs: find the operation with the first NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.config import Configuration
from ...effects.base.errors import FoundNaN
from ...effects.base.source_locations import Site
from ...effects.base.stack import BASE
from ...effects.programs.program import Program, bind
from .trace_cache import Trace


def bad(x: Any, settings: Configuration) -> str | None:
    """The kind of bad value in an array that the settings search for: "NaN", "infinity", or None."""
    value = getattr(x, "value", None)
    if value is None or value.dtype.kind not in "fcV" or not value.size:
        return None
    try:
        if settings.debug_nans and bool(np.isnan(value).any()):
            return "NaN"
        return "infinity" if settings.debug_infs and bool(np.isinf(value).any()) else None
    except TypeError:  # a dtype for which NumPy has neither test, such as the small floats
        return None


def check(trace: Trace, operands: Sequence[Any], results: Sequence[Any], name: str, settings: Configuration) -> None:
    """Where a result is bad, evaluate the program again, operation by operation, to name the first with a bad result.

    Raises: FoundNaN: a result is bad.
    """
    kinds = [kind for kind in [bad(y, settings) for y in results] if kind]
    if not kinds:
        return
    alive = [x for x in operands if not x.is_deleted()]
    if len(alive) == len(operands):
        search(trace.program, [*trace.captured, *operands], settings)
    raise FoundNaN(f"{name}: results must be numbers, got {kinds[0]}.", hint="call it under disable_jit to see where.")


def search(program: Program, args: Sequence[Any], settings: Configuration) -> list[Any]:
    """Evaluate a program under the base interpretation and check every result. Raises: FoundNaN: a result is bad."""
    env = bind(program, args)
    number = len(args)
    for op, operands, site in zip(program.ops, program.args, program.sites):
        inputs = tuple([env[n] for n in operands])
        if op.bodied and op.runs == "once" and len(op.bodies[0].in_types) == len(inputs):  # type: ignore[attr-defined]
            results: Any = tuple(search(op.bodies[0], inputs, settings))  # type: ignore[attr-defined]
        else:
            results = BASE.answer(op, inputs)
        for y in op.as_results(results):
            kind = bad(y, settings)
            if kind:
                raise FoundNaN(
                    f"{op.name}: results must be numbers, got {kind} in {y.type} at {Site(*site)}.",
                    hint="the operands: " + ", ".join([f"{x.type}" for x in inputs]) + ".",
                )
            env[number] = y
            number += 1
    return [env[n] for n in program.outs]
