"""Random order and choice: permutation, choice, categorical."""

from __future__ import annotations

import operator
from bisect import bisect_left
from math import prod
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.control.loops import fori_loop
from ..effects.core.arrays import Array, as_array, scalar
from ..effects.functions.out_shardings import cuts_result
from ..effects.operations.elementwise.arithmetic import add
from ..effects.operations.elementwise.bitwise import bitwise_and
from ..effects.operations.elementwise.comparison import gt, le, lt, min, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import log
from ..effects.operations.foundations.shapes import (
    broadcast,
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
    full,
    move_axis,
    reduce_sum,
    reshape,
)
from ..effects.operations.indexing.gather_scatter import gather
from ..effects.operations.indexing.gather_windows import GatherDimensionNumbers, GatherScatterMode
from ..effects.operations.manipulation.creation import iota
from ..effects.operations.manipulation.operand_promotion import broadcast_shape
from ..effects.operations.manipulation.slicing import index_in_dim, slice_in_dim
from ..effects.operations.random_generators import key_bits
from ..effects.operations.reductions.cumulative import cummax, cumsum
from ..effects.operations.reductions.reductions import argmax
from ..effects.operations.reductions.sorting import sort_key_val, top_k
from ..effects.types.array_type import array_type
from ..effects.types.dtypes import FLOATING, INTEGER, default_int, int32
from ..effects.types.extent import Extent, fits, is_size, unbound
from ..effects.types.extent import single as single_size
from ..effects.types.sized import extents_in
from ..interpreters.core.eager_programs import programs
from .basic_samplers import floating, randint, spread, unit
from .keys import pair, single
from .transformed_samplers import gumbel

__all__ = ["categorical", "choice", "permutation"]


@cuts_result
def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """The slices of ``x`` along ``axis`` in random order; for an integer ``x`` the elements of ``arange(x)``.

    Args:
        independent: shuffle the elements of every line along ``axis`` by themselves, in place of whole slices.

    >>> from handlax import random
    >>> random.permutation(random.key(0), 4)
    Array([0, 1, 3, 2], dtype=int32)
    """
    one = single("random.permutation", key)
    x = _population("random.permutation", x)
    if is_size(x):
        return _shuffled(one, iota(default_int(), x), 0)
    axis = canonical_axis(axis, x.ndim, "random.permutation")
    if independent or (x.ndim == 1 and not extents_in(x.type.shape)):
        return _shuffled(one, x, axis)
    return take(x, _shuffled(one, iota(int32, x.type.shape[axis]), 0), axis)


def _population(name: str, x: Any) -> Any:
    """A Python integer for an integer, a symbolic dimension itself, and anything else as an array of rank 1 or more.

    Raises: DTypeMismatch: ``x`` is a scalar, but not an integer.
    """
    x = unbound(x)
    if type(x) is Extent:
        return x
    if not isinstance(x, Array) and isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return int(x)
    array = as_array(x)
    if array.type.shape:
        return array
    if array.type.dtype not in INTEGER:
        raise DTypeMismatch(f"{name}: an integer or an array of rank 1 or more is needed, got {array.type}.")
    return operator.index(array)


# (2**32 - 1)**(k/3) for k = 0, 1, 2: above each of these sizes one more round of sorting by random words is needed.
ROUND_SIZES = (1, 1625, 2642245)


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """``x`` in random order along ``axis``: sorted by random words, in rounds enough for ties to have no effect."""

    def once_more(_: Any, state: Any) -> Any:
        key, x = state
        key, once = pair(key)
        return key, sort_key_val(key_bits(once, 32, x.type.shape), x, axis)[1]

    state = key, x
    if extents_in(x.type.shape):  # each lane's own size determines its number of rounds
        size = convert(as_array(x.size), int32)
        rounds = sum([convert(lt(scalar(most, int32), size), int32) for most in ROUND_SIZES])
        return fori_loop(0, rounds, once_more, state)[1]
    for i in range(bisect_left(ROUND_SIZES, x.size)):
        state = once_more(i, state)
    return state[1]


def take(x: Any, indices: Any, axis: int) -> Any:
    """``x[indices]`` along ``axis``, for indices that are in bounds, which is not checked.

    Shapes: ``a[*r, n, *t], i[*s] -> a[*r, *s, *t]``.
    """
    rank, shape = indices.ndim, x.type.shape
    offset = (*range(axis), *range(axis + rank, rank + x.ndim - 1))
    numbers = GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=(axis,), start_index_map=(axis,))
    window = (*shape[:axis], single_size(shape[axis]), *shape[axis + 1 :])
    where = reshape(indices, (*indices.type.shape, 1))
    return gather(x, where, numbers, window, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: str | None = None
) -> Array:
    """Random slices of ``a`` along ``axis``; for an integer ``a`` random elements of ``arange(a)``.

    Shapes: ``a[*r, n, *t] -> a[*r, *shape, *t]``.
    Args:
        replace: whether a slice may be chosen more than once.
        p: the probability of each slice, ``[n]``; by default all are equal.
        mode: "low" or "high", the ``mode`` of ``gumbel``, by which slices are chosen by ``p`` without replacement.
    Raises: BadArgument: without replacement more than n are asked for, or n is 0. ShapeMismatch: ``p`` is not ``[n]``.

    >>> from handlax import random
    >>> random.choice(random.key(0), 10, (3,))
    Array([9, 0, 2], dtype=int32)
    """
    one = single("random.choice", key)
    shape = canonical_shape(shape, "random.choice")
    a = _population("random.choice", a)
    whole = is_size(a)
    axis = 0 if whole else canonical_axis(axis, a.ndim, "random.choice")
    count, drawn = a if whole else a.type.shape[axis], prod(shape)
    if drawn and not fits(1, count):
        raise BadArgument("random.choice: there must be something to choose from, got nothing.")
    if not replace and not fits(drawn, count):
        raise BadArgument(f"random.choice: without replacement at most {count} can be drawn, got {drawn}.")
    if p is not None:
        indices = _weighted(one, shape, count, replace, p, mode)
    elif replace:
        indices = randint(one, shape, 0, count if type(count) is Extent else max(1, count))
    else:  # the first ones of a random order
        order = permutation(one, a, axis)
        ragged = type(count) is Extent
        first = take(order, iota(int32, drawn), axis) if ragged else slice_in_dim(order, 0, drawn, axis=axis)
        return reshape(first, (*first.type.shape[:axis], *shape, *first.type.shape[axis + 1 :]))
    return indices if whole else take(a, indices, axis)


def _weighted(key: Any, shape: tuple[int, ...], count: Any, replace: bool, p: Any, mode: str | None) -> Any:
    """Random indices below ``count``, ``i`` with probability ``p[i]``.

    By bisection of the cumulative sums of ``p``; without replacement, by the largest ``log(p)`` plus Gumbel noise.
    """
    weights = as_array(p)
    if weights.type.dtype not in FLOATING:
        weights = convert(weights, floating("random.choice", None))
    if weights.type.shape != (count,):
        raise ShapeMismatch(f"random.choice: p must have one entry for each of the {count}, got {weights.type}.")
    dtype, index = weights.type.dtype, default_int()
    if not replace:
        indices = top_k(gumbel(key, (count,), dtype, mode) + log(weights), prod(shape))[1]
        return convert(reshape(indices, shape), index)
    if not count:
        return full(array_type(shape, index), 0)
    sums = cumsum(weights)
    sums = cummax(select(gt(weights, 0), sums, sums * 0))  # rounded sums may grow where the weight is 0
    if type(count) is Extent:  # the number of sums below a value
        total = take(sums, as_array(sums.type.shape[0] - 1), 0)
        values = spread(total, shape) * (1 - unit(key, shape, dtype))
        rank, wide = len(shape), (*shape, *sums.type.shape)
        below = lt(broadcast_in_dim(sums, wide, (rank,)), broadcast_in_dim(values, wide, range(rank)))
        return reduce_sum(convert(below, index), (rank,))
    total = index_in_dim(sums, count - 1, keepdims=False)
    return convert(_not_below(sums, spread(total, shape) * (1 - unit(key, shape, dtype)), count), index)


def _not_below(ascending: Any, values: Any, count: int) -> Any:
    """For each value the first index of an element that is not less, by bisection of ``count`` ascending elements."""
    end = full(array_type(values.type.shape, int32), count)
    index = end * 0
    for bit in reversed(range(count.bit_length())):
        further = index + scalar(1 << bit, int32)
        below = lt(take(ascending, min(further, end) - 1, 0), values)
        index = select(bitwise_and(below, le(further, end)), further, index)
    return index


@cuts_result
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Random indices along ``axis``, ``i`` with probability proportional to ``exp(logits[i])``.

    Shapes: the shape of ``logits`` without ``axis`` broadcasts to the last dimensions of ``shape``, by default to
    itself; along other dimensions of ``shape`` the indices are drawn from the same logits.
    Args:
        replace: whether indices that are drawn from the same logits may be equal; if not the result is int32.
        mode: "low" or "high", the ``mode`` of ``gumbel``.

    >>> from handlax import random
    >>> random.categorical(random.key(0), np.log(np.array([0.1, 0.9], "float32")), shape=(4,))
    Array([1, 1, 1, 1], dtype=int32)
    """
    one, scores = single("random.categorical", key), as_array(logits)
    if scores.type.dtype not in FLOATING:
        raise DTypeMismatch(f"random.categorical: logits must be floats, got {scores.type}.")
    axis = canonical_axis(axis, scores.ndim, "random.categorical")
    sizes = scores.type.shape
    batch = (*sizes[:axis], *sizes[axis + 1 :])
    shape = batch if shape is None else canonical_shape(shape, "random.categorical")
    if broadcast_shape("random.categorical", shape, batch) != shape:
        raise ShapeMismatch(f"random.categorical: the batch {batch} of {scores.type} must broadcast to shape {shape}.")
    lead = shape[: len(shape) - len(batch)]
    dtype = scores.type.dtype
    if replace:
        rest = shape[len(lead) :]
        drawn = (*lead, *rest[:axis], sizes[axis], *rest[axis:])
        noise = gumbel(one, drawn, dtype, mode)
        return argmax(noise + broadcast(scores, drawn), len(lead) + axis, default_int())
    if prod(lead) > sizes[axis]:
        raise BadArgument(
            f"random.categorical: without replacement at most {sizes[axis]} can be drawn, got {prod(lead)}."
        )
    noisy = move_axis(add(gumbel(one, sizes, dtype, mode), convert(scores, dtype)), axis, scores.ndim - 1)
    indices = top_k(noisy, prod(lead))[1]
    return broadcast(reshape(move_axis(indices, indices.ndim - 1, 0), (*lead, *batch)), shape)


programs(globals())
