"""The text of StableHLO's types and constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.caches import Cache
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import ExtendedDType

ELEMENT = {
    "bool": "i1", "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "float8_e4m3": "f8E4M3", "float8_e3m4": "f8E3M4",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN",
}

_TENSORS = Cache("tensor types", 16384)
"""The StableHLO text of a type."""


def storage(type: ArrayType) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the buffer of a value: random keys are stored as their key data, float0 as booleans."""
    if isinstance(type.dtype, ExtendedDType):
        return (*type.shape, *type.dtype.shape), np.dtype(np.uint32)
    return type.shape, np.dtype(bool) if type.dtype.itemsize == 0 else type.dtype


def tensor(type: ArrayType) -> str:
    """The tensor type, such as ``tensor<2x3xf32>``; symbolic sizes are ``?``."""
    found = _TENSORS.entries.get(type)
    if found is None:
        shape, dtype = storage(type)
        found = _TENSORS.add(type, f"tensor<{''.join([f'{_size(n)}x' for n in shape])}{ELEMENT[dtype.name]}>")
    return str(found)


def _size(n: Any) -> Any:
    return n if isinstance(n, int) else "?"


def names(values: Sequence[Any]) -> str:
    """The names of SSA values, as a list of operands."""
    return ", ".join([v.name for v in values])


def tensors(values: Sequence[Any]) -> str:
    """The tensor types of SSA values, as a list."""
    return ", ".join([tensor(v.type) for v in values])


def signature(values: Sequence[Any], results: ArrayType | Sequence[ArrayType]) -> str:
    """The type of an operation, ``(operands) -> result``, or ``(operands) -> (results)`` for a sequence of types."""
    gives = tensor(results) if isinstance(results, ArrayType) else f"({', '.join(map(tensor, results))})"
    return f"({tensors(values)}) -> {gives}"


def short_signature(values: Sequence[Any], results: Sequence[ArrayType]) -> str:
    """``signature``, with the type of a single result without parentheses."""
    return signature(values, results[0] if len(results) == 1 else results)


_LINE = 16  # elements of a literal with brackets


def dense(value: np.ndarray[Any, Any]) -> str:
    """The literal of an array; floats are written as their bits in hexadecimal, so that nothing is rounded.

    An array of more than a line is written as its bytes, which takes a hundredth of the time.
    """
    kind = value.dtype.kind

    def write(x: Any) -> str:
        if kind == "b":
            return "true" if x else "false"
        return str(int(x)) if kind in "iu" else _element(np.asarray([x], value.dtype))

    first = value.reshape(-1)[:1]
    if value.size and value.tobytes() == first.tobytes() * value.size:
        return f"dense<{write(first[0])}>"
    if value.size > _LINE and kind in "iufc":
        return f'dense<"0x{value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes().hex().upper()}">'
    return f"dense<{_nested(value, write)}>"


def _element(one: np.ndarray[Any, Any]) -> str:
    """The literal of the only element of a vector: a small integer in decimal, else the bits in hexadecimal."""
    if one.dtype.kind == "c":
        parts = one.view(one.real.dtype)
        return f"({_element(parts[:1])},{_element(parts[1:])})"
    if one.dtype.itemsize == 1 and one.dtype.name.startswith(("int", "uint")):
        return str(int(one[0]))
    return "0x" + one.tobytes()[::-1].hex().upper()


def _nested(value: np.ndarray[Any, Any], write: Any) -> str:
    """The elements of an array, each as ``write`` has it, in nested brackets."""
    if value.ndim == 0:
        return str(write(value[()]))
    if value.size == 0:
        return ""
    return "[" + ", ".join([_nested(part, write) for part in value]) + "]"
