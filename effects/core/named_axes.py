"""Named axes: which are bound, and the effect of an operation over one.

An operation over a named axis adds ``Axis(name)`` to the effect row; the handler that binds the axis removes it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import prod
from typing import Any, NamedTuple

from ..base.errors import BadArgument, UnboundAxis
from ..base.stack import runs

# Name and size of an axis. A size is looked up once, when an operation is performed: rules may meet it where the same
# name is that of another axis.
SizedAxis = tuple[Hashable, int]


class Axis(NamedTuple):
    """The effect of an operation over the named axis ``name``: it must be performed where that axis is bound."""

    name: Hashable

    @property
    def remedy(self) -> str:
        return ""

    def __str__(self) -> str:
        return f"axis {self.name}"


def named_axes() -> Iterator[SizedAxis]:
    """The named axes that are bound, innermost first, with their sizes."""
    return ((run.axis_name, run.size) for run in runs() if run.axis_name is not None)


def axis_tuple(axes: Any) -> tuple[Hashable, ...]:
    """An axis name, or a tuple or list of them, as a tuple."""
    return tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def bound_axes(where: str, names: Any) -> tuple[SizedAxis, ...]:
    """The axes of these names with their sizes, for the function ``where``: of each name the innermost one.

    Raises: UnboundAxis: nothing binds a name. BadArgument: a name stands twice.
    """
    names = axis_tuple(names)
    sizes: dict[Hashable, int] = {}
    for name, size in named_axes():
        sizes.setdefault(name, size)
    for name in names:
        if name not in sizes:
            listed = ", ".join([f"{known!r} of size {size}" for known, size in sizes.items()])
            raise UnboundAxis(
                f"{where}: nothing binds the axis {name!r}; in scope {f'are {listed}' if sizes else 'is none'}.",
                hint=f"run it under vmap(..., axis_name={name!r}).",
            )
    if len(set(names)) < len(names):
        raise BadArgument(f"{where}: an axis must be named once, got {names}.")
    return tuple([(name, sizes[name]) for name in names])


def axis_size(axis_name: Any) -> int:
    """The number of lanes of a named axis, or of the product of several.

    Raises: UnboundAxis: no handler binds the axis. BadArgument: an axis is named twice.
    """
    return prod([size for _, size in bound_axes("axis_size", axis_name)])
