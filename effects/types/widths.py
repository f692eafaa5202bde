"""The setting ``enable_x64``: whether arrays have 64-bit elements.

============  ======================================  ==============================  ========================
``enable_x64``  NumPy arrays and requests of 64 bits    64-bit NumPy scalars            numbers, default dtypes
============  ======================================  ==============================  ========================
``None``      are kept                                weak, as Python's numbers       32 bits
``False``     become 32 bits; a request warns         strong, become 32 bits          32 bits
``True``      are kept                                strong, are kept                64 bits
============  ======================================  ==============================  ========================

``None`` is the default, ``False`` and ``True`` are JAX's two modes. Every dtype that comes from outside passes
``kept``; every cache that depends on it has the record of settings in its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..base.config import CONFIG
from ..base.source_locations import warn_user
from .dtype_families import complex64, complex128, float32, float64, int32, int64, uint32, uint64

NARROWER: Mapping[Any, Any] = MappingProxyType(
    {float64: float32, int64: int32, uint64: uint32, complex128: complex64}
)


def kept(dtype: Any) -> Any:
    """The dtype of arrays made of data of this dtype: 32 bits per real component where ``enable_x64`` is False and it
    has 64, else unchanged.
    """
    narrower = NARROWER.get(dtype)
    if narrower is None or CONFIG.get().settings.enable_x64 is not False:
        return dtype
    return narrower


def requested(dtype: Any) -> Any:
    """``kept`` for a dtype that the user names; warns where it is narrowed."""
    made = kept(dtype)
    if made is not dtype:
        warn_user(
            f"dtype: {dtype} was requested and {made} is made, because enable_x64 is False; "
            "hx.config.update('jax_enable_x64', True) makes 64 bits the default, None keeps those that are named."
        )
    return made
