"""debug_nans, debug_infs under jit: find the operation with the first NaN in a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.config import Configuration
from ...effects.base.errors import FoundNaN
from ...interpreters.core.bad_values import bad_value
from ...interpreters.core.evaluate import search
from ...interpreters.core.trace_cache import Trace


def check(trace: Trace, operands: Sequence[Any], results: Sequence[Any], name: str, settings: Configuration) -> None:
    """Where a result is bad, evaluate the program again, operation by operation, to name the first with a bad result.

    Raises: FoundNaN: a result is bad.
    """
    found = bad_value(results, settings)
    if found is None:
        return
    alive = [x for x in operands if not x.is_deleted()]
    if len(alive) == len(operands):
        search(trace.program, [*trace.captured, *operands], trace.program.sites)
    raise FoundNaN(f"{name}: results must be numbers, got {found}.", hint="call it under disable_jit to see where.")
