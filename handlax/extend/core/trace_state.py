"""The state of tracing, and types with and without a mapped axis."""

from __future__ import annotations

import weakref

from ...effects.base.errors import ShapeMismatch
from ...effects.base.frozen_values import Value
from ...effects.base.stack import Run
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.types.array_type import ArrayType
from ...interpreters.handlers.handle import innermost_transformation

__all__ = ["OpaqueTraceState", "get_opaque_trace_state", "mapped_aval", "unmapped_aval"]


class OpaqueTraceState(Value):
    """The innermost transformation in force; equal states mean the same application, which they do not keep alive."""

    innermost: weakref.ref[Run]


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """The innermost transformation in force as an ``OpaqueTraceState``; outside of all there is a state too.

    Values that were made under an equal state are of the same trace. Handlers of a user's are no transformations: they
    make no values of their own.

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
