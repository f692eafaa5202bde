"""``Exchanged``: how a concrete array gives its memory to other libraries, by Python's buffers, DLPack and CUDA's
interface.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import DTypeMismatch
from ..base.later_layers import LaterLayers
from ..types.dtypes import ExtendedDType

HOST = (1, 0)  # DLPack's number of the CPU, and which one


class Exchanged:
    """The protocols by which other libraries read a concrete array.

    On a CPU NumPy exports its data, as memory that is flagged read-only, or as a copy; of dtypes that NumPy does not
    know, such as bfloat16, the runtime does, and of an accelerator's memory.
    """

    __slots__ = ()
    type: Any
    _buffer: Any
    buffer: Any

    def __buffer__(self, flags: int) -> memoryview:
        """The data as read-only memory, of which Python asks since 3.12. Raises: BufferError: NumPy lacks the dtype."""
        if isinstance(self.type.dtype, ExtendedDType):
            raise self._keys_error("memoryview")
        if self.type.dtype.isbuiltin != 1:
            raise BufferError(f"memoryview: Python's buffers must have the dtype, got {self.type.dtype}.")
        return memoryview(self.__array__())  # type: ignore[attr-defined]

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if isinstance(self.type.dtype, ExtendedDType):
            raise self._keys_error("__dlpack__")
        here = self.__dlpack_device__()
        flagged = max_version is not None and max_version[0] >= 1  # earlier ones have no flag for read-only memory
        if dl_device in (None, here) and (here != HOST or self.type.dtype.isbuiltin != 1):
            return LaterLayers.backend.to_dlpack(self.buffer, stream, max_version if flagged else None, copy)
        if copy is False and not (flagged and here == HOST):
            raise BufferError(
                "__dlpack__: max_version=(1, 0) or later is needed to share memory that is read-only."
                if here == HOST else f"__dlpack__: memory of device {here} is copied to {dl_device}, got copy=False."
            )
        data = self.__array__() if flagged else self.__array__(copy=True)  # type: ignore[attr-defined]
        return data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST if self._buffer is None else LaterLayers.backend.dlpack_device(self._buffer)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Address and type of the memory on a GPU of NVIDIA's. Raises: AttributeError: it is not there."""
        if self.__dlpack_device__()[0] == HOST[0]:
            raise AttributeError("__cuda_array_interface__: the array must be on a GPU, it is on a CPU.")
        return LaterLayers.backend.cuda_array_interface(self.buffer)

    def _keys_error(self, where: str) -> DTypeMismatch:
        """The error that the array has random keys, where numbers are needed."""
        hint = "random.key_data(keys) is an array of integers."
        return DTypeMismatch(f"{where}: an array of numbers is needed, got random keys {self.type}.", hint=hint)
