"""The keys that lead from the root of a pytree to a leaf."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .values import Value

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
    """The ``key``-th child of a node that names no keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def _plain(key: Any) -> str:
    match key:
        case DictKey(value) | SequenceKey(value) | GetAttrKey(value) | FlattenedIndexKey(value):
            return str(value)
    return str(key)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: as Python would index it, or, ``simple``, the bare keys.

    >>> path = (GetAttrKey("layers"), SequenceKey(0), DictKey("w"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    (".layers[0]['w']", 'layers/0/w')
    """
    return separator.join([_plain(key) if simple else str(key) for key in keys])
