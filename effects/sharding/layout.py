"""Layouts: the order of an array's dimensions in memory, and formats, which say it together with a sharding."""

from __future__ import annotations

from typing import Any, ClassVar

from ..base.errors import BadArgument
from ..base.frozen_values import Value


class AutoLayout:
    """``Layout.AUTO``: the compiler chooses the layout, and here it chooses the row-major one. There is one."""

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> str:
        return "AUTO"


AUTO = AutoLayout()


class Layout(Value):
    """The dimensions of an array from the slowest to the fastest in memory; ``(0, 1)`` is row by row.

    Arrays here are dense and row-major: another layout can be named, and is refused where it is asked of an array.
    """

    AUTO: ClassVar[AutoLayout] = AUTO
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

    def need_row_major(self, where: str) -> None:
        """Raises BadArgument: the layout is not that of arrays here."""
        if not self.is_row_major:
            raise BadArgument(
                f"{where}: arrays are row-major here, got {self}.",
                hint="leave the layout out, or transpose the array.",
            )


class Format(Value):
    """A layout and a sharding, each of which may be None; where a sharding is taken, a format is.

    ``x.format`` is that of an array. Raises: BadArgument: a layout, other than AUTO, without a sharding.
    """

    layout: Layout | AutoLayout | None = None
    sharding: Any = None

    def __init__(self, layout: Layout | AutoLayout | None = None, sharding: Any = None):
        if isinstance(layout, Layout) and sharding is None:
            raise BadArgument(
                f"Format: a layout must come with a sharding, got {layout} alone.",
                hint="Format(layout, NamedSharding(mesh, spec)).",
            )
        super().__init__(layout, sharding)

    def row_major_sharding(self, where: str) -> Any:
        """The sharding of an array in this format. Raises: BadArgument: the layout is not that of arrays here."""
        if isinstance(self.layout, Layout):
            self.layout.need_row_major(where)
        return self.sharding


def row_major_format(rank: int, sharding: Any) -> Format:
    """The format of an array of this rank, which is row-major.

    >>> row_major_format(2, "a sharding").layout.major_to_minor
    (0, 1)
    """
    return Format(Layout(tuple(range(rank))), sharding)
