"""Keys of any generator: every function asks the dtype of the keys which generator they belong to.

    seed_keys(seeds, dtype)       the keys of integers
    split_keys(keys, shape)       the keys with these numbers that derive from each key
    fold_keys(keys, data)         the keys that derive from keys and integers
    key_bits(keys, width, shape)  random bits, a function of each key

Those of Threefry-2x32 have operations of their own. The others are composed of block functions on their words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from operator import xor
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import BadArgument
from ..core.arrays import as_array, scalar
from ..types.dtypes import PHILOX2, PHILOX4, RBG, THREEFRY4, UNSAFE_RBG, KeyDType, int32, uint32, uint64
from ..types.extent import fits
from ..types.sized import extents_in
from .elementwise.comparison import select_n
from .elementwise.conversion import convert
from .foundations.shapes import canonical_shape
from .manipulation.creation import broadcasted_iota, iota
from .manipulation.operand_promotion import broadcast_together
from .manipulation.rearranging import reshape, stack
from .manipulation.slicing import index_in_dim, slice_in_dim
from .random_bits import (
    KEY,
    LOW,
    UINT,
    random_bits,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
    threefry2x32,
)
from .random_blocks import philox2x32, philox4x32, product, threefry4x32

KeyWords = Sequence[Any]


class Generator(NamedTuple):
    """A PRNG as four functions on uint32 key words, all of which broadcast.

    Key words come from ``seed(high, low)``, ``split(key, number)`` and ``fold_in(key, integer)``. The
    ``bits(key, width, shape)`` are drawn from key words with one dimension for each of ``shape`` behind their own.
    """

    seed: Callable[..., KeyWords]
    split: Callable[..., KeyWords]
    fold_in: Callable[..., KeyWords]
    bits: Callable[[KeyWords, int, tuple[int, ...]], Any]


def _aligned(*words: Any) -> list[Any]:
    return broadcast_together("random", [as_array(word) for word in words])


def _countable(shape: Any, name: str) -> tuple[int, ...]:
    """The shape of what is drawn. Raises: BadArgument: it has more than 2**32 - 1 elements, or is none."""
    sizes = canonical_shape(shape, name)
    if not fits(prod(sizes), LOW):
        raise BadArgument(
            f"{name}: {prod(sizes)} elements are more than 2**32 - 1, which only threefry2x32 draws at once.",
            hint="draw parts, from keys of their own: random.split(key).",
        )
    return sizes


def _numbers(shape: tuple[int, ...], rank: int) -> Any:
    """The row-major number of every index of ``shape``, as an array of this rank."""
    if extents_in(shape):  # a lane's axes cannot be divided
        number: Any = ZERO
        for d in range(len(shape)):
            number = number + broadcasted_iota(uint32, shape, d) * prod(shape[d + 1 :])
        return reshape(number, (*(1,) * (rank - len(shape)), *shape))
    return reshape(iota(uint32, prod(shape)), (*(1,) * (rank - len(shape)), *shape))


def joined(high: Any, low: Any) -> Any:
    """The 64-bit integers of these words."""
    return (convert(high, uint64) << np.uint64(32)) | convert(low, uint64)


ZERO = scalar(0, uint32)


def of_blocks(
    block: Callable[..., Any],
    size: int,
    seed: Callable[..., KeyWords],
    halves: Callable[[Any], Sequence[Any]] = lambda words: words[:2],
) -> Generator:
    """The generator that computes a block for every element and every new key, of counters of ``size`` words.

    ``halves``: the high and the low word of 64 bits from the words of a block; 32 bits are the xor of them all.
    """

    def derive(key: KeyWords, number: Any) -> KeyWords:
        return block(*_aligned(*key, *[ZERO] * (size - 1), number))[: len(key)]

    def bits(key: KeyWords, width: int, shape: tuple[int, ...]) -> Any:
        number = _numbers(shape, len(key[0].type.shape))
        words = block(*_aligned(*key, ZERO, number, *[ZERO] * (size - 2)))
        return joined(*halves(words)) if width == 64 else convert(reduce(xor, words), UINT[width])

    return Generator(seed, derive, derive, bits)


def _derive_rbg(key: KeyWords, number: Any) -> KeyWords:
    """The halves of the key, each as a key of Threefry-2x32."""
    return [word for i in (0, 2) for word in threefry2x32(*_aligned(*key[i : i + 2], ZERO, number))]


def philox_stream(key: KeyWords, number: Any, above: Any = ZERO) -> KeyWords:
    """A block of the stream of a key: of Philox-4x32, from the counter of 128 bits whose words are those of the key.

    The number of the block has the words ``above`` and ``number``.
    Source: XLA's RngBitGenerator, algorithm Philox, whose state is a key and a counter, here both the same.
    """
    k0, k1, *_ = key
    counter, carry = [], number
    for word, more in zip((*key[2:], k0, k1), (above, ZERO, ZERO, None)):
        raised = word + carry
        counter.append(raised)
        if more is not None:  # a word that wrapped around is below what was added to it
            carry = convert(raised < carry, uint32) + more
    return philox4x32(*_aligned(k0, k1, *counter))


def draw_stream(key: KeyWords, width: int, shape: tuple[int, ...]) -> Any:
    """The words of the stream in order, one for an element, or two of 64 bits, the low one first."""
    own = key[0].type.shape[: len(key[0].type.shape) - len(shape)]
    each = 2 if width == 64 else 1
    if extents_in(shape):  # a lane's axes cannot be divided: each element computes its block
        number = _numbers(shape, len(key[0].type.shape)) * each
        blocks = philox_stream(key, number >> np.uint32(2))
        which = convert(number & np.uint32(3), int32)
        low, high = [select_n(which + i, *blocks) for i in range(2)]
        return convert(low, UINT[width]) if each == 1 else joined(high, low)
    count = prod(shape) * each
    first = [reshape(word, (*own, 1)) for word in key]
    stream = stack(philox_stream(first, _numbers((-(-count // 4),), len(own) + 1)), axis=-1)
    words = slice_in_dim(reshape(stream, (*own, stream.type.size // max(1, prod(own)))), 0, count, axis=len(own))
    if each == 1:
        return convert(reshape(words, (*own, *shape)), UINT[width])
    pairs = reshape(words, (*own, *shape, 2))
    low, high = [index_in_dim(pairs, i, axis=-1, keepdims=False) for i in range(2)]
    return joined(high, low)


def _seed_rbg(high: Any, low: Any) -> KeyWords:
    return high, low, high, low


def _split_unsafe_rbg(key: KeyWords, number: Any) -> KeyWords:
    high, low = product(number, 10)
    return philox_stream(key, low, high)


def _fold_in_unsafe_rbg(key: KeyWords, number: Any) -> KeyWords:
    return [x ^ y for x, y in zip(key, philox_stream(_seed_rbg(ZERO, number), scalar(9, uint32)))]


# The generators beside Threefry-2x32, by the dtype of their keys.
GENERATORS = {
    KeyDType(PHILOX2): of_blocks(philox2x32, 2, lambda high, low: philox2x32(*_aligned(ZERO, high, low))[:1]),
    KeyDType(PHILOX4): of_blocks(
        philox4x32, 4, lambda high, low: philox4x32(*_aligned(ZERO, ZERO, high, low, ZERO, ZERO))[:2]
    ),
    KeyDType(THREEFRY4): of_blocks(
        threefry4x32,
        4,
        lambda high, low: threefry4x32(*_aligned(high, low, *[ZERO] * 6)),
        lambda words: (words[0] ^ words[2], words[1] ^ words[3]),
    ),
    KeyDType(RBG): Generator(_seed_rbg, _derive_rbg, _derive_rbg, draw_stream),
    KeyDType(UNSAFE_RBG): Generator(_seed_rbg, _split_unsafe_rbg, _fold_in_unsafe_rbg, draw_stream),
}


def _generator(keys: Any) -> Generator | None:
    """The generator that keys belong to; None for Threefry-2x32, and for what is no array of keys."""
    dtype = keys.type.dtype
    return None if dtype is KEY else GENERATORS.get(dtype)


def _words(keys: Any, rank: int = 0) -> list[Any]:
    """The words of keys, with ``rank`` more dimensions of size 1."""
    data = random_unwrap(keys)
    *shape, count = data.type.shape
    return [reshape(index_in_dim(data, i, axis=-1), (*shape, *(1,) * rank)) for i in range(count)]


def _keys(words: KeyWords, dtype: KeyDType) -> Any:
    return random_wrap(stack(_aligned(*words), axis=-1), dtype)


def key_bits(keys: Any, bit_width: int, shape: Any) -> Any:
    """Uniform bits: unsigned integers of this width, of ``shape`` for every key.

    Raises: BadArgument: the width is not 8, 16, 32 or 64. DTypeMismatch: ``keys`` is no array of keys.
    """
    keys = as_array(keys)
    generator = _generator(keys)
    if generator is None:
        return random_bits(keys, bit_width, shape)
    if bit_width not in UINT:
        raise BadArgument(f"random_bits: the width must be 8, 16, 32 or 64, got {bit_width}.")
    sizes = _countable(shape, "random_bits")
    return generator.bits(_words(keys, len(sizes)), bit_width, sizes)


def split_keys(keys: Any, shape: Any) -> Any:
    """New keys, of ``shape`` for every key."""
    keys = as_array(keys)
    generator = _generator(keys)
    if generator is None:
        return random_split(keys, shape)
    sizes = _countable(shape, "random_split")
    numbers = _numbers(sizes, len(keys.type.shape) + len(sizes))
    return _keys(generator.split(_words(keys, len(sizes)), numbers), keys.type.dtype)


def fold_keys(keys: Any, data: Any) -> Any:
    """The keys derived from ``keys`` and 32-bit numbers ``data``, of equal shapes or rank 0."""
    keys = as_array(keys)
    generator = _generator(keys)
    if generator is None:
        return random_fold_in(keys, data)
    return _keys(generator.fold_in(_words(keys), as_array(data)), keys.type.dtype)


def seed_keys(seeds: Any, dtype: KeyDType) -> Any:
    """The keys of this dtype of integers: 64-bit seeds give both words, narrower ones the low word."""
    return rekeyed(random_seed(seeds), dtype)


def rekeyed(keys: Any, dtype: KeyDType) -> Any:
    """The keys of this dtype of seeds, which are the two words of ``keys`` of Threefry-2x32."""
    generator = GENERATORS.get(dtype)
    return keys if generator is None else _keys(generator.seed(*_words(keys)), dtype)
