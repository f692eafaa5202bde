"""Strategies of what the fields of operations may be."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ...effects.operations.elementwise.arithmetic import Add
from ...effects.types.dtype_families import float0
from .special_values import elements
from .types_and_shapes import array_types, dtypes


def field_values(*others: Any, max_leaves: int = 6) -> st.SearchStrategy[Any]:
    """Values that a field of an operation may have: a program with any of them is printed, read back and equal.

    None, booleans, numbers of Python and NumPy, text, bytes, dtypes, types of arrays, ``...``, ranges, classes,
    functions, operations; and nested tuples of these. Shrinks to None.

    Args:
        others: further values, of a user's own classes.

    >>> from hypothesis import find
    >>> find(field_values(), lambda value: isinstance(value, tuple) and len(value) == 2)
    (None, None)
    """
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary(),
        dtypes(keys=True), array_types(dtypes(keys=True)), dtypes().flatmap(elements),
        st.sampled_from([..., range(1, 9, 2), float0, int, len, np.sin, Add, Add(), *others]),
    )
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=max_leaves)
