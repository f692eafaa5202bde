"""Boxes that say where they were created, for runs that make one for every result."""

from __future__ import annotations

from typing import Any

from ...effects.base.source_locations import Site
from ...effects.core.arrays import Box


class SitedBox(Box):
    """A box that keeps the line at which it was created; None: that at which its run was installed."""

    __slots__ = ("site",)
    site: Any

    @property
    def made_at(self) -> Site:
        return Site(*self.site) if self.site is not None else self.run.installed_at
