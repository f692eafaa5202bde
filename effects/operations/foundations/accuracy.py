"""How exact a function must be: what callers of ``exp`` and its kin may ask for."""

from __future__ import annotations

import enum
from typing import Any

from ...base.errors import BadArgument
from ...base.frozen_values import Value
from ...types.array_type import ArrayType
from ...types.dtypes import finfo


class AccuracyMode(enum.Enum):
    """The implementation of a function that is asked for; here each has one, which both modes mean."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(Value):
    """Errors that a result may have: ``atol``, ``rtol`` times the result, or ``ulps`` units in its last place.

    Raises: BadArgument: one is negative, or all are 0.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        super().__init__(atol, rtol, ulps)
        if min(atol, rtol, ulps) < 0.0 or not max(atol, rtol, ulps):
            raise BadArgument(f"Tolerance: one must be positive, and none negative, got {self}.")


def check_accuracy(name: str, accuracy: Any, ulps: int, type: ArrayType) -> None:
    """Check that a function exact to ``ulps`` units in the last place is as exact as ``accuracy`` asks.

    Raises: BadArgument: it is not, or ``accuracy`` says nothing about it.
    """
    if isinstance(accuracy, AccuracyMode):
        return
    if not isinstance(accuracy, Tolerance):
        raise BadArgument(
            f"{name}: accuracy must be a lax.Tolerance, a lax.AccuracyMode or None, got {accuracy!r}."
        )
    if type.dtype.kind == "c" or (accuracy.ulps < ulps and accuracy.rtol < ulps * float(finfo(type.dtype).eps)):
        bound = "is not bounded" if type.dtype.kind == "c" else f"is bounded by ulps={ulps}"
        raise BadArgument(
            f"{name}: its error must be within what is asked; it {bound}, got {accuracy}.",
            hint="None takes the function as it is.",
        )
