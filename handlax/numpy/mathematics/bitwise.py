"""Bit-wise operations: bitwise_and, left_shift, bitwise_count, packbits and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...effects.base.errors import DTypeMismatch, need_one_of
from ...effects.core.arrays import Array, from_numpy
from ...effects.operations.elementwise import bitwise
from ...effects.operations.elementwise.bitwise import shift_left, shift_right_logical
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.manipulation.slicing import pad, slice_in_dim
from ...effects.operators import numpy_arithmetic
from ...effects.types import dtypes
from ...effects.types.dtypes import bool_, uint8
from ...interpreters.core.eager_programs import eager_program, programs
from ..arrays.argument_conversion import array_of, like, rows_of, to_bool
from . import reductions
from .universal_functions import binary, ufunc

__all__ = [
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "invert", "left_shift", "packbits", "right_shift", "unpackbits",
]


# bits, and truth
_AND, _OR, _XOR = (f"The bits that {what}. Source: NumPy, ``bitwise_{name}``." for name, what in (
    ("and", "both ``x[i]`` and ``y[i]`` have"), ("or", "``x[i]`` or ``y[i]`` has"),
    ("xor", "one of ``x[i]`` and ``y[i]`` has"),
))
bitwise_and = ufunc(binary("bitwise_and", bitwise.And, _AND), 2, 1, identity=-1, associative=True)
bitwise_or = ufunc(binary("bitwise_or", bitwise.Or, _OR), 2, 1, identity=0, associative=True)
bitwise_xor = ufunc(binary("bitwise_xor", bitwise.Xor, _XOR), 2, 1, identity=0, associative=True)
left_shift, right_shift = eager_program(numpy_arithmetic.left_shift), eager_program(numpy_arithmetic.right_shift)
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def invert(x: Any, /) -> Array:
    """The bits that ``x[i]`` does not have; of booleans, not. Source: NumPy, ``invert``.

    >>> invert(True), invert(5)
    (Array(False, dtype=bool), Array(-6, dtype=int32, weak_type=True))
    """
    return bitwise.bitwise_not(array_of(x))


bitwise_not = bitwise_invert = invert


def bitwise_count(x: Any, /) -> Array:
    """How many bits of ``|x[i]|`` are ones, as uint8. Source: NumPy, ``bitwise_count``.

    >>> bitwise_count(-7)
    Array(3, dtype=uint8)
    """
    x = array_of(x)
    if x.type.dtype is bool_:
        return convert(x, dtypes.uint8)
    return convert(bitwise.population_count(numpy_arithmetic.absolute(x)), dtypes.uint8)


def _shifts(bitorder: str, where: str) -> Any:
    """By how much each of eight bits is shifted in its byte. Raises BadArgument: ``bitorder`` is unknown."""
    need_one_of(f"{where}: bitorder", bitorder, ("big", "little"))
    return from_numpy(np.arange(8, dtype=np.uint8)[:: -1 if bitorder == "big" else 1])


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight booleans packed into each byte, along an axis or flattened, padded with zeros. Source: NumPy, ``packbits``.

    >>> from handlax.numpy import array
    >>> packbits(array([True, False, True]))
    Array([160], dtype=uint8)
    """
    x, axis = rows_of(a, axis, "packbits")
    if not (dtypes.is_integer(x.type.dtype) or dtypes.is_bool(x.type.dtype)):
        raise DTypeMismatch(f"packbits: booleans or integers are needed, got {x.type}.")
    bits = shapes.move_axis(convert(to_bool(x), uint8), axis, len(x.type.shape) - 1)
    size = bits.type.shape[-1]
    count = -(-size // 8)
    bits = pad(bits, like(bits, 0), [*[(0, 0, 0)] * (bits.ndim - 1), (0, 8 * count - size, 0)])
    bits = shapes.reshape(bits, (*bits.type.shape[:-1], count, 8))
    words = shift_left(bits, shapes.broadcast(_shifts(bitorder, "packbits"), bits.type.shape))
    return shapes.move_axis(reductions.sum(words, -1, dtype=uint8), len(x.type.shape) - 1, axis)


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes as 0 and 1, along an axis or flattened; the first ``count``. Source: NumPy, ``unpackbits``.

    >>> from handlax.numpy import array
    >>> unpackbits(array([160], "uint8"), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    x, axis = rows_of(a, axis, "unpackbits")
    if x.type.dtype != uint8:
        raise DTypeMismatch(f"unpackbits: the dtype must be uint8, got {x.type}.")
    x = shapes.move_axis(x, axis, len(x.type.shape) - 1)
    shape = (*x.type.shape, 8)
    spread = shapes.broadcast_in_dim(x, shape, tuple(range(len(shape) - 1)))
    bits = shift_right_logical(spread, shapes.broadcast(_shifts(bitorder, "unpackbits"), shape))
    bits = bitwise.bitwise_and(bits, like(bits, 1))
    bits = shapes.reshape(bits, (*x.type.shape[:-1], 8 * x.type.shape[-1]))
    if count is not None:
        size = bits.type.shape[-1]
        if count > size:
            bits = pad(bits, like(bits, 0), [*[(0, 0, 0)] * (bits.ndim - 1), (0, count - size, 0)])
        else:
            bits = slice_in_dim(bits, 0, count if count >= 0 else size + count, axis=-1)
    return shapes.move_axis(bits, len(x.type.shape) - 1, axis)


programs(globals())
