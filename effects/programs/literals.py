"""Constants as text, bit for bit.

    array_of(array_text(x), x.type) == x        in every bit: nan payloads, -0.0, bfloat16, keys

A number is written as the shortest decimal text that reads back; where no decimal text gives its bits, as the bits:
``0x7fc00001``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import copysign, isinf, isnan, prod
from typing import Any

import numpy as np

from ..base.wrapping import ignoring_errors
from ..types import dtypes
from ..types.array_type import ArrayType

IN_PLACE = 16  # constants with more elements are written as a name, ``@c0``
_COMPLEX = r"([+-]?(?:nan|inf|[\d.]+(?:e[+-]?\d+)?))([+-](?:nan|inf|[\d.]+(?:e[+-]?\d+)?))j"
_NUMPY_WRITES = (dtypes.float16, dtypes.float32, dtypes.float64)  # their str() is the shortest text that reads back


def real_text(x: Any) -> str:
    """The shortest decimal text of a real floating number that reads back; every NaN is ``nan`` or ``-nan``."""
    value = float(x)
    if isnan(value):
        return "-nan" if copysign(1.0, value) < 0 else "nan"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(x, float) or x.dtype in _NUMPY_WRITES:
        return str(x)
    for digits in range(1, 17):
        text = f"{value:.{digits}g}"
        if x.dtype.type(float(text)) == x:
            break
    return text if any(mark in text for mark in ".e") else text + ".0"


def number_text(x: Any) -> str:
    """The text of a NumPy scalar: decimal, or its bits in hexadecimal where no decimal text gives them."""
    dtype = x.dtype
    if dtypes.is_bool(dtype) or dtypes.is_integer(dtype):
        return str(int(x)) if dtype != dtypes.bool_ else str(bool(x))
    if dtypes.is_complex(dtype):
        imaginary = real_text(x.imag)
        text = f"{real_text(x.real)}{'' if imaginary[0] == '-' else '+'}{imaginary}j"
    else:
        text = real_text(x)
    if number_of(text, dtype).tobytes() != x.tobytes():
        return f"{int.from_bytes(x.tobytes(), 'little'):#0{2 + 2 * dtype.itemsize}x}"
    return text


def number_of(text: str, dtype: Any) -> np.ndarray[Any, Any]:
    """The number written in ``text``, as an array of rank 0. Raises ValueError: it is not a number of this dtype."""
    if text.startswith("0x"):
        return np.frombuffer(int(text, 16).to_bytes(dtype.itemsize, "little"), dtype)[0:1].reshape(())
    if dtype == dtypes.bool_:
        if text not in ("True", "False"):
            raise ValueError(f"True or False, got {text}")
        return np.asarray(text == "True")
    if dtypes.is_integer(dtype):
        value = int(text)
        if not dtypes.holds(dtype, value):
            raise ValueError(f"an integer of {dtypes.short_name(dtype)}, got {text}")
        return np.asarray(value).astype(dtype)
    return _inexact_number(text, dtype)


@ignoring_errors
def _inexact_number(text: str, dtype: Any) -> np.ndarray[Any, Any]:
    """The array of rank 0 that holds a float or complex number."""
    if not dtypes.is_complex(dtype):
        return np.asarray(_real(text)).astype(dtype)
    parts = re.fullmatch(_COMPLEX, text)
    number = np.empty((), dtype)
    number.real = _real(parts[1] if parts else text)
    number.imag = _real(parts[2]) if parts else 0.0
    return number


def _real(text: str) -> float:
    return copysign(float("nan"), -1.0) if text == "-nan" else float(text)


def data_shape(type: ArrayType) -> tuple[int, ...]:
    """The shape of an array's NumPy data: for random keys, the axes of the key data come last."""
    dtype = type.dtype
    return (*type.shape, *dtype.shape) if isinstance(dtype, dtypes.ExtendedDType) else type.shape


def array_text(x: Any) -> str:
    """The elements of a concrete array as nested lists, without its type."""
    type = x.type
    if type.dtype == dtypes.float0:
        return "0"
    flat = np.ravel(x.value)
    items = [number_text(element) for element in flat]
    for size in reversed(data_shape(type)):
        if not items:
            return "[]"
        items = ["[" + ", ".join(items[i : i + size]) + "]" for i in range(0, len(items), size)]
    return items[0] if items else "[]"


def array_of(items: Sequence[str], type: ArrayType) -> np.ndarray[Any, Any]:
    """An array's data from the texts of its elements, row-major. Raises ValueError: wrong number of them, or dtype."""
    if type.dtype == dtypes.float0:
        return np.zeros(type.shape, dtypes.float0)
    dtype = type.dtype.base if isinstance(type.dtype, dtypes.ExtendedDType) else type.dtype
    shape = data_shape(type)
    if len(items) != prod(shape):
        raise ValueError(f"{prod(shape)} elements for {type}, got {len(items)}")
    value = np.empty((len(items),), dtype)
    for i, text in enumerate(items):
        value[i] = number_of(text, dtype)
    return value.reshape(shape)
