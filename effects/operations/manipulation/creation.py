"""Arrays of a given shape and dtype: iota, full, empty."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch
from ...base.stack import perform
from ...core.arrays import Array, Box, as_array, type_of
from ...core.columns import data_movement
from ...core.operation import operation
from ...functions.out_shardings import cut
from ...types import dtypes
from ...types.array_type import array_type
from ..elementwise.conversion import convert
from ..foundations.shapes import broadcast_in_dim, canonical_axis, canonical_shape
from ..foundations.shapes import full as _full


# y[i] = i[dimension]
@operation
class Iota:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dimension: int
    fixed_params = {"sharding": None}
    exempt = {"jvp": "it has no operands", "transpose": "it has no operands", "batch": "it has no operands"}

    def result_type(op):
        if op.dtype not in dtypes.ANY_NUMERIC:
            raise DTypeMismatch(f"iota: the dtype must be numeric, got {op.dtype}.")
        if not 0 <= op.dimension < len(op.shape):
            raise BadArgument(f"iota: dimension {op.dimension} is out of range for shape {op.shape}.")
        return array_type(op.shape, op.dtype)

    def evaluate(op):
        # counted in 64 bits and then rounded, or wrapped, to the dtype
        line = np.arange(op.shape[op.dimension]).astype(op.dtype)
        if len(op.shape) == 1:
            return line
        rest = len(op.shape) - op.dimension - 1
        return np.broadcast_to(line.reshape((-1, *(1,) * rest)), op.shape)

    def lower(op, emit):
        return emit.iota(emit.made, op.dimension)

    flops = data_movement


def iota(dtype: Any, size: int) -> Array:
    """The numbers ``0, 1, ..., size - 1`` of this dtype.

    >>> iota("int32", 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def is_iota(x: Array) -> bool:
    """Whether ``x`` is known to hold the numbers ``0, 1, ..., n - 1``: by its value, or by the operation that made it.

    >>> is_iota(iota("int32", 3)), is_iota(as_array(np.array([0, 2, 1])))
    (True, False)
    """
    if x.ndim != 1:
        return False
    if isinstance(x, Box):
        return isinstance(x.made_by, Iota)
    return np.array_equal(np.asarray(x), np.arange(x.type.shape[0]))


def broadcasted_iota(dtype: Any, shape: Any, dimension: int, *, out_sharding: Any = None) -> Array:
    """``y[i] = i[dimension]`` for every index ``i`` of ``shape``.

    Raises: DTypeMismatch: the dtype is not numeric.

    >>> broadcasted_iota("int32", (2, 3), 0)
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32)
    """
    shape = canonical_shape(shape, "broadcasted_iota")
    op = Iota(dtypes.canonical(dtype), shape, canonical_axis(dimension, len(shape), "broadcasted_iota"))
    return cut("broadcasted_iota", perform(op), out_sharding)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """The array of this shape whose elements are all ``fill_value``, a number or an array of rank 0.

    Without ``dtype`` it has the dtype of ``fill_value``, weak where that is.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    shape = canonical_shape(shape, "full")
    value = as_array(fill_value) if dtype is None else convert(fill_value, dtypes.canonical(dtype))
    if value.type.shape:
        raise BadArgument(f"full: the fill value must be a scalar, got {value.type}.")
    return broadcast_in_dim(value, shape, ()) if shape else value


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """``full`` of the shape and dtype of ``x``, an array or anything with ``shape`` and ``dtype``.

    >>> full_like(np.zeros((2,), "int8"), 7)
    Array([7, 7], dtype=int8)
    """
    like = x if hasattr(x, "shape") and hasattr(x, "dtype") else type_of(x)
    weak = dtype is None and bool(getattr(like, "weak_type", False))
    kind = dtypes.canonicalize_dtype(like.dtype) if dtype is None else dtypes.canonical(dtype)
    result = array_type(canonical_shape(like.shape if shape is None else shape, "full_like"), kind, weak)
    value = convert(fill_value, kind, weak)
    return broadcast_in_dim(value, result.shape, ()) if result.shape else value


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of this shape and dtype with unspecified elements; they are zeros.

    >>> empty((2,), "float32").shape
    (2,)
    """
    zeros = _full(array_type(canonical_shape(shape, "empty"), dtypes.canonical(dtype)), 0)
    return cut("empty", zeros, out_sharding)
