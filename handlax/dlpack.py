"""``handlax.dlpack``: arrays from other libraries, and the dtypes that both know."""

from __future__ import annotations

from typing import Any

from .effects.types.dtypes import bfloat16, canonical, is_extended
from .lowering.arrays.device_put import device_put
from .lowering.arrays.imported_arrays import imported

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """An array from an object with ``__dlpack__``; memory is shared if ``copy=False``, else copied.

        from_dlpack(x)[i] == x[i]

    Args:
        device: where the array is to be; by default where arrays are made.
        copy: False shares memory that may be written to as well; True always copies.

    Raises: NotAnArray: it has no ``__dlpack__``. BufferError: its memory is not given away.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3.0))
    Array([0., 1., 2.], dtype=float64)
    """
    x = imported(external_array, copy)
    return x if device is None else device_put(x, device)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this dtype are exchanged by DLPack: those of NumPy, and bfloat16.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("float8_e5m2")
    (True, False)
    """
    kind = canonical(dtype)
    return not is_extended(kind) and (kind.isbuiltin == 1 or kind == bfloat16)
