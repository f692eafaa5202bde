"""Block functions of random generators: words of a counter, scrambled under the words of a key.

    philox2x32(k0; x0, x1)                  two words: 10 rounds of multiply, xor, and raise the key
    philox4x32(k0, k1; x0, ..., x3)         four words, in the same way
    threefry4x32(k0, ..., k3; x0, ..., x3)  four words: 20 rounds of add, rotate, xor

Source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011); the Random123 library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..base.errors import BadCall, DTypeMismatch, ShapeMismatch
from ..base.stack import perform
from ..base.wrapping import ignoring_errors
from ..core.arrays import as_arrays
from ..core.columns import zero
from ..core.operation import Operation, operation
from ..sharding.sharding_rules import alike
from ..types.array_type import array_type
from ..types.dtypes import uint32
from .foundations import elementwise_factory

PARITY = 0x1BD11BDA
ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def product(x: Any, factor: int) -> tuple[Any, Any]:
    """The high and the low word of the product of words and a number, in halves of 16 bits."""
    low, high = np.uint32(factor & 0xFFFF), np.uint32(factor >> 16)
    half, sixteen = np.uint32(0xFFFF), np.uint32(16)
    x_low, x_high = x & half, x >> sixteen
    first, second = x_high * low, x_low * high
    middle = ((x_low * low) >> sixteen) + (first & half) + (second & half)
    return x_high * high + (first >> sixteen) + (second >> sixteen) + (middle >> sixteen), x * np.uint32(factor)


def _rotated(x: Any, count: int) -> Any:
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


def drawn(emit: Any, *words: Any) -> list[Any]:
    """Random words, which on CPUs are computed once; elsewhere they may be computed in each kernel that reads them."""
    return emit.stored(*words) if emit.platform == "cpu" else list(words)


class BlockFunction(Operation):
    """Maps the words of a key and of a counter, of one shape or rank 0, to as many words as the counter has."""

    __slots__ = ()
    multiple_results = True
    dtypes = frozenset({uint32})
    keys: ClassVar[int]  # so many words has a key, and
    size: ClassVar[int]  # so many a counter

    def result_type(op, *words):
        if len(words) != op.keys + op.size:
            raise BadCall(f"{op.name}: it takes {op.keys + op.size} words, got {len(words)}.")
        shapes = {x.shape for x in words if x.shape}
        if any(x.dtype != uint32 for x in words):
            raise DTypeMismatch(f"{op.name}: words must be uint32, got {', '.join(map(str, words))}.")
        if len(shapes) > 1:
            raise ShapeMismatch(f"{op.name}: shapes must be equal or of rank 0, got {', '.join(map(str, words))}.")
        return (array_type(shapes.pop() if shapes else (), uint32),) * op.size

    sharding_rule = alike
    batch = elementwise_factory.batch
    jvp = zero


class ComposedBlockFunction(BlockFunction):
    """A block function whose formula serves NumPy's arrays and the emitted operations alike."""

    __slots__ = ()
    formula: ClassVar[Callable[..., Sequence[Any]]]

    @ignoring_errors  # additions and products of single words wrap around too
    def evaluate(op, *words):
        shape = np.broadcast_shapes(*[x.shape for x in words])
        return tuple([np.asarray(np.broadcast_to(y, shape)) for y in op.formula(*words)])

    def lower(op, emit, *words):
        type = emit.made[0]
        same = [v if v.type.shape else emit.broadcast_in_dim(v, type.shape, ()) for v in words]
        return drawn(emit, *emit.decompose(op.formula, *[v._replace(type=type) for v in same]))


# in each round x0, x1 = high(M x0) ^ x1 ^ k, low(M x0), then the key is raised by W
@operation
class Philox2x32(ComposedBlockFunction):
    name = "philox2x32"
    keys = 1
    size = 2

    @staticmethod
    def formula(k0, x0, x1):
        for i in range(10):
            high, low = product(x0, 0xD256D193)
            key = k0 + np.uint32(i * 0x9E3779B9 & 0xFFFFFFFF)
            x0, x1 = high ^ x1 ^ key, low
        return x0, x1


# in each round two products: x0, x1, x2, x3 = high(B x2) ^ x1 ^ k0, low(B x2), high(A x0) ^ x3 ^ k1, low(A x0)
@operation
class Philox4x32(ComposedBlockFunction):
    name = "philox4x32"
    keys = 2
    size = 4

    @staticmethod
    def formula(k0, k1, x0, x1, x2, x3):
        for i in range(10):
            first, second = product(x0, 0xD2511F53), product(x2, 0xCD9E8D57)
            raised = k0 + np.uint32(i * 0x9E3779B9 & 0xFFFFFFFF), k1 + np.uint32(i * 0xBB67AE85 & 0xFFFFFFFF)
            x0, x1, x2, x3 = second[0] ^ x1 ^ raised[0], second[1], first[0] ^ x3 ^ raised[1], first[1]
        return x0, x1, x2, x3


# rounds mix (x0, x1), (x2, x3) and (x0, x3), (x2, x1) in turn; every fourth adds the next words of the key
@operation
class Threefry4x32(ComposedBlockFunction):
    name = "threefry4x32"
    keys = 4
    size = 4

    @staticmethod
    def formula(k0, k1, k2, k3, x0, x1, x2, x3):
        keys = (k0, k1, k2, k3, k0 ^ k1 ^ k2 ^ k3 ^ np.uint32(PARITY))
        x = [x0 + k0, x1 + k1, x2 + k2, x3 + k3]
        for i in range(20):
            for left, count in zip((0, 2), ROTATIONS[i % 8]):
                right = (left + (3 if i % 2 else 1)) % 4
                x[left] = x[left] + x[right]
                x[right] = _rotated(x[right], count) ^ x[left]
            if i % 4 == 3:
                number = i // 4 + 1
                x = [word + keys[(number + j) % 5] for j, word in enumerate(x)]
                x[3] = x[3] + np.uint32(number)
        return tuple(x)


def philox2x32(*words: Any) -> tuple[Any, ...]:
    """The block function of Philox-2x32 on ``k0, x0, x1``."""
    return tuple(perform(Philox2x32(), *as_arrays(*words)))


def philox4x32(*words: Any) -> tuple[Any, ...]:
    """The block function of Philox-4x32 on ``k0, k1, x0, x1, x2, x3``."""
    return tuple(perform(Philox4x32(), *as_arrays(*words)))


def threefry4x32(*words: Any) -> tuple[Any, ...]:
    """The block function of Threefry-4x32 on ``k0, k1, k2, k3, x0, x1, x2, x3``."""
    return tuple(perform(Threefry4x32(), *as_arrays(*words)))
