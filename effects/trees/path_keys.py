"""The keys of paths, which are jaxlib's: imported with its pytrees, when the first tree is flattened."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

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
