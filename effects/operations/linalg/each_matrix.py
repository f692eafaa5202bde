"""Operations that NumPy has not, and SciPy has for one matrix alone: stacks of matrices are faster compiled."""

from __future__ import annotations

from math import prod

from ...types.array_type import ArrayType
from ..manipulation.last_axes import OnLastAxes


class EachMatrix(OnLastAxes):
    """An operation that is evaluated for one matrix after the other; its workload is their number."""

    __slots__ = ()
    workload = "stack of matrices"

    def workload_size(self, x: ArrayType, *others: ArrayType) -> int:
        return prod(x.shape[:-2])
