"""Types of values: ``f32[3]``, interned, so that equality is identity and hashing costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .errors import Immutable
from .formats import short_name
from .slots import setter


class ArrayType:
    """The type of an array: shape, dtype, and whether the dtype is weak.

    ``array_type`` makes them; two types that are equal are the same object.
    """

    __slots__ = ("shape", "dtype", "weak", "size", "nbytes", "__weakref__")
    shape: tuple[int, ...]
    dtype: Any
    weak: bool
    size: int
    nbytes: int

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("types", name, "set", "t.update(shape=..., dtype=...) makes another one.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("types", name, "deleted", "t.update(shape=..., dtype=...) makes another one.")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def weak_type(self) -> bool:
        return self.weak

    def update(self, shape: tuple[int, ...] | None = None, dtype: Any = None, weak: bool | None = None) -> ArrayType:
        """The same type with some of its parts replaced."""
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
    """The one type of this shape (a tuple of ints), dtype (also its scalar type or name) and weakness."""
    key = (shape, dtype, weak)
    found = _INTERNED.get(key)
    if found is not None:
        return found
    if isinstance(dtype, type | str):
        dtype = np.dtype(dtype)
    made = ArrayType.__new__(ArrayType)
    sizes = tuple([int(size) for size in shape])
    count = prod(sizes)
    for assign, part in zip(_SETTERS, (sizes, dtype, bool(weak), count, count * int(dtype.itemsize))):
        assign(made, part)
    # setdefault: two threads that meet here must leave with one object
    made = _INTERNED.setdefault((made.shape, made.dtype, made.weak), made)
    for listener in _LISTENERS:
        listener(made)
    return made


_LISTENERS: list[Callable[[ArrayType], None]] = []


def on_type(listener: Callable[[ArrayType], None]) -> None:
    """Call ``listener`` with every type, those of before and those to come, when it is met first."""
    _LISTENERS.append(listener)
    for known in list(_INTERNED.values()):
        listener(known)


float32 = np.dtype("float32")
BOOL = np.dtype("bool")
