"""Mixed precision: chosen operations run on narrow operands, and give results of the width that they had.

    handle(autocast("bfloat16"))(f)(x)        f with products of bfloat16 that are summed in float32
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...effects.arrays import lift, perform
from ...effects.conversion import convert
from ...effects.dtypes import canonical, is_floating, itemsize_bits
from ...effects.errors import BadArgument
from ...effects.operations import Operation, result_type
from ..handler import Handler, handler


def accumulates(op: Operation) -> bool:
    """Whether an operation sums in a dtype of its own: contractions and convolutions."""
    return "preferred_element_type" in op._names


def autocast(dtype: Any = "bfloat16", over: Callable[[Operation], bool] = accumulates) -> Handler:
    """A handler under which operations take their floating operands in a narrower dtype.

    Results have the dtype that they had without it. Contractions and convolutions sum in it; of other operations that
    ``over`` chooses the result is narrow, and converted. Operands that are as narrow already stay as they are.

        handle(autocast())(grad(f))     forward and backward are narrow
        grad(handle(autocast())(f))     the same, and the conversions are differentiated too

    Args:
        dtype: what the operands are converted to.
        over: which operations; contractions and convolutions by default.

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

    def narrower(op: Any, *operands: Any) -> Any:
        types = tuple([x.type for x in operands])
        wide = [is_floating(t.dtype) and itemsize_bits(t.dtype) > width for t in types]
        if not any(wide):
            return perform(op, *operands)
        made = result_type(op, types)
        xs = [convert(x, narrow) if yes else x for x, yes in zip(operands, wide)]
        if len({x.type.dtype for x in xs if is_floating(x.type.dtype)}) > 1:
            return perform(op, *operands)
        if accumulates(op):
            return perform(_summing(op, made.dtype), *xs)
        y = perform(op, *xs)
        if not op.multiple:
            return convert(y, made.dtype, made.weak)
        return tuple([convert(lift(part), t.dtype, t.weak) for part, t in zip(y, made)])

    return handler(otherwise=narrower, over=lambda op: not op.effects and over(op))


def _summing(op: Any, dtype: Any) -> Any:
    """The operation with results of this dtype, whatever the operands are."""
    return type(op)(*[dtype if name == "preferred_element_type" else getattr(op, name) for name in op._names])
