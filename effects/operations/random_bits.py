"""Threefry-2x32 and random keys: a key is two 32-bit words, its key data, and random bits are a function of them.

    block(key, counter)      two words: 20 rounds of add, rotate, xor (Salmon et al. 2011; the Random123 library)
    bits[i] of a key         the two words of block(key, i), for the row-major index i
    split(key)[i]            the key whose data is block(key, i)
    fold_in(key, n)          the key whose data is block(key, n)

An element depends on its own index only, so that any slice of the bits can be computed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..base.caches import cached
from ..base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..base.stack import perform
from ..core.arrays import as_array, as_arrays
from ..core.columns import zero
from ..core.operation import Operation, operation
from ..sharding.sharding_rules import ShardingRule, alike, numbered
from ..types.array_type import ArrayType, array_type
from ..types.dtypes import INTEGER, THREEFRY, ExtendedDType, KeyDType, itemsize_bits, uint8, uint16, uint32, uint64
from ..types.extent import fits
from .foundations import elementwise_factory
from .foundations.key_arrays import key_data_type
from .foundations.shapes import canonical_shape, move_axis
from .random_blocks import PARITY, BlockFunction, drawn

Words = np.ndarray[Any, Any]

KEY = KeyDType(THREEFRY)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
UINT = {8: uint8, 16: uint16, 32: uint32, 64: uint64}
LOW = 0xFFFFFFFF

# Up to PACKED blocks are computed in one Python integer, more of them by NumPy in pieces that fit the CPU's cache.
PACKED = 256
PIECE = 16384


def block(k0: Words, k1: Words, x0: Words, x1: Words) -> tuple[Words, Words]:
    """The block function on arrays of words that broadcast: counters ``(x0, x1)`` under keys ``(k0, k1)``."""
    shape = np.broadcast_shapes(k0.shape, k1.shape, x0.shape, x1.shape)
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0, x1 = np.array(np.broadcast_to(x0, shape), uint32), np.array(np.broadcast_to(x1, shape), uint32)
    add, shift_left, shift_right, join, xor = np.add, np.left_shift, np.right_shift, np.bitwise_or, np.bitwise_xor
    add(x0, k0, x0)
    add(x1, k1, x1)
    spare = np.empty(shape, uint32)
    for i in range(5):
        for left, right in _SHIFTS[i % 2]:
            add(x0, x1, x0)
            shift_left(x1, left, spare)
            shift_right(x1, right, x1)
            join(x1, spare, x1)
            xor(x1, x0, x1)
        add(x0, schedule[(i + 1) % 3], x0)
        add(x1, schedule[(i + 2) % 3] + np.asarray(i + 1, uint32), x1)
    return x0, x1


_SHIFTS = tuple([[(np.asarray(r, uint32), np.asarray(32 - r, uint32)) for r in rotations] for rotations in ROTATIONS])


@cached("threefry lanes", PACKED)
def _lanes(count: int) -> tuple[int, int, int]:
    """Python integers of ``count`` lanes of 64 bits, with in each lane: 1, the mask of its low word, its index."""
    ones = int.from_bytes(np.ones(count, "<u8").tobytes(), "little")
    return ones, ones * LOW, int.from_bytes(np.arange(count, dtype="<u8").tobytes(), "little")


def packed(k0: int, k1: int, count: int, start: int = 0) -> tuple[int, int]:
    """The block function of one key at ``start, ..., start + count - 1``: two Python integers, 64 bits for each word.

    For a few words this is faster than NumPy, as an addition of all words is one operation. The upper half of each lane
    takes carries and shifted bits: sums stay below 2**37, and only words to be rotated are masked.
    """
    ones, mask, x1 = _lanes(count)
    schedule = (k0 * ones, k1 * ones, (k0 ^ k1 ^ PARITY) * ones)
    x0 = schedule[0]
    x1 = (x1 + start * ones + schedule[1]) & mask
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 += x1
            x1 = (((x1 << r) | (x1 >> (32 - r))) ^ x0) & mask
        x0 += schedule[(i + 1) % 3]
        x1 = (x1 + schedule[(i + 2) % 3] + (i + 1) * ones) & mask
    return x0 & mask, x1


def unpacked(lanes: int, count: int) -> Words:
    """The lanes of a Python integer as an array of 64-bit integers."""
    return np.frombuffer(lanes.to_bytes(8 * count, "little"), "<u8")


def fill_from_blocks(
    keys: Words, shape: tuple[int, ...], finish: Callable[[Words, Words, Words], None], out: Words
) -> Words:
    """``out``, filled in pieces by ``finish(x0, x1, piece)`` from the blocks of every key and index of ``shape``."""
    count = prod(shape)
    k0, k1 = keys[..., :1], keys[..., 1:]
    flat = out.reshape((*keys.shape[:-1], count, *out.shape[keys.ndim - 1 + len(shape) :]))
    lead = (slice(None),) * (keys.ndim - 1)
    piece = max(1, PIECE // max(1, prod(keys.shape[:-1])))
    for start in range(0, count, piece):
        index = np.arange(start, min(start + piece, count), dtype=np.uint64)
        low = index.astype(uint32)
        high = (index >> np.uint64(32)).astype(uint32) if count > LOW else _ZERO
        finish(*block(k0, k1, high, low), flat[(*lead, slice(start, start + len(low)))])
    return out


_ZERO = np.zeros((), uint32)


def emit_block(emit: Any, k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The block function as StableHLO, on values of one type."""
    type = x0.type

    def plus(x: Any, y: Any) -> Any:
        return emit.binary("add", x, y)

    third = emit.binary("xor", emit.binary("xor", k0, k1), emit.constant(PARITY, type))
    schedule = (k0, k1, third)
    x0, x1 = plus(x0, k0), plus(x1, k1)
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = plus(x0, x1)
            left = emit.binary("shift_left", x1, emit.constant(r, type))
            right = emit.binary("shift_right_logical", x1, emit.constant(32 - r, type))
            x1 = emit.binary("xor", emit.binary("or", left, right), x0)
        x0 = plus(x0, schedule[(i + 1) % 3])
        x1 = plus(plus(x1, schedule[(i + 2) % 3]), emit.constant(i + 1, type))
    return x0, x1


def emit_blocks(emit: Any, keys: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The two uint32 outputs of Threefry for each key and counter."""
    lead = keys.type.shape
    result = array_type((*lead, *shape), uint32)
    key_words = [emit.broadcast_in_dim(word, result.shape, range(len(lead))) for word in key_parts(emit, keys)]
    high, low = emit_counters(emit, shape)
    tail = range(len(lead), len(result.shape))
    return emit_block(emit, *key_words, *[emit.broadcast_in_dim(x, result.shape, tail) for x in (high, low)])


def key_parts(emit: Any, keys: Any) -> list[Any]:
    """The first and the second word of every key."""
    data = keys._replace(type=key_data_type(keys.type))
    lead = keys.type.shape
    zeros, one, word = [0] * len(lead), [1] * (len(lead) + 1), array_type((*lead, 1), uint32)
    return [emit.reshape(emit.slice(data, [*zeros, i], [*lead, i + 1], one, word), lead) for i in range(2)]


def emit_counters(emit: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """High and low word of the row-major number of every index of ``shape``."""
    narrow = array_type(shape, uint32)
    wide = fits(LOW + 1, prod(shape))
    type = array_type(shape, uint64) if wide else narrow
    number, stride = emit.constant(0, type), 1
    for d in range(len(shape) - 1, -1, -1):
        index = emit.iota(type, d)
        number = emit.binary("add", number, emit.binary("multiply", index, emit.constant(stride, type)))
        stride *= shape[d]
    if not wide:
        return emit.constant(0, narrow), number
    high = emit.binary("shift_right_logical", number, emit.constant(32, type))
    return emit.convert(high, uint32), emit.convert(number, uint32)


def emit_key(emit: Any, x0: Any, x1: Any, type: ArrayType) -> Any:
    """The keys of this type whose data are these words."""
    one = array_type((*x0.type.shape, 1), uint32)
    columns = [emit.reshape(x, one.shape) for x in (x0, x1)]
    axis = len(one.shape) - 1
    both = f"{columns[0].name}, {columns[1].name}, dim = {axis}"
    data = emit.inline("concatenate", both, *columns, type=key_data_type(type))
    return emit.stored(data._replace(type=type))[0]  # else a kernel computes all keys of a chain again for every use


def check_keys(op: Any, keys: ArrayType) -> None:
    """Raise DTypeMismatch unless these are keys of Threefry."""
    if keys.dtype != KEY:
        raise DTypeMismatch(
            f"{op.name}: the first operand must be {KEY} keys, got {keys}.",
            hint="random.key(0) makes a key; random.wrap_key_data makes keys of uint32 key data.",
        )


class KeyOperation(Operation):
    """Maps keys, key data or seeds with any number of leading dimensions, and has no derivative."""

    __slots__ = ()
    jvp = zero

    def sharding_rule(op, operands, results):
        """Dimensions after those of the keys are whole."""
        count = min(len(t.shape) for t in (*operands, *results))
        return ShardingRule([numbered(operands[0])], [[d if d < count else None for d in numbered(t)] for t in results])

    def batch(op: Any, dims: tuple[int], x: Any) -> tuple[Any, int]:
        """The batch rule: the mapped dimension becomes the first of the leading ones."""
        return perform(op, move_axis(x, dims[0], 0)), 0


# (y0, y1) = block((k0, k1), (x0, x1))
@operation
class Threefry2x32(BlockFunction):
    name = "threefry2x32"
    keys = 2
    size = 2

    def evaluate(op, k0, k1, x0, x1):
        return block(k0, k1, x0, x1)

    def lower(op, emit, *values):
        type = emit.made[0]
        words = [v if v.type.shape else emit.broadcast_in_dim(v, type.shape, ()) for v in values]
        return drawn(emit, *emit_block(emit, *[v._replace(type=type) for v in words]))


# y[k, i] = the words of block(keys[k], i): concatenated for 64 bits, else the low bits of their xor
@operation
class RandomBits(KeyOperation):
    bit_width: int
    shape: tuple[int, ...]
    dtypes = frozenset({KEY})

    def result_type(op, keys):
        check_keys(op, keys)
        if op.bit_width not in UINT:
            raise BadArgument(f"random_bits: the width must be 8, 16, 32 or 64, got {op.bit_width}.")
        return array_type((*keys.shape, *op.shape), UINT[op.bit_width])

    def evaluate(op, keys):
        dtype, count = UINT[op.bit_width], prod(op.shape)
        if keys.ndim == 1 and count <= PACKED:
            k0, k1 = keys.tolist()
            x0, x1 = packed(k0, k1, count)
            lanes = (x0 << 32) | x1 if op.bit_width == 64 else x0 ^ x1
            return unpacked(lanes, count).astype(dtype).reshape(op.shape)

        def join(x0, x1, out):
            if op.bit_width == 64:
                np.left_shift(x0.astype(uint64), np.uint64(32), out=out)
                np.bitwise_or(out, x1, out=out)
            else:
                out[...] = np.bitwise_xor(x0, x1, out=x0)

        return fill_from_blocks(keys, op.shape, join, np.empty((*keys.shape[:-1], *op.shape), dtype))

    def lower(op, emit, keys):
        x0, x1 = emit_blocks(emit, keys, op.shape)
        if op.bit_width != 64:
            return drawn(emit, emit.convert(emit.binary("xor", x0, x1), UINT[op.bit_width]))[0]
        high = emit.binary("shift_left", emit.convert(x0, uint64), emit.constant(32, x0.type.update(dtype=uint64)))
        return drawn(emit, emit.binary("or", high, emit.convert(x1, uint64)))[0]

    def workload_size(op, keys):
        """The number of elements drawn."""
        return op.result_type(keys).size


# y[k, i] = the key whose data is block(keys[k], i)
@operation
class RandomSplit(KeyOperation):
    shape: tuple[int, ...]
    dtypes = frozenset({KEY})

    def result_type(op, keys):
        check_keys(op, keys)
        return array_type((*keys.shape, *op.shape), keys.dtype)

    def evaluate(op, keys):
        count = prod(op.shape)
        if keys.ndim == 1 and count <= PACKED:
            k0, k1 = keys.tolist()
            x0, x1 = packed(k0, k1, count)
            return unpacked((x1 << 32) | x0, count).view("<u4").reshape((*op.shape, 2))

        def join(x0, x1, out):
            out[..., 0] = x0
            out[..., 1] = x1

        return fill_from_blocks(keys, op.shape, join, np.empty((*keys.shape[:-1], *op.shape, 2), uint32))

    def lower(op, emit, keys):
        return emit_key(emit, *emit_blocks(emit, keys, op.shape), emit.made)


# y = the key whose data is block(key, (0, data))
@operation
class RandomFoldIn:
    name = "random_fold_in"
    dtypes = frozenset({KEY})

    def result_type(op, keys, data):
        check_keys(op, keys)
        if data.dtype != uint32:
            raise DTypeMismatch(f"random_fold_in: the data must be uint32, got {data}.")
        if keys.shape and data.shape and keys.shape != data.shape:
            raise ShapeMismatch(f"random_fold_in: keys and data must have one shape or rank 0, got {keys} and {data}.")
        return array_type(keys.shape or data.shape, keys.dtype)

    def evaluate(op, keys, data):
        if keys.ndim == 1 and not data.ndim:
            k0, k1 = keys.tolist()
            return np.array(packed(k0, k1, 1, int(data)), uint32)
        return np.stack(block(keys[..., 0], keys[..., 1], _ZERO, data), -1)

    sharding_rule = alike
    batch = elementwise_factory.batch
    jvp = zero

    def lower(op, emit, keys, data):
        shape = emit.made.shape
        words = [*key_parts(emit, keys), data]
        words = [x if x.type.shape == shape else emit.broadcast_in_dim(x, shape, ()) for x in words]
        type = array_type(shape, uint32)
        k0, k1, low = [x._replace(type=type) for x in words]
        return emit_key(emit, *emit_block(emit, k0, k1, emit.constant(0, type), low), emit.made)


# y = the key whose data is the high and the low half of the seed
@operation
class RandomSeed(KeyOperation):
    dtypes = INTEGER

    def result_type(op, seeds):
        if seeds.dtype not in INTEGER:
            raise DTypeMismatch(f"random_seed: a seed must be an integer, got {seeds}.")
        return array_type(seeds.shape, KEY)

    def evaluate(op, seeds):
        low = seeds.astype(uint32)
        high = (seeds.view(uint64) >> np.uint64(32)).astype(uint32) if seeds.dtype.itemsize == 8 else np.zeros_like(low)
        return np.stack((high, low), -1)

    def lower(op, emit, seeds):
        low = emit.convert(seeds, uint32)
        if itemsize_bits(seeds.type.dtype) < 64:
            return emit_key(emit, emit.constant(0, low.type), low, emit.made)
        high = emit.binary("shift_right_logical", seeds, emit.constant(32, seeds.type))
        return emit_key(emit, emit.convert(high, uint32), low, emit.made)


# y = the keys of this dtype whose data is x
@operation
class RandomWrap(KeyOperation):
    dtype: KeyDType = KEY
    dtypes = frozenset({uint32})

    def result_type(op, x):
        rank = len(op.dtype.shape)
        if x.dtype != uint32 or x.shape[-rank:] != op.dtype.shape:
            raise DTypeMismatch(
                f"random: the data of {op.dtype} keys must be uint32[..., {op.dtype.shape[0]}], got {x}.",
                hint="make keys with random.key(seed) and random.split.",
            )
        return array_type(x.shape[:-rank], op.dtype)

    def evaluate(op, x):
        return x

    def lower(op, emit, x):
        return x._replace(type=emit.made)


# y = the data of keys, with one more dimension
@operation
class RandomUnwrap(KeyOperation):
    dtypes = frozenset({KEY})

    def result_type(op, keys):
        if not isinstance(keys.dtype, ExtendedDType):
            raise DTypeMismatch(f"random_unwrap: the operand must be keys, got {keys}.")
        return key_data_type(keys)

    def evaluate(op, keys):
        return keys

    def lower(op, emit, keys):
        return keys._replace(type=emit.made)


def threefry2x32(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The two words of the Threefry-2x32 block function, 20 rounds: counters ``(x0, x1)`` under keys ``(k0, k1)``.

    Shapes: equal, or rank 0. All are uint32.
    Source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).

    >>> zero = np.zeros((), "uint32")
    >>> [hex(int(word)) for word in threefry2x32(zero, zero, zero, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    words: tuple[Any, Any] = perform(Threefry2x32(), *as_arrays(k0, k1, x0, x1))
    return words


def random_bits(keys: Any, bit_width: int, shape: Any) -> Any:
    """Uniform bits: unsigned integers of this width, of ``shape`` for every key.

    Raises: BadArgument: the width is not 8, 16, 32 or 64. DTypeMismatch: ``keys`` is no array of keys.
    """
    return perform(RandomBits(bit_width, canonical_shape(shape, "random_bits")), as_array(keys))


def random_split(keys: Any, shape: Any) -> Any:
    """New keys, of ``shape`` for every key."""
    return perform(RandomSplit(canonical_shape(shape, "random_split")), as_array(keys))


def random_fold_in(keys: Any, data: Any) -> Any:
    """The keys derived from ``keys`` and 32-bit numbers ``data``, of equal shapes or rank 0."""
    return perform(RandomFoldIn(), as_array(keys), as_array(data))


def random_seed(seeds: Any) -> Any:
    """The keys of integers: 64-bit seeds give both words, narrower ones the low word."""
    return perform(RandomSeed(), as_array(seeds))


def random_wrap(data: Any, dtype: KeyDType = KEY) -> Any:
    """The keys of key data, ``uint32[..., 2]`` for those of Threefry-2x32."""
    return perform(RandomWrap(dtype), as_array(data))


def random_unwrap(keys: Any) -> Any:
    """The key data of keys of any generator, ``uint32[..., 2]`` for Threefry-2x32."""
    return perform(RandomUnwrap(), as_array(keys))
