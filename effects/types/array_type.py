"""Types of arrays, ``f32[3]``: interned, so that equality is identity, and the hash is that of the object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..base.immutables import ImmutableObject, setter
from .dtype_families import ExtendedDType, short_name

Shape = tuple[int, ...]


class ArrayType(ImmutableObject):
    """The type of an array: shape, dtype, and whether the dtype is weak. Equal types are one object.

    >>> ArrayType((3,), "float32"), ArrayType((3,), np.float32) is ArrayType((3,), np.dtype("float32"))
    (f32[3], True)
    """

    __slots__ = ("shape", "dtype", "weak", "size", "nbytes", "__weakref__")
    _guard = ("types", "t.update(shape=..., dtype=...) makes another one.")
    shape: Shape
    dtype: Any
    weak: bool
    size: int
    nbytes: int

    def __new__(cls, shape: Sequence[int], dtype: Any, weak: bool = False) -> ArrayType:
        return array_type(tuple(shape), dtype, weak)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def weak_type(self) -> bool:
        return self.weak

    def update(self, shape: tuple[int, ...] | None = None, dtype: Any = None, weak: bool | None = None) -> ArrayType:
        """The same type with another shape, dtype or weakness."""
        return array_type(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak if weak is None else weak,
        )

    def strong(self) -> ArrayType:
        """The same type, not weak."""
        return array_type(self.shape, self.dtype, False) if self.weak else self

    def str_short(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{short_name(self.dtype)}[{','.join(map(str, self.shape))}]" + ("~" if self.weak else "")

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return array_type, (self.shape, self.dtype, self.weak)


_SETTERS = tuple([setter(ArrayType, name) for name in ("shape", "dtype", "weak", "size", "nbytes")])
_INTERNED: dict[tuple[Any, ...], ArrayType] = {}


def array_type(shape: tuple[int, ...], dtype: Any, weak: bool = False) -> ArrayType:
    """The type of this shape (a tuple of ints), dtype (or its scalar type, or name) and weakness, interned."""
    key = (shape, dtype, weak)
    found = _INTERNED.get(key)
    if found is not None:
        return found
    if not isinstance(dtype, np.dtype | ExtendedDType):
        dtype = np.dtype(dtype)
    new: ArrayType = object.__new__(ArrayType)
    sizes = tuple([int(size) for size in shape])
    size = prod(sizes)
    for assign, value in zip(_SETTERS, (sizes, dtype, bool(weak), size, size * int(dtype.itemsize))):
        assign(new, value)
    # setdefault: two threads that create the same type get one object
    new = _INTERNED.setdefault((new.shape, new.dtype, new.weak), new)
    for listener in _LISTENERS:
        listener(new)
    return new


class OfArrayType:
    """A base of values that stand for an array of the type ``aval``, and are none."""

    __slots__ = ()
    aval: ArrayType

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return self.aval.size


def as_array_type(declared: Any) -> ArrayType:
    """The array type that anything with ``shape`` and ``dtype`` describes: a ``ShapeDtypeStruct``, an array."""
    if type(declared) is ArrayType:
        return declared
    weak = getattr(declared, "weak_type", False)
    return array_type(tuple(declared.shape), declared.dtype, weak)


_LISTENERS: list[Callable[[ArrayType], None]] = []


def on_type(listener: Callable[[ArrayType], None]) -> None:
    """Call ``listener`` with every type created so far, and with each later one when it is created."""
    _LISTENERS.append(listener)
    for known in list(_INTERNED.values()):
        listener(known)


float32 = np.dtype("float32")
BOOL = np.dtype("bool")
