"""The paths that lead from the root of a pytree to a leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.lazy_module import LazyModule

if TYPE_CHECKING:
    from . import path_keys
else:
    path_keys = LazyModule("handlax.effects.trees.path_keys")

KeyPath = tuple[Any, ...]
"""The keys that lead from a tree to a leaf, outermost first."""


def _bare_key(key: Any) -> str:
    """The key without brackets, dots and quotes."""
    match key:
        case (
            path_keys.DictKey(value) | path_keys.SequenceKey(value) | path_keys.GetAttrKey(value)
            | path_keys.FlattenedIndexKey(value)
        ):
            return str(value)
    return str(key)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: in Python's syntax of indexing; or, if ``simple``, the bare keys.

    >>> from handlax.tree_util import DictKey, GetAttrKey, SequenceKey
    >>> path = (GetAttrKey("layers"), SequenceKey(0), DictKey("w"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    (".layers[0]['w']", 'layers/0/w')
    """
    return separator.join([_bare_key(key) if simple else str(key) for key in keys])


def path_text(path: KeyPath) -> str:
    """A path for messages."""
    return keystr(path) or "the root"
