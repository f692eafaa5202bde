"""DLPack: buffers of other libraries' arrays."""

from typing import Any

import numpy as np

from ..clients.jaxlib_modules import _jax
from ..clients.platforms import backend
from .buffer_types import Device, aval, sharding
from .buffers import Buffer, devices_of, put
from .jax_import_guard import without_jax
from .transfers import copy_to_device

_DLPACK_CPU, _DLPACK_CUDA = 1, 2
FLAGS_DLPACK = "max_version" in str(_jax.buffer_to_dlpack_managed_tensor.__nb_signature__)
"""Whether jaxlib exports by version 1 of the protocol, which flags memory as read-only."""


def dlpack_device(buffer: Buffer) -> tuple[int, int]:
    """DLPack's number for the kind of device that has the buffer, and which one it is; several CPUs are one.

    Raises: BufferError: it is over several other devices.
    """
    devices = devices_of(buffer)
    if devices[0].platform == "cpu":
        return _DLPACK_CPU, 0
    if len(devices) > 1:
        raise BufferError(f"__dlpack__: an array on one device is needed, got one over {len(devices)}.")
    return _DLPACK_CUDA, devices[0].local_hardware_id


def to_dlpack(buffer: Buffer, stream: Any, max_version: tuple[int, int] | None) -> Any:
    """The capsule of a buffer's memory, which the consumer's work on ``stream`` may read.

    Raises: RuntimeFailure: DLPack lacks the dtype.
    """
    options = {"max_version": max_version} if FLAGS_DLPACK else {}
    with without_jax():
        return _jax.buffer_to_dlpack_managed_tensor(buffer, stream=stream, **options)


def from_dlpack(array: Any, device: Device) -> Buffer:
    """A buffer on ``device`` of the elements of any object with ``__dlpack__``, sharing its memory where possible.

    On a CPU memory aligned to 64 bytes is shared; a later change of ``array`` then changes the buffer.

    Raises: RuntimeFailure: XLA lacks the dtype or the layout. BufferError: the exporter refuses.
    """
    kind, ordinal = array.__dlpack_device__()
    on_gpu = kind == _DLPACK_CUDA
    if not on_gpu:
        try:
            return put(np.from_dlpack(array), device, copy=False)
        except (BufferError, RuntimeError):  # dtypes such as bfloat16 are unknown to NumPy, but not to XLA
            pass
    owner = device.client if (device.platform != "cpu") is on_gpu else backend("cuda" if on_gpu else "cpu").client
    source = owner.device_from_local_hardware_id(ordinal) if on_gpu else owner.local_devices()[0]
    # Of the device's own streams, the only ones that it takes; where another was named jaxlib frees the capsule twice.
    stream = source.get_stream_for_external_ready_events() if on_gpu else None
    capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream)
    with without_jax():
        found = _jax.dlpack_managed_tensor_to_buffer(capsule, source, stream)
    where = sharding(source, committed=found._committed)
    typed = found._rewrap_with_aval_and_sharding(aval(found.aval.shape, found.aval.dtype), where)
    return copy_to_device(typed, device)
