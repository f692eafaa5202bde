"""Immutable objects: setting or deleting an attribute raises ``Immutable``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from .errors import Immutable


class ImmutableObject:
    """A base of classes whose attributes cannot be set or deleted: an attempt raises ``Immutable``.

    ``_guard`` is (what the error calls such objects, its hint for making a changed one). Constructors and cached
    properties assign by ``setter`` or ``object.__setattr__``.
    """

    __slots__ = ()
    _guard: ClassVar[tuple[str, str]]

    def _fill(self, **slots: Any) -> None:
        """Assign attributes, past the check: for constructors and cached properties."""
        for name, value in slots.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: Any) -> None:
        """Of what ``pickle`` and ``copy`` read: the attributes, and with slots a pair of these and the slots."""
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        self._fill(**(attributes or {}), **(slots or {}))

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of(self._guard[0], name, "set", self._guard[1])

    def __delattr__(self, name: str) -> None:
        raise Immutable.of(self._guard[0], name, "deleted", self._guard[1])


class OwnCopy(ImmutableObject):
    """An immutable object whose ``copy.copy`` and ``copy.deepcopy`` are the object itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class KeyedObject(OwnCopy):
    """An immutable object that equals the objects of its class with an equal key, which constructors set."""

    __slots__ = ("_key", "_hash")
    _key: tuple[Any, ...]
    _hash: int

    def _set_key(self, *key: Any) -> None:
        self._fill(_key=key, _hash=hash(key))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, KeyedObject)
            and type(self) is type(other)
            and self._hash == other._hash
            and self._key == other._key
        )

    def __hash__(self) -> int:
        return self._hash


def setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """The assignment to the slot ``name`` of ``cls`` without the check: for constructors and cached properties."""
    return cls.__dict__[name].__set__
