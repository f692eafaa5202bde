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
from ..effects.functions.unsupported import no_sharding
from ..effects.operations.elementwise.arithmetic import add
from ..effects.operations.elementwise.bitwise import bitwise_and
from ..effects.operations.elementwise.comparison import le, lt, min, select
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
from ..effects.operations.reductions.cumulative import cumsum
from ..effects.operations.reductions.reductions import argmax
from ..effects.operations.reductions.sorting import sort_key_val, top_k
from ..effects.types.array_type import array_type
from ..effects.types.dtypes import FLOATING, INTEGER, default_int, int32
from ..effects.types.extent import Extent, extents_in, fits, is_size, unbound
from ..effects.types.extent import single as single_size
from ..interpreters.core.eager_programs import programs
from .basic_samplers import floating, randint, spread, unit
from .keys import pair, single
from .transformed_samplers import gumbel

__all__ = ["categorical", "choice", "permutation"]


def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """The slices of ``x`` along ``axis`` in random order; of an integer ``x``, those of ``arange(x)``.

    Args:
        independent: whether every line along ``axis`` is shuffled for itself.

    >>> from handlax import random
    >>> random.permutation(random.key(0), 4)
    Array([0, 1, 3, 2], dtype=int32)
    """
    no_sharding("permutation", out_sharding)
    one = single("random.permutation", key)
    found = _population("random.permutation", x)
    if is_size(found):
        return _shuffled(one, iota(default_int(), found), 0)
    axis = canonical_axis(axis, found.ndim, "random.permutation")
    if independent or (found.ndim == 1 and not extents_in(found.type.shape)):
        return _shuffled(one, found, axis)
    return take(found, _shuffled(one, iota(int32, found.type.shape[axis]), 0), axis)


def _population(name: str, x: Any) -> Any:
    """A size as such, anything else as an array with a dimension."""
    x = unbound(x)
    if type(x) is Extent:
        return x
    if not isinstance(x, Array) and isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return int(x)
    found = as_array(x)
    if found.type.shape:
        return found
    if found.type.dtype not in INTEGER:
        raise DTypeMismatch(f"{name}: an integer or an array of rank 1 or more is needed, got {found.type}.")
    return operator.index(found)


# Above each of these sizes, (2**32 - 1)**(k/3) for k = 0, 1, ..., sorting by random words needs one more round.
ONCE_MORE = (1, 1625, 2642245)


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """``x`` sorted by random words, so often that ties between words have negligible effect."""

    def once_more(_: Any, state: Any) -> Any:
        key, x = state
        key, once = pair(key)
        return key, sort_key_val(key_bits(once, 32, x.type.shape), x, axis)[1]

    state = key, x
    if extents_in(x.type.shape):  # as often as each lane's own size asks for
        rounds = sum([convert(lt(scalar(most, int32), convert(as_array(x.size), int32)), int32) for most in ONCE_MORE])
        return fori_loop(0, rounds, once_more, state)[1]
    for i in range(bisect_left(ONCE_MORE, x.size)):
        state = once_more(i, state)
    return state[1]


def take(x: Any, places: Any, axis: int) -> Any:
    """``x[places]`` along ``axis``; the indices must be in bounds.

    Shapes: ``a[*r, n, *t], i[*s] -> a[*r, *s, *t]``.
    """
    rank, shape = places.ndim, x.type.shape
    offset = (*range(axis), *range(axis + rank, rank + x.ndim - 1))
    numbers = GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=(axis,), start_index_map=(axis,))
    window = (*shape[:axis], single_size(shape[axis]), *shape[axis + 1 :])
    where = reshape(places, (*places.type.shape, 1))
    return gather(x, where, numbers, window, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: str | None = None
) -> Array:
    """Random slices of ``a`` along ``axis``, or random numbers below an integer ``a``.

    Shapes: ``a[*r, n, *t] -> a[*r, *shape, *t]``.
    Args:
        replace: whether a slice may come more than once.
        p: the probability of each slice; equal ones by default.
        mode: that of ``gumbel``, which chooses without replacement by ``p``.
    Raises: BadArgument: more are asked for than there are. ShapeMismatch: ``p`` does not have one for each.

    >>> from handlax import random
    >>> random.choice(random.key(0), 10, (3,))
    Array([9, 0, 2], dtype=int32)
    """
    one = single("random.choice", key)
    shape = canonical_shape(shape, "random.choice")
    found = _population("random.choice", a)
    whole = is_size(found)
    axis = 0 if whole else canonical_axis(axis, found.ndim, "random.choice")
    count, drawn = found if whole else found.type.shape[axis], prod(shape)
    if drawn and not fits(1, count):
        raise BadArgument("random.choice: there must be something to choose from, got nothing.")
    if not replace and not fits(drawn, count):
        raise BadArgument(f"random.choice: without replacement at most {count} can be drawn, got {drawn}.")
    if p is not None:
        places = _weighted(one, shape, count, replace, p, mode)
    elif replace:
        places = randint(one, shape, 0, count if type(count) is Extent else max(1, count))
    else:  # the first ones of a random order
        order = permutation(one, found, axis)
        ragged = type(count) is Extent
        first = take(order, iota(int32, drawn), axis) if ragged else slice_in_dim(order, 0, drawn, axis=axis)
        return reshape(first, (*first.type.shape[:axis], *shape, *first.type.shape[axis + 1 :]))
    return places if whole else take(found, places, axis)


def _weighted(key: Any, shape: tuple[int, ...], count: Any, replace: bool, p: Any, mode: str | None) -> Any:
    """Indices drawn with probabilities ``p``."""
    weights = as_array(p)
    if weights.type.dtype not in FLOATING:
        weights = convert(weights, floating("random.choice", None))
    if weights.type.shape != (count,):
        raise ShapeMismatch(f"random.choice: p must have one entry for each of the {count}, got {weights.type}.")
    dtype, index = weights.type.dtype, default_int()
    if not replace:
        places = top_k(gumbel(key, (count,), dtype, mode) + log(weights), prod(shape))[1]
        return convert(reshape(places, shape), index)
    if not count:
        return full(array_type(shape, index), 0)
    sums = cumsum(weights)
    if type(count) is Extent:  # the number of sums below a value
        total = take(sums, as_array(sums.type.shape[0] - 1), 0)
        values = spread(total, shape) * (1 - unit(key, shape, dtype))
        rank, wide = len(shape), (*shape, *sums.type.shape)
        below = lt(broadcast_in_dim(sums, wide, (rank,)), broadcast_in_dim(values, wide, range(rank)))
        return reduce_sum(convert(below, index), (rank,))
    total = index_in_dim(sums, count - 1, keepdims=False)
    return convert(_not_below(sums, spread(total, shape) * (1 - unit(key, shape, dtype)), count), index)


def _not_below(ascending: Any, values: Any, count: int) -> Any:
    """The first index of an element that is not below a value, by bisection."""
    made = array_type(values.type.shape, int32)
    place = full(made, 0)
    for bit in reversed(range(count.bit_length())):
        further = place + scalar(1 << bit, int32)
        below = lt(take(ascending, min(further, full(made, count)) - 1, 0), values)
        place = select(bitwise_and(below, le(further, full(made, count))), further, place)
    return place


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
    """Indices along ``axis``, ``i`` with probability proportional to ``exp(logits[i])``.

    Shapes: ``logits`` without ``axis`` is the batch; it broadcasts to ``shape``, of which it is the last dimensions.
    Args:
        replace: whether the draws along the leading dimensions of ``shape`` may be equal; if not they are int32.
        mode: that of ``gumbel``.

    >>> from handlax import random
    >>> random.categorical(random.key(0), np.log(np.array([0.1, 0.9], "float32")), shape=(4,))
    Array([1, 1, 1, 1], dtype=int32)
    """
    no_sharding("categorical", out_sharding)
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
    places = top_k(noisy, prod(lead))[1]
    return broadcast(reshape(move_axis(places, places.ndim - 1, 0), (*lead, *batch)), shape)


programs(globals())
