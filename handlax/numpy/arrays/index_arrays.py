"""Generating index arrays: nonzero, where, indices, ix_, tril_indices, unravel_index, s_, r_, c_, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Literal, overload

import numpy as np

from ...effects.base.errors import BadArgument, ConcretizationError, ShapeMismatch, need_one_of, whole_number
from ...effects.base.stack import perform
from ...effects.core.array_interface import ArrayLike
from ...effects.core.arrays import Array, Box, ConcreteArray, as_array, from_numpy, scalar
from ...effects.operations.elementwise.arithmetic import add, div, rem
from ...effects.operations.elementwise.comparison import ge, select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.indexing.gather_scatter import Scatter
from ...effects.operations.indexing.gather_windows import ScatterDimensionNumbers
from ...effects.operations.manipulation import slicing
from ...effects.operations.manipulation.creation import broadcasted_iota, iota
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, together
from ...effects.operations.reductions.cumulative import cumsum
from ...effects.types import dtypes
from ...effects.types.extent import as_size, fits, positive
from ...effects.types.sized import extents_in
from ...interpreters.core.eager_programs import programs
from .creation import asarray, shape_of
from .index_reading import FILL, limited, on_host, positions, wrapped
from .joining_splitting import atleast_1d, concatenate, stack
from .numerical_ranges import interval_of_slice, meshgrid
from .shape_manipulation import broadcast_to, ravel

__all__ = [
    "argwhere", "c_", "diag_indices", "diag_indices_from", "flatnonzero", "index_exp", "indices", "ix_", "mask_indices",
    "nonzero", "r_", "ravel_multi_index", "s_", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from", "unravel_index", "where",
]


def known(x: Any) -> bool:
    """Whether the values of ``x`` are concrete: it is a NumPy value or an array that is not traced."""
    return not isinstance(x, Array) or isinstance(x, ConcreteArray)


def need_known(name: str, argument: str, x: Any, size: Any = None, hint: str = "name a number: size=n.") -> None:
    """Check that ``x`` is concrete, whose values tell how many elements the result has, or that ``size`` tells it.

    Raises: ConcretizationError: ``x`` is traced, and there is no ``size``.
    """
    if size is None and not known(x):
        shown = x.described if isinstance(x, Box) else x.type
        raise ConcretizationError(
            f"{name}: the values of {argument} tell the size of the result, and must be known, got {shown}.", hint=hint
        )


@overload
def where(condition: Any, x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def where(
    condition: Any, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]: ...
def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """``where(c, x, y)[i] == x[i] if c[i] else y[i]``, all broadcast, ``x`` and ``y`` promoted to one dtype.

    With ``condition`` alone it is ``nonzero(condition)``.

    >>> where(np.array([True, False]), 1.0, 2.0)
    Array([1., 2.], dtype=float32, weak_type=True)
    """
    if x is None and y is None:
        c = as_array(condition)
        need_known("where", "condition", c, size)
        return nonzero(c, size=size, fill_value=fill_value)
    if x is None or y is None or size is not None or fill_value is not None:
        raise BadArgument("where: takes a condition and both x and y, or a condition with size and fill_value.")
    c = condition if isinstance(condition, Array) else as_array(condition)
    if c.type.dtype.kind != "b":
        c = truth(c)
    x, y = together("where", x, y)
    mine, shape = c.type.shape, x.type.shape or y.type.shape
    if mine and mine != shape:
        made = broadcast_shape("where", mine, shape)
        c = broadcast_to(c, made)
        x = broadcast_to(x, made) if x.type.shape else x
        y = broadcast_to(y, made) if y.type.shape or not x.type.shape else y
    return select_n(c, y, x)


def truth(x: Any) -> Any:
    """``x != 0``, as booleans."""
    return convert(x, np.dtype(bool))


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, an array for each axis, in row-major order.

    With ``size``, the first ``size`` of them, padded with ``fill_value`` (0 by default, or a tuple for the axes).
    Without ``size``, ``a`` must be concrete: under ``jit`` and the like ``size`` is needed.

    >>> nonzero(np.array([0, 3, 0, 4]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
    """
    x = as_array(a)
    if not x.ndim:
        raise ShapeMismatch("nonzero: rank 1 at least is needed, got a scalar.", hint="use atleast_1d.")
    kind = dtypes.default_int()
    if size is None:
        need_known("nonzero", "a", x)
        return _positions(np.nonzero(np.asarray(x)))
    size = as_size(size, "nonzero: size")
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ShapeMismatch(f"nonzero: one fill value for each of {x.ndim} axes is needed, got {len(fills)}.")
    fills = tuple([convert(0 if fill is None else fill, kind) for fill in fills])
    if not size or not x.size:
        return tuple([broadcast_to(fill, (size,)) for fill in fills])
    flat = _first_true(shapes.reshape(truth(x), (x.size,)), size, kind)
    inside = ge(flat, scalar(0, kind))
    return tuple([select_n(inside, fill, part) for fill, part in zip(fills, _unraveled(flat, x.shape))])


def _first_true(mask: Any, size: int, kind: Any) -> Any:
    """The first ``size`` positions where the mask is true, padded with -1."""
    n = mask.type.shape[0]
    nth = add(cumsum(convert(mask, kind)), scalar(-1, kind))
    # the position of the k-th true element is written to slot k; the others, and those beyond ``size``, are dropped
    target = select_n(mask, convert(size, kind), nth)
    if target.type.shape != (n,):
        target = broadcast_to(target, (n,))
    empty = shapes.full(nth.type.update(shape=(size,)), -1)
    op = Scatter(ScatterDimensionNumbers((), (0,), (0,)), False, True, FILL)
    return perform(op, empty, shapes.reshape(target, (n, 1)), iota(kind, n))


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that are not zero, one in each row; see ``nonzero`` for ``size``.

    >>> argwhere(np.array([[0, 1], [1, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    x = as_array(a)
    need_known("argwhere", "a", x, size)
    if not x.ndim:
        positions = nonzero(shapes.reshape(x, (1,)), size=size, fill_value=fill_value)
        return slicing.slice_in_dim(shapes.reshape(positions[0], (positions[0].size, 1)), 0, 0, axis=1)
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The positions of the elements of the flattened array that are not zero; see ``nonzero`` for ``size``.

    >>> flatnonzero(np.array([[0, 1], [1, 0]]))
    Array([1, 2], dtype=int32)
    """
    x = ravel(a)
    need_known("flatnonzero", "a", x, size)
    return nonzero(x, size=size, fill_value=fill_value)[0]


@overload
def indices(dimensions: Any, dtype: Any = None, sparse: Literal[False] = False) -> Array: ...
@overload
def indices(dimensions: Any, dtype: Any = None, *, sparse: Literal[True]) -> tuple[Array, ...]: ...
def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """``indices(s)[d][i] == i[d]``, for every index ``i`` of the shape; with ``sparse`` a tuple of open grids.

    >>> indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    sizes = shape_of(dimensions, "indices")
    kind = dtypes.default_int() if dtype is None else dtypes.canonical(dtype)
    if sparse:
        return meshgrid(*[iota(kind, n) for n in sizes], sparse=True, indexing="ij")
    if not sizes:
        return shapes.full(as_array(0).type.update(shape=(0,), dtype=kind, weak=False), 0)
    return stack([broadcasted_iota(kind, sizes, d) for d in range(len(sizes))])


def ix_(*args: Any) -> tuple[Array, ...]:
    """Vectors as an open mesh: ``x[ix_(i, j)][a, b] == x[i[a], j[b]]``.

    A boolean vector, which must be concrete, stands for the indices where it is true.

    >>> [part.shape for part in ix_(np.arange(2), np.arange(3))]
    [(2, 1), (1, 3)]
    """
    grid = []
    for d, arg in enumerate(args):
        x = as_array(arg)
        if x.ndim != 1:
            raise ShapeMismatch(f"ix_: vectors are needed, got {x.type}.")
        if x.dtype.kind == "b":
            need_known("ix_", "a mask", x, hint="give positions: nonzero(mask, size=n)[0].")
            x = nonzero(x)[0]
        elif not x.size:  # of floats, as those of an empty list
            x = convert(x, dtypes.default_int())
        grid.append(shapes.reshape(x, tuple([x.size if e == d else 1 for e in range(len(args))])))
    return tuple(grid)


def unravel_index(indices: Any, shape: Any) -> tuple[Array, ...]:
    """Flat positions in an array of this shape as indices, an array for each axis; positions outside are clipped.

    >>> unravel_index(np.array([5, -1], "int32"), (2, 3))
    (Array([1, 1], dtype=int32), Array([2, 2], dtype=int32))
    """
    sizes = shape_of(shape, "unravel_index")
    i, total = positions(indices, "unravel_index"), prod(sizes)
    i = convert(limited(wrapped(i, total), total, "clip", "unravel_index")[0], i.dtype)
    return tuple(_unraveled(i, sizes))


def _unraveled(i: Any, sizes: tuple[int, ...]) -> list[Any]:
    """The indices along each axis of row-major positions in an array of these sizes; 0 where a ragged size is 0."""
    dtype, total = i.dtype, prod(sizes)
    results, stride = [], total
    if extents_in(sizes):
        for k, n in enumerate(sizes):
            part = div(i, convert(_at_least_one(prod(sizes[k + 1 :])), dtype))
            results.append(rem(part, convert(_at_least_one(n), dtype)) if k else part)
        return results
    for n in sizes:
        stride //= max(n, 1)
        part = div(i, scalar(stride, dtype)) if stride > 1 else i
        results.append(rem(part, scalar(n, dtype)) if stride * n < total else part)
    return results


def _at_least_one(size: Any) -> Any:
    """``max(size, 1)``, also of a symbolic dimension."""
    return size + positive(1 - size)


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C", *, dtype: Any = None
) -> Array:
    """The flat position, in row-major order (``order="F"``: column-major), of the element at ``multi_index``.

    ``mode`` is what happens to indices out of bounds: ``raise`` (which needs concrete indices), ``clip`` or ``wrap``,
    or ``ignore``.

    >>> ravel_multi_index((np.array([1, 0]), np.array([2, 1])), (2, 3))
    Array([5, 1], dtype=int64)
    """
    sizes = shape_of(dims, "ravel_multi_index")
    if len(multi_index) != len(sizes):
        raise ShapeMismatch(f"ravel_multi_index: {len(sizes)} entries are needed, got {len(multi_index)}.")
    need_one_of("ravel_multi_index: order", order, ("C", "F"))
    modes = mode if isinstance(mode, (tuple, list)) else (mode,) * len(sizes)
    parts = [as_array(part) for part in multi_index]
    kind = dtypes.result_type(*parts) if dtype is None else dtypes.canonical(dtype)
    if dtype is None and not fits(prod(sizes), int(dtypes.iinfo(kind).max)):
        kind = dtypes.result_type(kind, dtypes.default_int())
    result: Any = scalar(0, kind)
    for part, n, how in zip(*[axis[:: 1 if order == "C" else -1] for axis in (parts, sizes, modes)]):
        if how == "raise":
            values = np.asarray(part)
            if values.size and not ((values >= 0) & (values < n)).all():
                raise BadArgument(
                    f"ravel_multi_index: entries must lie in [0, {n}).", hint="mode='clip' or 'wrap' allows others."
                )
        elif how != "ignore":
            part = as_array(limited(on_host(part), n, how, "ravel_multi_index")[0])
        result = result * scalar(n, kind) + convert(part, kind)
    return result


def _positions(axes: Any) -> tuple[Any, ...]:
    """NumPy's index arrays as arrays of the default integer dtype."""
    return tuple([from_numpy(part.astype(dtypes.default_int()), copy=False) for part in axes])


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The rows and columns of the elements at and below the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    >>> tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _positions(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The rows and columns of the elements at and above the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    >>> triu_indices(2, 1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    return _positions(np.triu_indices(n, k, m))


def _sides(arr: Any, where: str) -> tuple[int, int]:
    """The numbers of rows and columns of a matrix. Raises ShapeMismatch: the rank is not 2."""
    shape = arr.shape if hasattr(arr, "shape") else as_array(arr).shape
    if len(shape) != 2:
        raise ShapeMismatch(f"{where}: a matrix is needed, got shape {shape}.")
    return shape[0], shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """``tril_indices`` of the shape of a matrix.

    >>> tril_indices_from(np.zeros((1, 2)))
    (Array([0], dtype=int32), Array([0], dtype=int32))
    """
    rows, columns = _sides(arr, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """``triu_indices`` of the shape of a matrix.

    >>> triu_indices_from(np.zeros((1, 2)))
    (Array([0, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    rows, columns = _sides(arr, "triu_indices_from")
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with ``ndim`` axes of size ``n``.

    >>> diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = whole_number("diag_indices: n", n), whole_number("diag_indices: ndim", ndim)
    if n < 0 or ndim < 0:
        raise BadArgument(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}.")
    return _positions([np.arange(n)] * ndim)


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """``diag_indices`` of an array whose sizes are all equal.

    >>> diag_indices_from(np.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = as_array(arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ShapeMismatch(f"diag_indices_from: rank 2 at least and equal sizes are needed, got shape {shape}.")
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The rows and columns where ``mask_func(ones((n, n)), k)`` is not zero.

    With ``size``, the first ``size`` of them, padded with 0.

    >>> from handlax.numpy import triu
    >>> mask_indices(2, triu, 1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    axes = np.nonzero(np.asarray(mask_func(shapes.full(as_array(True).type.update(shape=(n, n)), True), k)))
    if size is None:
        return _positions(axes)
    return _positions([np.concatenate([part[:size], np.zeros(max(0, size - part.size), int)]) for part in axes])


class IndexExpression:
    """``s_[1:2, ::3]`` is the index between the brackets; ``index_exp`` always gives a tuple.

    >>> s_[1:2], index_exp[0]
    (slice(1, 2, None), (0,))
    """

    __slots__ = ("always_tuple",)

    def __init__(self, always_tuple: bool):
        self.always_tuple = always_tuple

    def __getitem__(self, index: Any) -> Any:
        return (index,) if self.always_tuple and not isinstance(index, tuple) else index


s_ = IndexExpression(False)
"""The index between brackets as a value: ``s_[1:3]`` is ``slice(1, 3)``."""
index_exp = IndexExpression(True)
"""The index between brackets as a tuple: ``index_exp[1:3]`` is ``(slice(1, 3),)``."""


class RangeConcatenator:
    """``r_`` and ``c_``: ``r_[a:b, c, x]`` concatenates ranges, numbers and arrays along an axis."""

    __slots__ = ("name", "axis", "rank", "at")

    def __init__(self, name: str, axis: int, rank: int, at: int):
        self.name, self.axis, self.rank, self.at = name, axis, rank, at

    def __getitem__(self, key: Any) -> Any:
        axis, rank, at, as_matrix = self.axis, self.rank, self.at, None
        parts = list(key) if isinstance(key, tuple) else [key]
        if isinstance(parts[0], str):
            word = parts.pop(0)
            if word in ("r", "c"):
                as_matrix, axis, rank = word, -1, 2
            else:
                numbers = [int(number) for number in word.split(",")]
                axis, rank, at = (*numbers, *(axis, rank, at)[len(numbers) :])
        xs = [
            interval_of_slice(part, self.name) if isinstance(part, slice) else atleast_1d(asarray(part))
            for part in parts
        ]
        scalars = [not isinstance(part, slice) and not asarray(part).ndim for part in parts]
        if as_matrix is not None:
            y = concatenate(xs)
            return shapes.reshape(y, (1, y.size) if as_matrix == "r" else (y.size, 1))
        return concatenate([x if single and rank < 2 else _raised(x, rank, at) for x, single in zip(xs, scalars)], axis)

    def __repr__(self) -> str:
        return f"handlax.numpy.{self.name}"


def _raised(x: Any, rank: int, at: int) -> Any:
    """``x`` with axes of size 1 added up to ``rank``: ``at`` of them in front, counted modulo the number that fits."""
    new = rank - x.ndim
    if new <= 0:
        return x
    at %= new + 1
    return shapes.reshape(x, (*(1,) * at, *x.shape, *(1,) * (new - at)))


r_ = RangeConcatenator("r_", axis=0, rank=1, at=-1)
"""Ranges, numbers and arrays, concatenated along the first axis: ``r_[0:3, 7]`` is ``[0, 1, 2, 7]``."""
c_ = RangeConcatenator("c_", axis=-1, rank=2, at=0)
"""Ranges and arrays as columns, concatenated along the last axis: ``c_[0:2, 3:5]`` is ``[[0, 3], [1, 4]]``."""


programs(globals(), direct=("argwhere", "flatnonzero", "nonzero"))
