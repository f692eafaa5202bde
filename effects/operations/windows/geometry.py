"""The geometry of windows that slide over an array: their sizes, strides and dilations, and the padding around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...base.errors import BadArgument, ShapeMismatch
from ...types.extent import as_size, floor_divided, positive
from ..manipulation.slicing import insert, spread


def windows_along(size: Any, window: Any, stride: int) -> Any:
    """The number of windows along an axis; all sizes are dilated and padded already."""
    return floor_divided(positive(size - window + stride), stride)


def integers(name: str, what: str, values: Any, least: int) -> tuple[int, ...]:
    """One integer for each dimension, as a tuple.

    Raises: BadArgument: they are not integers. ShapeMismatch: one is less than ``least``.
    """
    try:
        numbers = tuple([as_size(value) for value in values])
    except (AttributeError, TypeError):
        raise BadArgument(f"{name}: {what} must be a sequence of integers, got {values!r}.") from None
    if any([value < least for value in numbers]):
        raise ShapeMismatch(f"{name}: {what} must be at least {least}, got {numbers}.")
    return numbers


def pairs(name: str, padding: Any) -> tuple[tuple[int, int], ...]:
    """Padding as pairs of integers, low and high. Raises BadArgument: it is something else."""
    try:
        return tuple([(as_size(low), as_size(high)) for low, high in padding])
    except (AttributeError, TypeError, ValueError):
        raise BadArgument(
            f"{name}: padding must be a name or a sequence of pairs of integers, got {padding!r}.",
            hint="the names are 'SAME', 'SAME_LOWER' and 'VALID'.",
        ) from None


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The pairs (low, high) of a padding that is given by name.

    ``"VALID"`` is no padding. ``"SAME"`` is the least padding for ``ceil(size / stride)`` windows, half on either side,
    an odd one at the end; with ``"SAME_LOWER"`` the odd one is at the start.

    Raises: BadArgument: there is no padding of that name.

    >>> padtype_to_pads((5,), (2,), (1,), "SAME"), padtype_to_pads((5,), (2,), (1,), "same_lower")
    ([(0, 1)], [(1, 0)])
    """
    named = padding.upper() if isinstance(padding, str) else padding
    if named not in ("SAME", "SAME_LOWER", "VALID"):
        raise BadArgument(f"padding: must be 'SAME', 'SAME_LOWER' or 'VALID', got {padding!r}.")
    if named == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for numbers in zip(in_shape, window_shape, window_strides):
        size, window, stride = map(as_size, numbers)
        total = positive((-floor_divided(-size, stride) - 1) * stride + window - size)
        less, more = floor_divided(total, 2), total - floor_divided(total, 2)
        pads.append((less, more) if named == "SAME" else (more, less))
    return pads


class Window(NamedTuple):
    """Windows over an array, one number (of ``padding`` one pair) for each of its dimensions.

    ``base_dilation - 1`` identity elements are put between neighbouring elements of the array, and ``padding`` around
    it. A window reads every ``window_dilation``-th element, and windows start ``strides`` apart. Source: the StableHLO
    specification, ``reduce_window``.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    def over(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """The number of windows along each dimension of an array of this shape."""
        return tuple([
            windows_along(low + spread(n, base) + high, spread(size, dilation), stride)
            for n, size, stride, (low, high), base, dilation in zip(shape, *self)
        ])

    def with_lanes(self, dim: int) -> Window:
        """The same windows over an array with a further dimension at ``dim``, along which they have size 1."""
        added: tuple[Any, ...] = (1, 1, (0, 0), 1, 1)
        return Window(*[insert(part, dim, item) for part, item in zip(self, added)])

    @property
    def reach(self) -> tuple[int, ...]:
        """The sizes of a dilated window."""
        return tuple([spread(size, dilation) for size, dilation in zip(self.sizes, self.window_dilation)])

    @property
    def config(self) -> list[tuple[int, int, int]]:
        """The array's padding and dilation in the form of ``pad``."""
        return [(low, high, base - 1) for (low, high), base in zip(self.padding, self.base_dilation)]


def window_of(
    name: str,
    shape: Sequence[Any],
    sizes: Any,
    strides: Any = None,
    padding: Any = "VALID",
    base_dilation: Any = None,
    window_dilation: Any = None,
) -> Window:
    """The validated windows over an array of this shape; None means strides or dilations of 1.

    Raises: BadArgument: something is no sequence of integers. ShapeMismatch: a number is not positive, or there is
        not one for each dimension.
    """
    ones = (1,) * len(shape)
    sizes = integers(name, "window_dimensions", sizes, 1)
    strides = ones if strides is None else integers(name, "window_strides", strides, 1)
    base = ones if base_dilation is None else integers(name, "base_dilation", base_dilation, 1)
    dilation = ones if window_dilation is None else integers(name, "window_dilation", window_dilation, 1)
    parts = {"window_dimensions": sizes, "window_strides": strides, "base_dilation": base, "window_dilation": dilation}
    need_each(name, shape, parts)
    if isinstance(padding, str):
        padding = padtype_to_pads(shape, [spread(n, d) for n, d in zip(sizes, dilation)], strides, padding)
    window = Window(sizes, strides, pairs(name, padding), base, dilation)
    need_each(name, shape, {"padding": window.padding})
    return window


def need_each(name: str, shape: Sequence[Any], parts: dict[str, Sequence[Any]]) -> None:
    """Check that each of these sequences has one entry for each dimension. Raises: ShapeMismatch."""
    for what, values in parts.items():
        if len(values) != len(shape):
            raise ShapeMismatch(
                f"{name}: {what} must have one entry for each of the dimensions {tuple(shape)}, got {tuple(values)}."
            )


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The result shape of ``reduce_window`` for an array of this shape.

    >>> reduce_window_shape_tuple((7, 5), (2, 3), (2, 1), "VALID")
    (3, 3)
    """
    window = window_of(
        "reduce_window", operand_shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return window.over(operand_shape)
