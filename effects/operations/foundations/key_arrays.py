"""Operations that move elements, applied to arrays of random keys.

The key data of an array of keys is an array of uint32 with one trailing dimension more. NumPy rules of operations that
move elements index leading dimensions only, so they apply to key data as it is. On a device such an operation is
performed on the key data, batched over the trailing dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.wrapping import wraps
from ...core.columns import BATCH
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import ExtendedDType
from .shapes import move_axis


def key_data_type(type: ArrayType) -> ArrayType:
    """The type of the key data: ``u32[3,2]`` for ``key<fry>[3]``; other types are returned unchanged."""
    dtype = type.dtype
    return array_type((*type.shape, *dtype.shape), dtype.base) if isinstance(dtype, ExtendedDType) else type


def mapped_over_key_data(cell: Callable[..., Any]) -> Callable[..., Any]:
    """The ``lower`` rule of an operation that moves elements; on keys the operation is batched over the key data."""

    @wraps(cell)
    def lower(op: Any, emit: Any, *values: Any) -> Any:
        keys = [isinstance(v.type.dtype, ExtendedDType) for v in values]
        if not any(keys):
            return cell(op, emit, *values)
        made = emit.made
        dims = tuple([len(v.type.shape) if key else None for v, key in zip(values, keys)])
        words = emit.decompose(
            lambda *xs: mapped(op, dims, xs), *[v._replace(type=key_data_type(v.type)) for v in values]
        )
        results = [v._replace(type=t) for v, t in zip(words, op.as_results(made))]
        return op.from_results(results)

    return lower


def mapped(op: Any, dims: tuple[int | None, ...], xs: Sequence[Any]) -> list[Any]:
    """The results of the batched operation, with the mapped dimension as their last one."""
    y, dim = BATCH.find(type(op))(op, dims, *xs)
    results = op.as_results(y)
    at = dim if isinstance(dim, (tuple, list)) else [dim] * len(results)
    return [move_axis(x, d, len(x.type.shape) - 1) for x, d in zip(results, at)]
