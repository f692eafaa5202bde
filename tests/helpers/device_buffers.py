"""The CPU device, arrays to put on it, and their elements read back."""

import numpy as np

from handlax.lowering.xla import jaxlib_runtime


def cpu_device():
    return jaxlib_runtime.backend("cpu").default_device


def samples(shape, dtype):
    bits = np.random.default_rng(len(shape)).integers(0, 2, shape)
    return np.asarray(bits).astype(dtype)


def read(buffer):
    return jaxlib_runtime.to_numpy(buffer, buffer.aval.dtype, buffer.aval.shape)
