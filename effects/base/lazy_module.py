"""Modules imported at first use, so that ``import handlax`` loads what every program needs, and no more.

    if TYPE_CHECKING:
        from . import parser
    else:
        parser = LazyModule("handlax.effects.programs.parser")
"""

from __future__ import annotations

from importlib import import_module
from itertools import accumulate
from typing import Any


def late_module(name: str) -> Any:
    """The module called ``name``, imported after its packages: ``a``, then ``a.b``, then ``a.b.c``.

    An import of ``a.b.c`` alone would lock it, and then its package, which itself may be locked by a thread that
    imports ``a.b`` and is to import ``a.b.c``: Python ends one of two such threads with an error.
    """
    for path in accumulate(name.split("."), "{}.{}".format):
        module = import_module(path)
    return module


class LazyModule:
    """The module called ``name``, imported at the first access to one of its names, which then becomes an attribute."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(late_module(self._name), name)
        self.__dict__[name] = value
        return value
