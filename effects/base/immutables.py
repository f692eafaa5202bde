"""Immutable objects: setting or deleting an attribute raises ``Immutable``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .errors import Immutable


class ImmutableObject:
    """A base of classes whose attributes cannot be set or deleted: an attempt raises ``Immutable``.

    ``_guard`` is (what the error calls such objects, its hint for making a changed one). Constructors and cached
    properties assign by ``setter`` or ``object.__setattr__``.
    """

    __slots__ = ()
    _guard: ClassVar[tuple[str, str]]

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of(self._guard[0], name, "set", self._guard[1])

    def __delattr__(self, name: str) -> None:
        raise Immutable.of(self._guard[0], name, "deleted", self._guard[1])


def setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """The assignment to the slot ``name`` of ``cls`` without the check: for constructors and cached properties."""
    return cls.__dict__[name].__set__
