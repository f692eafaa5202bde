"""Strategies of index expressions: what may stand in the brackets of ``x[i]`` and ``x.at[i]``."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from ...effects.types.array_type import Shape
from ...effects.types.dtypes import INTEGER, is_bool, is_unsigned
from .types_and_shapes import dtypes, shapes


@st.composite
def index_expressions(draw: st.DrawFn, shape: Shape, *, arrays: bool = True, new_axes: bool = True) -> Any:
    """Index expressions of arrays of a shape: ``x[index]`` is what it is of a NumPy array, and within the bounds.

    Integers, slices of any step, an ellipsis; integer arrays that broadcast together, of every integer dtype, and masks
    of one or several axes; new axes and ``True``. In any order; an entry alone also without a tuple.
    Shrinks to ``()``.

    Args:
        arrays: whether there are arrays and masks among the entries.
        new_axes: whether there are None and True.

    >>> from hypothesis import find
    >>> find(index_expressions((3, 4)), lambda index: np.zeros((3, 4))[index].shape == (4,))
    (0,)
    >>> find(index_expressions((3, 4)), lambda index: np.zeros((3, 4))[index].shape == (2, 4))
    (slice(1, None, -1),)
    """
    common = draw(shapes(max_dims=2, max_side=3) | st.tuples(st.integers(0, min(prod(shape), 9)))) if arrays else None
    first = draw(st.integers(0, len(shape)))
    last = draw(st.none() | st.integers(first, len(shape)))
    entries = _along(draw, shape[:first], common)
    if last is not None:
        entries += [..., *_along(draw, shape[last:], common)]
    for extra in draw(st.lists(st.sampled_from([None, True]), max_size=2)) if new_axes else ():
        entries.insert(draw(st.integers(0, len(entries))), extra)
    return entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


def _along(draw: st.DrawFn, axes: Shape, common: Shape | None) -> list[Any]:
    """Entries that index these axes, one after the other."""
    entries = []
    while axes:
        entry = draw(st.one_of([*_entries(axes, common)]))
        entries.append(entry)
        axes = axes[entry.ndim if _is_mask(entry) else 1 :]
    return entries


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, np.ndarray) and is_bool(entry.dtype)


def _entries(axes: Shape, common: Shape | None) -> Iterator[st.SearchStrategy[Any]]:
    """The strategies of an entry for the first of these axes, or of a mask for the first few."""
    size = axes[0]
    if size:
        yield st.integers(0, size - 1) | st.integers(-size, -1)
    yield st.slices(size)
    if common is not None:
        if size or 0 in common:
            yield dtypes(INTEGER).flatmap(lambda dtype: _positions(size, dtype, common))
        counts = {1, *common[-1:]}
        for rank in range(1, len(axes) + 1):
            chosen = [_masks(axes[:rank], count) for count in counts if count <= prod(axes[:rank])]
            if chosen:
                yield st.one_of(chosen)


@st.composite
def _positions(draw: st.DrawFn, size: int, dtype: np.dtype[Any], common: Shape) -> Any:
    """Positions along an axis of this size, in an array that broadcasts to the common shape."""
    shape = tuple([draw(st.sampled_from([n, 1])) for n in common[draw(st.integers(0, len(common))) :]])
    if not size and 0 not in shape:
        shape = common
    least = 0 if is_unsigned(dtype) else -size
    return draw(of_numpy.arrays(dtype, shape, elements=st.integers(least, size - 1) if size else st.nothing()))


def _masks(shape: Shape, count: int) -> st.SearchStrategy[Any]:
    """Masks of this shape that hold at so many places."""
    places = st.lists(st.integers(0, max(prod(shape) - 1, 0)), min_size=count, max_size=count, unique=True)
    return places.map(lambda places: np.isin(np.arange(prod(shape)).reshape(shape), places))
