"""Layouts: the order of an array's dimensions in memory, and formats, which say it together with a sharding."""

from __future__ import annotations

from typing import Any, ClassVar

from ..base.errors import BadArgument
from ..base.frozen_values import Value
from ..types.array_type import ArrayType, Space
from ..types.dtypes import is_extended


class AutoLayout:
    """``Layout.AUTO``: the compiler chooses the layout. There is one."""

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> str:
        return "AUTO"


AUTO = AutoLayout()


class Layout(Value):
    """The dimensions of an array from the slowest to the fastest in memory; ``(0, 1)`` is row by row.

    Arrays are row-major unless another layout is asked for. A layout changes no value.
    """

    AUTO: ClassVar[AutoLayout] = AUTO
    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    @property
    def is_row_major(self) -> bool:
        """Whether it is the layout of arrays of which no other is asked.

        >>> Layout((0, 1)).is_row_major, Layout((1, 0)).is_row_major
        (True, False)
        """
        return self == row_major(len(self.major_to_minor))

    @property
    def mode(self) -> str:
        """The layout in XLA's words, which list the fastest dimension first.

        >>> Layout((1, 2, 0)).mode
        '{0,2,1}'
        """
        return f"{{{','.join(map(str, reversed(self.major_to_minor)))}}}"

    def check(self, where: str, t: ArrayType) -> None:
        """Raises BadArgument: arrays of this type cannot have the layout."""
        if sorted(self.major_to_minor) != [*range(t.ndim)]:
            raise BadArgument(f"{where}: a layout must name each dimension of the array once, got {self} for {t}.")
        if self.tiling or self.sub_byte_element_size_in_bits:
            raise BadArgument(
                f"{where}: a layout is an order of dimensions, without tiles, got {self}.",
                hint="Layout(major_to_minor), or Layout.AUTO.",
            )
        if is_extended(t.dtype) and not self.is_row_major:
            raise BadArgument(
                f"{where}: random keys are row-major, got {self} for {t}.", hint="random.key_data(keys) has any layout."
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

    def layout_of(self, where: str, t: ArrayType) -> Layout | AutoLayout | None:
        """The layout that is asked for arrays of this type; None: row-major. Raises: BadArgument: they cannot have it.
        """
        layout = self.layout
        if layout is AUTO:
            return None if is_extended(t.dtype) else layout
        if not isinstance(layout, Layout):
            return None
        layout.check(where, t)
        if layout.is_row_major:
            return None
        if getattr(self.sharding, "memory_space", None) is Space.Host:
            raise BadArgument(f"{where}: arrays in the memory of the host are row-major, got {layout}.")
        return layout


def row_major(rank: int) -> Layout:
    """The layout of arrays of this rank of which no other is asked.

    >>> row_major(2)
    Layout(major_to_minor=(0, 1), tiling=None, sub_byte_element_size_in_bits=0)
    """
    return Layout(tuple(range(rank)))
