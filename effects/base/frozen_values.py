"""``Value``, a base of immutable records. Unlike ``dataclass(frozen=True)`` it compiles no code per class on import."""

from __future__ import annotations

import dataclasses
from typing import Any, dataclass_transform

from .errors import BadCall
from .immutables import ImmutableObject


@dataclass_transform(frozen_default=True)
class Value(ImmutableObject):
    """An immutable record whose fields are the annotations of its class.

    Two are equal if they have the same class and equal fields. ``dataclasses.fields`` and ``replace`` work.
    """

    __match_args__: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls._guard = (f"{cls.__name__} values", "dataclasses.replace(value, field=...) makes a new one.")
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = self.__match_args__
        if len(args) == len(names) and not kwargs:
            self.__dict__.update(zip(names, args))
            return
        arguments = dict(zip(names, args), **kwargs)
        fields = {name: arguments[name] if name in arguments else getattr(type(self), name, _MISSING) for name in names}
        missing = [name for name, value in fields.items() if value is _MISSING]
        if missing or len(arguments) != len(args) + len(kwargs) or not arguments.keys() <= fields.keys():
            shown = ", ".join([*map(repr, args), *[f"{name}={value!r}" for name, value in kwargs.items()]])
            raise BadCall(f"{type(self).__name__} takes {', '.join(names) or 'no arguments'}, got {shown or 'none'}.")
        self.__dict__.update(fields)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.__dict__ == other.__dict__)

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        inner = ", ".join([f"{name}={value!r}" for name, value in self.__dict__.items()])
        return f"{type(self).__qualname__}({inner})"


_MISSING = object()
