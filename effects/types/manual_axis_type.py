"""The axes of a mesh along which a value varies, as JAX's types of arrays tell them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from ..base.errors import BadArgument
from ..base.frozen_values import Value


class ManualAxisType(Value):
    """The axes of a mesh along which a value varies, in a program that each device executes: ``typeof(x).mat``.

    What a device has of a partial sum is a value that varies, so that no axis is ``unreduced`` or ``reduced``.
    Raises: BadArgument: one is.

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
        if self.unreduced or self.reduced:
            raise BadArgument(
                f"ManualAxisType: within shard_map partial sums are values that vary, got "
                f"unreduced={set(self.unreduced)}, reduced={set(self.reduced)}.",
                hint="varying={...}; out_specs=P(unreduced={...}) says of a result that it is a partial sum.",
            )

    def invarying(self, mesh: Any) -> frozenset[Hashable]:
        """The axes over which ``shard_map`` maps, in the mesh in force within it, along which the value is the same."""
        return frozenset(mesh.manual_axes) - self.varying
