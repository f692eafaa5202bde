"""NumPy data of one dtype as another, by the rules of ``convert_element_type``; and Python numbers as data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import DTypeMismatch, IntegerOverflow
from ..base.wrapping import errors_ignored, ignoring_errors
from .dtype_families import ExtendedDType
from .dtypes import default_int, holds, integer_range, is_complex, is_floating, is_integer, scalar_type_of


def cast(x: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """``x`` as ``dtype``: integers wrap around, floats are clamped to integers, complex numbers give their real part.

    >>> cast(np.array([1.7, -300.0, np.nan]), np.dtype("int8"))
    array([   1, -128,    0], dtype=int8)

    Raises: DTypeMismatch: the dtype is that of random keys, which no number is.
    """
    if isinstance(dtype, ExtendedDType):
        hint = "random.key_data(keys) is an array of integers."
        raise DTypeMismatch(f"cast: numbers have no dtype {dtype}.", hint=hint)
    if is_complex(x.dtype) and not is_complex(dtype) and dtype.kind != "b":
        x = x.real
    if x.dtype.kind == "V" and dtype.kind == "V":  # ml_dtypes converts most pairs of its types, but not all
        x = x.astype(np.int8 if is_integer(x.dtype) else np.float32)
    return errors_ignored(_saturated if is_integer(dtype) and is_floating(x.dtype) else np.ndarray.astype, x, dtype)


def _saturated(x: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Floats as integers: truncated, clamped to the range of ``dtype``, 0 for NaN; NumPy defines the first alone."""
    least, most = integer_range(dtype)
    wide_x = x.astype(np.float64)
    low, high = wide_x <= least, wide_x >= most + 1
    truncated = np.where(low | high | np.isnan(wide_x), 0.0, wide_x).astype(np.int64 if least < 0 else np.uint64)
    result = truncated.astype(dtype)
    result[low], result[high] = least, most
    return result


def python_number(value: Any, dtype: Any) -> Any:
    """A NumPy scalar as a Python number, for arithmetic whose result has this dtype.

    Raises: IntegerOverflow: ``dtype`` cannot hold an integer. NumPy's do not wrap around, as JAX has a wider result.
    """
    if isinstance(value, np.integer) and is_integer(dtype) and not holds(dtype, int(value)):
        raise _too_large(int(value), dtype)
    return scalar_type_of(value)(value)


def number_data(value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """A Python number as an array of rank 0, rounded once; integers that fit the default integer dtype wrap around.

    Raises: IntegerOverflow: an integer fits neither the default integer dtype nor ``dtype``.

    >>> number_data(300, np.dtype("int8")), number_data(2**70, np.dtype("float64"))
    (array(44, dtype=int8), array(1.18059162e+21))
    """
    if type(value) is int and is_integer(dtype):
        if not holds(dtype, value):
            if not holds(default_int(), value):
                raise _too_large(value, dtype)
            return np.asarray(value, default_int()).astype(dtype)
        return np.asarray(value).astype(dtype)
    twice = type(value) is float and is_floating(dtype) and dtype.kind != "f"  # ml_dtypes rounds to a float first
    try:
        return cast(_odd(value) if twice else np.asarray(value), dtype)
    except OverflowError:
        raise _too_large(value, dtype) from None


def _too_large(value: int, dtype: Any) -> IntegerOverflow:
    hint = "convert the array to a wider dtype."
    return IntegerOverflow(f"an integer must fit its dtype, got {value} for {dtype}.", hint=hint)


@ignoring_errors
def _odd(value: float) -> Any:
    """``value`` as a float32 rounded to odd, which rounds to narrower formats as ``value`` does.

    Source: Boldo and Melquiond, "When double rounding is odd", 2005.
    """
    near = np.float32(value)
    if not np.isfinite(value) or float(near) == value:
        return np.asarray(near)
    below = np.nextafter(near, np.float32(0)) if abs(float(near)) > abs(value) else near
    return np.asarray(np.uint32(below.view(np.uint32) | 1).view(np.float32))
