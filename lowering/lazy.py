"""Modules loaded when first used: importing handlax loads no part of jaxlib."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class _Lazy:
    """Stands for a module of this package; its names are kept here once they have been asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name, __package__), name)
        self.__dict__[name] = value
        return value


if TYPE_CHECKING:
    from . import cache as cache
    from . import runtime as runtime
    from . import stages as stages
else:
    runtime = _Lazy(".runtime")
    cache = _Lazy(".cache")
    stages = _Lazy(".stages")
