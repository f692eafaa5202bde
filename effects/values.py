"""Frozen values that cost an import little: ``dataclass(frozen=True)`` makes and compiles code for every class."""

from __future__ import annotations

import dataclasses
from typing import Any, dataclass_transform

from .errors import BadCall, Immutable


@dataclass_transform(frozen_default=True)
class Value:
    """A value of its fields, which are the annotations of its class: it equals those of its own type with equal fields.

    Whoever asks for the fields of a dataclass finds them.
    """

    __match_args__: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = self.__match_args__
        if len(args) == len(names) and not kwargs:
            self.__dict__.update(zip(names, args))
            return
        given = dict(zip(names, args), **kwargs)
        fields = {name: given[name] if name in given else getattr(type(self), name, _MISSING) for name in names}
        missing = [name for name, value in fields.items() if value is _MISSING]
        if missing or len(given) != len(args) + len(kwargs) or not given.keys() <= fields.keys():
            found = ", ".join([*map(repr, args), *[f"{name}={value!r}" for name, value in kwargs.items()]])
            raise BadCall(f"{type(self).__name__} takes {', '.join(names) or 'nothing'}, got {found or 'nothing'}.")
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of(f"{type(self).__name__} values", name, "set", "make another one of other fields.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of(f"{type(self).__name__} values", name, "deleted", "make another one of other fields.")

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.__dict__ == other.__dict__)

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        inner = ", ".join([f"{name}={value!r}" for name, value in self.__dict__.items()])
        return f"{type(self).__qualname__}({inner})"


_MISSING = object()
