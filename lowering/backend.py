"""The array backend: how concrete arrays reach devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects import config
from ..effects.types import ArrayType
from . import runtime
from .stablehlo import storage


def default_device() -> Any:
    """The device on which new arrays lie: the configured one, else the platform's first."""
    return config.current().default_device or runtime.backend().default_device


class XlaBackend:
    """``effects.arrays.Backend`` over XLA's runtime."""

    def to_numpy(self, buffer: Any, type: ArrayType) -> np.ndarray[Any, Any]:
        shape, dtype = storage(type)
        return runtime.to_numpy(buffer, dtype, shape)

    def to_buffer(self, value: np.ndarray[Any, Any], type: ArrayType) -> Any:
        # concrete arrays are never written to, so the device may share their memory
        return runtime.putter(default_device(), copy=False)(value)

    def block(self, buffer: Any) -> None:
        runtime.block_until_ready(buffer)

    def devices(self, buffer: Any) -> set[Any]:
        return {runtime.device_of(buffer)}

    def delete(self, buffer: Any) -> None:
        runtime.delete(buffer)

    def is_deleted(self, buffer: Any) -> bool:
        return runtime.is_deleted(buffer)

    def copy_to_device(self, buffer: Any, type: ArrayType, device: Any) -> Any:
        return runtime.copy_to_device(buffer, device)
