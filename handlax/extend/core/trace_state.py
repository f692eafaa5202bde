"""The state of tracing, and types with and without a mapped axis."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any

from ...effects.base.errors import ConcretizationError, ShapeMismatch
from ...effects.base.frozen_values import Value
from ...effects.base.stack import Run, runs
from ...effects.core.arrays import Box
from ...effects.core.named_axes import named_axes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.types.array_type import ArrayType, array_type
from ...interpreters.batching.batch import Batch
from ...interpreters.core.record import Record
from ...interpreters.handlers.handle import innermost_transformation

__all__ = [
    "OpaqueTraceState", "concrete_or_error", "get_opaque_trace_state", "mapped_aval", "nonempty_axis_env",
    "primal_dtype_to_tangent_dtype", "unmapped_aval", "unsafe_am_i_under_a_jit", "unsafe_am_i_under_a_vmap",
    "unsafe_get_axis_names",
]


class OpaqueTraceState(Value):
    """The innermost transformation in force; equal states mean the same application, which they do not keep alive."""

    innermost: weakref.ref[Run]


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """The innermost transformation in force as an ``OpaqueTraceState``; outside of all there is a state too.

    Values that were made under an equal state are of the same trace. Handlers of a user's, named scopes and
    ``ensure_compile_time_eval`` are no transformations: they make no values of their own.

    >>> from handlax import jit
    >>> outside = get_opaque_trace_state()
    >>> jit(lambda x: x + (get_opaque_trace_state() == outside))(1)
    Array(1, dtype=int32, weak_type=True)
    """
    return OpaqueTraceState(weakref.ref(innermost_transformation()))


def mapped_aval(size: int, axis: int | None, aval: ArrayType) -> ArrayType:
    """The type of one lane: ``aval`` without ``axis``, which has ``size`` elements; ``aval`` itself where that is None.

        mapped_aval(n, i, unmapped_aval(n, i, t)) == t

    Raises: ShapeMismatch: the axis has another size. AxisError: there is no such axis.

    >>> from handlax import typeof, numpy as hnp
    >>> mapped_aval(2, 0, typeof(hnp.ones((2, 3))))
    f32[3]
    """
    if axis is None:
        return aval
    axis = canonical_axis(axis, aval.ndim, "mapped_aval")
    if aval.shape[axis] != size:
        raise ShapeMismatch(f"mapped_aval: axis {axis} must have {size} elements, got {aval}.")
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ArrayType) -> ArrayType:
    """The type of ``size`` lanes: ``aval`` with a new ``axis``; ``aval`` itself where that is None.

        mapped_aval(n, i, unmapped_aval(n, i, t)) == t

    Raises: AxisError: the result has no such axis.

    >>> from handlax import typeof
    >>> unmapped_aval(4, 0, typeof(1.0))
    f32[4]~
    """
    if axis is None:
        return aval
    axis = canonical_axis(axis, aval.ndim + 1, "unmapped_aval")
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def unsafe_get_axis_names() -> list[Hashable]:
    """The names of the axes that are bound, innermost first.

    >>> from handlax import numpy as hnp, vmap
    >>> _ = vmap(lambda x: print(unsafe_get_axis_names()) or x, axis_name="i")(hnp.ones(2))
    ['i']
    """
    return [name for name, _ in named_axes()]


def nonempty_axis_env() -> bool:
    """Whether an axis is bound."""
    return bool(unsafe_get_axis_names())


def unsafe_am_i_under_a_jit() -> bool:
    """Whether operations are recorded, as under ``jit``, ``make_jaxpr`` and in bodies of loops and branches.

    >>> from handlax import eval_shape
    >>> _ = eval_shape(lambda: print(unsafe_am_i_under_a_jit()) or 0.0)
    True
    """
    return any([isinstance(run, Record) and run.records_everything for run in runs()])


def unsafe_am_i_under_a_vmap() -> bool:
    """Whether a ``vmap`` is in force."""
    return any([isinstance(run, Batch) for run in runs()])


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """``force(val)`` of a known value; ``val`` itself where ``force`` is None.

    Raises: ConcretizationError: the value is traced; ``context`` says what it is needed for.

    >>> concrete_or_error(int, 3.0)
    3
    """
    if isinstance(val, Box):
        raise ConcretizationError(f"concrete_or_error: a known value is needed, got {val}.", hint=context or None)
    return val if force is None else force(val)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents: that of inexact values, ``float0`` of all others.

    >>> primal_dtype_to_tangent_dtype("float32"), primal_dtype_to_tangent_dtype("int32").names
    (dtype('float32'), ('float0',))
    """
    return array_type((), primal_dtype).tangent().dtype
