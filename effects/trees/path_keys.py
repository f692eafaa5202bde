"""The keys of paths, which are jaxlib's: imported with its pytrees, when the first tree is flattened."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TYPE_CHECKING

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # XLA reads it when its library is loaded

if TYPE_CHECKING:
    from ..base.frozen_values import Value

    class DictKey(Value):
        """The key of a path from a mapping to its element ``tree[key]``."""

        key: Hashable

    class SequenceKey(Value):
        """The key of a path from a tuple or list to its element ``tree[idx]``."""

        idx: int

    class GetAttrKey(Value):
        """The key of a path from a node to its attribute ``tree.name``."""

        name: str

    class FlattenedIndexKey(Value):
        """The key of a path from a node, of a type without keys, to its child of index ``key``."""

        key: int

else:
    from jaxlib._jax.pytree import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "SequenceKey"]
