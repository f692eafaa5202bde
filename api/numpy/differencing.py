"""Differences and what is made of neighbours: gradients, trapezoids, unwrapped angles, interpolation, convolution."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

from ..effects import dtypes, shapes
from ..effects.arithmetic import abs as _abs
from ..effects.arithmetic import add, div, mul, sub
from ..effects.bitwise import bitwise_xor
from ..effects.broadcasting import promote
from ..effects.comparison import clamp, eq, gt, le, lt, select_n
from ..effects.complexes import conj
from ..effects.conversion import convert
from ..effects.dtypes import bool_, canonical
from ..effects.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.numeric import remainder
from ..effects.shapes import canonical_axis
from ..effects.slicing import concatenate, index_in_dim, pad, rev, slice_in_dim
from . import reductions
from .indexing import take
from .operands import array_of, inexact, inexact_together, like, together
from .products import contract
from .searching import argsort, searchsorted


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """``diff(a)[i] == a[i + 1] - a[i]``, ``n`` times over; of booleans whether neighbours differ.

    Shapes: the axis is shorter by ``n``, after ``prepend`` and ``append`` were put at its ends.
    Source: NumPy, ``diff``.

    >>> from handlax.numpy import array
    >>> diff(array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    x = array_of(a)
    if n < 0:
        raise BadArgument(f"diff: the order must not be negative, got {n}.")
    if not n:
        return x
    if not x.type.shape:
        raise ShapeMismatch("diff: at least one dimension is needed, got a scalar.")
    axis = canonical_axis(axis, len(x.type.shape), "diff")
    ends = [_end(part, x, axis) for part in (prepend, append)]
    if prepend is not None or append is not None:
        x = concatenate(promote(*[part for part in (ends[0], x, ends[1]) if part is not None]), axis)
    for _ in range(n):
        size = x.type.shape[axis]
        late, early = slice_in_dim(x, min(1, size), size, axis=axis), slice_in_dim(x, 0, max(0, size - 1), axis=axis)
        x = bitwise_xor(late, early) if x.type.dtype is bool_ else sub(late, early)
    return x


def _end(part: Any, x: Any, axis: int) -> Any:
    if part is None:
        return None
    part = array_of(part)
    if part.type.shape:
        return part
    return shapes.broadcast(part, (*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :]))


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours in row-major order, between ``to_begin`` and ``to_end``. Source: NumPy.

    >>> from handlax.numpy import array
    >>> ediff1d(array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    x = array_of(ary)
    y = diff(shapes.reshape(x, (x.size,)))
    parts = []
    for part in (to_begin, y, to_end):
        if part is not None:
            flat = convert(array_of(part), y.type.dtype, y.type.weak)
            parts.append(shapes.reshape(flat, (flat.size,)))
    return concatenate(parts, 0)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Slopes by second-order differences inside and one-sided ones at the ends; a list, one for each axis.

    Args:
        varargs: the distance of samples, one for all axes or one for each: a number, or the coordinates along the axis.
        edge_order: 1, the order at the ends.
    Raises: ShapeMismatch: an axis has fewer than two samples. Source: NumPy, ``gradient``.

    >>> from handlax.numpy import array
    >>> gradient(array([1.0, 2.0, 4.0]))
    Array([1. , 1.5, 2. ], dtype=float32)
    """
    if edge_order not in (None, 1):
        raise BadArgument(f"gradient: the order at the ends is 1, got edge_order={edge_order}.")
    x = inexact(f)
    rank = len(x.type.shape)
    axes = (
        list(range(rank))
        if axis is None
        else [canonical_axis(d, rank, "gradient") for d in (axis if isinstance(axis, Sequence) else (axis,))]
    )
    spans = varargs if len(varargs) == len(axes) else varargs * len(axes) if len(varargs) == 1 else (1.0,) * len(axes)
    if len(varargs) not in (0, 1, len(axes)):
        raise BadArgument(
            f"gradient: distances are one for all, or one for each of {len(axes)} axes, got {len(varargs)}."
        )
    found = [_slope(x, d, span) for d, span in zip(axes, spans)]
    return found[0] if len(found) == 1 and (axis is None or not isinstance(axis, Sequence)) else found


def _slope(x: Any, axis: int, span: Any) -> Any:
    size = x.type.shape[axis]
    if size < 2:
        raise ShapeMismatch(f"gradient: an axis needs at least two samples, got {x.type} along axis {axis}.")

    def part(start: int, stop: int) -> Any:
        return slice_in_dim(x, start, stop, axis=axis)

    h = array_of(span)
    first, last = sub(part(1, 2), part(0, 1)), sub(part(size - 1, size), part(size - 2, size - 1))
    if not h.type.shape:
        first, last = (div(*together("gradient", end, h)) for end in (first, last))
        middle = div(*together("gradient", sub(part(2, size), part(0, size - 2)), mul(h, like(h, 2))))
        return concatenate(promote(first, middle, last), axis)
    if h.type.shape != (size,):
        raise ShapeMismatch(f"gradient: there must be a coordinate for each of {size} samples, got {h.type}.")
    steps = shapes.reshape(diff(h), tuple([size - 1 if d == axis else 1 for d in range(len(x.type.shape))]))

    def step(start: int, stop: int) -> Any:
        return slice_in_dim(steps, start, stop, axis=axis)

    before, after = step(0, size - 2), step(1, size - 1)
    total = add(before, after)
    terms = (
        (part(0, size - 2), div(-after, mul(before, total))),
        (part(1, size - 1), div(sub(after, before), mul(before, after))),
        (part(2, size), div(before, mul(after, total))),
    )
    a, b, c = (mul(*inexact_together("gradient", values, weight)) for values, weight in terms)
    ends = [
        div(*inexact_together("gradient", end, at))
        for end, at in ((first, step(0, 1)), (last, step(size - 2, size - 1)))
    ]
    return concatenate(promote(ends[0], add(add(a, b), c), ends[1]), axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule: ``sum(dx * (y[1:] + y[:-1]) / 2)``, ``dx`` or ``diff(x)`` apart.

    >>> from handlax.numpy import array
    >>> trapezoid(array([1.0, 2.0, 3.0]))
    Array(4., dtype=float32)
    """
    samples = inexact(y)
    axis = canonical_axis(axis, len(samples.type.shape), "trapezoid")
    if x is None:
        width: Any = array_of(dx)
    else:
        width = array_of(x)
        width = diff(width) if width.ndim == 1 else diff(width, axis=axis)
    samples = shapes.move_axis(samples, axis, len(samples.type.shape) - 1)
    if x is not None and width.ndim > 1:
        width = shapes.move_axis(width, axis, width.ndim - 1)
    size = samples.type.shape[-1]
    pairs = add(slice_in_dim(samples, min(1, size), size, axis=-1), slice_in_dim(samples, 0, max(0, size - 1), axis=-1))
    pairs, width = inexact_together("trapezoid", pairs, width)
    total = reductions.sum(mul(pairs, width), -1)
    return mul(total, like(total, 0.5))


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * pi) -> Any:
    """``p`` with multiples of the period added, so that neighbours differ by at most half a period.

    Jumps below ``discont`` stay. Source: NumPy, ``unwrap``.

    >>> from handlax.numpy import array
    >>> unwrap(array([0.0, 3.0, 6.5]), period=4)
    Array([ 0. , -1. , -1.5], dtype=float32)
    """
    x = array_of(p)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"unwrap: angles must be real, got {x.type}.")
    x, turn = (
        together("unwrap", x, period) if dtypes.is_inexact(x.type.dtype) else inexact_together("unwrap", x, period)
    )
    axis = canonical_axis(axis, len(x.type.shape), "unwrap")
    half = div(turn, like(turn, 2))
    steps = diff(x, axis=axis)
    near = sub(remainder(add(steps, half), turn), half)
    near = select_n(eq(near, -half) & gt(steps, like(steps, 0)), near, shapes.broadcast(half, near.type.shape))
    extra = sub(near, steps)
    limit = half if discont is None else convert(array_of(discont), x.type.dtype)
    extra = select_n(lt(_abs(steps), limit), extra, like(extra, 0))
    size = x.type.shape[axis]
    moved = add(slice_in_dim(x, min(1, size), size, axis=axis), reductions.cumsum(extra, axis))
    return concatenate(
        [convert(slice_in_dim(x, 0, min(1, size), axis=axis), moved.type.dtype), convert(moved, moved.type.dtype)], axis
    )


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """The piecewise linear function through the points ``(xp, fp)``, ``xp`` rising, read at ``x``.

    Outside it is ``left`` and ``right``, by default the first and last of ``fp``, or "extrapolate"; with ``period`` it
    goes round.
    Source: NumPy, ``interp``.

    >>> from handlax.numpy import array
    >>> interp(1.5, array([1.0, 2.0]), array([10.0, 20.0]))
    Array(15., dtype=float32)
    """
    at, xs = promote(x, xp)
    ys = inexact(fp)
    at, xs = inexact(at), inexact(xs)
    if xs.ndim != 1 or xs.type.shape != ys.type.shape or not xs.size:
        raise ShapeMismatch(f"interp: xp and fp must be vectors of one size, got {xs.type} and {ys.type}.")
    if period is not None:
        at, xs, ys = _round(at, xs, ys, period)
        left = right = None
    size = xs.type.shape[0]
    upper = clamp(1, searchsorted(xs, at, "right"), max(1, size - 1))
    x1, y1 = take(xs, upper, mode="clip"), take(ys, upper, mode="clip")
    x0, y0 = (take(v, upper - 1, mode="clip") for v in (xs, ys))
    width = sub(x1, x0)
    flat = le(_abs(width), like(width, 0))
    part = div(sub(at, x0), select_n(flat, width, like(width, 1)))
    part, y0, y1 = together("interp", part, y0, y1)
    y = select_n(flat, add(y0, mul(part, sub(y1, y0))), y0)
    for side, compare, i in ((left, lt, 0), (right, gt, size - 1)):
        if isinstance(side, str):
            if side != "extrapolate":
                raise BadArgument(f"interp: outside is a number or 'extrapolate', got {side!r}.")
            continue
        end = index_in_dim(
            ys if side is None else shapes.broadcast(convert(array_of(side), y.type.dtype), (size,)), i, keepdims=False
        )
        edge = shapes.broadcast(index_in_dim(xs, i, keepdims=False), at.type.shape)
        y = select_n(compare(at, edge), y, shapes.broadcast(convert(end, y.type.dtype, y.type.weak), y.type.shape))
    return convert(y, y.type.dtype)


def _round(at: Any, xs: Any, ys: Any, period: Any) -> tuple[Any, Any, Any]:
    """Points within one period, sorted, with one more at either end."""
    from_period = _abs(convert(array_of(period), xs.type.dtype))
    at, xs = remainder(at, from_period), remainder(xs, from_period)
    order = argsort(xs)
    xs, ys = take(xs, order), take(ys, order)
    first, last = slice_in_dim(xs, 0, 1), slice_in_dim(xs, -1, None)
    xs = concatenate([sub(last, from_period), xs, add(first, from_period)], 0)
    return at, xs, concatenate([slice_in_dim(ys, -1, None), ys, slice_in_dim(ys, 0, 1)], 0)


def _windows(x: Any, width: int, count: int) -> Any:
    """``y[j, i] = x[i + j]`` for ``j < width``, ``i < count``: rows of a repeated vector, one element further on."""
    size = x.type.shape[0]
    rows = shapes.broadcast_in_dim(x, (width + 1, size), (1,))
    flat = slice_in_dim(shapes.reshape(rows, ((width + 1) * size,)), 0, width * (size + 1))
    return slice_in_dim(shapes.reshape(flat, (width, size + 1)), 0, count, axis=1)


def _convolved(name: str, x: Any, y: Any, mode: str, precision: Any, preferred: Any) -> Any:
    """``z[k] = sum over j of x[k + j - m + 1] * y[j]``, y shorter; cut to the mode."""
    n, m = x.type.shape[0], y.type.shape[0]
    if mode == "valid":
        around, count = (0, 0), n - m + 1
    elif mode == "same":
        around, count = (m // 2, m - m // 2 - 1), n
    elif mode == "full":
        around, count = (m - 1, m - 1), n + m - 1
    else:
        raise BadArgument(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}.")
    rows = _windows(pad(x, like(x, 0), [(*around, 0)]), m, count)
    return contract(y, rows, (((0,), (0,)), ((), ())), precision, preferred)


def _vectors(name: str, a: Any, v: Any) -> list[Any]:
    x, y = promote(a, v)
    for part in (x, y):
        if part.ndim != 1 or not part.size:
            raise ShapeMismatch(f"{name}: operands must be vectors with elements, got {x.type} and {y.type}.")
    return [convert(part, canonical("int32")) if part.type.dtype is bool_ else part for part in (x, y)]


def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``convolve(a, v)[k] == sum over j of a[j] * v[k - j]``; "same" has the longer size, "valid" whole overlaps.

    >>> from handlax.numpy import array
    >>> convolve(array([1, 2, 3]), array([1, 1]))
    Array([1, 3, 5, 3], dtype=int32)
    """
    x, y = _vectors("convolve", a, v)
    if x.size < y.size:
        x, y = y, x
    return _convolved("convolve", x, rev(y, (0,)), mode, precision, preferred_element_type)


def correlate(a: Any, v: Any, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``correlate(a, v)[k] == sum over j of a[j + k] * conj(v[j])``, k from the first overlap. Source: NumPy.

    >>> from handlax.numpy import array
    >>> correlate(array([1, 2, 3]), array([1, 1]))
    Array([3, 5], dtype=int32)
    """
    x, y = _vectors("correlate", a, v)
    if dtypes.is_complex(y.type.dtype):
        y = conj(y)
    if x.size >= y.size:
        return _convolved("correlate", x, y, mode, precision, preferred_element_type)
    return rev(_convolved("correlate", y, x, mode, precision, preferred_element_type), (0,))
