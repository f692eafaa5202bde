"""Bits packed into bytes, and windows of signals: functions of a size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects import bitwise, dtypes, shapes
from ..effects.arithmetic import div, sqrt, square, sub
from ..effects.arrays import from_numpy
from ..effects.bitwise import shift_left, shift_right_logical
from ..effects.conversion import convert
from ..effects.dtypes import default_float, uint8
from ..effects.errors import BadArgument, DTypeMismatch
from ..effects.slicing import pad, slice_in_dim
from . import reductions
from .elementary import i0
from .operands import array_of, inexact, like, rows_of, to_bool


def _places(bitorder: str, where: str) -> Any:
    if bitorder not in ("big", "little"):
        raise BadArgument(f"{where}: bitorder must be 'big' or 'little', got {bitorder!r}.")
    places = np.arange(8, dtype=np.uint8)
    return from_numpy(places[::-1] if bitorder == "big" else places)


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Eight booleans in each byte, along an axis or in row-major order; missing ones are 0. Source: NumPy.

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
    words = shift_left(bits, shapes.broadcast(_places(bitorder, "packbits"), bits.type.shape))
    return shapes.move_axis(reductions.sum(words, -1, dtype=uint8), len(x.type.shape) - 1, axis)


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """The bits of bytes as 0 and 1, along an axis or in row-major order; ``count`` of them. Source: NumPy.

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
    bits = shift_right_logical(spread, shapes.broadcast(_places(bitorder, "unpackbits"), shape))
    bits = bitwise.bitwise_and(bits, like(bits, 1))
    bits = shapes.reshape(bits, (*x.type.shape[:-1], 8 * x.type.shape[-1]))
    if count is not None:
        size = bits.type.shape[-1]
        if count > size:
            bits = pad(bits, like(bits, 0), [*[(0, 0, 0)] * (bits.ndim - 1), (0, count - size, 0)])
        else:
            bits = slice_in_dim(bits, 0, count if count >= 0 else size + count, axis=-1)
    return shapes.move_axis(bits, len(x.type.shape) - 1, axis)


def _window(values: np.ndarray[Any, Any]) -> Any:
    return from_numpy(values.astype(default_float()), copy=False)


def hanning(M: int) -> Any:
    """``0.5 - 0.5 cos(2 pi i / (M - 1))``. Source: NumPy, ``hanning``.

    >>> hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window(np.hanning(M))


def hamming(M: int) -> Any:
    """``0.54 - 0.46 cos(2 pi i / (M - 1))``. Source: NumPy, ``hamming``.

    >>> hamming(3).shape
    (3,)
    """
    return _window(np.hamming(M))


def blackman(M: int) -> Any:
    """``0.42 - 0.5 cos(2 pi i / (M - 1)) + 0.08 cos(4 pi i / (M - 1))``. Source: NumPy, ``blackman``.

    >>> blackman(3).shape
    (3,)
    """
    return _window(np.blackman(M))


def bartlett(M: int) -> Any:
    """The triangle that is 0 at both ends and 1 in the middle. Source: NumPy, ``bartlett``.

    >>> bartlett(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window(np.bartlett(M))


def kaiser(M: int, beta: Any) -> Any:
    """``i0(beta sqrt(1 - (2 i / (M - 1) - 1)**2)) / i0(beta)``. Source: NumPy, ``kaiser``.

    >>> kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    b = inexact(array_of(beta))
    b = convert(b, default_float() if b.type.weak else b.type.dtype)
    if M == 1:
        return shapes.full(b.type.update(shape=(1,)), 1)
    at = from_numpy(np.linspace(-1, 1, M).astype(b.type.dtype), copy=False)
    height = sqrt(sub(like(at, 1), square(at)))
    return div(i0(shapes.broadcast(b, (M,)) * height), i0(b))
