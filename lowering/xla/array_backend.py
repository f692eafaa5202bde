"""The array backend: transfer of concrete arrays to and from devices, and the choice of the device.

An array that was put on a device by name is *committed* to it; an uncommitted one is moved to the device of the arrays
that it is combined with. While no array was put on another device than the default one, ``PLACED`` is empty and calls
skip all checks of devices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ...effects.base import config
from ...effects.base.caches import cached
from ...effects.base.errors import DeletedArray, ShapeMismatch
from ...effects.base.later_layers import LaterLayers
from ...effects.base.stack import BASE, inside
from ...effects.core.arrays import ConcreteArray, concrete
from ...effects.core.jax_contexts import check_transfer
from ...effects.sharding.devices import kind_of
from ...effects.sharding.layout import Layout
from ...effects.sharding.named_sharding import NamedSharding, Sharding, SingleDeviceSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.types.array_type import ArrayType, Space
from .host_callbacks import raise_translated
from .lazy import runtime
from .stablehlo_types import storage

MOST_AXES = 64
"""The axes that an array of NumPy may have; XLA knows no bound."""
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


def note_placement(device: Any, memory_kind: str | None = None, layout: Any = None) -> None:
    """Record that arrays may be on ``device``; checks of where they are begin if there are other devices, memories or
    layouts.
    """
    if PLACED:
        return
    elsewhere = memory_kind is not None and memory_kind != runtime.sharding(device)._memory_kind
    if elsewhere or layout is not None or not runtime.is_only_device(device, first_device()):
        PLACED.append(device)
        for listener in ON_PLACED:
            listener()


def _fail(buffer: Any, error: Exception, deleted: str) -> NoReturn:
    """Raise the error of a buffer that cannot be read: DeletedArray with the text ``deleted``, or why it has no data.
    """
    if runtime.is_deleted(buffer):
        raise DeletedArray(deleted, hint="copy it before.") from None
    raise_translated(error)


@cached("shardings on one device", 256)
def _on_one(device: Any, memory_kind: str) -> SingleDeviceSharding:
    """The one sharding that a buffer on this device, in this kind of memory, is said to have."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class XlaBackend:
    """``effects.core.array_backend.ArrayBackend`` over XLA's runtime."""

    def to_numpy(self, buffer: Any, type: ArrayType) -> np.ndarray[Any, Any]:
        if type.cut is not None and type.cut.unreduced:
            with inside(BASE):
                whole = type.cut.with_spec(tuple(type.cut.spec))
                summed: Any = LaterLayers.resharded("array", concrete(type, None, buffer), whole)
            return summed.value
        shape, dtype = storage(type)
        if config.current().guarded and runtime.devices_of(buffer)[0].platform != "cpu":
            check_transfer("device_to_host", str(type))
        try:
            return runtime.to_numpy(buffer, dtype, shape)
        except runtime.RuntimeFailure as error:
            _fail(buffer, error, "an array must be read before it is deleted or donated.")
        except ValueError:
            if len(shape) <= MOST_AXES:
                raise
            hint = "reshape it to fewer axes before it is read or printed."
            message = f"an array of NumPy has at most {MOST_AXES} axes, got {len(shape)}."
            raise ShapeMismatch(message, hint=hint) from None

    def to_buffer(self, value: np.ndarray[Any, Any], type: ArrayType) -> Any:
        device = default_device()
        if config.current().guarded and device.platform != "cpu":
            check_transfer("host_to_device", str(type))
        if not value.dtype.itemsize:  # float0, as ``storage`` says
            value = np.zeros(value.shape, bool)
        if type.memory_space is not Space.Device:
            return runtime.put_at(value, runtime.sharding(device, kind_of(type.memory_space, device)))
        # concrete arrays are never written to, so the device may share their memory
        return runtime.putter(device, copy=False, committed=False)(value)

    def block(self, buffer: Any) -> None:
        try:
            runtime.block_until_ready(buffer)
        except runtime.RuntimeFailure as error:
            _fail(buffer, error, "block_until_ready: the array was deleted or donated.")

    def is_ready(self, buffer: Any) -> bool:
        return runtime.is_ready(buffer)

    def sharding(self, buffer: Any) -> Sharding:
        named = runtime.named_sharding(buffer)
        if named is not None:
            return named
        return _on_one(runtime.device_of(buffer), buffer._sharding._memory_kind)

    def layout(self, buffer: Any) -> Layout | None:
        return runtime.layout_of(buffer._sharding)

    def is_committed(self, buffer: Any) -> bool:
        return runtime.is_committed(buffer)

    def parts(self, x: ConcreteArray) -> list[ConcreteArray]:
        if runtime.is_deleted(x.buffer):
            raise DeletedArray("addressable_shards: the array was deleted or donated.", hint="copy it before.")
        if runtime.named_sharding(x.buffer) is None:
            return [x]
        part_type = x.type.update(shape=x.sharding.shard_shape(x.type.shape)).cut_by(None)
        return [concrete(part_type, None, part) for part in runtime.parts_of(x.buffer)]

    def rows(self, x: ConcreteArray) -> list[ConcreteArray]:
        """The rows of a committed array, on its devices and cut as it is."""
        kind = x.type.update(shape=x.type.shape[1:])
        sharding = x.sharding
        if isinstance(sharding, NamedSharding):
            where = sharding.with_spec(PartitionSpec(*tuple(sharding.spec)[1:]))
            place: Any = partial(runtime.spread, where=runtime.sharding_over(where, len(storage(kind)[0])))
        else:
            place = partial(runtime.put_at, where=runtime.laid_out(x.buffer._sharding, kind.ndim))
        return [concrete(kind, None, place(np.asarray(row))) for row in x.value]

    def pointer(self, buffer: Any) -> int:
        return runtime.pointer(buffer)

    def size_on_devices(self, buffer: Any) -> int:
        return runtime.size_on_devices(buffer)

    def dlpack_device(self, buffer: Any) -> tuple[int, int]:
        return runtime.dlpack_device(buffer)

    def to_dlpack(self, buffer: Any, stream: Any, max_version: Any, copy: bool | None) -> Any:
        """The buffer's memory, or with ``copy`` a copy of it; ``max_version``: None, or one with a read-only flag.

        On a CPU, whose libraries write, memory without the flag is a copy. Raises: BufferError: DLPack lacks the dtype,
        or a copy is needed, and ``copy=False``.
        """
        shares = runtime.devices_of(buffer)[0].platform != "cpu" or (max_version is not None and runtime.FLAGS_DLPACK)
        if copy is False and not shares:
            raise BufferError("__dlpack__: the memory is read-only, and can only be copied, got copy=False.")
        if runtime.is_deleted(buffer):
            raise DeletedArray("__dlpack__: the array was deleted or donated.", hint="copy it before.")
        given = self.duplicate(buffer) if copy or not shares else buffer
        try:
            return runtime.to_dlpack(given, stream, max_version)
        except runtime.RuntimeFailure:
            raise BufferError(f"__dlpack__: DLPack must have the dtype, got {given.aval.dtype}.") from None

    def cuda_array_interface(self, buffer: Any) -> dict[str, Any]:
        return runtime.cuda_array_interface(buffer)

    def delete(self, buffer: Any) -> None:
        runtime.delete(buffer)

    def is_deleted(self, buffer: Any) -> bool:
        return runtime.is_deleted(buffer)

    def duplicate(self, buffer: Any) -> Any:
        if runtime.is_deleted(buffer):  # XLA ends the process
            raise DeletedArray("copy: the array was deleted or donated.", hint="copy it before.")
        try:
            return runtime.duplicate(buffer)
        except runtime.RuntimeFailure as error:
            raise_translated(error)
