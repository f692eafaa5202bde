"""Scatter by multiplication, whose derivatives hold for factors of any value, and of any order.

    scatter_mul   y = x, y[i[o] + w] *= u[o, w], for o in order
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import NotDifferentiable
from ...base.stack import perform
from ...core.arrays import scalar
from ...core.columns import zeros_like
from ...core.operation import operation
from ...types.dtypes import ANY, FOUR_BITS, INEXACT
from ...types.extent import fits
from ..elementwise.arithmetic import div, like, mul, sub
from ..elementwise.bitwise import bitwise_or
from ..elementwise.comparison import eq, ne, select
from ..elementwise.conversion import convert
from ..foundations.shapes import full, reshape
from ..indexing.gather_scatter import (
    Scatter,
    ScatterFamily,
    added,
    batch_scatter,
    combining,
    gathering,
    region,
    windows_of,
)
from ..indexing.gather_windows import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    evaluate_gather,
    evaluate_scatter,
    window_sizes,
)
from ..indexing.scatter_functions import scatter_function
from ..manipulation.creation import iota
from ..manipulation.slicing import axis_at, lane_count, pad
from .cumulative import prefixes
from .reductions import product_rule
from .sorting import sort, take_along_axis


# y = x, then y[i[o] + w] *= u[o, w] for o in order
@operation
class ScatterMul(Scatter):
    primitive_name = "scatter-mul"
    dtypes = ANY | FOUR_BITS

    evaluate = combining(np.multiply)

    def jvp(op, primals, tangents):
        x, i, u = primals
        dx, _, du = tangents
        dy = None if dx is None else perform(op, dx, i, u)
        if du is not None:
            part = mul(windows_of(op, x, i, u), du)
            part = part if op.unique_indices else mul(part, perform(OtherFactors(*op.fields), x, i, u))
            dy = perform(added(op), zeros_like(x) if dy is None else dy, i, part)
        return perform(op, x, i, u), dy

    def transpose(op, ct, x, i, u, *, wrt):
        if wrt == 0:
            return perform(op, ct, i, u)
        if not op.unique_indices:
            raise NotDifferentiable(
                "scatter_mul: it is linear in the updates only if no two of them are for one element.",
                hint="pass unique_indices=True if that is so.",
            )
        return windows_of(op, mul(ct, x), i, u)

    lower = region(mul)


# y[o, w] = the product of all updates u of the element i[o] + w but u[o, w] itself; x gives the shape
@operation
class OtherFactors(ScatterFamily):
    dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: GatherScatterMode = GatherScatterMode.FILL_OR_DROP
    dtypes = INEXACT
    exempt = {"transpose": "it is not linear"}

    def result_type(op, x, i, u):
        ScatterFamily.result_type(op, x, i, u)
        return u

    def evaluate(op, x, i, u):
        numbers, drop = op.dimension_numbers, op.mode is not GatherScatterMode.CLIP
        window = window_sizes(numbers, x.shape, u.shape)

        def combined(f, start, updates):
            y = evaluate_scatter(numbers, start, i, updates, f, drop)
            return evaluate_gather(gathering(numbers), y, i, window, 0 if op.mode.fills else None)

        zero = u == 0
        factors = np.where(zero, np.ones((), u.dtype), u)
        product = combined(np.multiply, np.ones(x.shape, u.dtype), factors)
        zeros = combined(np.add, np.zeros(x.shape, np.int64), zero.astype(np.int64))
        return np.where(zeros == zero, product / factors, np.zeros((), u.dtype))

    def batch(op, dims, x, i, u):
        i = axis_at(i, dims[1], 0, lane_count((x, i, u), dims))
        return batch_scatter(op, (dims[0], 0, dims[2]), x, i, u)[0], 0

    def jvp(op, primals, tangents):
        (x, i, u), du = primals, tangents[2]
        changed = du is not None and u.type.size
        return perform(op, x, i, u), _tangent_of_others(op, x, i, u, du) if changed else None

    def decompose(op, x, i, u):
        return _by_quotients(op, x, i, u)


def _by_quotients(op: OtherFactors, x: Any, i: Any, u: Any) -> Any:
    """The product of the factors that are not 0, divided by the own one; 0 where another factor is 0."""
    ones, one, number = full(x.type, 1), like(u, 1), np.dtype(np.int32)
    zero = eq(u, like(u, 0))
    factors = select(zero, one, u)
    product = windows_of(op, perform(ScatterMul(*op.fields), ones, i, factors), i, u)
    zeros = convert(zero, number)
    count = windows_of(op, perform(added(op), full(x.type.update(dtype=number, weak=False), 0), i, zeros), i, u)
    return select(eq(count, zeros), div(product, factors), like(u, 0))


def _tangent_of_others(op: OtherFactors, x: Any, i: Any, u: Any, du: Any) -> Any:
    """The tangent of the product of the others, which holds, and can be differentiated, for factors of any value.

    Sorted by elements, the others are the updates before and after an update in a run.
    """
    size, one = u.type.size, scalar(1, u.type.dtype, u.type.weak)
    number = np.dtype(np.int32 if fits(x.type.size, 2**31 - 1) and fits(size, 2**31 - 1) else np.int64)
    element = windows_of(op, reshape(iota(number, x.type.size), x.type.shape), i, u, -1)
    element, order, factors = sort((reshape(element, (size,)), iota(number, size), reshape(u, (size,))))
    change = take_along_axis(reshape(du, (size,)), order, 0)
    sides = []
    for reverse in (False, True):
        ahead = [(-1, 1, 0)] if reverse else [(1, -1, 0)]
        first = ne(element, pad(element, scalar(-2, number), ahead))  # of its run
        factor = select(first, like(factors, 1), pad(factors, one, ahead))
        shifted = select(first, like(factors, 0), pad(change, sub(one, one), ahead))
        sides.append(prefixes(_product_in_run, [first, factor, shifted], 0, reverse)[1:])
    _, dy = product_rule(*sides)
    dy = select(eq(element, like(element, -1)), like(dy, 0), dy)  # of updates that are dropped
    return reshape(take_along_axis(dy, sort((order, iota(number, size)))[1], 0), u.type.shape)


def _product_in_run(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
    """The product of two neighbouring parts, with its tangent, each with a mask of whether a run starts in it."""
    (starts, a, da), (restarts, *factor) = left, right
    within = [select(restarts, like(a, 1), a), select(restarts, like(da, 0), da)]
    return [bitwise_or(starts, restarts), *product_rule(within, factor)]


scatter_mul = scatter_function(
    ScatterMul, " *= updates[o, w]``.",
    "(np.ones(3), np.array([[2], [2]]), np.array([5.0, 6.0]), single)\n    Array([ 1.,  1., 30.], dtype=float64)",
)
