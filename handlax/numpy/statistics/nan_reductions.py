"""Reductions that leave out NaN: nansum, nanmax, nanmean, nanvar, nanargmax, nancumsum, ..."""

from __future__ import annotations

from math import nan
from typing import Any

from ...effects.core.arrays import Array
from ...effects.operations.elementwise.arithmetic import sqrt
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.reductions import reductions as folds
from ...effects.types import dtypes
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, inexact, like, mask_for, no_out
from ..mathematics import reductions
from . import averages

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]


def _filled(a: Any, value: Any) -> Any:
    """``a`` with NaN replaced by ``value``."""
    x = array_of(a)
    return select_n(x != x, x, like(x, value)) if dtypes.is_inexact(x.type.dtype) else x


def _present(x: Any, where: Any, name: str) -> Any:
    """The mask of elements to reduce: those that are not NaN, and where ``where`` is true."""
    mask = x == x
    return mask if where is None else mask & mask_for(where, x.type.shape, name)


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:
    """``sum`` with 0 in place of NaN. Source: NumPy, ``nansum``.

    >>> from handlax.numpy import array
    >>> nansum(array([1.0, float("nan")]))
    Array(1., dtype=float32)
    """
    return reductions.sum(_filled(a, 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:
    """``prod`` with 1 in place of NaN. Source: NumPy, ``nanprod``.

    >>> from handlax.numpy import array
    >>> nanprod(array([2.0, float("nan")]))
    Array(2., dtype=float32)
    """
    return reductions.prod(_filled(a, 1), axis, dtype, out, keepdims, initial, where)


def _extreme(f: Any, unit: Any, missing: float, a: Any, axis: Any, out: Any, keepdims: Any, **options: Any) -> Any:
    """``f`` of the elements that are not NaN, which ``unit`` of the dtype replaces; ``missing`` where there is none."""
    x = array_of(a)
    if not dtypes.is_inexact(x.type.dtype):
        return f(x, axis, out, keepdims, **options)
    y = f(_filled(x, unit(x.type.dtype)), axis, out, keepdims, **options)
    if options.get("initial") is not None:
        return y
    nothing = reductions.all(x != x, axis, keepdims=bool(keepdims), where=options.get("where"))
    return select_n(nothing, y, like(y, missing))


def nanmax(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The largest element that is not NaN; NaN where there is none. Source: NumPy, ``nanmax``.

    >>> from handlax.numpy import array
    >>> nanmax(array([2.0, float("nan")]))
    Array(2., dtype=float32)
    """
    return _extreme(reductions.max, folds.lowest, nan, a, axis, out, keepdims, initial=initial, where=where)


def nanmin(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The smallest element that is not NaN; NaN where there is none. Source: NumPy, ``nanmin``.

    >>> from handlax.numpy import array
    >>> nanmin(array([2.0, float("nan")]))
    Array(2., dtype=float32)
    """
    return _extreme(reductions.min, folds.highest, nan, a, axis, out, keepdims, initial=initial, where=where)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Array:
    """The mean of the elements that are not NaN; NaN where there is none. Source: NumPy, ``nanmean``.

    >>> from handlax.numpy import array
    >>> nanmean(array([2.0, float("nan"), 4.0]))
    Array(3., dtype=float32)
    """
    x = array_of(a)
    if not dtypes.is_inexact(x.type.dtype):
        return averages.mean(x, axis, dtype, out, keepdims, where=where)
    no_out(out, "nanmean")
    return averages.mean(_filled(x, 0), axis, dtype, None, keepdims, where=_present(x, where, "nanmean"))


def _variance(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: int, keepdims: bool, where: Any, mean: Any
) -> Any:
    """The variance of the elements that are not NaN."""
    no_out(out, name)
    x = inexact(a)
    present = _present(x, where, name)
    center = nanmean(x, axis, None, None, True, where) if mean is None else mean
    x = _filled(x, 0)
    if mean is None:  # where no element is present; a mean of both infinities stays NaN
        center = select_n(reductions.any(present, axis, keepdims=True), like(center, 0), center)
    return averages.var(x, axis, dtype, None, ddof, keepdims, where=present, mean=center)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Array:
    """The variance of the elements that are not NaN. Source: NumPy, ``nanvar``.

    >>> from handlax.numpy import array
    >>> nanvar(array([1.0, float("nan"), 3.0]))
    Array(1., dtype=float32)
    """
    return _variance("nanvar", a, axis, dtype, out, ddof, keepdims, where, mean)


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Array:
    """The standard deviation of the elements that are not NaN. Source: NumPy, ``nanstd``.

    >>> from handlax.numpy import array
    >>> nanstd(array([1.0, float("nan"), 5.0]))
    Array(2., dtype=float32)
    """
    return sqrt(_variance("nanstd", a, axis, dtype, out, ddof, keepdims, where, mean))


def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the largest element that is not NaN; -1 where there is none. Source: NumPy, ``nanargmax``.

    >>> from handlax.numpy import array
    >>> nanargmax(array([float("nan"), 2.0]))
    Array(1, dtype=int32)
    """
    return _extreme(reductions.argmax, folds.lowest, -1, a, axis, out, keepdims)


def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the smallest element that is not NaN; -1 where there is none. Source: NumPy, ``nanargmin``.

    >>> from handlax.numpy import array
    >>> nanargmin(array([float("nan"), 2.0]))
    Array(1, dtype=int32)
    """
    return _extreme(reductions.argmin, folds.highest, -1, a, axis, out, keepdims)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """``cumsum`` with 0 in place of NaN. Source: NumPy, ``nancumsum``.

    >>> from handlax.numpy import array
    >>> nancumsum(array([1.0, float("nan"), 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    return reductions.cumsum(_filled(a, 0), axis, dtype, out)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """``cumprod`` with 1 in place of NaN. Source: NumPy, ``nancumprod``.

    >>> from handlax.numpy import array
    >>> nancumprod(array([2.0, float("nan"), 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    return reductions.cumprod(_filled(a, 1), axis, dtype, out)


programs(globals())
