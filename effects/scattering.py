"""The functions of scatter: an array with windows replaced, added to, multiplied, or changed; and index_take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arithmetic import add, rem
from .arrays import concrete, lift, lift_together, scalar
from .columns import zero
from .comparison import lt, select
from .control import bodies, record_body
from .dtypes import is_unsigned
from .errors import BadArgument, CannotCross, DTypeMismatch, NotDifferentiable
from .indexing import (
    CLIP,
    Scatter,
    ScatterAdd,
    ScatterMax,
    ScatterMin,
    ScatterMul,
    ScatterSub,
    batch_scatter,
    gather,
    region,
)
from .operations import operation
from .programs import Program, interpret
from .rearranging import expand_dims
from .shapes import canonical_axis, canonical_shape, zeros
from .slicing import concatenate
from .stack import BASE, inside, perform
from .types import array_type
from .windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gathering,
    put,
    window_sizes,
)


# y = x, then y[i[o] + w] = f(y[i[o] + w]) for o in order; u gives the shape of the windows
@operation
class ScatterApply:
    dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool
    unique_indices: bool
    mode: GatherScatterMode
    body: Program
    exempt = {"jvp": "a function applied as often as its place is named has no rule", "transpose": "it is not linear"}

    result_type = Scatter.result_type

    def evaluate(op, x, i, u):
        none, ones = np.zeros(x.shape, np.int64), np.ones(u.shape, np.int64)
        counts = put(op.dimension_numbers, none, i, ones, np.add, op.mode is not CLIP).reshape(-1)
        y = np.array(x).reshape(-1)
        for times in range(int(counts.max(initial=0))):
            places = np.flatnonzero(counts > times)
            elements = concrete(array_type(places.shape, op.body.in_types[0].dtype), y[places])
            many, dims = bodies().batch(op.body, (0,), places.size)
            with inside(BASE):
                (found,) = interpret(many, (elements,))
            y[places] = found.value if dims[0] is not None else np.broadcast_to(found.value, places.shape)
        return y.reshape(x.shape)

    batch = batch_scatter

    def jvp(op, primals, tangents):
        if any(d is not None for d in tangents):
            raise NotDifferentiable(
                "scatter_apply: the operand has a tangent, and places may be named several times.",
                hint="pass unique_indices=True where no place is named twice.",
            )
        return zero(op, primals, tangents)

    def lower(op, emit, x, i, u):
        return region(lambda element, _: interpret(op.body, (element,))[0])(op, emit, x, i, u)


def _perform(kind: Any, operand: Any, indices: Any, updates: Any, numbers: Any, *flags: Any) -> Any:
    x, u = lift_together(operand, updates)
    is_sorted, unique, mode = flags
    numbers = ScatterDimensionNumbers(*map(tuple, numbers))
    op = kind(numbers, bool(is_sorted), bool(unique), GatherScatterMode.from_any(mode))
    return perform(op, x, lift(indices), u)


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``y = operand``, then ``y[scatter_indices[o] + w] = updates[o, w]``: windows replaced.

    Of several updates at one place the last one stays, in row-major order of ``o`` (on a GPU: one of them).

    Args:
        scatter_indices: integers; the last dimension holds index vectors.
        updates: a window for each index vector, dimensions as ``dimension_numbers`` says.
        indices_are_sorted, unique_indices: promises; a derivative is cheaper where no two updates meet.
        mode: what becomes of a window that is not wholly inside: ``drop`` (the default) or ``clip``.
    Raises: ShapeMismatch, BadArgument, DTypeMismatch: numbers, shapes and dtypes don't fit together.
    Source: StableHLO specification, scatter.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(np.zeros(3), np.array([[2], [0]]), np.array([5.0, 6.0]), single)
    Array([6., 0., 5.], dtype=float64)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _perform(Scatter, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``y = operand``, then ``y[scatter_indices[o] + w] += updates[o, w]``: the adjoint of ``gather``.

    Arguments are those of ``scatter``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_add(np.zeros(3), np.array([[2], [2]]), np.array([5.0, 6.0]), single)
    Array([ 0.,  0., 11.], dtype=float64)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _perform(ScatterAdd, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``y = operand``, then ``y[scatter_indices[o] + w] -= updates[o, w]``.

    Arguments are those of ``scatter``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_sub(np.zeros(3), np.array([[2], [2]]), np.array([5.0, 6.0]), single)
    Array([  0.,   0., -11.], dtype=float64)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _perform(ScatterSub, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``y = operand``, then ``y[scatter_indices[o] + w] *= updates[o, w]``.

    Arguments are those of ``scatter``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_mul(np.ones(3), np.array([[2], [2]]), np.array([5.0, 6.0]), single)
    Array([ 1.,  1., 30.], dtype=float64)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _perform(ScatterMul, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``y = operand``, then ``y[scatter_indices[o] + w]`` is the smaller of itself and ``updates[o, w]``.

    The derivative is shared equally by all that attain the minimum.

    Arguments are those of ``scatter``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_min(np.ones(3), np.array([[2], [2]]), np.array([5.0, -6.0]), single)
    Array([ 1.,  1., -6.], dtype=float64)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _perform(ScatterMin, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``y = operand``, then ``y[scatter_indices[o] + w]`` is the larger of itself and ``updates[o, w]``.

    The derivative is shared equally by all that attain the maximum.

    Arguments are those of ``scatter``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_max(np.ones(3), np.array([[2], [2]]), np.array([5.0, -6.0]), single)
    Array([1., 1., 5.], dtype=float64)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _perform(ScatterMax, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Any = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``y = operand``, then ``y[scatter_indices[o] + w] = func(y[scatter_indices[o] + w])``, once for every ``o``.

    ``func`` is a function of single elements; a place that is named twice is changed twice. ``update_shape`` is the
    shape that updates would have; the other arguments are those of ``scatter``. It has a derivative with
    ``unique_indices``.
    Raises: NotDifferentiable: a derivative is asked for without ``unique_indices``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(np.ones(3), np.array([[2], [2], [0]]), lambda x: x + x, single, update_shape=(3,))
    Array([2., 1., 4.], dtype=float64)
    """
    x, i = lift(operand), lift(scatter_indices)
    numbers = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
    shape = canonical_shape(update_shape, "scatter_apply")
    flags = (bool(indices_are_sorted), bool(unique_indices), GatherScatterMode.from_any(mode))
    if unique_indices:
        window = window_sizes(numbers, x.type.shape, shape)
        return perform(Scatter(numbers, *flags), x, i, func(gather(x, i, gathering(numbers), window, mode=flags[2])))
    element = array_type((), x.type.dtype, x.type.weak)
    body = record_body(lambda y: [lift(func(y))], [element], "scatter_apply")
    if body.effects:
        raise CannotCross(f"scatter_apply: the function must be pure, it performs {', '.join(map(str, body.effects))}.")
    if body.out_types[0].strong() is not element.strong():
        raise DTypeMismatch(f"scatter_apply: the function must give an element of {x.type}, got {body.out_types[0]}.")
    return perform(ScatterApply(numbers, *flags, body), x, i, zeros(array_type(shape, x.type.dtype)))


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """``y[o] = src[idxs[0][o], idxs[1][o], ...]`` along ``axes``; indices are taken modulo the sizes.

    >>> index_take(np.arange(6).reshape(3, 2), [np.array([-1, 0])], (0,))
    Array([[4, 5],
           [0, 1]], dtype=int64)
    """
    x = lift(src)
    axes = tuple([canonical_axis(axis, x.ndim, "index_take") for axis in axes])
    parts = [lift(part) for part in idxs]
    if len(parts) != len(axes) or any(part.ndim != 1 for part in parts) or not parts:
        given = ", ".join([str(part.type) for part in parts])
        raise BadArgument(f"index_take: needs one array of rank 1 for each axis, got {given} for {axes}.")
    vectors = concatenate([expand_dims(wrapped(i, x.type.shape[axis]), (1,)) for i, axis in zip(parts, axes)], 1)
    window = tuple([1 if d in axes else n for d, n in enumerate(x.type.shape)])
    numbers = GatherDimensionNumbers(tuple(range(1, x.ndim - len(axes) + 1)), tuple(sorted(axes)), axes)
    return gather(x, vectors, numbers, window)


def wrapped(index: Any, size: int) -> Any:
    """An index modulo a size, from 0 up."""
    n = scalar(size, index.type.dtype)
    rest = rem(index, n)
    zero = scalar(0, index.type.dtype)
    return rest if is_unsigned(index.type.dtype) else select(lt(rest, zero), add(rest, n), rest)
