"""``ArrayBackend``, what arrays ask of a device; the package installs the implementation of ``lowering`` on import."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..sharding.named_sharding import Sharding
from ..types.array_type import ArrayType


class ArrayBackend(Protocol):
    """Operations on device buffers: transfers from and to NumPy, readiness, placement, deletion."""

    def to_numpy(self, buffer: Any, type: ArrayType) -> np.ndarray[Any, Any]: ...

    def to_buffer(self, value: np.ndarray[Any, Any], type: ArrayType) -> Any: ...

    def block(self, buffer: Any) -> None: ...

    def is_ready(self, buffer: Any) -> bool: ...

    def sharding(self, buffer: Any) -> Sharding: ...

    def is_committed(self, buffer: Any) -> bool: ...

    def parts(self, x: Any) -> list[Any]: ...

    def rows(self, x: Any) -> list[Any]: ...

    def delete(self, buffer: Any) -> None: ...

    def is_deleted(self, buffer: Any) -> bool: ...

    def duplicate(self, buffer: Any) -> Any: ...


class InstalledBackend:
    """The backend, and the module that ``__array_namespace__`` returns; set when the package is imported."""

    backend: ArrayBackend
    namespace: Any
