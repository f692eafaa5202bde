"""What each device of a mesh has of a value, as JAX's types of arrays tell it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from ..base.frozen_values import Value


class ManualAxisType(Value):
    """What each device of a mesh has of a value, in a program that each executes: ``typeof(x).mat``.

    Along the ``varying`` axes it has a value of its own; along the ``unreduced`` ones a summand, of which only the sum
    over the devices counts; along the ``reduced`` ones a copy, whose cotangent is such a summand; along the other axes
    the value is the same on all devices, and so is its cotangent.

    >>> ManualAxisType(varying={"x"}).varying
    frozenset({'x'})
    """

    varying: frozenset[Hashable]
    unreduced: frozenset[Hashable]
    reduced: frozenset[Hashable]

    def __init__(
        self, *, varying: Iterable[Hashable] = frozenset(), unreduced: Iterable[Hashable] = frozenset(),
        reduced: Iterable[Hashable] = frozenset(),
    ):
        super().__init__(frozenset(varying), frozenset(unreduced), frozenset(reduced))

    def invarying(self, mesh: Any) -> frozenset[Hashable]:
        """The axes over which ``shard_map`` maps, in the mesh in force within it, along which the value is the same."""
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced
