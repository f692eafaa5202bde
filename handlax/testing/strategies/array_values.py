"""Strategies of arrays."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from ...effects.core.arrays import concrete
from ...effects.types.array_type import Shape, array_type
from ...effects.types.dtype_families import ExtendedDType
from ...effects.types.dtypes import named
from .domains import Domain
from .special_values import elements
from .types_and_shapes import dtypes, shapes

T = TypeVar("T")


def drawn(draw: st.DrawFn, value: st.SearchStrategy[T] | T) -> T:
    """What a strategy gives; of anything else, itself."""
    return draw(value) if isinstance(value, st.SearchStrategy) else value


@st.composite
def arrays(
    draw: st.DrawFn,
    dtype: Any = None,
    shape: st.SearchStrategy[Shape] | Shape | None = None,
    *,
    domain: Domain | None = None,
    finite: bool = False,
    bits: bool = False,
) -> Any:
    """NumPy arrays of a dtype and a shape, of any values; of a dtype of random keys, arrays of handlax.

    Shrinks to few elements, then to zeros.

    Args:
        dtype: a dtype, its name, or a strategy of these; ``dtypes()`` by default.
        shape: a shape or a strategy of shapes; ``shapes()`` by default.
        domain: where the values lie; without it they are any, more often the special values.
        finite, bits: as of ``elements``.

    Raises: DTypeMismatch: ``dtype`` names none.

    >>> from hypothesis import find
    >>> find(arrays("float32", (2,)), lambda x: (x > 0).all())
    array([1., 1.], dtype=float32)
    >>> find(arrays("float32", domain=Domain(0.5, 3.0)), lambda x: x.ndim == 2 and x.size)
    array([[1.]], dtype=float32)
    """
    dtype = named(drawn(draw, dtypes() if dtype is None else dtype))
    sizes = drawn(draw, shapes() if shape is None else shape)
    if isinstance(dtype, ExtendedDType):
        return concrete(array_type(sizes, dtype), draw(arrays(dtype.base, (*sizes, *dtype.shape))))
    if domain is None:
        return draw(of_numpy.arrays(dtype, sizes, elements=elements(dtype, finite=finite, bits=bits)))
    return draw(of_numpy.arrays(domain.dtype or dtype, sizes, elements=domain.elements(dtype)))
