"""What ``debug_nans`` and ``debug_infs`` search for: results with a NaN, or with an infinity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...effects.base.config import Configuration
from ...effects.base.errors import FoundNaN
from ...effects.base.source_locations import Site


def bad_value(results: Iterable[Any], settings: Configuration) -> str | None:
    """A text such as "NaN in f32[2]" for the first result with a value that the settings forbid; None without one."""
    tests = [("NaN", np.isnan)] * settings.debug_nans + [("infinity", np.isinf)] * settings.debug_infs
    return next((f"{kind} in {x.type}" for x in results for kind, test in tests if contains(x, test)), None)


def contains(x: Any, test: Callable[[Any], Any]) -> bool:
    """Whether a value in ``x`` passes a test of NumPy, ``isnan`` or ``isinf``; False for boxes."""
    value = getattr(x, "value", None)
    if value is None or value.dtype.kind not in "fcV" or not value.size:
        return False
    try:
        return bool(test(value).any())
    except TypeError:  # a dtype for which NumPy has no such test, such as the small floats
        return False


def bad_result(op: Any, operands: Sequence[Any], bad: str, site: Site | None = None) -> FoundNaN:
    """The error for an operation with the result ``bad``, text of ``bad_value``.

    ``site``: the line of the operation, None if it is the one being executed.
    """
    shown = "" if site is None else f" at {site}"
    given = ", ".join([str(x.type) for x in operands])
    return FoundNaN(f"{op.name}: results must be numbers, got {bad}{shown}.", hint=f"the operands: {given}.")
