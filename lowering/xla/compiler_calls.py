"""Calls of a program that XLA makes while it compiles it: to tell a sharding, and to ask what devices execute."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import HandlaxError
from ...effects.base.source_locations import Site, is_internal
from ...effects.base.stack import BASE, inside
from ...effects.sharding.named_sharding import Sharding

INSPECTION = "handlax_inspection_"
"""What stands, with an index of the module's calls, for a function that the compiler calls with a sharding."""


class Inspection:
    """The operation that is called with the sharding of a value of this rank, while its program is compiled."""

    __slots__ = ("op", "rank")

    def __init__(self, op: Any, rank: int):
        self.op = op
        self.rank = rank

    def __call__(self, sharding: Sharding) -> None:
        self.op.inspected(sharding)


class UserPartitionCall:
    """A call of which the compiler asks what each device of a mesh executes in its place; with the user's source site.

    ``lower_part``: the text of what a device executes, of its program and the platform.
    """

    __slots__ = ("op", "site", "mesh", "platform", "lower_part")

    def __init__(self, op: Any, site: Any, mesh: Any, platform: str, lower_part: Any = None):
        self.op = op
        self.site = site
        self.mesh = mesh
        self.platform = platform
        self.lower_part = lower_part

    def lowered_by(self, lower_part: Any) -> UserPartitionCall:
        """A copy of the call, whose part is lowered by the function ``lower_part``."""
        return UserPartitionCall(self.op, self.site, self.mesh, self.platform, lower_part)

    def __call__(self, operands: Sequence[Sharding], results: Sequence[Sharding]) -> Any:
        """What each device executes, and the shardings of operands and results, where the compiler chose these."""
        try:
            with inside(BASE):
                part = self.op.partition.part(self.mesh, operands, results)
                return self.lower_part(part, self.platform), part.operands, part.results
        except HandlaxError as error:
            frames = traceback.walk_tb(error.__traceback__)
            of_the_user = any([not is_internal(frame.f_code.co_filename) for frame, _ in frames])
            if not of_the_user:
                error.moved(f"at {Site(*self.site).full}")
            raise
