"""Python values as parts of cache keys. A function equals itself alone: what it reads may change."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..base.value_identity import ByEquality, ByIdentity, bits
from ..core.arrays import Array
from ..types.extent import unbound


class KeyedValue:
    """A Python value as part of a key: hashable values compare by type and bits, arrays by identity.

    Any other unhashable value is mutable and equals only this very ``KeyedValue``.
    """

    __slots__ = ("value", "_key")

    def __init__(self, value: Any):
        self.value = value

    @property
    def key(self) -> Any:
        try:
            return self._key
        except AttributeError:
            self._key: Any = self.compared()
            return self._key

    def compared(self) -> Any:
        try:
            key = bits(self.value)
            hash(key)
        except TypeError:
            return ByIdentity(self.value) if isinstance(self.value, Array) else object()
        return key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyedValue) and type(self.value) is type(other.value) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash((type(self.value), self.key))

    def __reduce__(self) -> Any:
        return KeyedValue, (self.value,)


class UserFunction:
    """A user's function, or a static argument of it, in an operation: equal to this very ``UserFunction`` alone.

    It is recorded on demand. What it reads may change between two programs with the same function, so these differ.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def static_key(x: Any, depth: int = 8) -> Any:
    """The key of a static argument; containers and dataclasses enter with their present contents."""
    x = unbound(x)
    kind = type(x)
    if isinstance(x, Array):
        return kind, ByIdentity(x)
    if depth:
        if kind is list or isinstance(x, tuple):
            return kind, tuple([static_key(item, depth - 1) for item in x])
        if kind is dict:
            return kind, tuple([(static_key(k, depth - 1), static_key(v, depth - 1)) for k, v in x.items()])
        if kind is set:
            return kind, frozenset([static_key(item, depth - 1) for item in x])
        if kind is np.ndarray and x.dtype.kind != "O":
            return kind, x.dtype, x.shape, x.tobytes()
    try:
        return kind, bits(x)
    except TypeError:
        pass
    if depth and dataclasses.is_dataclass(x):
        return kind, tuple([static_key(getattr(x, field.name), depth - 1) for field in dataclasses.fields(x)])
    return kind, ByEquality(x)
