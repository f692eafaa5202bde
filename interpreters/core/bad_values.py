"""What ``debug_nans`` and ``debug_infs`` search for: results with a NaN, or with an infinity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...effects.base.config import Configuration
from ...effects.base.errors import FoundNaN
from ...effects.base.source_locations import Site


def bad_value(results: Iterable[Any], settings: Configuration) -> str | None:
    """A text such as "NaN in f32[2]" for the first result with a value that the settings forbid; None without one."""
    return next((f"{kind} in {x.type}" for x in results if (kind := _bad(x, settings))), None)


def _bad(x: Any, settings: Configuration) -> str | None:
    """The kind of value in ``x`` that the settings forbid, NaN or infinity; None without one, and for boxes."""
    value = getattr(x, "value", None)
    if value is None or value.dtype.kind not in "fcV" or not value.size:
        return None
    try:
        if settings.debug_nans and bool(np.isnan(value).any()):
            return "NaN"
        return "infinity" if settings.debug_infs and bool(np.isinf(value).any()) else None
    except TypeError:  # a dtype for which NumPy has neither test, such as the small floats
        return None


def bad_result(op: Any, operands: Sequence[Any], bad: str, site: Site | None = None) -> FoundNaN:
    """The error for an operation with the result ``bad``, text of ``bad_value``.

    ``site``: the line of the operation, None if it is the one being executed.
    """
    shown = "" if site is None else f" at {site}"
    given = ", ".join([str(x.type) for x in operands])
    return FoundNaN(f"{op.name}: results must be numbers, got {bad}{shown}.", hint=f"the operands: {given}.")
