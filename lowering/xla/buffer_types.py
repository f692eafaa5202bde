"""The types and shardings that jaxlib requires with every buffer, one object for each."""

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from ...effects.base.caches import cached
from ...effects.base.errors import DTypeMismatch
from ...effects.types.array_type import Shape
from .jaxlib_modules import JAXLIB_VERSION, xc

Device: TypeAlias = Any
BufferSharding: TypeAlias = Any


class Aval:
    """The attributes that jaxlib reads from the type of a buffer. Equal types are one object, created by ``aval``."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any):
        self.shape: Shape = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.weak_type = False

    def __repr__(self) -> str:
        return f"Aval({self.shape}, {self.dtype})"


AVALS: dict[tuple[Shape, np.dtype[Any]], Aval] = {}
"""The interned types."""


def aval(shape: Sequence[int], dtype: Any) -> Aval:
    """The one ``Aval`` of a shape and a dtype.

        aval(s, d) is aval(s, d)

    Raises: DTypeMismatch: no device holds such elements (strings, objects, dates, long double).

    >>> aval((2, 3), "float32")
    Aval((2, 3), float32)
    """
    key = (tuple(shape), np.dtype(dtype))
    found = AVALS.get(key)
    return _make_aval(*key) if found is None else found


EXTENDED = frozenset(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16", "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )
)  # fmt: skip
"""The dtypes of ``ml_dtypes`` that XLA supports."""
PACKED = frozenset(
    dtype for dtype in EXTENDED if dtype.name in ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
)
"""Several elements to a byte on a device, one to a byte in NumPy."""
NATIVE = frozenset(np.dtype(code) for code in "?bhilqBHILQefdFD")
"""The dtypes of NumPy that XLA supports."""


def _make_aval(shape: Shape, dtype: np.dtype[Any]) -> Aval:
    # XLA reads bytes in the native order whatever the dtype says, so other byte orders get no aval of their own.
    native = dtype.newbyteorder("=")
    if native not in NATIVE and native not in EXTENDED:
        raise DTypeMismatch(f"a device holds booleans and numbers, got dtype {dtype}", hint="convert with astype")
    return AVALS.setdefault((shape, native), Aval(shape, native))


class _OneDevice(xc.SingleDeviceSharding):
    """A sharding on one device that defines the properties which jaxlib 0.10 reads from Python.

    jax sets them on the base class when it is imported. They must not be set there by us: they would shadow those of
    jax's own instances. The properties read at every transfer are C functions, which cost no Python frame.
    """

    memory_kind = property(attrgetter("_memory_kind"))
    is_fully_replicated = True
    is_fully_addressable = True
    num_devices = 1
    device_set = property(lambda self: {self._device})
    _device_assignment = property(lambda self: (self._device,))
    _to_xla_hlo_sharding: Any = defaultdict(xc.HloSharding.replicate).__getitem__


# jaxlib 0.12 transfers 15 % faster when the class is exactly ``SingleDeviceSharding``.
_SINGLE: type[Any] = _OneDevice if JAXLIB_VERSION.startswith("0.10.") else xc.SingleDeviceSharding


@cached("shardings", 256)
def sharding(device: Device) -> BufferSharding:
    """The one sharding that puts all of a buffer on ``device``."""
    return _SINGLE(device, memory_kind=device.default_memory().kind)
