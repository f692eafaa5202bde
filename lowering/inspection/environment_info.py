"""``print_environment_info``: what a report of a fault should say of the surroundings."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from ...effects.base.caches import cache_info
from ...effects.base.config import DEFAULTS, current
from ..jit.devices import devices, local_device_count, process_count


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what a report of a fault should say: versions, devices, system, environment, settings and caches.

    With ``return_string`` it is returned instead. ``python -m handlax`` prints it.

    >>> from handlax import print_environment_info
    >>> print_environment_info(return_string=True).partition(":")[0]
    'handlax'
    """
    found = devices()
    lines = {
        **{name: _version(name) for name in ("handlax", "jaxlib", "numpy")},
        "python": sys.version.replace("\n", " "),
        "devices": f"{len(found)} of kind {found[0].device_kind}, {local_device_count()} of this process",
        "processes": process_count(),
        "system": platform.platform(),
        **{name: value for name, value in os.environ.items() if name.startswith(("HANDLAX_", "JAX_", "XLA_"))},
        "settings": ", ".join(_changed_settings()) or "as they are by default",
        "caches": f"{sum(info.size for info in cache_info().values())} entries in memory, {_on_disk()}",
    }
    width = max(map(len, lines)) + 1
    text = "\n".join([f"{name + ':':{width}} {value}" for name, value in lines.items()])
    if return_string:
        return text
    sys.stdout.write(f"{text}\n")
    return None


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # a copy of the source on the path
        return "not installed"


def _changed_settings() -> Iterator[str]:
    for name, default in DEFAULTS.items():
        if (value := getattr(current(), name)) != default:
            yield f"{name}={value!r}"


def _on_disk() -> str:
    folder = current().compilation_cache_dir
    if folder is None:
        return "none on disk"
    sizes = [path.stat().st_size for path in Path(folder).glob("*.xla")]
    return f"{len(sizes)} programs of {sum(sizes) / 1e6:.1f} MB in {folder}"
