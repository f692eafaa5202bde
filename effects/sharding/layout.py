"""Layouts: the order of an array's dimensions in memory, and formats, which say it together with a sharding."""

from __future__ import annotations

from typing import Any

from ..base.errors import BadArgument
from ..base.frozen_values import Value


class Layout(Value):
    """The dimensions of an array from the slowest to the fastest in memory; ``(0, 1)`` is row by row.

    Arrays here are dense and row-major: another layout can be named, and is refused where it is asked of an array.
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    @property
    def is_row_major(self) -> bool:
        """Whether arrays here have this layout.

        >>> Layout((0, 1)).is_row_major, Layout((1, 0)).is_row_major
        (True, False)
        """
        in_order = tuple(self.major_to_minor) == tuple(range(len(self.major_to_minor)))
        return in_order and not self.tiling and not self.sub_byte_element_size_in_bits


class Format(Value):
    """A layout and a sharding, each of which may be None; where a sharding is taken, a format is.

    Raises: BadArgument: a layout without a sharding.
    """

    layout: Layout | None = None
    sharding: Any = None

    def __init__(self, layout: Layout | None = None, sharding: Any = None):
        if layout is not None and sharding is None:
            raise BadArgument(
                f"Format: a layout must come with a sharding, got {layout} alone.",
                hint="Format(layout, NamedSharding(mesh, spec)).",
            )
        super().__init__(layout, sharding)

    def row_major_sharding(self, where: str) -> Any:
        """The sharding of an array in this format. Raises: BadArgument: the layout is not that of arrays here."""
        if self.layout is not None and not self.layout.is_row_major:
            raise BadArgument(
                f"{where}: arrays are row-major here, got {self.layout}.",
                hint="leave the layout out, Format(None, sharding), or transpose the array.",
            )
        return self.sharding
