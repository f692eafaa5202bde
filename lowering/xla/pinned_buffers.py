"""Reused host memory that programs on the CPU read small NumPy arguments from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.caches import Cache, per_process
from ...effects.types.dtypes import itemsize_bits
from .lazy import runtime

STAGED_BYTES = 1 << 14
"""The largest argument, in bytes, that is copied into such memory."""


class PinnedBuffer:
    """Host memory into which a small argument is copied, with the device buffer that shares it.

    Copying a few hundred bytes costs a tenth of a transfer. ``reader`` is a result of the program that read the memory
    last: the memory may be written again once that result is ready, since the program has then ended.
    """

    __slots__ = ("buffer", "memory", "pool", "reader")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], pool: list[PinnedBuffer]):
        size = dtype.itemsize * int(np.prod(shape))
        block = np.empty(size + 64, np.uint8)
        start = -block.ctypes.data % 64  # the alignment at which XLA shares memory
        self.memory: np.ndarray[Any, Any] = block[start : start + size].view(dtype).reshape(shape)
        self.buffer: Any = runtime.put(self.memory, stage_device(), copy=False)
        self.pool = pool
        self.reader: Any = None

    def release(self, results: Sequence[Any]) -> None:
        """Return the buffer to its pool, to be written again once these results are ready."""
        self.reader = results[0]
        if len(self.pool) < 16:
            self.pool.append(self)


_POOLS = Cache("staging memory", 256)
"""Pools of pinned buffers for transfers, by shape and dtype."""


@per_process
def stage_device() -> Any:
    """The device whose buffers can share host memory: the first of the CPU platform."""
    return runtime.backend("cpu").default_device


def stage(array: np.ndarray[Any, Any]) -> PinnedBuffer | None:
    """A pinned buffer with the elements of ``array``; None if the pool's next is in use.

    None too where no memory can be shared: of empty arrays, and of elements that a device packs into a byte. A buffer
    whose reader was deleted or donated may be in use for a time that is not known: it is dropped.
    """
    key = (array.shape, array.dtype)
    pool = _POOLS.entries.get(key)
    if pool is None:
        pool = _POOLS.add(key, [])
    try:
        found = pool.pop()
    except IndexError:
        if array.size == 0 or itemsize_bits(array.dtype) < 8:
            return None
        found = PinnedBuffer(array.shape, array.dtype, pool)
    if found.reader is not None:
        if runtime.is_deleted(found.reader):
            return stage(array)
        if not runtime.is_ready(found.reader):
            pool.append(found)
            return None
    found.memory[...] = array
    return found
