"""Strategies of dtypes, shapes and types of arrays, those of few dimensions and of plain dtypes first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from ...effects.types import dtypes as known
from ...effects.types.array_type import ArrayType, Shape, array_type
from ...effects.types.dtype_families import DType, KeyDType
from ...effects.types.dtypes import named

# in the order in which dtypes count as simple
_FAMILIES = (
    known.FLOATING, known.SIGNED, known.BOOL, known.UNSIGNED, known.COMPLEX, known.SMALL_FLOATING, known.SMALL_SIGNED,
    known.SMALL_UNSIGNED,
)
KEYS = tuple([KeyDType(impl) for impl in ("fry", "fry4", "phx2", "phx4", "rbg", "urbg")])


def dtypes(family: Iterable[Any] | None = None, *, keys: bool = False) -> st.SearchStrategy[Any]:
    """Each dtype of a family; all that arrays of numbers can have by default.

    Shrinks to float32, then to the dtypes of 32 bits and the wide ones.

    Args:
        family: dtypes or their names, such as ``hx.dtypes.FLOATING``.
        keys: whether the dtypes of the keys of all random generators are among them.

    Raises: DTypeMismatch: what is in the family names no dtype.

    >>> from hypothesis import find
    >>> find(dtypes(), lambda dtype: dtype.itemsize == 1), find(dtypes({"int8", "int64"}), lambda dtype: True)
    (dtype('int8'), dtype('int64'))
    """
    numbers = known.EVERY if family is None else {*map(named, family)}
    return st.sampled_from(sorted([*numbers, *(KEYS if keys else ())], key=_simplicity))


def _simplicity(dtype: DType) -> tuple[Any, ...]:
    """The place of a dtype among all, the simplest one first."""
    if isinstance(dtype, KeyDType):
        return len(_FAMILIES), KEYS.index(dtype)
    bits = known.itemsize_bits(dtype)
    return [dtype in family for family in _FAMILIES].index(True), bits != 32, -bits, dtype.name


def shapes(
    *, min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 4
) -> st.SearchStrategy[Shape]:
    """Shapes with so many dimensions of such sizes, among them those without dimensions and without elements.

    Shrinks to few dimensions, then to small ones.

    >>> from hypothesis import find
    >>> find(shapes(), lambda shape: True), find(shapes(min_side=1), lambda shape: len(shape) == 2)
    ((), (1, 1))
    """
    return of_numpy.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side)


def broadcastable_shapes(
    count: int = 2, *, min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 3
) -> st.SearchStrategy[tuple[Shape, ...]]:
    """``count`` shapes that broadcast together: ``np.broadcast_shapes(*shapes)`` exists.

    >>> from hypothesis import find
    >>> find(broadcastable_shapes(), lambda shapes: len(shapes[0]) < len(shapes[1]))
    ((), (0,))
    """
    drawn = of_numpy.mutually_broadcastable_shapes(
        num_shapes=count, min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side
    )
    return drawn.map(lambda shapes: shapes.input_shapes)


def array_types(
    dtype: st.SearchStrategy[Any] | None = None, shape: st.SearchStrategy[Shape] | None = None, *, weak: bool = True
) -> st.SearchStrategy[ArrayType]:
    """Types of arrays of these dtypes and shapes, weakly typed ones too unless ``weak`` is False.

    >>> from hypothesis import find
    >>> find(array_types(), lambda type: type.ndim == 1 and type.weak)
    f32[0]~
    """
    drawn = shapes() if shape is None else shape, dtypes() if dtype is None else dtype
    return st.builds(array_type, *drawn, st.booleans() if weak else st.just(False))
