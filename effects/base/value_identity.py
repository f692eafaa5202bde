"""Identity of values: which values are the same as cache keys, fields of operations, and static data of treedefs.

    bits(x)              hashable; differs wherever type or bit pattern differ
    same_data(x, y)      the same relation, for values that need not be hashable
    leaf_key(x)          hashable; numbers and strings by type and bits, everything else by identity
    array_key(x)         hashable; arrays by type and bytes

The wrappers ``ByIdentity``, ``ByData``, ``ByEquality`` and ``ByBytes`` replace the ``==`` and hash of a value in a key.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from .errors import BadStaticArgument

_OWN_KEY = frozenset((int, str, bytes, type(None)))  # within each of these types, equal values have the same bits
_NUMBERS_AND_STRINGS = _OWN_KEY | {bool, float, complex}
_COPIED = 1024  # arrays of at most so many bytes: the key is a copy of the bytes
_SAMPLED = 1 << 20  # larger arrays are hashed by their type, without reading the data


def bits(value: Any) -> Any:
    """A hashable key of ``value`` that differs wherever type or bit pattern differ. A NaN equals itself.

    Raises: TypeError: it cannot be hashed.

    >>> bits(1) == bits(1.0), bits(0.0) == bits(-0.0), bits(float("nan")) == bits(float("nan"))
    (False, False, True)
    """
    kind = type(value)
    if kind in _OWN_KEY:
        return value
    if kind is tuple:
        return tuple([bits(item) for item in value])
    if kind is bool:
        return ("bool", value)
    if kind is float:
        return ("float", struct.pack("d", value))
    if kind is complex:
        return ("complex", struct.pack("dd", value.real, value.imag))
    if isinstance(value, np.generic):
        return (kind, value.tobytes())
    if isinstance(value, tuple):
        return (kind, *[bits(item) for item in value])
    if isinstance(value, frozenset):
        return (kind, frozenset(bits(item) for item in value))
    hash(value)
    return value


def same_data(a: Any, b: Any) -> bool:
    """Whether type and value are equal; by ``bits`` if hashable, so that ``0.0`` and ``-0.0`` differ.

    Raises: BadStaticArgument: ``a == b`` is no truth value.
    """
    if a is b:
        return True
    cls = a.__class__
    if cls is not b.__class__:
        return False
    if cls is tuple or cls is list:
        return len(a) == len(b) and all([same_data(x, y) for x, y in zip(a, b)])
    if cls is dict:
        others = {bits(key): item for key, item in b.items()}
        return len(a) == len(b) and all([
            bits(key) in others and same_data(item, others[bits(key)]) for key, item in a.items()
        ])
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    try:
        equal = bool(a == b)
    except Exception as error:
        raise BadStaticArgument(
            f"structure: static data must compare by ==, got {cls.__name__}, whose == raised {error!r}.",
            hint="keep arrays among the children, or give the class an __eq__ that returns a bool.",
        ) from error
    if not equal or cls in _OWN_KEY:
        return equal
    try:
        return bool(bits(a) == bits(b))
    except TypeError:
        return True


def leaf_key(x: Any) -> tuple[Any, Any]:
    """The key of a leaf: numbers and strings by type and bits, everything else by ``id`` while the leaf is alive."""
    kind = type(x)
    return kind, bits(x) if kind in _NUMBERS_AND_STRINGS else id(x)


class _Holder:
    """Holds a value, of which a subclass replaces the ``==`` and the hash."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


class ByIdentity(_Holder):
    """Compares by identity, and keeps the value alive."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class ByData(_Holder):
    """Compares a hashable value by ``same_data``: ``1`` and ``1.0`` differ."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByData) and same_data(self.value, other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class ByEquality(_Holder):
    """Compares a value without a hash by identity, then by its ``==`` if that returns True."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByEquality):
            return False
        return self.value is other.value or (self.value == other.value) is True

    def __hash__(self) -> int:
        return hash(type(self.value))


class ByBytes:
    """Compares a large array by type and all bytes; hashed by type and a sample of the bytes."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    @property
    def octets(self) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(self.array.value).reshape(-1).view(np.uint8)

    @property
    def sample(self) -> bytes:
        octets = self.octets
        return octets[:: max(1, octets.size // 256)].tobytes()

    def __hash__(self) -> int:
        type = self.array.type
        return hash((type, self.sample)) if type.nbytes <= _SAMPLED else hash(type)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByBytes) or self.array.type is not other.array.type:
            return False
        if self.array is other.array:
            return True
        return self.sample == other.sample and bool(np.array_equal(self.octets, other.octets))


def array_key(x: Any) -> Any:
    """The key of a concrete array, by type and bytes; the bytes of a large one are not copied."""
    return (x.type, x.value.tobytes()) if x.type.nbytes <= _COPIED else ByBytes(x)
