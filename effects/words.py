"""Keys under operations that move elements: a key's words are one more axis, and come along.

The data of an array of keys are its words, in trailing dimensions. NumPy rules of moving operations speak of leading
dimensions only. On a device such an operation on keys is the operation on words, mapped over their axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .columns import BATCH
from .dtypes import ExtendedDType
from .shapes import move_axis
from .types import ArrayType, array_type


def stored(type: ArrayType) -> ArrayType:
    """The type of the data: ``key<fry>[3]`` is held as ``u32[3,2]``."""
    dtype = type.dtype
    return array_type((*type.shape, *dtype.shape), dtype.base) if isinstance(dtype, ExtendedDType) else type


def moves_words(cell: Callable[..., Any]) -> Callable[..., Any]:
    """The cell ``lower`` of an operation that moves elements: on keys, the operation mapped over the words."""

    def lower(op: Any, emit: Any, *values: Any) -> Any:
        keys = [isinstance(v.type.dtype, ExtendedDType) for v in values]
        if not any(keys):
            return cell(op, emit, *values)
        made = emit.made
        dims = tuple([len(v.type.shape) if key else None for v, key in zip(values, keys)])
        words = emit.decompose(
            lambda *xs: mapped(op, dims, xs), *[v._replace(type=stored(v.type)) for v in values]
        )
        results = [v._replace(type=t) for v, t in zip(words, made if op.multiple else (made,))]
        return results if op.multiple else results[0]

    return lower


def mapped(op: Any, dims: tuple[int | None, ...], xs: Sequence[Any]) -> list[Any]:
    """The operation under one more axis, which stands last in every result."""
    y, dim = BATCH.find(type(op))(op, dims, *xs)
    results = list(y) if op.multiple else [y]
    at = dim if isinstance(dim, (tuple, list)) else [dim] * len(results)
    return [move_axis(x, d, len(x.type.shape) - 1) for x, d in zip(results, at)]
