"""Named axes: collectives, the operations over them; and the effect that a collective has.

A collective adds ``Axis(name)`` to the effect row for each of its axes; the handler that binds the axis removes it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from ..base.errors import UnboundAxis
from ..base.stack import runs
from .operation import Operation


class Axis(NamedTuple):
    """The effect of an operation over the named axis ``name``: it must be performed where that axis is bound."""

    name: Hashable

    @property
    def remedy(self) -> str:
        return ""

    def __str__(self) -> str:
        return f"axis {self.name}"


class Collective(Operation):
    """An operation over the named axes ``axes``. A handler that binds one answers for it and performs the rest."""

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


def named_axes() -> Iterator[tuple[Hashable, int]]:
    """The named axes that are bound, innermost first, with their sizes."""
    return ((run.axis_name, run.size) for run in runs() if run.axis_name is not None)


def axis_tuple(axes: Any) -> tuple[Hashable, ...]:
    """An axis name, or a tuple or list of them, as a tuple."""
    return tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def axis_size(axis_name: Any) -> int:
    """The size of a named axis, or the product of the sizes of several.

    Raises: UnboundAxis: no handler binds the axis.
    """
    return mapped_size("axis_size", axis_name)


def mapped_size(where: str, axis_name: Any) -> int:
    """``axis_size`` for the function ``where``, whose name begins the error message."""
    total = 1
    for name in axis_tuple(axis_name):
        size = next((size for axis, size in named_axes() if axis == name), None)
        if size is None:
            raise UnboundAxis(
                f"{where}: nothing binds the axis {name!r}.", hint="run it under vmap(..., axis_name=...)."
            )
        total *= size
    return total
