"""The array backend: how concrete arrays reach devices, and which device that is.

An array that was put on a device by name is *committed* to it; all others follow the arrays that they meet. As long as
nothing was put anywhere but on the default device, ``PLACED`` is empty and nobody looks at devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..effects import config
from ..effects.errors import DeletedArray, DeviceMismatch
from ..effects.types import ArrayType
from .callbacks import raise_translated
from .lazy import runtime
from .stablehlo import storage

PLACED: list[Any] = []
"""Not empty once an array may lie elsewhere than on the process's default device."""
ON_PLACED: list[Callable[[], None]] = []
"""What is called when ``PLACED`` gets its first device."""


def first_device() -> Any:
    """The device where arrays lie when no setting says otherwise."""
    return runtime.backend(platform_in_force()).default_device


def platform_in_force() -> str | None:
    """The platform that the settings name first; None leaves the choice to the runtime."""
    platforms = config.current().platforms
    return platforms.split(",")[0] if platforms else None


def default_device() -> Any:
    """The device on which new arrays lie: the configured one, else the platform's first."""
    chosen = config.current().default_device
    if chosen is None:
        return first_device()
    device = runtime.backend(chosen).default_device if isinstance(chosen, str) else chosen
    place(device)
    return device


def place(device: Any) -> None:
    """Note that arrays are put on ``device`` by name."""
    if not PLACED and (len(device.client.local_devices()) > 1 or device.client is not first_device().client):
        PLACED.append(device)
        for listener in ON_PLACED:
            listener()


def common_device(buffers: Iterable[Any], what: str, names: Any = None) -> Any | None:
    """The device to which buffers are committed, None where none is.

    Raises: DeviceMismatch: two are committed to different devices; ``names(i)`` tells what buffer ``i`` is.
    """
    found: Any = None
    first = 0
    for i, buffer in enumerate(buffers):
        if buffer is not None and buffer._committed:
            device = runtime.device_of(buffer)
            if found is None:
                found, first = device, i
            elif device != found:
                called = names or (lambda n: f"operand {n}")
                pair = f"{called(first)} on {found} and {called(i)} on {device}"
                raise DeviceMismatch(
                    f"{what}: arguments must lie on one device, got {pair}.",
                    hint="move one with device_put(x, device).",
                )
    return found


class XlaBackend:
    """``effects.arrays.Backend`` over XLA's runtime."""

    def to_numpy(self, buffer: Any, type: ArrayType) -> np.ndarray[Any, Any]:
        shape, dtype = storage(type)
        try:
            return runtime.to_numpy(buffer, dtype, shape)
        except runtime.RuntimeFailure as error:
            raise_translated(error)

    def to_buffer(self, value: np.ndarray[Any, Any], type: ArrayType) -> Any:
        # concrete arrays are never written to, so the device may share their memory
        return runtime.putter(default_device(), copy=False, committed=False)(value)

    def block(self, buffer: Any) -> None:
        try:
            runtime.block_until_ready(buffer)
        except runtime.RuntimeFailure as error:
            if runtime.is_deleted(buffer):
                deleted = "block_until_ready: the array was deleted or donated."
                raise DeletedArray(deleted, hint="copy it before.") from None
            raise_translated(error)

    def devices(self, buffer: Any) -> set[Any]:
        return {runtime.device_of(buffer)}

    def delete(self, buffer: Any) -> None:
        runtime.delete(buffer)

    def is_deleted(self, buffer: Any) -> bool:
        return runtime.is_deleted(buffer)

    def copy_to_device(self, buffer: Any, type: ArrayType, device: Any) -> Any:
        return runtime.copy_to_device(buffer, device)
