"""Reductions along axes and cumulative ones: sum, prod, max, min, all, any, argmax, count_nonzero, cumsum, ...

Sums and products of integers have at least the width of the default integer; 16-bit floats are summed in float32.
Results are not weakly typed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...effects.base.errors import BadArgument
from ...effects.base.stack import current
from ...effects.core.arrays import Array
from ...effects.core.operation import shared
from ...effects.operations.elementwise.arithmetic import mul
from ...effects.operations.elementwise.bitwise import bitwise_and, bitwise_or
from ...effects.operations.elementwise.comparison import max as _max
from ...effects.operations.elementwise.comparison import min as _min
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.half_precision import HALF
from ...effects.operations.foundations.shapes import ReduceSum
from ...effects.operations.manipulation.operand_promotion import together
from ...effects.operations.manipulation.slicing import concatenate
from ...effects.operations.reductions import cumulative, reductions
from ...effects.operations.reductions.reductions import (
    Argmax,
    Argmin,
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
)
from ...effects.types import dtypes
from ...effects.types.dtypes import bool_, canonical, default_int, float32
from ...interpreters.core.eager_programs import evaluated_at_once, programs
from ..arrays.argument_conversion import array_of, axes_of, kept_shape, masked, no_out, rows_of, to_bool

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "max", "min", "minmax", "prod", "sum",
]


_NARROW = frozenset({
    bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16, dtypes.uint32,
})


def summed_dtype(dtype: Any) -> Any:
    """The dtype of a sum of elements of ``dtype``: narrower integers, and booleans, have the default width."""
    if dtype not in _NARROW or default_int().itemsize <= dtype.itemsize:
        return dtype
    return canonical(f"u{default_int()}") if dtypes.is_unsigned(dtype) else default_int()


def _perform(kind: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The reduction operation of class ``kind`` over these axes, which stay with size 1 for ``keepdims``."""
    y = current().answer(shared(kind, axes), (x,)) if axes else x
    return shapes.reshape(y, kept_shape(x.type.shape, axes)) if keepdims else y


def _fold(
    name: str, kind: Any, unit: int, times: Callable[..., Any], a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool,
    initial: Any, where: Any, promote_integers: bool,
) -> Any:
    """The sum or product by the operation of class ``kind`` with the identity ``unit``; ``times`` joins ``initial``."""
    no_out(out, name)
    x = a if isinstance(a, Array) else array_of(a)
    own = x.type.dtype
    made = canonical(dtype) if dtype is not None else summed_dtype(own) if promote_integers or own is bool_ else own
    if made is bool_:  # the sums and products of booleans are booleans only where that is asked for
        kind, times = (ReduceOr, bitwise_or) if kind is ReduceSum else (ReduceAnd, bitwise_and)
    # evaluated eagerly, a sum of 16-bit floats adds in 32 bits by itself: one operation instead of three
    alone = made in HALF and own == made and kind is ReduceSum and initial is None and evaluated_at_once()
    x = convert(x, float32 if made in HALF and not alone else made)
    y = _perform(kind, masked(x, where, unit, name), axes_of(axis, len(x.type.shape), name), keepdims)
    if initial is not None:
        y = times(*together(name, convert(initial, y.type.dtype), y))
    return convert(y, made)


def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Array:
    """The sum over one axis, several, or all; 0 for no elements.

        sum(a, axis=1)[i] == initial + a[i, 0] + a[i, 1] + ...

    Shapes: the axes are removed, or kept with size 1 for ``keepdims``; only elements where ``where`` is true count.
    Source: NumPy, ``sum``.

    >>> from handlax.numpy import ones
    >>> sum(ones((2, 3), "int8"), axis=0)
    Array([2, 2, 2], dtype=int32)
    """
    return _fold("sum", ReduceSum, 0, operator.add, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Array:
    """The product over one axis, several, or all; 1 for no elements. Source: NumPy, ``prod``.

    >>> from handlax.numpy import array
    >>> prod(array([2.0, 3.0]))
    Array(6., dtype=float32)
    """
    return _fold("prod", ReduceProd, 1, mul, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def _extreme(
    name: str, kind: Any, unit: Any, choose_one: Any, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any,
    where: Any,
) -> Any:
    """The maximum or minimum by the operation of class ``kind``; ``choose_one`` joins ``initial``.

    ``unit`` gives the identity of a dtype, which stands where ``where`` is false.
    """
    no_out(out, name)
    x = a if isinstance(a, Array) else array_of(a)
    shape, dtype = x.type.shape, x.type.dtype
    axes = axes_of(axis, len(shape), name)
    if initial is None:
        if where is not None:
            raise BadArgument(f"{name}: with where=, initial= must be given: there may be nothing to choose from.")
        if 0 in [shape[d] for d in axes]:
            raise BadArgument(
                f"{name}: of no elements there is none, got {x.type} along {axes}.", hint="give initial=."
            )
    y = _perform(kind, masked(convert(x, dtype), where, unit(dtype), name), axes, keepdims)
    return y if initial is None else choose_one(*together(name, convert(initial, dtype), y))


def max(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The largest element along the axes, NaN where there is one. Source: NumPy, ``max``.

    Raises: BadArgument: without ``initial``, there is no element, or ``where`` is given.

    >>> from handlax.numpy import array
    >>> max(array([[1, 5], [7, 2]]), axis=1)
    Array([5, 7], dtype=int32)
    """
    return _extreme("max", ReduceMax, reductions.lowest, _max, a, axis, out, keepdims, initial, where)


def min(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The smallest element along the axes, NaN where there is one. Source: NumPy, ``min``.

    Raises: BadArgument: without ``initial``, there is no element, or ``where`` is given.

    >>> from handlax.numpy import array
    >>> min(array([[1, 5], [7, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _extreme("min", ReduceMin, reductions.highest, _min, a, axis, out, keepdims, initial, where)


amax, amin = max, min


def minmax(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> tuple[Array, Array]:
    """The smallest and the largest element along the axes: ``(min(a), max(a))``. Source: NumPy, ``minmax``.

    Args:
        initial: one start value for both, or a tuple with that of the minimum and that of the maximum.

    >>> from handlax.numpy import array
    >>> minmax(array([[1, 5], [7, 2]]), axis=1)
    (Array([1, 2], dtype=int32), Array([5, 7], dtype=int32))
    """
    no_out(out, "minmax")
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    return min(a, axis, None, keepdims, low, where), max(a, axis, None, keepdims, high, where)


def _truth(name: str, kind: Any, unit: bool, a: Any, axis: Any, out: Any, keepdims: bool, where: Any) -> Any:
    """Whether any, or all, elements are nonzero, by the operation of class ``kind``, whose identity is ``unit``."""
    no_out(out, name)
    x = to_bool(a)
    return _perform(kind, masked(x, where, unit, name), axes_of(axis, len(x.type.shape), name), keepdims)


def any(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Whether any element along the axes is nonzero; false for no elements. Source: NumPy, ``any``.

    >>> from handlax.numpy import array
    >>> any(array([0.0, 2.0]))
    Array(True, dtype=bool)
    """
    return _truth("any", ReduceOr, False, a, axis, out, keepdims, where)


def all(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Whether all elements along the axes are nonzero; true for no elements. Source: NumPy, ``all``.

    >>> from handlax.numpy import array
    >>> all(array([0.0, 2.0]))
    Array(False, dtype=bool)
    """
    return _truth("all", ReduceAnd, True, a, axis, out, keepdims, where)


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The number of nonzero elements along the axes. Source: NumPy, ``count_nonzero``.

    >>> from handlax.numpy import array
    >>> count_nonzero(array([0.0, 2.0, 3.0]))
    Array(2, dtype=int32)
    """
    return sum(to_bool(a), axis, keepdims=keepdims, dtype=default_int())


def _index_of_extreme(name: str, kind: Any, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    """``argmax`` or ``argmin``, by the operation of class ``kind``."""
    no_out(out, name)
    whole = array_of(a)
    x, axis = rows_of(whole, axis, name) if axis is None or axis.__class__ is not int else (whole, axis)
    axis = shapes.canonical_axis(axis, len(x.type.shape), name)
    if not x.type.shape[axis]:
        raise BadArgument(f"{name}: of no elements there is none, got {whole.type}.")
    y = current().answer(shared(kind, (axis,), default_int()), (x,))
    if not keepdims:
        return y
    kept = (1,) * len(whole.type.shape) if x is not whole else kept_shape(whole.type.shape, (axis,))
    return shapes.reshape(y, kept)


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the largest element along an axis, or of the flattened array: the first of equal ones; NaN wins.

    >>> from handlax.numpy import array
    >>> argmax(array([3, 7, 7]))
    Array(1, dtype=int32)
    """
    return _index_of_extreme("argmax", Argmax, a, axis, out, keepdims)


def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the smallest element along an axis, or of the flattened array: the first of equal ones; NaN wins.

    >>> from handlax.numpy import array
    >>> argmin(array([3, 1, 1]))
    Array(1, dtype=int32)
    """
    return _index_of_extreme("argmin", Argmin, a, axis, out, keepdims)


def _running(name: str, function: Any, a: Any, axis: Any, dtype: Any, out: Any, widen: bool = False) -> Any:
    """Cumulative sums or products by ``function``; with ``widen``, narrow integers become the default width."""
    no_out(out, name)
    x, axis = rows_of(a, axis, name, one=True)
    own = x.type.dtype
    made = canonical(dtype) if dtype is not None else summed_dtype(own) if widen or own is bool_ else own
    if made is bool_:
        function = cumulative.cummax if function is cumulative.cumsum else cumulative.cummin
    return function(convert(x, made), axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Cumulative sums: ``cumsum(a)[k] == a[0] + ... + a[k]`` along an axis, or of the flattened array.

    >>> from handlax.numpy import array
    >>> cumsum(array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", cumulative.cumsum, a, axis, dtype, out)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Cumulative products: ``cumprod(a)[k] == a[0] * ... * a[k]`` along an axis, or of the flattened array.

    >>> from handlax.numpy import array
    >>> cumprod(array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", cumulative.cumprod, a, axis, dtype, out)


def cummax(a: Any, axis: int, dtype: Any = None) -> Array:
    """``maximum.accumulate``: the largest element so far along an axis, NaN from the first NaN on."""
    return cumulative.cummax(array_of(a) if dtype is None else convert(array_of(a), canonical(dtype)), axis)


def cummin(a: Any, axis: int, dtype: Any = None) -> Array:
    """``minimum.accumulate``: the smallest element so far along an axis, NaN from the first NaN on."""
    return cumulative.cummin(array_of(a) if dtype is None else convert(array_of(a), canonical(dtype)), axis)


def _cumulative(name: str, function: Any, unit: int, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    """Cumulative sums or products of the array API standard: ``include_initial`` puts ``unit`` before them."""
    x = array_of(x)
    if axis is None:
        if len(x.type.shape) != 1:
            raise BadArgument(f"{name}: an axis must be named, unless the array has rank 1, got {x.type}.")
        axis = 0
    y = _running(name, function, x, axis, dtype, None, widen=True)
    if not include_initial:
        return y
    axis = shapes.canonical_axis(axis, len(y.type.shape), name)
    return concatenate([shapes.full(y.type.update(shape=kept_shape(y.type.shape, (axis,))), unit), y], axis)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """Cumulative sums along an axis, after a 0 if ``include_initial``; integers have the default width.

    Source: the array API standard, ``cumulative_sum``.

    >>> from handlax.numpy import array
    >>> cumulative_sum(array([1, 2]), include_initial=True)
    Array([0, 1, 3], dtype=int32)
    """
    return _cumulative("cumulative_sum", cumulative.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """Cumulative products along an axis, after a 1 if ``include_initial``; integers have the default width.

    Source: the array API standard, ``cumulative_prod``.

    >>> from handlax.numpy import array
    >>> cumulative_prod(array([2, 3]), include_initial=True)
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", cumulative.cumprod, 1, x, axis, dtype, include_initial)


programs(globals())
