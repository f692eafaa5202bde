"""Input and output: save and load NumPy's files; arrays as text, and the options for that."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument
from ..effects.types.dtypes import bfloat16
from .arrays.creation import asarray

__all__ = [
    "array2string", "array_repr", "array_str", "get_printoptions", "load", "printoptions", "save", "savez",
    "set_printoptions",
]


def save(file: Any, arr: Any, allow_pickle: Any = True) -> None:
    """Write an array to a file in NumPy's format."""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: Any = True, **kwds: Any) -> None:
    """Write arrays, by position or name, to one file in NumPy's format."""
    np.savez(file, *map(np.asarray, args), allow_pickle=allow_pickle, **{k: np.asarray(v) for k, v in kwds.items()})


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array of a file that ``save`` wrote, or the arrays by name that ``savez`` wrote.

    Raises: BadArgument: the file holds elements of a dtype that it does not name, of another width than bfloat16.

    >>> import io
    >>> save(file := io.BytesIO(), asarray([1.0, 2.0], "bfloat16"))
    >>> _ = file.seek(0)
    >>> load(file)
    Array([1, 2], dtype=bfloat16)
    """
    loaded = np.load(file, *args, **kwargs)
    if not isinstance(loaded, np.ndarray):
        return loaded
    # NumPy writes dtypes that it does not know as raw bytes; of 16 bits there is one
    if loaded.dtype == "V2":
        return asarray(loaded.view(bfloat16))
    if loaded.dtype.kind == "V":
        raise BadArgument(
            f"load: the file holds raw bytes of width {loaded.dtype.itemsize}, no dtype.",
            hint="view the data with NumPy.",
        )
    return asarray(loaded)


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """The text of an array as ``repr`` gives it in NumPy."""
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """The text of an array's elements."""
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """The text of an array's elements, formatted by NumPy's options."""
    return np.array2string(np.asarray(a), *args, **kwargs)


set_printoptions, get_printoptions, printoptions = np.set_printoptions, np.get_printoptions, np.printoptions
