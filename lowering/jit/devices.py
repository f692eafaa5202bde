"""Devices: their list, and the transfer of arrays between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.errors import BadArgument
from ...effects.core.arrays import Array, ConcreteArray
from ...effects.core.jax_contexts import explicit_transfers
from ...effects.trees import pytrees
from ...effects.trees.frozen_tree import Frozen
from ...effects.types.dtypes import is_extended
from ..xla.array_backend import default_device as _default_device
from ..xla.array_backend import platform_in_force
from ..xla.lazy import runtime


def devices(backend: str | None = None) -> list[Any]:
    """All devices of a platform, those of other processes included."""
    return list(runtime.backend(backend or platform_in_force()).devices)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """The devices of one process, by default this one."""
    number = process_index if process_index is not None else host_id
    if number is None:
        return list(runtime.backend(backend or platform_in_force()).local_devices)
    found = [device for device in devices(backend) if device.process_index == number]
    if not found:
        raise BadArgument(f"local_devices: the process must be below {process_count(backend)}, got {number}.")
    return found


def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The index of this process."""
    return int(local_devices(backend=backend)[0].process_index)


def process_count(backend: str | None = None) -> int:
    """The number of processes."""
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """The indices of all processes, in ascending order.

    >>> process_indices()
    [0]
    """
    return sorted({int(device.process_index) for device in devices(backend)})


def default_backend() -> str:
    """The platform on which programs are executed: "cpu" or "gpu"."""
    name = runtime.backend(platform_in_force()).platform
    return "gpu" if name == "cuda" else name


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays, after waiting for them; random keys stay keys.

        device_get(x) == numpy.asarray(x)
    """

    def get(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, Array) and not is_extended(leaf.type.dtype) else leaf

    with explicit_transfers():
        return pytrees.map(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait until every array of a tree is computed; returns the tree."""
    known = getattr(x, "_dispatch", None) if type(x) is Frozen else None
    # a frozen result whose leaves were never accessed keeps its buffers, without arrays
    leaves: list[Any] = pytrees.leaves(x) if known is None else []
    buffers: list[Any] = [] if known is None else known[1]
    for leaf in leaves:
        if type(leaf) is not ConcreteArray:
            wait = getattr(leaf, "block_until_ready", None)
            if wait is not None:
                wait()
        elif leaf._buffer is not None:
            buffers.append(leaf._buffer)
    if buffers:  # values that NumPy computed are ready, and need no runtime
        try:
            runtime.all_until_ready(buffers)
        except runtime.RuntimeFailure:
            for leaf in pytrees.leaves(x):
                if type(leaf) is ConcreteArray:
                    leaf.block_until_ready()  # that of the failed buffer raises the translated error
            raise
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a tree to the host; returns the tree."""
    for leaf in pytrees.leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


@contextmanager
def default_device(new_val: Any = None) -> Iterator[None]:
    """Within ``with``, put new arrays, and execute programs without committed arguments, on this device.

    Raises: BadArgument: ``new_val`` is neither a device nor the name of a platform.
    """
    if new_val is not None and not isinstance(new_val, str) and not runtime.is_device(new_val):
        raise BadArgument(
            f"default_device: the argument must be a device or the name of a platform, got {type(new_val).__name__}."
        )
    with config.configure(default_device=new_val):
        _default_device()  # notes the placement: from now on calls check devices
        yield


def disable_jit(disable: bool = True) -> AbstractContextManager[Any]:
    """Within it, evaluate jitted functions operation by operation, without tracing or compiling them.

    Loops and branches of ``lax`` are then evaluated as those of Python: ``print`` and a debugger in a body see numbers.
    They remain operations where a test depends on an unknown value, as under ``vmap``, and where a program is recorded.

    >>> from handlax import lax
    >>> with disable_jit():
    ...     six = lax.fori_loop(1, 4, lambda i, c: print(c) or c * i, 1)
    1
    1
    2
    """
    return config.configure(disable_jit=bool(disable))


def checking_leaks() -> AbstractContextManager[Any]:
    """Within it, a box that outlives its trace is an error (``Leak``), raised when the trace ends."""
    return config.configure(check_leaks=True)


def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[Any]:
    """``checking_leaks`` with a value: whether a box that outlives its trace is an error."""
    return config.configure(check_leaks=bool(new_val))


def debug_nans(new_val: bool = True) -> AbstractContextManager[Any]:
    """Within it, a NaN in a result is an error that names the first operation with one, also inside ``jit``."""
    return config.configure(debug_nans=bool(new_val))


def debug_infs(new_val: bool = True) -> AbstractContextManager[Any]:
    """Within it, an infinity in a result is an error, as a NaN is under ``debug_nans``."""
    return config.configure(debug_infs=bool(new_val))

