"""Comparisons of two runs of one program: which values differ, by how much, and where that began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..effects.printing import letter
from ..effects.programs import Program
from ..effects.sources import NOWHERE, Site
from ..effects.types import ArrayType


class Differing(NamedTuple):
    """A value that two runs have differently; ``most`` is the largest distance of elements, NaN where one is NaN."""

    name: str
    type: ArrayType
    site: Site
    elements: int
    most: float

    def __str__(self) -> str:
        where = f"  # {self.site}" if self.site.code is not None else ""
        return f"{self.name}: {self.type}  {self.elements} of {self.type.size} elements, by {self.most:.6g}{where}"


class Comparison(tuple[Differing, ...]):
    """The values that two runs have differently, in the order of the program: empty, and so false, where none is."""

    __slots__ = ()

    @property
    def first(self) -> Differing | None:
        """Where it began."""
        return self[0] if self else None

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no difference"

    __repr__ = __str__


def compared(program: Program, xs: Sequence[Any], ys: Sequence[Any]) -> Comparison:
    """The values that differ, among those that both runs have."""
    sites = [NOWHERE] * len(program.in_types)
    for op, made, site in zip(program.ops, program.types, program.sites):
        sites.extend([Site(*site)] * (len(made) if op.multiple else 1))
    found = []
    for n, (x, y) in enumerate(zip(xs, ys)):
        differing = differences(x.value, y.value)
        if differing:
            found.append(Differing(letter(n), x.type, sites[n], differing, distance(x.value, y.value)))
    return Comparison(found)


def differences(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> int:
    """How many elements differ; a NaN, which alone differs from itself, does not differ from another."""
    return int(((a != b) & ~((a != a) & (b != b))).sum())


def distance(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The largest distance of two elements."""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(wide) - b.astype(wide))
        return float(np.max(np.where(a == b, 0.0, apart), initial=0.0))
