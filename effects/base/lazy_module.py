"""Modules imported at first use, so that ``import handlax`` loads what every program needs, and no more.

    if TYPE_CHECKING:
        from . import parser
    else:
        parser = LazyModule("handlax.effects.programs.parser")
"""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """The module called ``name``, imported at the first access to one of its names, which then becomes an attribute."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        self.__dict__[name] = value
        return value
