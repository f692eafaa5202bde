"""Conversions between values that vary along axes of a mesh and values that are equal on all devices of the axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.stack import perform
from .named_axes import SizedAxis


class LaneOperations:
    """The collectives, made with mesh axes, that convert a value between varying and equal, or reduce it, over them.

    The module of collectives sets them on import; no value varies along an axis before that.
    """

    copy: Callable[[tuple[SizedAxis, ...]], Any]
    sum: Callable[[tuple[SizedAxis, ...]], Any]
    highest: Callable[[tuple[SizedAxis, ...]], Any]
    lowest: Callable[[tuple[SizedAxis, ...]], Any]


def vary(x: Any, varying: frozenset[SizedAxis]) -> Any:
    """``x`` as a value that varies along these axes too, by a copy to all lanes of the axes it does not vary along."""
    missing = varying - x.type.varying
    return perform(LaneOperations.copy(_ordered(missing)), x) if missing else x


def with_varying(x: Any, varying: frozenset[SizedAxis]) -> Any:
    """``x``, a cotangent contribution, as the cotangent of a value that varies along exactly the axes ``varying``.

    Along other axes, on whose lanes the value is equal, the contributions of all lanes are summed.
    """
    excess = x.type.varying - varying
    return vary(perform(LaneOperations.sum(_ordered(excess)), x) if excess else x, varying)


def _ordered(axes: frozenset[SizedAxis]) -> tuple[SizedAxis, ...]:
    return tuple(sorted(axes, key=str))
