"""DLPack: buffers to and from other libraries."""

import ml_dtypes
import numpy as np
import pytest
from helpers.device_buffers import Exporter, cpu_device, read, samples

from handlax.lowering.xla import jaxlib_runtime


@pytest.fixture(scope="module")
def device():
    return cpu_device()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, np.complex64, ml_dtypes.bfloat16], ids=str)
def test_dlpack_there_and_back_is_the_same_array(device, dtype):
    x = samples((2, 3), dtype)
    back = jaxlib_runtime.from_dlpack(Exporter(jaxlib_runtime.put(x, device)), device)
    assert back.aval is jaxlib_runtime.aval((2, 3), dtype)
    assert read(back).tolist() == x.tolist()


def test_numpy_reads_a_buffer_by_dlpack_without_a_copy(device):
    buffer = jaxlib_runtime.put(np.arange(16, dtype=np.float32), device)
    assert np.from_dlpack(Exporter(buffer)).ctypes.data == jaxlib_runtime.pointer(buffer)
