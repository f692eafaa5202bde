"""How long the parts of an axis are whose size is an integer or an extent: slices, and pieces of equal size."""

from __future__ import annotations

from typing import Any

from ..base.errors import BadIndex
from .extent import Extent, by_cases, floor_divided, least, positive


def ceiling_divided(size: Any, divisor: int) -> Any:
    """The least integer of at least ``size / divisor``."""
    return floor_divided(size + (divisor - 1), divisor)


def smaller(size: Any, other: Any) -> Any:
    """The minimum of two sizes."""
    if type(size) is not Extent and type(other) is not Extent:
        return min(size, other)
    return size - positive(size - other)


def part_of(size: Any, start: Any, stop: Any, step: int = 1) -> tuple[Any, Any]:
    """The first place of ``range(size)[start:stop:step]``, from the front if the step is negative, and the one behind.

    Raises: BadIndex: a bound is negative in some lanes, and no extent of one length.

    >>> from handlax.effects.types.extent import length
    >>> n = length(0)
    >>> part_of(n, 1, None), part_of(n, None, -1), part_of(n, -3, None), part_of(n, 4, 1, -1)
    ((n0-max(n0-1,0), n0), (0, max(n0-1,0)), (max(n0-3,0), n0), (n0-max(n0-2,0), n0-max(n0-5,0)))
    """
    if step < 0:
        start, stop = stop, start
    first = 0 if start is None else place_of(size, start, shift=int(step < 0))
    behind = size if stop is None else place_of(size, stop, shift=int(step < 0))
    return first, first + positive(behind - first)


def place_of(size: Any, end: Any, shift: int = 0) -> Any:
    """The place, moved by ``shift``, where a bound of a slice cuts an axis: a negative bound counts from the end.

    Raises: BadIndex: it is negative in some lanes, and no extent of one length.

    >>> from handlax.effects.types.extent import length
    >>> n = length(0)
    >>> place_of(n, -1), place_of(n, n + 1), place_of(n, n - 1).at({0: 5}), place_of(n, n - 3).at({0: 2})
    (max(n0-1,0), n0, 4, 1)
    """
    if least(end) >= 0:
        return smaller(end + shift, size)
    if -least(-end) < 0:
        return positive(size + end + shift)

    def cut(size: int, end: int) -> int:
        return min(end + shift, size) if end >= 0 else max(size + end + shift, 0)

    found = by_cases(cut, size, end)
    if found is None:
        raise BadIndex(
            f"index: a bound of a slice must count from one end in all lanes, got {end} of {size}.",
            hint="x[:-3] counts from the end, lax.dynamic_slice takes a place that is computed.",
        )
    return found
