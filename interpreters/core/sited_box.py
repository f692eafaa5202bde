"""``SitedBox``: a box with the source line at which it was created, for messages about it."""

from __future__ import annotations

from typing import Any

from ...effects.base.source_locations import Site
from ...effects.core.arrays import Box


class SitedBox(Box):
    """A box with the source line at which it was created; ``site`` None stands for the line that installed its run."""

    __slots__ = ("site",)
    site: Any
    __init__ = object.__init__  # created for every operation: slots are set without a slower ``__init__``

    @property
    def made_at(self) -> Site:
        return Site(*self.site) if self.site is not None else self.run.installed_at
