"""Operations on the last axes of arrays, such as transforms and factorisations: one for each slice along the others."""

from __future__ import annotations

from math import inf, prod
from typing import Any

from ...base.stack import perform
from ...core.operation import Operation
from ...sharding.sharding_rules import ShardingRule, numbered
from ...types.array_type import ArrayType
from .slicing import lanes_first


class OnLastAxes(Operation):
    """An operation on the last axes of its operands, once for each index of the axes before, which all of them share.

        op(x)[i] == op(x[i])

    ``last_axes``: on how many axes of the first operand it is.
    """

    __slots__ = ()
    last_axes = 2

    def sharding_rule(op, operands, results):
        """Last axes are whole."""
        count = len(operands[0].shape) - op.last_axes
        own = [[d if d < count else (i, d) for d in numbered(t)] for i, t in enumerate(operands)]
        whole = {factor for factors in own for factor in factors[count:]}
        made = [[d if d < count else None for d in numbered(t)] for t in results]
        return ShardingRule(own, made, whole, equal=range(count))

    def batch(op: Any, dims: tuple[int | None, ...], *xs: Any) -> tuple[Any, Any]:
        """The batch rule: the same operation on operands with the lanes as first axis."""
        y = perform(op, *lanes_first(xs, dims))
        return y, (0,) * len(y) if op.multiple_results else 0


class EachMatrix(OnLastAxes):
    """An operation that is evaluated for one matrix after the other: by NumPy for few or small ones, else compiled."""

    __slots__ = ()

    def workload_size(self, x: ArrayType, *others: ArrayType) -> float:
        return inf if prod(x.shape[:-2]) >= 8 and x.size >= 400 else 0
