"""Whether NVIDIA's driver shows a GPU, by the environment and the file system."""

import pytest

from handlax.lowering.clients.gpu_driver import gpu_is_present


@pytest.mark.parametrize(("visible", "found", "present"), [
    (None, ["nvidia0"], True), ("0", ["nvidia0"], True), ("", ["nvidia0"], False), ("-1", ["nvidia0"], False),
    (" -1 ", ["nvidia0"], False), (None, ["nvidiactl"], False), (None, ["dxg"], True), (None, [], False),
])
def test_a_gpu_is_a_device_file_that_the_environment_does_not_hide(monkeypatch, tmp_path, visible, found, present):
    for name in found:
        (tmp_path / name).touch()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_is_present(tmp_path) is present
