"""``ravel_pytree``: a tree of arrays as one vector, and back."""

from __future__ import annotations

from typing import Any

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.frozen_values import Value
from ...core.arrays import as_array
from ...trees import pytrees
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import float32, result_type, short_name
from ..elementwise.conversion import convert
from ..foundations.shapes import reshape, zeros
from .slicing import concatenate, split

__all__ = ["ravel_pytree"]


class Unravel(Value):
    """The inverse of ``ravel_pytree``: from a vector to the tree. Those of equal structures and types are equal.

    ``dtype``: that of the vector; None where all leaves have the same one: then it maps vectors of any dtype.
    """

    structure: Any
    types: tuple[ArrayType, ...]
    dtype: Any

    def __call__(self, flat: Any) -> Any:
        x = as_array(flat)
        sizes = [t.size for t in self.types]
        if x.type.shape != (sum(sizes),):
            raise ShapeMismatch(f"ravel_pytree: the tree has {sum(sizes)} elements, got an array {x.type} of them.")
        if self.dtype is not None and x.type.dtype != self.dtype:
            raise DTypeMismatch(f"ravel_pytree: the vector has dtype {short_name(self.dtype)}, got an array {x.type}.")
        leaves = [reshape(piece, t.shape) for piece, t in zip(split(x, sizes), self.types)] if sizes else []
        if self.dtype is not None:
            leaves = [convert(leaf, t.dtype) for leaf, t in zip(leaves, self.types)]
        return pytrees.unflatten(self.structure, leaves)


def ravel_pytree(pytree: Any) -> tuple[Any, Any]:
    """The leaves of a tree one after another in a vector, and the function from such a vector to such a tree.

        flat, unravel = ravel_pytree(tree):  unravel(flat) == tree

    The dtype of the vector is that to which those of the leaves promote. Where they differ ``unravel`` takes this dtype
    alone and restores those of the leaves; where all are one it takes any dtype, and the leaves have that. A tree
    without leaves gives ``f32[0]``.

    Raises: NotAnArray: a leaf is no array. ``unravel`` raises ShapeMismatch and DTypeMismatch.

    >>> from handlax import numpy as hnp
    >>> flat, unravel = ravel_pytree({"w": hnp.ones((2, 2)), "b": hnp.zeros(2)})
    >>> flat
    Array([0., 0., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(2 * flat)["w"]
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    leaves, structure = pytrees.flatten(pytree)
    xs = [as_array(leaf) for leaf in leaves]
    if not xs:
        return zeros(array_type((0,), float32)), Unravel(structure, (), None)
    types = tuple([x.type for x in xs])
    dtype = result_type(*[t.dtype for t in types])
    mixed = any([t.dtype != dtype for t in types])
    flat = [reshape(convert(x, dtype) if mixed else x, (x.type.size,)) for x in xs]
    return concatenate(flat, 0), Unravel(structure, types, dtype if mixed else None)
