"""Named axes: the effect of speaking of one, and operations that do.

An operation over named axes adds them to the effect row until a handler that has the axis answers it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from .errors import UnboundAxis
from .operations import Operation
from .stack import runs


class Axis(NamedTuple):
    """The effect of speaking of a named axis."""

    name: Hashable

    def __str__(self) -> str:
        return f"axis {self.name}"


class Collective(Operation):
    """An operation over the axes ``axes``. A handler answers the one that it has and passes on the rest."""

    __slots__ = ()
    named = True
    axes: tuple[Hashable, ...]
    exempt = dict.fromkeys(
        ("evaluate", "lower", "batch", "jvp", "transpose"),
        "outside its axis it has no meaning; tests of named axes cover it under vmap",
    )

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return self.axes

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset(map(Axis, self.axes))


def ends(axes: Any) -> tuple[Hashable, ...]:
    return tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def axis_size(axis_name: Any) -> int:
    """The number of lanes of a named axis, or of several together.

    Raises: UnboundAxis: nothing around binds it.
    """
    return lanes("axis_size", axis_name)


def lanes(where: str, axis_name: Any) -> int:
    """``axis_size``, asked for by another function, which the error names."""
    total = 1
    for name in ends(axis_name):
        for run in runs():
            if getattr(run, "axis_name", None) == name and name is not None:
                total *= run.size  # type: ignore[attr-defined]
                break
        else:
            raise UnboundAxis(
                f"{where}: nothing binds the axis {name!r}.", hint="run it under vmap(..., axis_name=...)."
            )
    return total
