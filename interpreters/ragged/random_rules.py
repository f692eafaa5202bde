"""Ragged rules of random bits and keys: each element is a function of its own index in the lane."""

from __future__ import annotations

from math import prod
from typing import Any

from ...effects.base.stack import inside
from ...effects.core.arrays import scalar
from ...effects.operations.elementwise.conversion import BitcastConvertType, convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, full
from ...effects.operations.manipulation.creation import broadcasted_iota
from ...effects.operations.manipulation.rearranging import stack
from ...effects.operations.manipulation.slicing import index_in_dim
from ...effects.operations.random_bits import (
    LOW,
    UINT,
    KeyOperation,
    RandomBits,
    RandomFoldIn,
    RandomSplit,
    random_unwrap,
    random_wrap,
    threefry2x32,
)
from ...effects.operations.random_blocks import BlockFunction
from ...effects.operations.random_generators import joined
from ...effects.types.array_type import array_type
from ...effects.types.dtypes import uint32, uint64
from ...effects.types.sized import extents_in, with_sizes
from .ragged_batch import RAGGED, RaggedBatch, ResultTypes
from .row_rules import beside, elementwise

RAGGED.rule(KeyOperation)(beside)
RAGGED.rule(BitcastConvertType)(beside)
RAGGED.rule(RandomFoldIn)(elementwise)
RAGGED.rule(BlockFunction)(elementwise)


@RAGGED.rule(RandomBits)
def bits(op: Any, run: RaggedBatch, types: ResultTypes, keys: Any) -> Any:
    """Random bits of a ragged shape: each element from the generator's block at its index in the lane."""
    if not extents_in(op.shape):
        return beside(op, run, types, keys)
    with inside(run):
        x0, x1 = _blocks(run, keys, op.shape)
        return joined(x0, x1) if op.bit_width == 64 else convert(x0 ^ x1, UINT[op.bit_width])


@RAGGED.rule(RandomSplit)
def split(op: Any, run: RaggedBatch, types: ResultTypes, keys: Any) -> Any:
    """As many keys as the lane is long: each from the generator's block at its index in the lane."""
    if not extents_in(op.shape):
        return beside(op, run, types, keys)
    with inside(run):
        return random_wrap(stack(_blocks(run, keys, op.shape), -1))


def _blocks(run: RaggedBatch, keys: Any, shape: tuple[Any, ...]) -> tuple[Any, Any]:
    """The two uint32 outputs of Threefry for each key and each index of ``shape`` in the lane."""
    lead = keys.type.shape
    whole, count = (*lead, *shape), len(lead)
    data = random_unwrap(keys)
    own = [broadcast_in_dim(index_in_dim(data, i, -1, False), whole, tuple(range(count))) for i in range(2)]
    longest = prod(with_sizes(shape, lambda size: run.lanes.of(size).longest))
    counter = [broadcast_in_dim(x, whole, tuple(range(count, len(whole)))) for x in _counters(shape, longest > LOW)]
    return threefry2x32(*own, *counter)


def _counters(shape: tuple[Any, ...], wide: bool) -> tuple[Any, Any]:
    """The high and low uint32 of the row-major index of every element of ``shape``; ``wide``: it may exceed 32 bits."""
    dtype = uint64 if wide else uint32
    number = full(array_type(shape, dtype), 0)
    for d in range(len(shape)):
        number = number + broadcasted_iota(dtype, shape, d) * prod(shape[d + 1 :])
    if not wide:
        return full(number.type, 0), number
    return convert(number >> scalar(32, dtype), uint32), convert(number, uint32)
