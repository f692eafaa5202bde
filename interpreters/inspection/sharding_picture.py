"""Text pictures of shardings: a box for each shard of an array, with the devices that hold it."""

from __future__ import annotations

import colorsys
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, CallbackError, need_function
from ...effects.base.stack import BASE, inside, perform
from ...effects.base.wrapping import name_of
from ...effects.core.arrays import as_array
from ...effects.core.operation import effect
from ...effects.sharding.named_sharding import Sharding
from ...effects.trees import pytrees

ColorMap = Callable[[float], Sequence[float]]


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Print the shards of an array of this shape as boxes, each with the devices that hold it.

    The shape has one dimension or two: rows go down, columns to the right. ``scale`` is the size of the picture, which
    is between ``min_width`` and ``max_width`` wide where its texts fit. On a terminal the boxes have colours, which
    ``color_map`` gives by a number between 0 and 1: red, green and blue, from 0 to 1.

    Raises: BadArgument: a shape of another rank. ShapeMismatch: the sharding does not divide it.
    """
    sys.stdout.write(picture(
        tuple(shape), sharding, scale=scale, min_width=min_width, max_width=max_width,
        colors=(color_map or _hue) if use_color and sys.stdout.isatty() else None,
    ) + "\n")


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print the shards of an array as boxes, each with the devices that hold it; options of ``visualize_sharding``."""
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


# callback(the sharding of x), while a program is compiled or at once
@effect(diff="stop")
class InspectSharding:
    callback: Callable[[Sharding], None]

    def result_type(op, x):
        return None

    def placed(op, x: Any) -> tuple[()]:
        """The concrete array is inspected."""
        op.inspected(x.sharding)
        return ()

    def inspected(op, sharding: Sharding) -> None:
        """Call the function. Raises: CallbackError: it raised."""
        try:
            with inside(BASE):
                op.callback(sharding)
        except Exception as error:
            raise CallbackError(
                f"inspect_array_sharding: the callback must return, {name_of(op.callback)} raised "
                f"{type(error).__name__}: {error}"
            ) from error

    def batch(op, dims, x):  # all lanes at once
        return perform(op, x), None

    def lower(op, emit, x):
        emit.inspect_sharding(op, x)
        return ()


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call a function with the sharding of each array of a tree.

    Inside of programs over several devices the compiler does so, with the shardings that it chose, each time that it
    compiles the program; a program that it knows calls nothing. Under ``vmap`` they are those of all lanes.

    Raises: CallbackError: the function raised.

    >>> inspect_array_sharding(1.0, callback=lambda sharding: print(sharding.is_fully_replicated))
    True
    """
    need_function("inspect_array_sharding", callback)
    for leaf in pytrees.leaves(value):
        perform(InspectSharding(callback), as_array(leaf))


def picture(
    shape: tuple[int, ...],
    sharding: Sharding,
    *,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    colors: ColorMap | None = None,
) -> str:
    """The text that ``visualize_sharding`` prints.

    >>> from handlax.sharding import SingleDeviceSharding
    >>> import handlax as hx
    >>> print(picture((3,), SingleDeviceSharding(hx.devices("cpu")[0])))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    if len(shape) not in (1, 2):
        raise BadArgument(f"visualize_sharding: the shape has one dimension or two, got {shape}.")
    sharding.shard_shape(shape)
    texts = holders(sharding, len(shape))
    rows, columns = len(texts), len(texts[0])
    longest = max(len(text) for row in texts for text in row)
    height, width = _cell(shape, rows, columns, scale, (min_width, max_width))
    width = max(width, longest + 2)
    lines = [_rule("┌┬┐", width, columns)]
    for i, row in enumerate(texts):
        for line in range(height):
            shown = [text if line == (height - 1) // 2 else "" for text in row]
            cells = [_paint(text.center(width), colors, (i * columns + j) / (rows * columns))
                     for j, text in enumerate(shown)]
            lines.append(f"│{'│'.join(cells)}│")
        lines.append(_rule("├┼┤" if i < rows - 1 else "└┴┘", width, columns))
    return "\n".join(lines)


def holders(sharding: Sharding, rank: int) -> list[list[str]]:
    """The labels of the shards, by row and column of the picture; one dimension gives one row."""
    grid, tiles = sharding.tiles(rank)
    devices = sharding._device_assignment
    held: list[list[Any]] = [[] for _ in range(max(tiles) + 1)]
    for device, tile in zip(devices, tiles):
        held[tile].append(device)
    texts = [f"{part[0].platform.upper()} {','.join(map(str, sorted([d.id for d in part])))}" for part in held]
    columns = grid[-1]
    return [texts[start : start + columns] for start in range(0, len(texts), columns)]


def _cell(shape: tuple[int, ...], rows: int, columns: int, scale: float, widths: tuple[int, int]) -> tuple[int, int]:
    """The height and width, in characters, of a shard's box; two dimensions keep the proportions of the array."""
    if len(shape) == 1:
        return 1, 0
    tall, wide = max(shape[0], 1), max(shape[1], 1)
    height = max(1, round(10 * scale / rows) - 1)
    whole = min(max(round(10 * scale * 2.5 * wide / tall), widths[0]), widths[1])  # a character is 2.5 times as high
    return height, max(1, round(whole / columns) - 1)


def _rule(corners: str, width: int, columns: int) -> str:
    return corners[0] + corners[1].join(["─" * width] * columns) + corners[2]


def _paint(text: str, colors: ColorMap | None, number: float) -> str:
    """The text with a background colour, by a terminal's escape sequences."""
    if colors is None:
        return text
    red, green, blue = [round(255 * part) for part in colors(number)[:3]]
    front = 30 if red + green + blue > 380 else 97
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[{front}m{text}\x1b[0m"


def _hue(number: float) -> Sequence[float]:
    return colorsys.hsv_to_rgb(number, 0.4, 0.9)
