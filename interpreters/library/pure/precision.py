"""Mixed precision: chosen operations take operands of a narrower dtype, and keep the dtype of their results.

    handle(autocast("bfloat16"))(f)(x)        f with products of bfloat16 that are summed in float32
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....effects.base.errors import BadArgument
from ....effects.core.arrays import as_array, perform
from ....effects.core.operation import Operation, result_type
from ....effects.operations.elementwise.conversion import convert
from ....effects.types.dtypes import canonical, is_floating, itemsize_bits
from ...handlers.handler import Handler, handler


def accumulates(op: Operation) -> bool:
    """Whether an operation has an accumulation dtype, ``preferred_element_type``: contractions and convolutions."""
    return "preferred_element_type" in op._names


def autocast(dtype: Any = "bfloat16", over: Callable[[Operation], bool] = accumulates) -> Handler:
    """A handler that converts the floating operands of operations to a narrower dtype.

    Results keep their dtype. Contractions and convolutions accumulate in it; other operations that satisfy ``over``
    compute a narrow result, which is converted. Operands that are as narrow already are not converted.

        handle(autocast())(grad(f))     forward and backward are narrow
        grad(handle(autocast())(f))     the same, and the conversions are differentiated too

    Args:
        dtype: the dtype of the converted operands.
        over: the operations to convert; contractions and convolutions by default.

    Raises: BadArgument: ``dtype`` is no floating dtype.

    >>> from handlax import handle, numpy
    >>> x = numpy.full((2, 2), 1.001)
    >>> handle(autocast("bfloat16"))(lambda x: x @ x)(x).dtype
    dtype('float32')
    """
    narrow = canonical(dtype)
    if not is_floating(narrow):
        raise BadArgument(f"autocast: the dtype must be a floating one, got {narrow}.")
    width = itemsize_bits(narrow)

    def narrowed(op: Any, *operands: Any) -> Any:
        types = tuple([x.type for x in operands])
        wide = [is_floating(t.dtype) and itemsize_bits(t.dtype) > width for t in types]
        floats = {narrow if yes else t.dtype for t, yes in zip(types, wide) if is_floating(t.dtype)}
        if not any(wide) or len(floats) > 1:
            return perform(op, *operands)
        results = result_type(op, types)
        xs = [convert(x, narrow) if yes else x for x, yes in zip(operands, wide)]
        if accumulates(op):
            return perform(_accumulating(op, results.dtype), *xs)
        y = perform(op, *xs)
        if not op.multiple_results:
            return convert(y, results.dtype, results.weak)
        return tuple([convert(as_array(part), t.dtype, t.weak) for part, t in zip(y, results)])

    return handler(otherwise=narrowed, over=lambda op: not op.effects and over(op))


def _accumulating(op: Any, dtype: Any) -> Any:
    """The operation with this accumulation dtype, which is also the dtype of its result."""
    return type(op)(*[dtype if name == "preferred_element_type" else getattr(op, name) for name in op._names])
