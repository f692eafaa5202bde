"""The functions of scatter: an array with windows replaced, added to, multiplied; and index_take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arithmetic import add, rem
from .arrays import lift, lift_together, scalar
from .comparison import lt, select
from .dtypes import is_unsigned
from .errors import BadArgument
from .indexing import Scatter, ScatterAdd, ScatterMax, ScatterMin, ScatterMul, ScatterSub, gather
from .operations import Operation
from .rearranging import expand_dims
from .shapes import canonical_axis
from .slicing import concatenate
from .stack import perform
from .windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers


def _perform(kind: type[Operation], operand: Any, indices: Any, updates: Any, numbers: Any, *flags: Any) -> Any:
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
