"""Arguments of array functions made arrays: converted, promoted and broadcast together; axes counted from the front."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, NotProvided, ShapeMismatch
from ...effects.base.stack import current
from ...effects.core.arrays import Array, as_array, is_number
from ...effects.operations.elementwise.arithmetic import like as like
from ...effects.operations.elementwise.comparison import SelectN, ne
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.half_precision import HALF
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, broadcast_together, promote, together
from ...effects.operators import numpy_arithmetic
from ...effects.types import dtypes
from ...effects.types.dtypes import ANY_INEXACT, bool_, float32, is_complex, to_inexact

_select = SelectN()
inexact_together: Callable[..., list[Any]] = numpy_arithmetic.inexact


def strong(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` with strongly typed results, for weakly typed arguments too, as JAX's function of the same name has."""

    @wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        y = f(*args, **kwargs)
        return strengthened(y) if isinstance(y, Array) else tuple([strengthened(part) for part in y])

    return function


def strong_beside_strong(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` with a result that is weakly typed only if every argument is, whether integer, float or complex."""

    @wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        y = f(*args, **kwargs)
        return y if all([is_weak(x) for x in args]) else strengthened(y)

    return function


def in_32_bits(f: Callable[..., Any], *xs: Any) -> Any:
    """``f(*xs)``, where floats of 16 bits are computed in 32 and rounded once; weakly typed if all of ``xs`` are."""
    dtype, weak = xs[0].type.dtype, all([x.type.weak for x in xs])
    if dtype not in HALF:
        y = f(*xs)
        return convert(y, dtype, weak) if weak and not is_complex(dtype) else y
    return convert(f(*[convert(x, float32, x.type.weak) for x in xs]), dtype)


def strengthened(x: Any) -> Any:
    """``x``, strongly typed."""
    return convert(x, x.type.dtype)


def is_weak(x: Any) -> bool:
    """Whether an argument is weakly typed: a weakly typed array, or a number that is not a boolean."""
    return x.type.weak if isinstance(x, Array) else is_number(x) and not isinstance(x, (bool, np.bool_))


def array_of(x: Any) -> Array:
    """``x`` as an array; arrays as they are."""
    return x if isinstance(x, Array) else as_array(x)


def inexact(x: Any) -> Array:
    """``x`` as floats or complex numbers: others become float32, 64-bit integers float64, weak ones the default."""
    x = x if isinstance(x, Array) else as_array(x)
    kind = x.type
    return x if kind.dtype in ANY_INEXACT else convert(x, to_inexact(kind.dtype, kind.weak), kind.weak)


def numeric(x: Any) -> Any:
    """``x`` as numbers: booleans become the default integers."""
    x = x if isinstance(x, Array) else as_array(x)
    return convert(x, dtypes.default_int()) if x.type.dtype is bool_ else x


def numeric_together(name: str, *xs: Any) -> list[Any]:
    """The operands as numbers of one dtype, and of one shape or rank 0."""
    promoted = together(name, *xs)
    return [numeric(x) for x in promoted] if promoted[0].type.dtype is bool_ else promoted


def same_shape(name: str, *xs: Any) -> list[Any]:
    """The operands broadcast to one shape; dtypes stay."""
    arrays = [array_of(x) for x in xs]
    shape = broadcast_shape(name, *[x.type.shape for x in arrays])
    return [shapes.broadcast(x, shape) for x in broadcast_together(name, arrays)]


def to_bool(x: Any) -> Any:
    """Whether each element differs from zero."""
    x = x if isinstance(x, Array) else as_array(x)
    return x if x.type.dtype is bool_ else ne(x, like(x, 0))


def choose(condition: Any, x: Any, y: Any, name: str = "where") -> Array:
    """``x`` where the condition holds, ``y`` elsewhere: promoted and broadcast."""
    which = to_bool(condition)
    x, y = promote(x, y)
    shape = which.type.shape
    if not (x.type.shape == shape or not x.type.shape) or not (y.type.shape == shape or not y.type.shape):
        which, x, y = broadcast_together(name, (which, x, y))
        full = x.type.shape or y.type.shape
        if which.type.shape != full and which.type.shape and full:
            which = shapes.broadcast(which, broadcast_shape(name, which.type.shape, full))
    return current().answer(_select, (which, y, x))


def mask_for(where: Any, shape: tuple[int, ...], name: str) -> Any:
    """The argument ``where`` of a reduction, broadcast to the shape of its array.

    Raises: BadArgument: it is not boolean. ShapeMismatch: it does not broadcast to this shape.
    """
    mask = array_of(where)
    if mask.type.dtype is not bool_:
        raise BadArgument(
            f"{name}: where must be boolean, got {mask.type}.", hint="say which elements count, as in where=mask != 0."
        )
    if broadcast_shape(name, mask.type.shape, shape) != shape:
        raise ShapeMismatch(f"{name}: where must broadcast to the shape {shape} of the array, got {mask.type}.")
    return shapes.broadcast(mask, shape)


def masked(x: Any, where: Any, filler: Any, name: str) -> Any:
    """``where(mask, x, filler)`` in the dtype of ``x``; ``x`` itself for the mask None."""
    if where is None:
        return x
    return current().answer(_select, (mask_for(where, x.type.shape, name), like(x, filler), x))


def axes_of(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """The axes to reduce, counted from the front and sorted; None is all of them."""
    if axis is None:
        return tuple(range(rank))
    if axis.__class__ is int and -rank <= axis < rank:
        return (axis + rank if axis < 0 else axis,)
    return shapes.canonical_axes(axis, rank, name)


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after a reduction over these axes with ``keepdims``: they have size 1."""
    return tuple([1 if d in axes else n for d, n in enumerate(shape)])


def no_out(out: Any, name: str) -> None:
    """Raise NotProvided if ``out`` is given: arrays are immutable."""
    if out is not None:
        raise NotProvided(f"{name}: arrays are immutable, so there is no out=.", hint="use the result.")


def rows_of(x: Any, axis: Any, name: str, one: bool = False) -> tuple[Any, int]:
    """``x`` as an array, and ``axis`` counted from the front; for ``axis=None`` the flattened array, and axis 0.

    With ``one`` a scalar becomes a vector of one element.
    """
    x = array_of(x)
    if axis is None or (one and not x.type.shape and axis in (0, -1)):
        return shapes.reshape(x, (x.size,)), 0
    return x, shapes.canonical_axis(axis, len(x.type.shape), name)
