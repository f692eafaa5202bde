"""Padding arrays: ``pad`` with all of NumPy's modes, one axis after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, ShapeMismatch, need_one_of
from ...effects.base.stack import perform
from ...effects.core.arrays import Array, ConcreteArray, as_array
from ...effects.operations.elementwise.arithmetic import RoundingMethod
from ...effects.operations.elementwise.arithmetic import round as rounded
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.manipulation import slicing
from ...effects.operations.manipulation.slicing import Rev, slice_in_dim
from ...effects.operations.reductions.reductions import reduce_max, reduce_min
from ...effects.operations.reductions.sorting import sort
from ...effects.types import dtypes
from ...effects.types.extent import as_size
from ...interpreters.core.eager_programs import programs
from .joining_splitting import joined_along, leaves, stack, unstack
from .numerical_ranges import linspace
from .shape_manipulation import moveaxis

__all__ = ["pad"]


Width = tuple[int, int]

# mode -> the keyword arguments that it takes
MODES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "constant": ("constant_values",), "empty": (), "edge": (), "wrap": (), "linear_ramp": ("end_values",),
    "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
    "mean": ("stat_length",), "median": ("stat_length",), "maximum": ("stat_length",), "minimum": ("stat_length",),
})


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """``array`` with ``(before, after)`` elements added along each axis.

    Args:
        pad_width: one number, one pair, a pair for each axis, or a dict from axes to those.
        mode: ``constant`` (``constant_values=0``), ``empty``, ``edge``, ``wrap``, ``reflect`` and ``symmetric``
            (``reflect_type="even"`` or ``"odd"``), ``linear_ramp`` (``end_values=0``), ``mean``, ``median``,
            ``maximum`` and ``minimum`` (``stat_length``), or NumPy's function of a row.
    Raises: BadArgument: the mode or an argument of it is unknown. ShapeMismatch: the axis is empty.

    >>> pad(np.array([1, 2, 3], "int32"), (1, 2), mode="reflect")
    Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = as_array(array)
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        return _by_rows(x, widths, mode, kwargs)
    if mode not in MODES:
        raise BadArgument(f"pad: mode must be one of {', '.join(MODES)}, got {mode!r}.")
    if set(kwargs) - set(MODES[mode]):
        taken = " and ".join(MODES[mode]) or "no argument"
        raise BadArgument(f"pad: mode {mode!r} takes {taken}, got {', '.join(kwargs)}.")
    if mode in ("constant", "empty"):
        return _constant(x, widths, kwargs.get("constant_values", 0))
    for axis, width in enumerate(widths):
        if not x.shape[axis] and any(width):
            raise ShapeMismatch(f"pad: mode {mode!r} cannot extend axis {axis} of size 0 of {x.type}.")
    pad_axis, shared = _PADDERS[mode](x, **kwargs)
    for axis, width in enumerate(widths):
        if any(width):
            x = pad_axis(x, axis, width, shared)
    return x


def _pairs(given: Any, rank: int, what: str) -> Any:
    """A number, a pair or a pair for each axis as ``[rank][2]``; entries may be arrays of rank 0."""
    if isinstance(given, Array) and not isinstance(given, ConcreteArray):
        if not given.ndim:
            return [[given, given]] * rank
        given = [list(unstack(row)) if row.ndim else row for row in unstack(given)]
    if isinstance(given, (list, tuple)) and any(isinstance(v, Array) for v in leaves(given)):
        if all(isinstance(v, (list, tuple)) for v in given):
            return [list(v) * (2 // len(v)) for v in (given if len(given) == rank else list(given) * rank)]
        return [list(given) * (2 // len(given))] * rank
    try:
        return np.broadcast_to(np.asarray(given), (rank, 2)).tolist()
    except ValueError:
        raise ShapeMismatch(f"pad: {what} must be a number, a pair or {rank} pairs, got {given!r}.") from None


def _widths(given: Any, rank: int) -> list[Width]:
    """``pad_width`` as a pair (before, after) for each axis. Raises BadArgument: a width is negative or no integer."""
    if isinstance(given, dict):
        pairs: list[Any] = [(0, 0)] * rank
        for axis, width in given.items():
            pairs[shapes.canonical_axis(axis, rank, "pad")] = _pairs(width, 1, "pad_width")[0]
    else:
        pairs = _pairs(given, rank, "pad_width")
    if any(not hasattr(n, "__index__") or n < 0 for pair in pairs for n in pair):
        raise BadArgument(f"pad: pad_width must be integers, not negative, got {given!r}.")
    return [(as_size(before), as_size(after)) for before, after in pairs]


def _constant(x: Any, widths: list[Width], values: Any) -> Any:
    """``x`` padded with ``values``: one number, a pair, or a pair for each axis."""

    def fill(value: Any) -> Any:
        return convert(value, x.dtype, x.weak_type)

    if not isinstance(values, (list, tuple)) and not getattr(values, "ndim", 0):
        return slicing.pad(x, fill(values), [(before, after, 0) for before, after in widths])
    for axis, (width, pair) in enumerate(zip(widths, _pairs(values, x.ndim, "constant_values"))):
        for n, value, side in zip(width, pair, ((1, 0), (0, 1))):
            config = [(side[0] * n, side[1] * n, 0) if d == axis else (0, 0, 0) for d in range(x.ndim)]
            x = slicing.pad(x, fill(value), config)
    return x


def _join(parts: list[Any], axis: int) -> Any:
    """The parts that are not empty, one after another along ``axis``."""
    return joined_along([part for part in parts if part.shape[axis]], axis)


def _repeated(edge: Any, n: int, axis: int) -> Any:
    """A slice of size 1 repeated along its axis."""
    shape = (*edge.shape[:axis], n, *edge.shape[axis + 1 :])
    return shapes.broadcast(edge, shape)


def _edge(x: Any, axis: int, width: Width, _: None) -> Any:
    """One axis padded in mode "edge": with its first and last element."""
    first, last = slice_in_dim(x, 0, 1, axis=axis), slice_in_dim(x, -1, None, axis=axis)
    return _join([_repeated(first, width[0], axis), x, _repeated(last, width[1], axis)], axis)


def _wrap(x: Any, axis: int, width: Width, _: None) -> Any:
    """One axis padded in mode "wrap": with repetitions of the array."""
    n = x.shape[axis]
    (left, before), (right, after) = divmod(width[0], n), divmod(width[1], n)
    head, tail = slice_in_dim(x, n - before, n, axis=axis), slice_in_dim(x, 0, after, axis=axis)
    return _join([head, *[x] * (left + right + 1), tail], axis)


def _ramp(x: Any, axis: int, width: Width, ends: Any) -> Any:
    """One axis padded in mode "linear_ramp": with numbers from ``ends`` to the elements at the edges."""

    def ramp(end: Any, edge: Any, n: int) -> Any:
        edge = shapes.reshape(edge, (*x.shape[:axis], *x.shape[axis + 1 :]))
        return convert(linspace(end, edge, n, endpoint=False, dtype=x.dtype, axis=axis), x.dtype, x.weak_type)

    before = ramp(ends[axis][0], slice_in_dim(x, 0, 1, axis=axis), width[0])
    after = perform(Rev((axis,)), ramp(ends[axis][1], slice_in_dim(x, -1, None, axis=axis), width[1]))
    return _join([before, x, after], axis)


def _mirror(x: Any, axis: int, width: Width, how: tuple[str, str]) -> Any:
    """One axis padded in mode "reflect" or "symmetric", ``how[0]``; ``how[1]`` is "even" or "odd"."""
    mode, kind = how
    n = x.shape[axis]
    offset = 1 if mode == "reflect" and n > 1 else 0
    for before, wanted in ((True, width[0]), (False, width[1])):
        edge = slice_in_dim(x, 0, 1, axis=axis) if before else slice_in_dim(x, -1, None, axis=axis)
        while wanted > 0:  # wider than the array: it is reflected again, together with what was added
            count = min(wanted, n - offset)
            wanted -= count
            size = x.shape[axis]
            start = offset if before else size - offset - count
            piece = perform(Rev((axis,)), slice_in_dim(x, start, start + count, axis=axis))
            if kind == "odd":
                piece = 2 * edge - piece
                if n > 1:
                    edge = slice_in_dim(piece, 0, 1, axis=axis) if before else slice_in_dim(piece, -1, None, axis=axis)
            x = _join([piece, x] if before else [x, piece], axis)
    return x


def _statistic(x: Any, axis: int, width: Width, how: tuple[Callable[..., Any], Any]) -> Any:
    """One axis padded with a statistic of its first and last elements; ``how``: the function, and how many elements."""
    f, lengths = how
    n = x.shape[axis]

    def value(part: Any) -> Any:
        y = f(part, axis)
        if dtypes.is_integer(x.dtype) and dtypes.is_inexact(y.dtype):
            y = rounded(y, RoundingMethod.TO_NEAREST_EVEN)
        y = convert(y, x.dtype, x.weak_type)
        return shapes.reshape(y, (*y.shape[:axis], 1, *y.shape[axis:]))

    if lengths is None:
        before = after = value(x)
    else:
        low, high = (min(int(length), n) for length in lengths[axis])
        if not low or not high:
            raise BadArgument("pad: stat_length must be at least 1.")
        before = value(slice_in_dim(x, 0, low, axis=axis))
        after = value(slice_in_dim(x, n - high, n, axis=axis))
    return _join([_repeated(before, width[0], axis), x, _repeated(after, width[1], axis)], axis)


def _mean(x: Any, axis: int) -> Any:
    return shapes.reduce_sum(convert(x, dtypes.to_inexact(x.dtype)), (axis,)) / x.shape[axis]


def _median(x: Any, axis: int) -> Any:
    n = x.shape[axis]
    return _mean(slice_in_dim(sort(x, axis), (n - 1) // 2, n // 2 + 1, axis=axis), axis)


def _statistics(f: Callable[..., Any]) -> Callable[..., Any]:
    """The entry of ``_PADDERS`` of a mode that pads with the statistic ``f(part, axis)`` of the ends of each row."""

    def prepare(x: Any, stat_length: Any = None) -> Any:
        return _statistic, (f, None if stat_length is None else _pairs(stat_length, x.ndim, "stat_length"))

    return prepare


def _mirrors(mode: str) -> Callable[..., Any]:
    """The entry of ``_PADDERS`` of "reflect" or "symmetric"."""

    def prepare(x: Any, reflect_type: str = "even") -> Any:
        need_one_of("pad: reflect_type", reflect_type, ("even", "odd"))
        return _mirror, (mode, reflect_type)

    return prepare


# mode -> a function of the array and the mode's arguments that gives the function which pads one axis, and its last
# argument: what is the same for all axes
_PADDERS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "edge": lambda x: (_edge, None), "wrap": lambda x: (_wrap, None),
    "linear_ramp": lambda x, end_values=0: (_ramp, _pairs(end_values, x.ndim, "end_values")),
    "reflect": _mirrors("reflect"), "symmetric": _mirrors("symmetric"),
    "mean": _statistics(_mean), "median": _statistics(_median),
    "maximum": _statistics(lambda x, axis: reduce_max(x, (axis,))),
    "minimum": _statistics(lambda x, axis: reduce_min(x, (axis,))),
})


def _by_rows(x: Any, widths: list[Width], f: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    """A user's padding function applied to every vector along each axis; it returns the padded vector."""
    x = _constant(x, widths, 0)
    for axis, width in enumerate(widths if x.size else ()):
        last = moveaxis(x, axis, -1)
        rows = shapes.reshape(last, (last.size // last.shape[-1], last.shape[-1]))
        made = stack([f(row, width, axis, kwargs) for row in unstack(rows)])
        x = moveaxis(shapes.reshape(made, last.shape), -1, axis)
    return x


programs(globals())
