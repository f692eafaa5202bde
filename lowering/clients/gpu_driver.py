"""NVIDIA's driver, as the environment and the file system tell of it without loading a library."""

import os
import pathlib

_DEVICES = pathlib.Path("/dev")


def gpu_is_present(devices: pathlib.Path = _DEVICES) -> bool:
    """Whether the driver shows a device to this process, among the system's ``devices``."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return False
    return any(devices.glob("nvidia[0-9]*")) or (devices / "dxg").exists()
