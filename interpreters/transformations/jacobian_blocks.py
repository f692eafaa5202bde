"""Jacobians as matrices over all elements of several arrays, and the blocks of these matrices."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...effects.base.errors import BadArgument
from ...effects.base.lazy_module import LazyModule
from ...effects.core.arrays import Array, concrete
from ...effects.core.containers import is_container
from ...effects.operations.elementwise.comparison import eq
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import reshape
from ...effects.operations.manipulation.creation import broadcasted_iota
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ...effects.types.array_type import array_type
from ...effects.types.extent import Extent

if TYPE_CHECKING:
    from ..ragged import ragged_array
else:
    ragged_array = LazyModule("handlax.interpreters.ragged.ragged_array")


def need_no_ragged(where: str, tree: Any) -> None:
    """Raises: BadArgument: an argument or result holds a ``Ragged``, whose blocks have a row for each element."""
    for x in pytrees.leaves(tree, is_container):
        if is_container(x) and isinstance(x, ragged_array.Ragged):
            raise BadArgument(
                f"{where}: blocks of a Jacobian have no lanes, got a Ragged among arguments or results.",
                hint=f"of its rows: hx.{where}(lambda data: f(hx.Ragged(data, lengths)))(x.data); y.data of a result.",
            )


def basis(xs: Sequence[Array]) -> Any:
    """The identity matrix over all elements of ``xs``, in their common dtype: each row is one unit vector."""
    total = sum(x.size for x in xs)
    dtype = functools.reduce(dtypes.promote_types, [x.type.dtype for x in xs])
    if isinstance(total, Extent):
        rows, columns = [broadcasted_iota("int32", (total, total), axis) for axis in (0, 1)]
        return convert(eq(rows, columns), dtype)
    return concrete(array_type((total, total), dtype), np.eye(total, dtype=dtype))


def split(flat: Any, xs: Sequence[Array]) -> list[Any]:
    """A vector split into arrays of the shapes and dtypes of ``xs``."""
    return [convert(y, x.type.dtype, x.type.weak) for x, y in zip(xs, split_axis(flat, xs, 0))]


def split_axis(y: Any, xs: Sequence[Array], axis: int) -> list[Any]:
    """An array split along one axis into arrays in which the axes of ``x`` stand in its place, for each x of ``xs``."""
    blocks, at, shape = [], 0, y.type.shape
    before, after = shape[:axis], shape[axis + 1 :]
    for x in xs:
        piece = y if len(xs) == 1 else y[(*[slice(None)] * axis, slice(at, at + x.size))]
        blocks.append(reshape(piece, (*before, *x.type.shape, *after)))
        at += x.size
    return blocks
