"""Import of other libraries' arrays by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...effects.base.errors import NotAnArray
from ...effects.core.arrays import Array, concrete, from_numpy
from ...effects.types.array_type import array_type
from ..xla.array_backend import default_device
from ..xla.lazy import runtime


def imported(x: Any, copy: bool | None = None) -> Array:
    """The array of an object with ``__dlpack__``; memory is shared if ``copy=False``.

    NumPy imports it where it can, the runtime otherwise, as for bfloat16 and a GPU's memory.

    Raises: NotAnArray: it has no ``__dlpack__``. BufferError: its memory is not given away, or needs a copy.
    """
    if isinstance(x, Array):
        return x
    if not hasattr(type(x), "__dlpack__"):
        raise NotAnArray(f"from_dlpack: an object with __dlpack__ is needed, got {type(x).__name__}.")
    try:
        return from_numpy(np.from_dlpack(x), copy=copy)
    except (BufferError, RuntimeError):
        pass
    buffer = runtime.from_dlpack(x, default_device())
    if copy is not False:
        buffer = runtime.duplicate(buffer)
        runtime.block_until_ready(buffer)  # before its owner writes to the memory again
    return concrete(array_type(buffer.aval.shape, buffer.aval.dtype), None, buffer)
