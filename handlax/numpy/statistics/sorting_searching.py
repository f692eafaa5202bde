"""Sorting and searching: sort, argsort, lexsort, partition, searchsorted, digitize, isin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, NotProvided, ShapeMismatch, need_one_of, whole_number
from ...effects.core.arrays import Array, ConcreteArray
from ...effects.operations.elementwise.comparison import min as _min
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.elementwise.complex_parts import imag, real
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.manipulation.creation import broadcasted_iota
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.operations.manipulation.slicing import rev, slice_in_dim
from ...effects.operations.reductions import sorting
from ...effects.types import dtypes
from ...effects.types.dtypes import canonical, default_int
from ...effects.types.extent import fits
from ...effects.types.lengths import of_lanes
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, like, rows_of
from ..arrays.indexing_operations import take
from ..mathematics import reductions

__all__ = [
    "argpartition", "argsort", "digitize", "isin", "lexsort", "partition", "searchsorted", "sort", "sort_complex",
    "top_k",
]


# above so many keys a binary search does less than comparing all
_FEW = 32

# the dtype of the indices that ``searchsorted`` gives, whatever the default integer is
_INDEX = dtypes.int32


def _no_kind_or_order(name: str, kind: Any, order: Any) -> None:
    """Raise NotProvided if NumPy's arguments ``kind`` or ``order`` are given."""
    if kind is not None or order is not None:
        raise NotProvided(
            f"{name}: there is one algorithm and no fields, got kind={kind} and order={order}.",
            hint="stable= says more.",
        )


def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """``a`` sorted along an axis, or flattened; NaN comes last, or first if ``descending``. Source: NumPy, ``sort``.

    >>> from handlax.numpy import array
    >>> sort(array([3, 1, 2])), sort(array([3, 1, 2]), descending=True)
    (Array([1, 2, 3], dtype=int32), Array([3, 2, 1], dtype=int32))
    """
    _no_kind_or_order("sort", kind, order)
    x, axis = rows_of(a, axis, "sort")
    y = sorting.sort(x, axis, stable)
    return rev(y, (axis,)) if descending else y


def argsort(
    a: Any, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False, dtype: Any = None,
) -> Array:
    """The indices that sort: ``take_along_axis(a, argsort(a)) == sort(a)``; equal elements stay in order if ``stable``.

    >>> from handlax.numpy import array
    >>> argsort(array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _no_kind_or_order("argsort", kind, order)
    x, axis = rows_of(a, axis, "argsort")
    indices = broadcasted_iota(default_int() if dtype is None else canonical(dtype), x.type.shape, axis)
    if descending and stable:  # reversed twice, equal elements stay in order
        x, indices = rev(x, (axis,)), rev(indices, (axis,))
    _, indices = sorting.sort_key_val(x, indices, axis, stable)
    return rev(indices, (axis,)) if descending else indices


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by the last key, where it is equal by the last but one, and so on. Source: NumPy.

    >>> from handlax.numpy import array
    >>> lexsort((array([1, 0, 2]), array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    xs = [array_of(key) for key in (array_of(keys) if isinstance(keys, np.ndarray) else keys)]
    if not xs:
        raise BadArgument("lexsort: there must be a key, got none.")
    if len({x.type.shape for x in xs}) > 1:
        raise ShapeMismatch(f"lexsort: keys must have one shape, got {', '.join(str(x.type) for x in xs)}.")
    if not xs[0].type.shape:
        return convert(0, default_int())
    axis = canonical_axis(axis, len(xs[0].type.shape), "lexsort")
    indices = broadcasted_iota(default_int(), xs[0].type.shape, axis)
    return sorting.sort((*reversed(xs), indices), axis, True, len(xs))[-1]


def sort_complex(a: Any) -> Array:
    """``a`` sorted along its last axis as complex numbers: by real, then by imaginary parts.

    >>> from handlax.numpy import array
    >>> sort_complex(array([2.0, 1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = array_of(a)
    return convert(sort(x), dtypes.to_complex(x.type.dtype))


def _with_element(name: str, a: Any, kth: Any, axis: int) -> Any:
    """``a`` as an array. Raises BadArgument: ``kth`` is no index along ``axis``."""
    x = array_of(a)
    size = x.type.shape[canonical_axis(axis, len(x.type.shape), name)]
    index = whole_number(f"{name}: kth", kth)
    if not (of_lanes(size) or -size <= index < size):
        raise BadArgument(f"{name}: kth must be an index along the axis, got {kth} for {x.type}.")
    return x


def partition(a: Any, kth: int, axis: int = -1) -> Array:
    """``a`` rearranged along an axis: element ``kth`` as if sorted, none larger before it, none smaller after it.

    Here all elements are sorted, which is one such arrangement. Source: NumPy, ``partition``.

    >>> from handlax.numpy import array
    >>> int(partition(array([3, 1, 2]), 1)[1])
    2
    """
    return sort(_with_element("partition", a, kth, axis), axis)


def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """The indices that partition: ``take_along_axis(a, argpartition(a, k))`` is a partition of ``a``.

    >>> from handlax.numpy import array
    >>> int(argpartition(array([3, 1, 2]), 1)[1])
    2
    """
    return argsort(_with_element("argpartition", a, kth, axis), axis, dtype="int32")


def top_k(a: Any, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True) -> tuple[Array, Array]:
    """The ``k`` largest or smallest elements along an axis, from the outermost on, and their indices.

    Of equal elements the first comes first; NaN counts as the largest. Source: NumPy, ``top_k``.

    Args:
        mode: "largest" or "smallest".
        sorted: ignored, as the elements are sorted in any case.

    >>> from handlax.numpy import array
    >>> top_k(array([3, 1, 3, 2]), 2, mode="smallest")
    (Array([1, 2], dtype=int32), Array([1, 3], dtype=int32))
    """
    need_one_of("top_k: mode", mode, ("largest", "smallest"))
    x = array_of(a)
    axis = canonical_axis(axis, len(x.type.shape), "top_k")
    k = whole_number("top_k: k", k)
    if not 0 <= k <= x.type.shape[axis]:
        raise BadArgument(f"top_k: k must be from 0 to the size of axis {axis}, got {k} for {x.type}.")
    if mode == "largest":
        return sorting.top_k(x, k, axis=axis)
    values, indices = sorting.sort_key_val(x, broadcasted_iota("int32", x.type.shape, axis), axis)
    return slice_in_dim(values, 0, k, axis=axis), slice_in_dim(indices, 0, k, axis=axis)


def _before(x: Any, y: Any, strict: bool) -> Any:
    """Whether ``x < y`` (``strict``) or ``x <= y`` as ``sort`` orders them: NaN last, complex numbers by parts."""
    if dtypes.is_complex(x.type.dtype):
        a, b = real(x), real(y)
        same = (a == b) | (a != a) & (b != b)
        return _before(a, b, True) | same & _before(imag(x), imag(y), strict)
    first = x < y if strict else x <= y
    if not dtypes.is_inexact(x.type.dtype):
        return first
    last = y != y
    return first | (last & (x == x) if strict else last)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Array:
    """Where ``v`` belongs in the sorted ``a``: ``a[i - 1] < v <= a[i]``, for ``side="right"`` ``a[i - 1] <= v < a[i]``.

    Args:
        sorter: the indices that sort ``a``.
        method: "compare_all" compares all pairs; "scan", "scan_unrolled" and "sort" search by halves, unless ``a``
            is short.
    Source: NumPy, ``searchsorted``.

    >>> from handlax.numpy import array
    >>> searchsorted(array([1, 2, 2, 3]), 2), searchsorted(array([1, 2, 2, 3]), 2, side="right")
    (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    need_one_of("searchsorted: side", side, ("left", "right"))
    if method not in ("scan", "scan_unrolled", "sort", "compare_all"):
        raise BadArgument(f"searchsorted: method must be scan, scan_unrolled, sort or compare_all, got {method!r}.")
    x, y = promote(a, v)
    if len(x.type.shape) != 1:
        raise ShapeMismatch(f"searchsorted: the sorted array must have rank 1, got {x.type}.")
    if sorter is not None:
        x = take(x, sorter)
    size = x.type.shape[0]
    if fits(size, _FEW) or method == "compare_all":
        return _count_before(x, y, side == "left")
    return _halving(x, y, side == "left")


def _count_before(x: Any, y: Any, strict: bool) -> Any:
    """The number of elements of the sorted ``x`` that come before each ``y``, by comparing all pairs."""
    return reductions.sum(_before(*_pairs(x, y), strict), 0, dtype=_INDEX)


def _pairs(x: Any, y: Any) -> tuple[Any, Any]:
    """The vector ``x`` and the array ``y``, both of shape ``(len(x), *y.shape)``.

    Folding the short first axis adds whole arrays; a short last one costs NumPy a loop for each element of ``y``.
    """
    shape = (*x.type.shape, *y.type.shape)
    return shapes.broadcast_in_dim(x, shape, (0,)), shapes.broadcast_in_dim(y, shape, tuple(range(1, len(shape))))


def _halving(x: Any, y: Any, strict: bool) -> Any:
    """As ``_count_before``, by a binary search whose steps are falling powers of two."""
    size = x.type.shape[0]
    count = shapes.full(y.type.update(dtype=_INDEX, weak=False), 0)
    step = 1 << (size.bit_length() - 1)
    while step:
        ahead = count + like(count, step)
        at = take(x, _min(ahead, like(ahead, size)) - 1, mode="clip")
        taken = _before(at, y, strict) & (ahead <= like(ahead, size))
        count = select_n(taken, count, ahead)
        step >>= 1
    return count


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"
) -> Array:
    """Whether each element is one of ``test_elements``; with ``invert``, whether it is none. Source: NumPy, ``isin``.

    >>> from handlax.numpy import array
    >>> isin(array([1, 2, 3]), array([2, 5]))
    Array([False,  True, False], dtype=bool)
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise BadArgument(f"isin: method must be auto, compare_all, binary_search or sort, got {method!r}.")
    x, y = promote(element, test_elements)
    size = y.size
    y = shapes.reshape(y, (size,))
    if not size:
        present = shapes.full(x.type.update(dtype=dtypes.bool_, weak=False), False)
    elif size <= _FEW or method == "compare_all" or dtypes.is_complex(x.type.dtype):
        keys, elements = _pairs(y, x)
        present = reductions.any(elements == keys, 0)
    else:
        y = sorting.sort(y)
        present = take(y, searchsorted(y, x), mode="clip") == x
    return ~present if invert else present


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Array:
    """The bin of each ``x``: ``bins[i - 1] <= x < bins[i]``, with ``right`` ``bins[i - 1] < x <= bins[i]``.

    Of decreasing bins: ``bins[i - 1] > x >= bins[i]``, with ``right`` ``bins[i - 1] >= x > bins[i]``. Source: NumPy,
    ``digitize``.

    >>> from handlax.numpy import array
    >>> digitize(array([0.5, 1.0]), array([0.0, 1.0, 2.0]))
    Array([1, 2], dtype=int32)
    """
    x, edges = array_of(x), array_of(bins)
    if len(edges.type.shape) != 1:
        raise ShapeMismatch(f"digitize: bins must have rank 1, got {edges.type}.")
    size = edges.type.shape[0]
    if not size:
        return shapes.full(x.type.update(dtype=_INDEX, weak=False), 0)
    side = "left" if right else "right"
    way = method or "scan"
    rising = edges[-1] >= edges[0]
    if isinstance(rising, ConcreteArray):
        return searchsorted(edges, x, side, method=way) if bool(rising) else _falling(edges, x, side, way)
    return select_n(rising, _falling(edges, x, side, way), searchsorted(edges, x, side, method=way))


def _falling(edges: Any, x: Any, side: str, method: str) -> Any:
    """``digitize`` for decreasing edges."""
    position = searchsorted(rev(edges, (0,)), x, side, method=method)
    return like(position, edges.type.shape[0]) - position


programs(globals())
