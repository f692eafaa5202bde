"""Devices: which there are, and where arrays lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ..effects import config, trees
from ..effects.arrays import Array, ConcreteArray, concrete, lift
from ..effects.errors import BadArgument
from ..effects.frozen import Frozen
from ..effects.stack import BASE, STACK
from .backend import default_device as _default_device
from .backend import place, platform_in_force
from .entries import concrete_operand, give_away
from .lazy import runtime


def devices(backend: str | None = None) -> list[Any]:
    """All devices of a platform, those of other processes included."""
    return list(runtime.backend(backend or platform_in_force()).devices)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """The devices of one process; of this one by default."""
    number = process_index if process_index is not None else host_id
    if number is None:
        return list(runtime.backend(backend or platform_in_force()).local_devices)
    found = [device for device in devices(backend) if device.process_index == number]
    if not found:
        raise BadArgument(f"local_devices: there is no process {number}; there are {process_count(backend)}.")
    return found


def device_count(backend: str | None = None) -> int:
    """How many devices there are in all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process."""
    return int(local_devices(backend=backend)[0].process_index)


def process_count(backend: str | None = None) -> int:
    """How many processes there are."""
    return len({device.process_index for device in devices(backend)})


def default_backend() -> str:
    """The platform on which programs run: "cpu" or "gpu"."""
    name = runtime.backend(platform_in_force()).platform
    return "gpu" if name == "cuda" else name


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: bool | None = None
) -> Any:
    """The arrays of a tree, on a device. An array put on a device by name stays there: computations follow it.

        device_put(x, d) == x

    Args:
        device: a device; without it, arrays lie where they lie, and numbers become arrays.
        donate: the arrays may be used up. may_alias: memory may be shared.

    Raises: BadArgument: ``device`` is none. NotAnArray: a leaf is no array.
    """
    if device is not None and not _is_device(device):
        raise BadArgument(f"device_put: a device is needed, got {type(device).__name__}.", hint="one of hx.devices().")

    def put(leaf: Any) -> Any:
        if STACK.get() is not BASE or (isinstance(leaf, Array) and leaf.run is not None):
            return lift(leaf)  # the device is chosen when the program around is compiled
        y = concrete_operand(leaf)
        if device is None:
            return y
        moved = _on(y, device)
        if donate and moved is not leaf and isinstance(leaf, ConcreteArray):
            give_away(leaf)
        return moved

    return trees.map(put, x)


def _is_device(x: Any) -> bool:
    return hasattr(x, "client") and hasattr(x, "platform")


def _on(x: ConcreteArray, device: Any) -> ConcreteArray:
    """The array, committed to a device."""
    place(device)
    buffer = x._buffer
    if buffer is not None and buffer._committed and runtime.device_of(buffer) == device:
        return x
    # memory that the array itself may give up or share is not taken over
    made = runtime.put(x.value, device)
    return concrete(x.type, None, made)


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays, once they are computed.

        device_get(x) == numpy.asarray(x)
    """
    return trees.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Wait for every array of a tree; gives the tree."""
    known = getattr(x, "_dispatch", None) if type(x) is Frozen else None
    # a frozen result that nobody has looked at stays one
    leaves: list[Any] = trees.leaves(x) if known is None else []
    buffers: list[Any] = [] if known is None else known[1]
    for leaf in leaves:
        if type(leaf) is not ConcreteArray:
            wait = getattr(leaf, "block_until_ready", None)
            if wait is not None:
                wait()
        elif leaf._buffer is not None:
            buffers.append(leaf._buffer)
    if buffers:  # what NumPy made is there, and needs no runtime
        try:
            runtime.all_until_ready(buffers)
        except runtime.RuntimeFailure:
            for leaf in trees.leaves(x):
                if type(leaf) is ConcreteArray:
                    leaf.block_until_ready()  # the one that failed says what it was
            raise
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a tree to the host; gives the tree."""
    for leaf in trees.leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


@contextmanager
def default_device(new_val: Any = None) -> Iterator[None]:
    """New arrays, and programs whose arguments are not committed, go to this device in the extent of ``with``.

    Raises: BadArgument: it is neither a device nor the name of a platform.
    """
    if new_val is not None and not isinstance(new_val, str) and not _is_device(new_val):
        raise BadArgument(f"default_device: a device or the name of a platform, got {type(new_val).__name__}.")
    with config.configure(default_device=new_val):
        _default_device()  # from now on devices are looked at
        yield


def disable_jit(disable: bool = True) -> AbstractContextManager[Any]:
    """In its extent jitted functions run as they are written, operation by operation.

    So do loops and branches of ``lax``, as those of Python: ``print`` and a debugger in a body see numbers. Where a
    choice depends on a value that is not known, under ``vmap`` for one, and where a program is recorded, they stand.

    >>> from handlax import lax
    >>> with disable_jit():
    ...     six = lax.fori_loop(1, 4, lambda i, c: print(c) or c * i, 1)
    1
    1
    2
    """
    return config.configure(disable_jit=bool(disable))


def checking_leaks() -> AbstractContextManager[Any]:
    """In its extent a value that outlives its trace is an error (``Leak``), raised when the trace ends."""
    return config.configure(check_leaks=True)


def debug_nans(new_val: bool = True) -> AbstractContextManager[Any]:
    """In its extent a NaN among the results of a jitted function is an error that names the operation that made it."""
    return config.configure(debug_nans=bool(new_val))


def debug_infs(new_val: bool = True) -> AbstractContextManager[Any]:
    """The same for infinities."""
    return config.configure(debug_infs=bool(new_val))

