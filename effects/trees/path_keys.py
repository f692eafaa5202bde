"""The keys of paths, which are jaxlib's: imported with its pytrees, when the first tree is flattened."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TYPE_CHECKING

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # XLA reads it when its library is loaded

if TYPE_CHECKING:
    from ..base.frozen_values import Value

    class DictKey(Value):
        """``tree[key]`` of a mapping."""

        key: Hashable

    class SequenceKey(Value):
        """``tree[idx]`` of a tuple or list."""

        idx: int

    class GetAttrKey(Value):
        """``tree.name``."""

        name: str

    class FlattenedIndexKey(Value):
        """The child of index ``key`` of a node type without keys."""

        key: int

else:
    from jaxlib._jax.pytree import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "SequenceKey"]
