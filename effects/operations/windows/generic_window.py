"""Reduction over windows by any associative function, which is recorded as a program of scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...base.errors import need_function
from ...base.stack import perform
from ...base.tracebacks import boundary
from ...core.arrays import ConcreteArray
from ...core.operation import operation, shared
from ...programs.program import Program
from ...trees.pytrees import tree_unflatten
from ..reductions.generic_reduce import HigherOrderFold, body_of, function_of, monoid, starts_and_operands
from .geometry import Window, window_of
from .window_reductions import ReduceWindowMax, ReduceWindowMin, ReduceWindowSum, fold_elements, shape_over

# elementwise operation -> the window reduction by it
BY_OPERATION = {kind.by: kind for kind in (ReduceWindowSum, ReduceWindowMax, ReduceWindowMin)}


# y[j] = start o x[i] o ... over the elements that window j reads; o is the body, an associative function of scalars
@operation
class ReduceWindow(HigherOrderFold):
    bodies: tuple[Program, ...]
    carry: int
    window: Window

    def fold(op, combine, starts, xs):
        return fold_elements(combine, starts, xs, op.window)

    def result_type(op, *types):
        return op.folded_types(types, lambda x: shape_over(op.name, op.window, x))

    def times(op, *types):
        return prod(op.window.over(types[-1].shape)) * prod(op.window.sizes)

    def with_lanes(op):
        return ReduceWindow(op.bodies, op.carry, op.window.with_lanes(0))

    def lower(op, emit, *values):
        xs, starts = values[op.carry :], values[: op.carry]
        return emit.reduce_window(xs, starts, op.window, emit.made, lambda *v: emit.program(op.bodies[0], v))


@boundary
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce the elements of each window that slides over arrays by an associative function.

        y[j] = computation(...computation(init, x[strides j])..., x[strides j + window_dilation k])

    Shapes: leaves of ``operand`` have one shape, those of ``init_value`` rank 0. The computation takes two pytrees of
        scalars, or of arrays of scalars.

    Args:
        padding: pairs (low, high) for each dimension, or "SAME", "SAME_LOWER", "VALID"; windows leave padding out.
        base_dilation: ``base_dilation - 1`` gaps, which windows leave out, are put between neighbouring elements.
    Raises: DTypeMismatch: a start or a result has another dtype than its operand. CannotCross: the computation performs
        an effect. ShapeMismatch: there is not one number for each dimension.
    Source: the StableHLO specification, ``reduce_window``.

    >>> from handlax import lax
    >>> reduce_window(np.array([1, 5, 3, 2]), 0, lax.max, (2,), (2,))
    Array([5, 3], dtype=int64)
    """
    need_function("reduce_window", computation)
    starts, xs, tree = starts_and_operands("reduce_window", init_value, operand)
    window = window_of(
        "reduce_window", xs[0].type.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )

    def body() -> Program:
        return body_of("reduce_window", computation, tree, [x.type.update(shape=()) for x in xs])

    known = function_of(computation)
    program = None if known is not None else body()
    fast = BY_OPERATION.get(known if program is None else monoid(program))
    if fast is not None and xs[0].type.dtype in fast.dtypes and _is(starts[0], fast.unit(xs[0].type.dtype)):
        return tree_unflatten(tree, [perform(shared(fast, window), xs[0])])
    return tree_unflatten(tree, list(perform(ReduceWindow((program or body(),), len(xs), window), *starts, *xs)))


def _is(start: Any, value: Any) -> bool:
    """Whether a scalar is statically known to equal the value."""
    return isinstance(start, ConcreteArray) and bool(start.value == np.asarray(value).astype(start.type.dtype))
