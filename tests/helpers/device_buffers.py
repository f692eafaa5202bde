"""The CPU device, arrays to put on it, their elements read back, and buffers as those of another library."""

import numpy as np

from handlax.lowering.clients.jaxlib_modules import _jax
from handlax.lowering.xla import jaxlib_runtime


def cpu_device():
    return jaxlib_runtime.backend("cpu").default_device


def samples(shape, dtype):
    bits = np.random.default_rng(len(shape)).integers(0, 2, shape)
    return np.asarray(bits).astype(dtype)


def read(buffer):
    return jaxlib_runtime.to_numpy(buffer, buffer.aval.dtype, buffer.aval.shape)


class Exporter:
    """A buffer as an array of another library, whose DLPack is of the first version."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __dlpack__(self, *, stream=None, **_):
        return _jax.buffer_to_dlpack_managed_tensor(self.buffer, stream=stream)

    def __dlpack_device__(self):
        device = jaxlib_runtime.device_of(self.buffer)
        return (1, 0) if device.platform == "cpu" else (2, device.local_hardware_id)
