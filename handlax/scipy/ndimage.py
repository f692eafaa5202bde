"""``handlax.scipy.ndimage``: interpolation of images, with JAX's names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any

from ..effects.base.errors import BadArgument, ShapeMismatch, need_one_of
from ..effects.core.arrays import Array
from ..effects.operations.elementwise.arithmetic import RoundingMethod, abs, floor, round
from ..effects.operations.elementwise.conversion import convert
from ..effects.types.dtypes import int32, is_integer
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.argument_conversion import array_of, choose
from ..numpy.arrays.creation import array
from ..numpy.mathematics.arithmetic import clip

__all__ = ["map_coordinates"]


def _mirrored(index: Any, size: int) -> Any:
    """Indices reflected about the centres of the edge elements: d c b | a b c d | c b a."""
    last = size - 1
    return abs((index + last) % (2 * last) - last) if last else index * 0


def _reflected(index: Any, size: int) -> Any:
    """Indices reflected about the outer sides of the edge elements: c b a | a b c d | d c b."""
    return (_mirrored(2 * index + 1, 2 * size + 1) - 1) // 2


# mode -> for an index that may lie outside of an axis, and the size of this axis, the index that is read
_INDEX_READ: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _nearest(x: Any) -> Any:
    """``x`` rounded to whole numbers, halves away from zero."""
    return x if is_integer(x.type.dtype) else round(x, RoundingMethod.AWAY_FROM_ZERO)


def _nodes(order: int, x: Any) -> list[tuple[Any, Any]]:
    """The indices beside each coordinate, with their interpolation weights, None for the weight 1."""
    if order == 0:
        return [(convert(_nearest(x), int32), None)]
    lower = x if is_integer(x.type.dtype) else floor(x)
    index, weight = convert(lower, int32), x - lower
    return [(index, 1 - weight), (index + 1, weight)]


def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0
) -> Array:
    """An image interpolated at coordinates, given as one array for each of its axes.

        y[i] == input[coordinates[0][i], coordinates[1][i], ...]

    Args:
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: the values outside: "constant" is ``cval``, "nearest" the edge, "wrap" a repetition, "mirror" a reflection
            about the centres of the elements at the edge, "reflect" about their outer sides.
    Raises: BadArgument: there is no such order or mode. ShapeMismatch: there is not one array for each axis.
    Source: SciPy, ``ndimage.map_coordinates``, whose modes are "grid-constant" and "grid-wrap" here.

    >>> from handlax.numpy import array
    >>> map_coordinates(array([[1.0, 3.0], [5.0, 7.0]]), [array([0.5]), array([1.0])], order=1)
    Array([5.], dtype=float32)
    """
    x, points = array_of(input), [array_of(c) for c in coordinates]
    if len(points) != x.ndim:
        raise ShapeMismatch(f"map_coordinates: there must be coordinates for each axis of {x.type}, got {len(points)}.")
    if mode not in _INDEX_READ:
        raise BadArgument(f"map_coordinates: mode must be one of {', '.join(_INDEX_READ)}, got {mode!r}.")
    need_one_of("map_coordinates: order", order, (0, 1))
    outside = array(cval, dtype=x.type.dtype)
    axes = [
        [(_INDEX_READ[mode](i, size), (i >= 0) & (i < size), weight) for i, weight in _nodes(order, coordinate)]
        for coordinate, size in zip(points, x.shape)
    ]
    total = None
    for corner in product(*axes):
        indices, inside, weights = zip(*corner)
        y = x[tuple(indices)]
        if mode == "constant":
            y = choose(reduce(operator.and_, inside), y, outside)
        if order:
            weight = reduce(operator.mul, weights)
            y = weight * (convert(y, weight.type.dtype) if is_integer(y.type.dtype) else y)
        total = y if total is None else total + y
    return convert(_nearest(total) if is_integer(x.type.dtype) else total, x.type.dtype)


programs(globals())
