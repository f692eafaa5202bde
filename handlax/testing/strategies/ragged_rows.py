"""Strategies of ragged arrays and of their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ...effects.types.array_type import Shape
from ...effects.types.dtypes import is_inexact, named
from ...interpreters.ragged.ragged_array import Ragged
from .array_values import arrays, drawn


def ragged_lengths(
    *, min_lanes: int = 0, max_lanes: int = 4, max_length: int = 4
) -> st.SearchStrategy[tuple[int, ...]]:
    """Lengths of lanes, zero too, and those of no lanes. Shrinks to few lanes, then to short ones.

    >>> from hypothesis import find
    >>> find(ragged_lengths(), lambda lengths: len(lengths) == 3 and max(lengths) > 1)
    (0, 0, 2)
    """
    return st.lists(st.integers(0, max_length), min_size=min_lanes, max_size=max_lanes).map(tuple)


@st.composite
def ragged_arrays(
    draw: st.DrawFn,
    dtype: Any = "float32",
    row: Shape = (),
    lengths: st.SearchStrategy[tuple[int, ...]] | tuple[int, ...] | None = None,
    *,
    finite: bool = True,
) -> Ragged:
    """Ragged arrays: their lengths static or an array, with a bound or without, and with rows after the last lane.

    Those rows belong to no lane. They are NaN where the dtype has it, so that a result that depends on them shows.
    Shrinks to static lengths.

    Args:
        row: the shape of each row.
        lengths: lengths or a strategy of them; ``ragged_lengths()`` by default.

    >>> from hypothesis import find
    >>> find(ragged_arrays(row=(2,)), lambda x: x.count == 2 and len(x[0]) == 1)
    Ragged(i:2 => f32[[1,0].i,2],
      [[0.0, 0.0]]
      [])
    """
    dtype = named(drawn(draw, dtype))
    sizes = drawn(draw, ragged_lengths() if lengths is None else lengths)
    rows = draw(arrays(dtype, (sum(sizes), *row), finite=finite))
    if not draw(st.booleans()):
        return Ragged(rows, sizes)
    nothing = np.nan if is_inexact(dtype) else 1
    spare = np.full((draw(st.integers(0, 2)), *row), nothing).astype(dtype)
    longest = draw(st.none() | st.integers(max(sizes, default=0), len(rows) + len(spare)))
    return Ragged(np.concatenate([rows, spare]), np.array(sizes, np.int32), longest)
