"""Sizes, numbers or symbolic: the larger of two, and those in values such as types, programs and fields of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..base.errors import BadArgument, BadShape, text_of, whole_number
from .extent import SYMBOLIC, BoundSize, Extent, least, positive


def larger(x: Any, y: Any) -> Any:
    """The larger of two sizes.

    >>> from handlax.effects.types.extent import length
    >>> larger(length(0), 2), larger(3, 2)
    (max(n0-2,0)+2, 3)
    """
    return y + positive(x - y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two sizes.

    >>> from handlax.effects.types.extent import length
    >>> smaller(length(0), 2), smaller(3, 2)
    (n0-max(n0-2,0), 2)
    """
    return x - positive(x - y)


def surely_at_most(size: Any, limit: Any) -> bool:
    """Whether ``size <= limit`` for all values of the variables; False where it is not known to hold.

    What chooses the faster of two ways to compute the same asks this, and has an answer for every size.

    >>> from handlax.effects.types.extent import length
    >>> surely_at_most(3, 4), surely_at_most(length(0), 4), surely_at_most(1, length(0) + 1)
    (True, False, True)
    """
    return bool(least(limit - size) >= 0)


class Sized:
    """Base class of values that contain sizes, such as types and programs, so that ``extents_in`` and ``with_sizes``
    find them.
    """

    __slots__ = ()

    def extents(self) -> Any:
        """The symbolic dimensions that it contains."""

    def with_sizes(self, size: Callable[[Extent], int]) -> Any:
        """The same value with ``size(e)`` in place of every extent ``e``."""


def extents_in(value: Any) -> list[Extent]:
    """The symbolic dimensions in a field of an operation or in a shape: in nested tuples, types and programs."""
    if isinstance(value, BoundSize):
        value = value.extent
    if type(value) is Extent:
        return [value]
    if isinstance(value, tuple):
        return [extent for item in value for extent in extents_in(item)]
    return [*value.extents()] if isinstance(value, Sized) else []


def with_sizes(value: Any, size: Callable[[Extent], int]) -> Any:
    """The field or shape with ``size(e)`` in place of every extent ``e``."""
    if isinstance(value, BoundSize):
        value = value.extent
    if type(value) is Extent:
        return size(value)
    if isinstance(value, Sized):
        return value.with_sizes(size)
    if not isinstance(value, tuple):
        return value
    items = [with_sizes(item, size) for item in value]
    if all([new is old for new, old in zip(items, value)]):
        return value
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def declared_shape(where: str, shape: Any) -> tuple[Any, ...]:
    """The sizes of a shape that a user writes, symbolic ones as they are; ``where`` names what has the shape.

    Raises: BadShape: it is no sequence. NotAnInteger: a size is no integer. BadArgument: a size is negative.

    >>> declared_shape("ArrayType", [2, True])
    (2, 1)
    """
    if not isinstance(shape, Iterable) or isinstance(shape, str | type):
        hint = f"one size is ({shape},)." if isinstance(shape, int) else "the shape comes first, then the dtype."
        raise BadShape(f"{where}: a shape is a sequence of integers, got {text_of(shape)}.", hint=hint)
    sizes = tuple([n if isinstance(n, SYMBOLIC) else whole_number(f"{where}: a size", n) for n in shape])
    if any([type(n) is int and n < 0 for n in sizes]):
        raise BadArgument(f"{where}: sizes must not be negative, got {sizes}.")
    return sizes
