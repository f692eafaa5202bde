"""Memory of the host that NumPy arguments pass through on their way to a program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .lazy import runtime

STAGED_BYTES = 1 << 14


class Stage:
    """Memory of the host into which small arguments are copied, and the buffer over it, made once.

    A transfer costs ten times what it takes to copy a few hundred bytes. The memory is written again only when a
    result of the program that read it last is ready: then the program has ended.
    """

    __slots__ = ("buffer", "memory", "pool", "reader")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], pool: list[Stage]):
        size = dtype.itemsize * int(np.prod(shape))
        room = np.empty(size + 64, np.uint8)
        start = -room.ctypes.data % 64  # the alignment at which XLA shares memory
        self.memory: np.ndarray[Any, Any] = room[start : start + size].view(dtype).reshape(shape)
        self.buffer: Any = runtime.put(self.memory, stage_device(), copy=False)
        self.pool = pool
        self.reader: Any = None

    def give_back(self, results: Sequence[Any]) -> None:
        """The stage may be used again once these results are ready."""
        self.reader = results[0]
        if len(self.pool) < 16:
            self.pool.append(self)


_STAGES: dict[Any, list[Stage]] = {}


@functools.cache
def stage_device() -> Any:
    return runtime.backend("cpu").default_device


def stage(array: np.ndarray[Any, Any]) -> Stage | None:
    """A stage that holds the elements of ``array``; None where all are being read."""
    key = (array.shape, array.dtype)
    pool = _STAGES.get(key)
    if pool is None:
        if len(_STAGES) >= 256:
            _STAGES.clear()
        pool = _STAGES[key] = []
    try:
        found = pool.pop()
    except IndexError:
        if array.size == 0:
            return None
        found = Stage(array.shape, array.dtype, pool)
    if found.reader is not None and not found.reader.is_ready():
        pool.append(found)
        return None
    found.memory[...] = array
    return found
