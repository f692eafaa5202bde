"""``print_environment_info``: what a report of a fault should say of the surroundings."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

from .devices import devices, local_device_count, process_count


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what a report of a fault should say of the versions, devices, system and environment; or return it.

    >>> from handlax import print_environment_info
    >>> print_environment_info(return_string=True).partition(":")[0]
    'handlax'
    """
    found = devices()
    lines = {
        **{name: metadata.version(name) for name in ("handlax", "jaxlib", "numpy")},
        "python": sys.version.replace("\n", " "),
        "devices": f"{len(found)} of kind {found[0].device_kind}, {local_device_count()} of this process",
        "process_count": process_count(),
        "platform": platform.platform(),
        **{name: value for name, value in os.environ.items() if name.startswith(("HANDLAX_", "JAX_", "XLA_"))},
    }
    text = "\n".join([f"{name}: {value}" for name, value in lines.items()])
    if return_string:
        return text
    sys.stdout.write(f"{text}\n")
    return None
