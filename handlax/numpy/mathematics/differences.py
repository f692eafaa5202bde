"""Differences of neighbours along an axis: diff, ediff1d, gradient, trapezoid, unwrap."""

from __future__ import annotations

from functools import partial
from math import pi
from typing import Any

from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch, whole_number
from ...effects.core.arrays import Array, is_number
from ...effects.operations.elementwise.arithmetic import add, div, mul
from ...effects.operations.elementwise.comparison import eq, select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ...effects.operators.numpy_arithmetic import floor_divide, remainder
from ...effects.types import dtypes
from ...effects.types.dtype_promotion import promote_all
from ...effects.types.dtypes import bool_
from ...effects.types.extent import fits, positive
from ...effects.types.parts_of_axes import smaller
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, inexact, inexact_together, like, numeric_together, strong
from . import reductions
from .arithmetic import absolute

__all__ = ["diff", "ediff1d", "gradient", "trapezoid", "unwrap"]


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """``diff(a)[i] == a[i + 1] - a[i]``, applied ``n`` times; of booleans, whether they differ.

    Shapes: the axis shrinks by ``n``, after ``prepend`` and ``append`` are concatenated to its ends.
    Source: NumPy, ``diff``.

    >>> from handlax.numpy import array
    >>> diff(array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    x, n = array_of(a), whole_number("diff: n", n)
    if n < 0:
        raise BadArgument(f"diff: the order must not be negative, got {n}.")
    if not n:
        return x
    if not x.type.shape:
        raise ShapeMismatch("diff: at least one dimension is needed, got a scalar.")
    axis = canonical_axis(axis, len(x.type.shape), "diff")
    if prepend is not None or append is not None:
        parts = promote(*[part for part in (prepend, x, append) if part is not None])
        row = (*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :])
        x = concatenate([part if part.type.shape else shapes.broadcast(part, row) for part in parts], axis)
    for _ in range(n):
        size = x.type.shape[axis]
        late = slice_in_dim(x, smaller(1, size), size, axis=axis)
        early = slice_in_dim(x, 0, positive(size - 1), axis=axis)
        x = late ^ early if x.type.dtype is bool_ else late - early
    return x


@strong
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of consecutive elements, flattened, between ``to_begin`` and ``to_end``. Source: NumPy.

    >>> from handlax.numpy import array
    >>> ediff1d(array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    x = array_of(ary)
    y = diff(shapes.reshape(x, (x.size,)))
    parts = []
    for part in (to_begin, y, to_end):
        if part is not None:
            flat = convert(part, y.type.dtype, y.type.weak)
            parts.append(shapes.reshape(flat, (flat.size,)))
    return concatenate(parts, 0)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Derivatives by second-order central differences, one-sided at the ends; a list of one for each axis.

    Args:
        varargs: the spacing of samples, one for all axes or one for each: a number, or the coordinates along the axis.
        edge_order: 1, the order at the ends.
    Raises: ShapeMismatch: an axis has fewer than two samples. Source: NumPy, ``gradient``.

    >>> from handlax.numpy import array
    >>> gradient(array([1.0, 2.0, 4.0]))
    Array([1. , 1.5, 2. ], dtype=float32)
    """
    if edge_order not in (None, 1):
        raise BadArgument(f"gradient: the order at the ends is 1, got edge_order={edge_order}.")
    dtype = _common(f, *varargs)
    x = convert(f, dtype)
    rank = len(x.type.shape)
    listed = range(rank) if axis is None else shapes.axes_listed(axis)
    axes = [canonical_axis(d, rank, "gradient") for d in listed]
    spans = varargs if len(varargs) == len(axes) else varargs * len(axes) if len(varargs) == 1 else (1.0,) * len(axes)
    if len(varargs) not in (0, 1, len(axes)):
        raise BadArgument(
            f"gradient: distances are one for all, or one for each of {len(axes)} axes, got {len(varargs)}."
        )
    slopes = [_slope(x, d, convert(span, dtype)) for d, span in zip(axes, spans)]
    return slopes[0] if len(slopes) == 1 and (axis is None or not hasattr(axis, "__iter__")) else slopes


def _common(*xs: Any) -> Any:
    """The dtype of floats or complex numbers to which arrays promote, under every setting of promotion."""
    arrays = [x if is_number(x) else array_of(x) for x in xs]
    kinds = [dtypes.result_type(x, return_weak_type_flag=True) for x in arrays]
    return dtypes.to_inexact(promote_all(kinds, strict=False)[0])


def _slope(x: Any, axis: int, h: Any) -> Any:
    """The derivative of samples along ``axis``; ``h`` is their distance, or the vector of their coordinates."""
    size = x.type.shape[axis]
    if not fits(2, size):
        raise ShapeMismatch(f"gradient: an axis needs at least two samples, got {x.type} along axis {axis}.")
    part = partial(slice_in_dim, x, axis=axis)
    first, last = part(1, 2) - part(0, 1), part(-1, None) - part(-2, -1)
    if not h.type.shape:
        return concatenate([first / h, (part(2, None) - part(0, -2)) / (h * 2), last / h], axis)
    if h.type.shape != (size,):
        raise ShapeMismatch(f"gradient: there must be a coordinate for each of {size} samples, got {h.type}.")
    steps = shapes.reshape(diff(h), tuple([size - 1 if d == axis else 1 for d in range(len(x.type.shape))]))
    step = partial(slice_in_dim, steps, axis=axis)
    before, after = step(0, -1), step(1, None)
    total = before + after
    terms = (
        (part(0, -2), -after / (before * total)),
        (part(1, -1), (after - before) / (before * after)),
        (part(2, None), before / (after * total)),
    )
    a, b, c = (mul(*inexact_together("gradient", values, weight)) for values, weight in terms)
    ends = [
        div(*inexact_together("gradient", end, at))
        for end, at in ((first, step(0, 1)), (last, step(-1, None)))
    ]
    return concatenate(promote(ends[0], a + b + c, ends[1]), axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral of samples by the trapezoidal rule: ``sum(dx * (y[1:] + y[:-1]) / 2)``.

    The spacing is ``dx``, or ``diff(x)``.

    >>> from handlax.numpy import array
    >>> trapezoid(array([1.0, 2.0, 3.0]))
    Array(4., dtype=float32)
    """
    samples = inexact(y) if x is None else convert(y, _common(y, x))
    axis = canonical_axis(axis, len(samples.type.shape), "trapezoid")
    if x is None:
        width = dx
    else:
        width = convert(x, samples.type.dtype)
        width = diff(shapes.move_axis(width, axis, width.ndim - 1) if width.ndim > 1 else width)
        width = shapes.reshape(width, (*(1,) * (samples.ndim - width.ndim), *width.type.shape))
    samples = shapes.move_axis(samples, axis, samples.ndim - 1)
    size = samples.type.shape[-1]
    later, before = (smaller(1, size), size), (0, positive(size - 1))
    pairs = slice_in_dim(samples, *later, axis=-1) + slice_in_dim(samples, *before, axis=-1)
    pairs, width = inexact_together("trapezoid", pairs, width)
    return reductions.sum(pairs * width, -1) * 0.5


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * pi) -> Array:
    """``p`` with multiples of the period added, so that neighbours differ by at most half a period.

    Jumps smaller than ``discont`` are kept. Source: NumPy, ``unwrap``.

    >>> from handlax.numpy import array
    >>> unwrap(array([0.0, 3.0, 6.5]), period=4)
    Array([ 0. , -1. , -1.5], dtype=float32)
    """
    x = array_of(p)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"unwrap: angles must be real, got {x.type}.")
    x, turn = numeric_together("unwrap", x, period)
    axis = canonical_axis(axis, len(x.type.shape), "unwrap")
    half = floor_divide(turn, 2) if dtypes.is_integer(x.type.dtype) else turn / 2
    steps = diff(x, axis=axis)
    near = remainder(steps + half, turn) - half
    down = eq(near, -half) & (steps > 0) & (half + half == turn)
    near = select_n(down, near, shapes.broadcast(half, near.type.shape))
    extra = near - steps
    limit = half if discont is None else convert(discont, x.type.dtype)
    extra = select_n(absolute(steps) < limit, extra, like(extra, 0))
    size = x.type.shape[axis]
    moved = add(slice_in_dim(x, smaller(1, size), size, axis=axis), reductions.cumsum(extra, axis))
    first = slice_in_dim(x, 0, smaller(1, size), axis=axis)
    return concatenate([convert(first, moved.type.dtype), convert(moved, moved.type.dtype)], axis)


programs(globals())
