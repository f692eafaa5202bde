"""Outward rounding: numbers below and above all that an operation with an error may stand for."""

from __future__ import annotations

from typing import Any

from handlax import numpy as hnp


def below(y: Any, ulps: int) -> Any:
    """A number below all that round to ``y``, or to a float ``ulps`` units in the last place away from it."""
    info = hnp.finfo(y.dtype)
    y = hnp.minimum(y, info.max)  # what overflowed is finite
    y = hnp.nextafter(y - (abs(y) * (2 * ulps * info.eps) + info.tiny), -hnp.inf)  # XLA takes less than tiny for 0
    return hnp.where(hnp.isnan(y), -hnp.inf, y)


def outwards(lo: Any, hi: Any, ulps: int = 0) -> Any:
    """The ends of an interval rounded outwards by ``ulps``; an end that is NaN says nothing and becomes infinite."""
    return (below(lo, ulps), -below(-hi, ulps)) if hnp.issubdtype(lo.dtype, hnp.floating) else (lo, hi)
