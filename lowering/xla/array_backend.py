"""The array backend: transfer of concrete arrays to and from devices, and the choice of the device.

An array that was put on a device by name is *committed* to it; an uncommitted one is moved to the device of the arrays
that it is combined with. While no array was put on another device than the default one, ``PLACED`` is empty and calls
skip all checks of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.errors import DeletedArray, DeviceMismatch
from ...effects.types.array_type import ArrayType
from .host_callbacks import raise_translated
from .lazy import runtime
from .stablehlo_types import storage

PLACED: list[Any] = []
"""Empty until an array may be on another device than the process's default one."""
ON_PLACED: list[Callable[[], None]] = []
"""Functions called when ``PLACED`` gets its first device."""


def first_device() -> Any:
    """The platform's first device, where arrays are unless the setting ``default_device`` names another."""
    return runtime.backend(platform_in_force()).default_device


def platform_in_force() -> str | None:
    """The first platform of the setting ``platforms``; None: the runtime chooses."""
    platforms = config.current().platforms
    return platforms.split(",")[0] if platforms else None


def default_device() -> Any:
    """The device of new arrays: that of the setting ``default_device``, else the platform's first."""
    chosen = config.current().default_device
    if chosen is None:
        return first_device()
    device = runtime.backend(chosen).default_device if isinstance(chosen, str) else chosen
    note_placement(device)
    return device


def note_placement(device: Any) -> None:
    """Record that arrays may be on ``device``; checks of devices begin if the platform has others."""
    if not PLACED and not runtime.is_only_device(device, first_device()):
        PLACED.append(device)
        for listener in ON_PLACED:
            listener()


def common_device(buffers: Iterable[Any], what: str, names: Any = None) -> Any | None:
    """The device to which some of the buffers are committed; None where none is committed.

    Raises: DeviceMismatch: two are committed to different devices; ``names(i)`` is the name of buffer ``i``.
    """
    common: Any = None
    first = 0
    for i, buffer in enumerate(buffers):
        if buffer is not None and runtime.is_committed(buffer):
            device = runtime.device_of(buffer)
            if common is None:
                common, first = device, i
            elif device != common:
                called = names or (lambda n: f"operand {n}")
                pair = f"{called(first)} on {common} and {called(i)} on {device}"
                raise DeviceMismatch(
                    f"{what}: arguments must be on one device, got {pair}.",
                    hint="move one with device_put(x, device).",
                )
    return common


class XlaBackend:
    """``effects.core.array_backend.ArrayBackend`` over XLA's runtime."""

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

    def is_ready(self, buffer: Any) -> bool:
        return runtime.is_ready(buffer)

    def devices(self, buffer: Any) -> set[Any]:
        return {runtime.device_of(buffer)}

    def delete(self, buffer: Any) -> None:
        runtime.delete(buffer)

    def is_deleted(self, buffer: Any) -> bool:
        return runtime.is_deleted(buffer)

    def duplicate(self, buffer: Any) -> Any:
        return runtime.duplicate(buffer)
