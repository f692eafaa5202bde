"""Comparison of two executions of one program: which values differ, by how much, and which is the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.source_locations import NOWHERE, Site
from ...effects.base.wrapping import ignoring_errors
from ...effects.programs.printer import letter
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType


class DifferingValue(NamedTuple):
    """A value that differs between two executions; ``most`` is the largest distance of two elements, NaN if one is NaN.
    """

    name: str
    type: ArrayType
    site: Site
    elements: int
    most: float

    def __str__(self) -> str:
        where = f"  # {self.site}" if self.site.code is not None else ""
        return f"{self.name}: {self.type}  {self.elements} of {self.type.size} elements, by {self.most:.6g}{where}"


class RunComparison(tuple[DifferingValue, ...]):
    """The values that differ between two executions, in the order of the program; empty, so false, if none does."""

    __slots__ = ()

    @property
    def first(self) -> DifferingValue | None:
        """The first value that differs; None if none does."""
        return self[0] if self else None

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no difference"

    __repr__ = __str__


def compared(program: Program, xs: Sequence[Any], ys: Sequence[Any]) -> RunComparison:
    """The values that differ between two executions, among those that both have computed."""
    sites = [NOWHERE] * len(program.in_types)
    for (_, _, results, _), site in zip(program.steps(), program.sites):
        sites.extend([Site(*site)] * len(results))
    values = []
    for n, (x, y) in enumerate(zip(xs, ys)):
        differing = differences(x.value, y.value)
        if differing:
            values.append(DifferingValue(letter(n), x.type, sites[n], differing, distance(x.value, y.value)))
    return RunComparison(values)


def differences(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> int:
    """The number of elements in which two arrays differ; NaN equals NaN."""
    return int(((a != b) & ~((a != a) & (b != b))).sum())


@ignoring_errors
def distance(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The largest distance of two elements at the same position of two arrays."""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    gaps = np.abs(a.astype(wide) - b.astype(wide))
    return float(np.max(np.where(a == b, 0.0, gaps), initial=0.0))
