"""The keys that lead from the root of a pytree to a leaf."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..base.frozen_values import Value

KeyPath = tuple[Any, ...]


class DictKey(Value):
    """``tree[key]`` of a mapping."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(Value):
    """``tree[idx]`` of a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class GetAttrKey(Value):
    """``tree.name``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(Value):
    """The child of index ``key`` of a node type without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def _bare_key(key: Any) -> str:
    """The key without brackets, dots and quotes."""
    match key:
        case DictKey(value) | SequenceKey(value) | GetAttrKey(value) | FlattenedIndexKey(value):
            return str(value)
    return str(key)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: in Python's syntax of indexing; or, if ``simple``, the bare keys.

    >>> path = (GetAttrKey("layers"), SequenceKey(0), DictKey("w"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    (".layers[0]['w']", 'layers/0/w')
    """
    return separator.join([_bare_key(key) if simple else str(key) for key in keys])
