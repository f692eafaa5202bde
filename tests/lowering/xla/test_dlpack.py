"""DLPack: buffers to and from other libraries."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from helpers.device_buffers import Exporter, cpu_device, read, samples

from handlax.lowering.xla import dlpack, jaxlib_runtime


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


def test_a_version_of_jaxlib_that_flags_no_memory_exports_the_same(device, monkeypatch):
    buffer = jaxlib_runtime.put(np.arange(3, dtype=np.float32), device)
    monkeypatch.setattr(dlpack, "FLAGS_DLPACK", False)
    capsule = dlpack.to_dlpack(buffer, None, (1, 0))
    exporter = SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: dlpack.dlpack_device(buffer))
    assert read(jaxlib_runtime.from_dlpack(exporter, device)).tolist() == [0, 1, 2]


def test_the_device_of_a_buffer_is_one_gpu_or_the_host(monkeypatch):
    gpus = [SimpleNamespace(platform="cuda", local_hardware_id=number) for number in (3, 4)]
    monkeypatch.setattr(dlpack, "devices_of", lambda devices: devices)
    assert dlpack.dlpack_device(gpus[:1]) == (2, 3)
    assert dlpack.dlpack_device([SimpleNamespace(platform="cpu")] * 2) == (1, 0)
    with pytest.raises(BufferError, match="one over 2"):
        dlpack.dlpack_device(gpus)
