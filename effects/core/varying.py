"""Values that vary along axes of a mesh, and values that are the same on each device: where one becomes the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .named_axes import SizedAxis


class LaneOperations:
    """Operations on the values of all lanes of axes, ``f(axes, x)``, set when the module of collectives is imported.

    No value varies along an axis before that.
    """

    copy: Callable[[tuple[SizedAxis, ...], Any], Any]
    sum: Callable[[tuple[SizedAxis, ...], Any], Any]
    highest: Callable[[tuple[SizedAxis, ...], Any], Any]
    lowest: Callable[[tuple[SizedAxis, ...], Any], Any]


def vary(x: Any, varying: frozenset[SizedAxis]) -> Any:
    """``x`` as a value that varies along these axes, beside those along which it does."""
    missing = varying - x.type.varying
    return LaneOperations.copy(_ordered(missing), x) if missing else x


def with_varying(x: Any, varying: frozenset[SizedAxis]) -> Any:
    """The cotangent of a value that varies along these axes, from what one of its uses contributes.

    A value that all lanes share gets the sum of the contributions of all lanes.
    """
    excess = x.type.varying - varying
    return vary(LaneOperations.sum(_ordered(excess), x) if excess else x, varying)


def _ordered(axes: frozenset[SizedAxis]) -> tuple[SizedAxis, ...]:
    return tuple(sorted(axes, key=str))
