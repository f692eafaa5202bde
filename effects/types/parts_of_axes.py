"""Sizes and bounds of slices of an axis whose size is an integer or a symbolic dimension."""

from __future__ import annotations

from typing import Any

from ..base.errors import BadIndex
from .extent import Extent, floor_divided, least, positive


def ceiling_divided(size: Any, divisor: int) -> Any:
    """``ceil(size / divisor)``."""
    return floor_divided(size + (divisor - 1), divisor)


def smaller(size: Any, other: Any) -> Any:
    """``min(size, other)``, of integers or symbolic dimensions."""
    if type(size) is not Extent and type(other) is not Extent:
        return min(size, other)
    return size - positive(size - other)


def part_of(size: Any, start: Any, stop: Any, step: int = 1) -> tuple[Any, Any]:
    """The normalized bounds of ``range(size)[start:stop:step]``: the first index, from the front if the step is
    negative, and one past the last.

    Raises: BadIndex: a bound is negative in some lanes and in others not.

    >>> from handlax.effects.types.extent import length
    >>> n = length(0)
    >>> part_of(n, 1, None), part_of(n, None, -1), part_of(n, -3, None), part_of(n, 4, 1, -1)
    ((n0-max(n0-1,0), n0), (0, max(n0-1,0)), (max(n0-3,0), n0), (n0-max(n0-2,0), n0-max(n0-5,0)))
    """
    if step < 0:
        behind = [end if end is None else size if type(end) is int and end == -1 else end + 1 for end in (stop, start)]
        start, stop = behind
    ends = []
    for end, default in ((start, 0), (stop, size)):
        if end is not None and not (least(end) >= 0 or -least(-end) <= 0):
            raise BadIndex(
                f"index: a bound of a slice must count from one end in all lanes, got {end}.",
                hint="x[:-3] counts from the end, as x[:x.shape[0] - 3] does in lanes of at least 3 elements.",
            )
        ends.append(default if end is None else smaller(end, size) if least(end) >= 0 else positive(size + end))
    return ends[0], ends[0] + positive(ends[1] - ends[0])
