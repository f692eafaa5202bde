"""XLA's generators of random bits: ``rng_bit_generator``, and numbers without a key."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.core.arrays import Array, as_array, as_arrays, scalar
from ..effects.functions.out_shardings import cut
from ..effects.operations.elementwise.conversion import bitcast_convert_type, convert
from ..effects.operations.foundations.shapes import canonical_shape, reshape
from ..effects.operations.manipulation.creation import iota
from ..effects.operations.manipulation.operand_promotion import broadcast_together
from ..effects.operations.manipulation.rearranging import stack
from ..effects.operations.manipulation.slicing import index_in_dim, slice_in_dim
from ..effects.operations.random_bits import UINT, threefry2x32
from ..effects.operations.random_generators import draw_stream, joined
from ..effects.types.dtypes import canonical, is_integer, itemsize_bits, uint32, uint64
from ..interpreters.library.effectful.random_streams import fresh_key
from ..random import randint, uniform

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_uniform"]


class RandomAlgorithm(enum.IntEnum):
    """Algorithms of ``rng_bit_generator``. The default is Philox, on every device."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: Any,
    shape: Any,
    dtype: Any = np.uint32,
    algorithm: Any = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """The state after these bits are drawn, and random bits: unsigned integers of ``dtype``.

    The bits are those of XLA's operation of this name on a CPU. Under ``vmap`` each lane has those of its own key.

    Args:
        key: the state, ``u32[4]`` or ``u64[2]``: a key and a counter of blocks, of 64 bits each, low words first.

    Raises: ShapeMismatch, DTypeMismatch: the state is none, or ``dtype`` is no unsigned integer of 8 bits or more.
    BadArgument: there is no such algorithm.

    Source: the StableHLO specification, ``rng_bit_generator``; Salmon et al., Parallel random numbers: as easy as 1, 2,
    3 (2011).

    >>> state, bits = rng_bit_generator(np.uint32([1, 2, 3, 4]), (5,), "uint8")
    >>> state
    Array([1, 2, 5, 4], dtype=uint32)
    """
    state, sizes, drawn = as_array(key), canonical_shape(shape, "rng_bit_generator"), canonical(dtype)
    if drawn not in UINT.values():
        raise DTypeMismatch(f"rng_bit_generator: the dtype must be an unsigned integer, got {drawn}.", hint="uint32.")
    if algorithm not in set(RandomAlgorithm):
        raise BadArgument(f"rng_bit_generator: the algorithm must be a lax.RandomAlgorithm, got {algorithm!r}.")
    words = _words(state)
    threefry = algorithm == RandomAlgorithm.RNG_THREE_FRY
    bits, blocks = (_threefry if threefry else _philox)(words, itemsize_bits(drawn), sizes)
    low, high = _advanced(words, scalar(blocks, uint32))
    return _state([*words[:2], low, high], state), cut("rng_bit_generator", bits, out_sharding)


def _words(state: Array) -> list[Array]:
    """The words of a state, low ones first."""
    if (state.type.shape, state.type.dtype) not in (((4,), uint32), ((2,), uint64)):
        raise ShapeMismatch(
            f"rng_bit_generator: the state must be u32[4] or u64[2], got {state.type}.",
            hint="random.key_data(random.key(0, impl='rbg')) is one.",
        )
    if state.type.dtype == uint64:
        state = reshape(bitcast_convert_type(state, uint32), (4,))
    return [index_in_dim(state, i, keepdims=False) for i in range(4)]


def _state(words: Sequence[Array], like: Array) -> Array:
    """A state with these words, lowest first, that has the shape and dtype of ``like``."""
    state = stack(words)
    return state if like.type.dtype == uint32 else bitcast_convert_type(reshape(state, (2, 2)), uint64)


def _advanced(words: Sequence[Any], number: Any) -> tuple[Any, Any]:
    """The words, lowest first, of a state whose counter has grown by ``number``."""
    low = words[2] + number
    return low, words[3] + convert(low < number, uint32)


def _philox(words: Sequence[Array], width: int, shape: tuple[int, ...]) -> tuple[Array, int]:
    """The blocks of four words that Philox gives for the elements of ``shape``, in row-major order."""
    each = 2 if width == 64 else 1
    bits = draw_stream([reshape(word, (1,) * len(shape)) for word in words], width, shape)
    return reshape(bits, shape), -(-prod(shape) * each // 4)


def _threefry(words: Sequence[Array], width: int, shape: tuple[int, ...]) -> tuple[Array, int]:
    """The blocks of two words that Threefry-2x32 gives: one for each element of 64 bits, else one for each pair along a
    dimension.

    The dimension is the first of even size, else the longest.
    """
    if width == 64:
        low, high = _blocks(words, prod(shape))
        return reshape(joined(high, low), shape), prod(shape)
    sizes = shape or (1,)
    even = [d for d, size in enumerate(sizes) if size % 2 == 0]
    along = even[0] if even else sizes.index(max(sizes))
    half = (*sizes[:along], -(-sizes[along] // 2), *sizes[along + 1 :])
    pairs = [reshape(word, half) for word in _blocks(words, prod(half))]
    whole = reshape(stack(pairs, axis=along + 1), (*sizes[:along], 2 * half[along], *sizes[along + 1 :]))
    return convert(reshape(slice_in_dim(whole, 0, sizes[along], axis=along), shape), UINT[width]), prod(half)


def _blocks(words: Sequence[Array], count: int) -> tuple[Array, Array]:
    """The first and the second word of Threefry-2x32 at the numbers that follow the counter."""
    columns = [reshape(word, (1,)) for word in words]
    counter = _advanced(columns, iota(uint32, count))
    return threefry2x32(*broadcast_together("rng_bit_generator", [*columns[:2], *counter]))


def rng_uniform(a: Any, b: Any, shape: Any) -> Array:
    """Uniform numbers from ``a`` to below ``b``, scalars of one dtype, drawn without a key: from the nearest ``seed``.

    Raises: UnhandledEffect: there is no ``random.keyless.seed`` around. ShapeMismatch, DTypeMismatch: the ends are no
    numbers of one dtype.

    >>> from handlax import random
    >>> from handlax.random import keyless
    >>> keyless.seed(lambda: rng_uniform(0, 10, (3,)), random.key(0))().shape
    (3,)
    """
    low, high = as_arrays(a, b)
    if low.type.shape or high.type.shape:
        raise ShapeMismatch(f"rng_uniform: the ends must be scalars, got {low.type} and {high.type}.")
    if low.type.dtype != high.type.dtype:
        raise DTypeMismatch(f"rng_uniform: the ends must be of one dtype, got {low.type} and {high.type}.")
    sizes, dtype = canonical_shape(shape, "rng_uniform"), low.type.dtype
    if is_integer(dtype):
        return randint(fresh_key(), sizes, low, high, dtype)
    return uniform(fresh_key(), sizes, dtype, low, high)
