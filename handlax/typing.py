"""``handlax.typing``: annotations for arguments that become arrays and dtypes, under JAX's names."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from .effects.core.arrays import Array

__all__ = ["ArrayLike", "DTypeLike"]


@runtime_checkable
class HasDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self, /) -> np.dtype[Any]: ...


# What functions take for an array: arrays and numbers, but no lists.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
# What names a dtype; None is none.
DTypeLike: TypeAlias = str | type[Any] | np.dtype | HasDType
