"""Slots of classes that guard themselves against assignment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """What assigns the slot ``name`` of ``cls``, past its guard: for constructors and caches, never for users."""
    return cls.__dict__[name].__set__
