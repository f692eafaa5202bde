"""todense: conversion of a sparse array to a dense one, also under ``sparsify``."""

from __future__ import annotations

from typing import Any

from ...effects.base.stack import perform
from ...effects.core.arrays import Box, as_array
from ...effects.core.columns import data_movement, linear
from ...effects.operations.foundations.elementwise_factory import elementwise
from ...effects.types.dtypes import ANY
from .sparse_array import is_sparse

__all__ = ["todense"]

# y = x; of a sparse x, under ``sparsify``, the dense array
Todense = elementwise(
    "todense", ANY, lambda x: x, jvp=linear, transpose=lambda op, ct, x: ct, lower=lambda op, emit, x: x,
    flops=data_movement, doc="The same array, which is dense where ``sparsify`` made it sparse.",
)
_todense = Todense()


def todense(arr: Any) -> Any:
    """The dense array of a sparse one; a dense array is returned itself.

    Under ``sparsify`` it is an operation, whose result is dense.

    >>> from handlax.experimental import sparse
    >>> todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if is_sparse(arr):
        return arr.todense()
    x = as_array(arr)
    return perform(_todense, x) if isinstance(x, Box) else x
