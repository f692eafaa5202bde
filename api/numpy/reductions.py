"""Reductions along axes: sums, products, extremes, means, variances, truth, places of extremes, running sums.

Sums and products of integers have at least the default integers' width; 16-bit floats are summed in 32 bits.
A result is not weakly typed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod as _product
from typing import Any

from ..effects import cumulative, dtypes, reductions, shapes
from ..effects.arithmetic import div, mul, sqrt, sub
from ..effects.arrays import Array
from ..effects.comparison import gt, select_n
from ..effects.comparison import max as _max
from ..effects.comparison import min as _min
from ..effects.complexes import conj
from ..effects.complexes import real as _real
from ..effects.conversion import convert
from ..effects.dtypes import bool_, canonical, default_int, float32, is_complex, to_inexact
from ..effects.errors import BadArgument, DTypeMismatch
from ..effects.operations import shared
from ..effects.precise import HALF
from ..effects.reductions import Argmax, Argmin, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd
from ..effects.shapes import ReduceSum
from ..effects.slicing import concatenate
from ..effects.stack import BASE, current
from .operands import array_of, axes_of, choose, kept_shape, like, no_out, rows_of, to_bool, together

_WIDE = {
    dtypes.bool_: default_int,
    **dict.fromkeys((dtypes.int8, dtypes.int16, dtypes.int32), default_int),
    **{
        d: lambda: canonical(default_int().name.replace("int", "uint"))
        for d in (dtypes.uint8, dtypes.uint16, dtypes.uint32)
    },
}


def summed_dtype(dtype: Any) -> Any:
    """The dtype of a sum of such elements: integers of the default width, where they are narrower."""
    wider = _WIDE.get(dtype)
    if wider is None:
        return dtype
    found = wider()
    return found if found.itemsize > dtype.itemsize or dtype is bool_ else dtype


def _perform(kind: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    y = current().answer(shared(kind, axes), (x,)) if axes else x
    return shapes.reshape(y, kept_shape(x.type.shape, axes)) if keepdims else y


def _fold(
    name: str, kind: Any, unit: int, times: Callable[..., Any], a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool,
    initial: Any, where: Any, promote_integers: bool,
) -> Any:  # fmt: skip
    """Sum or product: ``times`` joins the initial value."""
    no_out(out, name)
    x = a if isinstance(a, Array) else array_of(a)
    own = x.type.dtype
    made = canonical(dtype) if dtype is not None else summed_dtype(own) if promote_integers or own is bool_ else own
    # run at once, a sum of 16-bit floats adds in 32 bits by itself: one operation instead of three
    alone = made in HALF and own == made and kind is ReduceSum and initial is None and current() is BASE
    x = convert(x, float32 if made in HALF and not alone else made)
    if where is not None:
        x = choose(where, x, like(x, unit), name)
    y = _perform(kind, x, axes_of(axis, len(x.type.shape), name), keepdims)
    if initial is not None:
        y = times(*together(name, convert(array_of(initial), y.type.dtype), y))
    return convert(y, made)


def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Any:  # fmt: skip
    """The sum over an axis, several, or all; 0 of nothing.

        sum(a, axis=1)[i] == initial + a[i, 0] + a[i, 1] + ...

    Shapes: the axes go, or stay with size 1 for ``keepdims``; only elements where ``where`` holds take part.
    Source: NumPy, ``sum``.

    >>> from handlax.numpy import ones
    >>> sum(ones((2, 3), "int8"), axis=0)
    Array([2, 2, 2], dtype=int32)
    """
    return _fold("sum", ReduceSum, 0, _plus, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Any:  # fmt: skip
    """The product over an axis, several, or all; 1 of nothing. Source: NumPy, ``prod``.

    >>> from handlax.numpy import array
    >>> prod(array([2.0, 3.0]))
    Array(6., dtype=float32)
    """
    return _fold("prod", ReduceProd, 1, mul, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def _plus(x: Any, y: Any) -> Any:
    return x + y


def _extreme(
    name: str,
    kind: Any,
    unit: Any,
    choose_one: Any,
    a: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
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
    if where is not None:
        x = choose(where, x, like(x, unit(dtype)), name)
    y = _perform(kind, convert(x, dtype), axes, keepdims)
    return y if initial is None else choose_one(*together(name, convert(array_of(initial), dtype), y))


def max(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The largest element along the axes, NaN where there is one. Source: NumPy, ``max``.

    Raises: BadArgument: there is no element, or ``where`` is given, and no ``initial``.

    >>> from handlax.numpy import array
    >>> max(array([[1, 5], [7, 2]]), axis=1)
    Array([5, 7], dtype=int32)
    """
    return _extreme("max", ReduceMax, reductions.lowest, _max, a, axis, out, keepdims, initial, where)


def min(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The smallest element along the axes, NaN where there is one. Source: NumPy, ``min``.

    Raises: BadArgument: there is no element, or ``where`` is given, and no ``initial``.

    >>> from handlax.numpy import array
    >>> min(array([[1, 5], [7, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _extreme("min", ReduceMin, reductions.highest, _min, a, axis, out, keepdims, initial, where)


amax, amin = max, min


def _truth(name: str, kind: Any, unit: bool, a: Any, axis: Any, out: Any, keepdims: bool, where: Any) -> Any:
    no_out(out, name)
    x = to_bool(a)
    if where is not None:
        x = choose(where, x, unit, name)
    return _perform(kind, x, axes_of(axis, len(x.type.shape), name), keepdims)


def any(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether an element along the axes is not 0; false of nothing. Source: NumPy, ``any``.

    >>> from handlax.numpy import array
    >>> any(array([0.0, 2.0]))
    Array(True, dtype=bool)
    """
    return _truth("any", ReduceOr, False, a, axis, out, keepdims, where)


def all(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether all elements along the axes are not 0; true of nothing. Source: NumPy, ``all``.

    >>> from handlax.numpy import array
    >>> all(array([0.0, 2.0]))
    Array(False, dtype=bool)
    """
    return _truth("all", ReduceAnd, True, a, axis, out, keepdims, where)


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements along the axes are not 0. Source: NumPy, ``count_nonzero``.

    >>> from handlax.numpy import array
    >>> count_nonzero(array([0.0, 2.0, 3.0]))
    Array(2, dtype=int32)
    """
    return sum(to_bool(a), axis, keepdims=keepdims, dtype=default_int())


def _count(x: Any, axes: tuple[int, ...]) -> int:
    return _product([x.type.shape[d] for d in axes])


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """``sum(a) / n``, n the number of elements along the axes; integers give floats, nothing gives NaN.

    >>> from handlax.numpy import array
    >>> mean(array([1, 2]))
    Array(1.5, dtype=float32)
    """
    no_out(out, "mean")
    x = array_of(a)
    made = to_inexact(x.type.dtype) if dtype is None else canonical(dtype)
    inner = _computed(made)
    axes = axes_of(axis, len(x.type.shape), "mean")
    total = sum(x, axes, inner, None, keepdims, None, where)
    return convert(div(total, _number(x, axes, keepdims, where, total)), made)


def _computed(dtype: Any) -> Any:
    """The dtype in which sums of such floats are made."""
    return float32 if dtype in HALF else dtype


def _number(x: Any, axes: tuple[int, ...], keepdims: bool, where: Any, total: Any) -> Any:
    """How many elements take part, in the dtype of their sum."""
    if where is None:
        return like(total, _count(x, axes))
    mask = shapes.broadcast(to_bool(where), x.type.shape)
    counted = sum(mask, axes, dtypes.to_real(total.type.dtype), None, keepdims)
    return convert(counted, total.type.dtype)


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The variance: ``sum(abs(a - mean(a))**2) / (n - ddof)``, real also of complex numbers.

    ``correction`` is another name of ``ddof``; ``mean``, of size 1 along the axes, saves its computation.
    NaN where ``n - ddof`` is not above 0. Source: NumPy, ``var``.

    >>> from handlax.numpy import array
    >>> var(array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    no_out(out, "var")
    y, made = _variance(a, axis, dtype, ddof, keepdims, where, mean, correction)
    return convert(y, made)


def _variance(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any, center: Any, correction: Any
) -> tuple[Any, Any]:
    if correction is not None:
        if ddof:
            raise BadArgument(f"var: ddof and correction mean the same, got ddof={ddof} and correction={correction}.")
        ddof = correction
    x = array_of(a)
    if dtype is not None and dtypes.is_complex(x.type.dtype) and not is_complex(canonical(dtype)):
        raise DTypeMismatch(f"var: complex numbers need a complex dtype, got {x.type} and dtype={dtype}.")
    made = to_inexact(x.type.dtype) if dtype is None else canonical(dtype)
    x = convert(x, _computed(made))
    axes = axes_of(axis, len(x.type.shape), "var")
    middle = _mean_kept(x, axes, where) if center is None else convert(array_of(center), x.type.dtype)
    away = sub(*together("var", x, middle if not middle.type.shape else shapes.broadcast(middle, x.type.shape)))
    squares = _real(mul(away, conj(away))) if is_complex(made) else mul(away, away)
    total = sum(squares, axes, None, None, keepdims, None, where)
    if where is None:
        free = _count(x, axes) - ddof if not isinstance(ddof, Array) else None
        if free is not None:
            return div(total, like(total, free if free > 0 else float("nan"))), dtypes.to_real(made)
    count = _number(x, axes, keepdims, where, total)
    free = sub(*together("var", count, convert(array_of(ddof), total.type.dtype)))
    y = div(total, free)
    return select_n(gt(free, like(free, 0)), like(y, float("nan")), y), dtypes.to_real(made)


def _mean_kept(x: Any, axes: tuple[int, ...], where: Any) -> Any:
    total = sum(x, axes, None, None, True, None, where)
    return div(total, _number(x, axes, True, where, total))


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation: ``sqrt(var(a))``. Source: NumPy, ``std``.

    >>> from handlax.numpy import array
    >>> std(array([1.0, 5.0]))
    Array(2., dtype=float32)
    """
    no_out(out, "std")
    y, made = _variance(a, axis, dtype, ddof, keepdims, where, mean, correction)
    return convert(sqrt(y), made)


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """``max(a) - min(a)`` along the axes. Source: NumPy, ``ptp``.

    >>> from handlax.numpy import array
    >>> ptp(array([1, 5, 3]))
    Array(4, dtype=int32)
    """
    x = array_of(a)
    return sub(max(x, axis, out, keepdims), min(x, axis, out, keepdims))


def _place(name: str, kind: Any, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
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


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the largest element along an axis, or in row-major order: the first of several, of NaNs the first.

    >>> from handlax.numpy import array
    >>> argmax(array([3, 7, 7]))
    Array(1, dtype=int32)
    """
    return _place("argmax", Argmax, a, axis, out, keepdims)


def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the smallest element along an axis, or in row-major order: the first of several, of NaNs the first.

    >>> from handlax.numpy import array
    >>> argmin(array([3, 1, 1]))
    Array(1, dtype=int32)
    """
    return _place("argmin", Argmin, a, axis, out, keepdims)


def _running(name: str, function: Any, a: Any, axis: Any, dtype: Any, out: Any, widen: bool = False) -> Any:
    no_out(out, name)
    x, axis = rows_of(a, axis, name, one=True)
    own = x.type.dtype
    made = (
        canonical(dtype)
        if dtype is not None
        else summed_dtype(own)
        if widen
        else default_int()
        if own is bool_
        else own
    )
    return function(convert(x, made), axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Running sums: ``cumsum(a)[k] == a[0] + ... + a[k]`` along an axis, or in row-major order.

    >>> from handlax.numpy import array
    >>> cumsum(array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", cumulative.cumsum, a, axis, dtype, out)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Running products: ``cumprod(a)[k] == a[0] * ... * a[k]`` along an axis, or in row-major order.

    >>> from handlax.numpy import array
    >>> cumprod(array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", cumulative.cumprod, a, axis, dtype, out)


def _cumulative(name: str, function: Any, unit: int, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    x = array_of(x)
    if axis is None:
        if len(x.type.shape) != 1:
            raise BadArgument(f"{name}: an axis must be named, unless the array has rank 1, got {x.type}.")
        axis = 0
    y = _running(name, function, x, axis, dtype, None, widen=function is cumulative.cumsum)
    if not include_initial:
        return y
    axis = shapes.canonical_axis(axis, len(y.type.shape), name)
    first = shapes.full(y.type.update(shape=kept_shape(y.type.shape, (axis,))), unit)
    return concatenate([first, y], axis)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running sums along an axis, after a 0 where ``include_initial``; integers have the default width.

    Source: the array API standard, ``cumulative_sum``.

    >>> from handlax.numpy import array
    >>> cumulative_sum(array([1, 2]), include_initial=True)
    Array([0, 1, 3], dtype=int32)
    """
    return _cumulative("cumulative_sum", cumulative.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running products along an axis, after a 1 where ``include_initial``; as in JAX, integers keep their width.

    Source: the array API standard, ``cumulative_prod``.

    >>> from handlax.numpy import array
    >>> cumulative_prod(array([2, 3]), include_initial=True)
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", cumulative.cumprod, 1, x, axis, dtype, include_initial)
