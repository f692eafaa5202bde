"""Transfers of buffers from where they lie to where they are needed: devices, memories, shardings and layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...effects.base.caches import cached
from ...effects.sharding.layout import Layout
from ...effects.types.array_type import array_type
from .buffer_types import BufferSharding, Device, laid_out, layout_of, named_sharding, sharding
from .buffers import (
    Buffer,
    assemble,
    cut_alike,
    device_of,
    duplicate,
    lies_at,
    moved_to_device,
    parts_of,
    put_at,
    putter,
    to_numpy,
)
from .executables import Executable, compile
from .stablehlo_types import tensor


def copy_to_device(buffer: Buffer, device: Device) -> Buffer:
    """A buffer of equal elements on ``device``; the same buffer where it is on ``device`` already."""
    return copy_to(buffer, sharding(device))


def mover(x: Any, where: BufferSharding) -> Callable[[Any], Buffer] | None:
    """The function that brings buffers or NumPy arrays like ``x`` to ``where``; None where ``x`` lies there."""
    if type(x) is not np.ndarray:
        return None if lies_at(x, where) else lambda buffer: copy_to(buffer, where)
    if not hasattr(where, "named") and where is sharding(where._device):
        return putter(where._device, committed=False)
    row_major = laid_out(where, x.ndim)
    return lambda array: copy_to(put_at(array, row_major, copy=True), where)


def copy_to(buffer: Buffer, where: BufferSharding) -> Buffer:
    """A buffer of equal elements that lies, is cut and laid out as ``where`` says; the same one where it is so already.
    """
    if lies_at(buffer, where):
        return buffer
    kind, layout = buffer.aval, layout_of(where)
    if layout_of(buffer._sharding) is not None:
        return copy_to(_laid_out_anew(buffer, None), where)
    if layout is not None:
        return _laid_out_anew(copy_to(buffer, laid_out(where, len(kind.shape))), layout)
    over_many = hasattr(where, "named") or named_sharding(buffer) is not None
    if over_many and cut_alike(buffer._sharding, where):
        parts = [copy_to(part, sharding(device_of(part), where._memory_kind)) for part in parts_of(buffer)]
        return assemble(parts, kind, where)
    if over_many or where._device.client is not device_of(buffer).client:
        return put_at(to_numpy(buffer, kind.dtype, kind.shape), where)
    return moved_to_device(buffer, where)


def copied_to(buffer: Buffer, where: BufferSharding) -> Buffer:
    """A committed buffer of equal elements that lies on one device as ``where`` says, in memory of its own."""
    moved = copy_to(buffer, where)
    return assemble([duplicate(buffer)], buffer.aval, where) if moved is buffer else moved


def _laid_out_anew(buffer: Buffer, layout: Layout | None) -> Buffer:
    """A buffer of equal elements in another layout, where it lies: a program on each device."""
    own, shape = buffer._sharding, buffer.aval.shape
    if named_sharding(buffer) is None:
        program = _relayout(device_of(buffer), shape, buffer.aval.dtype, layout_of(own), layout)
        return program.execute([buffer])[0]
    parts = [_laid_out_anew(part, layout) for part in parts_of(buffer)]
    return assemble(parts, buffer.aval, laid_out(own, len(shape), layout))


@cached("programs that change a layout", 256)
def _relayout(device: Device, shape: Any, dtype: Any, before: Layout | None, after: Layout | None) -> Executable:
    """The program that copies a buffer from one layout to another; None: row-major."""
    kind = tensor(array_type(shape, dtype))
    said = ["" if layout is None else f' {{mhlo.layout_mode = "{layout.mode}"}}' for layout in (before, after)]
    main = f"func.func public @main(%x: {kind}{said[0]}) -> ({kind}{said[1]}) {{ return %x : {kind} }}"
    head = "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32"
    return compile(f"module @relayout attributes {{{head}}} {{ {main} }}", devices=[device], results=[(shape, dtype)])
