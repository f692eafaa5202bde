"""The values of a dtype at which rules go wrong, and strategies of single values."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ...effects.base.wrapping import errors_ignored
from ...effects.types.dtypes import (
    finfo,
    holds,
    integer_range,
    is_bool,
    is_complex,
    is_integer,
    itemsize_bits,
    named,
    to_real,
)

_SMALL = (0, 1, 2, 3, -1, -2, -3)


def special_values(dtype: Any) -> np.ndarray[Any, Any]:
    """The values at the ends of a dtype, as far as it has them, each once.

    Of floats: zero and one with both signs, the largest, the smallest normal and the smallest subnormal number, the
    distance from one to the next, infinities and NaN. Of integers: those at both ends, and around zero. Of complex
    numbers: all pairs of those of their parts.

    >>> special_values("int8").tolist()
    [0, 1, -1, 127, -128, 126, -127]
    >>> special_values("float8_e4m3fn").astype("float32").tolist()[4:]
    [448.0, -448.0, 0.015625, -0.015625, 0.001953125, -0.001953125, 0.125, nan]
    """
    dtype = named(dtype)
    if is_complex(dtype):
        parts = special_values(to_real(dtype))
        return np.stack(np.meshgrid(parts, parts, indexing="ij"), -1).reshape(-1, 2).view(dtype).ravel()
    if is_bool(dtype):
        return np.array([False, True])
    if is_integer(dtype):
        least, most = integer_range(dtype)
        return _held([0, 1, -1, most, least, most - 1, least + 1], dtype)
    info = finfo(dtype)
    sizes = [float(x) for x in (0.0, 1.0, info.max, info.smallest_normal, info.smallest_subnormal)]
    return _held([*[s * x for x in sizes for s in (1.0, -1.0)], float(info.eps), np.inf, -np.inf, np.nan], dtype)


def _held(values: list[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Those of some numbers that a real dtype holds exactly, the sign of zero included, each once."""
    if is_integer(dtype):
        return np.array([*dict.fromkeys([value for value in values if holds(dtype, value)])], dtype)
    wide = np.array(values, np.float64)
    narrow = errors_ignored(wide.astype, dtype)  # NumPy warns where a NaN or an infinity meets a dtype without it
    back = errors_ignored(narrow.astype, np.float64)
    kept = narrow[np.where(np.isnan(wide), np.isnan(back), (wide == back) & (np.signbit(wide) == np.signbit(back)))]
    _, first = np.unique(kept.view(_word(dtype)), return_index=True)
    return np.asarray(kept[np.sort(first)])


def elements(dtype: Any, *, finite: bool = False, bits: bool = False) -> st.SearchStrategy[Any]:
    """Any value of a dtype, as a scalar of it; more often small whole numbers and the special values.

    Shrinks to 0, 1, 2, ..., then to the special values.

    Args:
        finite: whether infinities and NaN are left out.
        bits: whether NaN comes with any sign and payload; by default it is that of NumPy.

    >>> from hypothesis import find
    >>> float(find(elements("bfloat16"), lambda x: x > 1)), int(find(elements("uint8"), lambda x: x > 3))
    (2.0, 255)
    """
    dtype = named(dtype)
    if is_complex(dtype):
        part = elements(to_real(dtype), finite=finite, bits=bits)
        return st.tuples(part, part).map(lambda parts: np.array(parts).view(dtype)[0])
    if is_bool(dtype):
        return st.booleans().map(np.bool_)
    if is_integer(dtype):
        others = st.integers(*integer_range(dtype)).map(dtype.type)
    else:
        others = _patterns(dtype) if bits else _patterns(dtype).map(lambda x: x if x == x else dtype.type(np.nan))
    chosen = [st.sampled_from([*values]) for values in (_held([*_SMALL], dtype), special_values(dtype))]
    every = st.one_of(*chosen, others)
    return every.filter(np.isfinite) if finite and not is_integer(dtype) else every


def _word(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned integers of the size of a real dtype."""
    return np.dtype(f"uint{8 * dtype.itemsize}")


def _patterns(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """The values of all bit patterns of a floating dtype."""
    patterns = st.integers(0, 2 ** itemsize_bits(dtype) - 1)
    return patterns.map(lambda pattern: np.array([pattern], _word(dtype)).view(dtype)[0])
