"""Modules imported at first use, so that ``import handlax`` loads what every program needs, and no more.

    if TYPE_CHECKING:
        from . import parser
    else:
        parser = LazyModule("handlax.effects.programs.parser")
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
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


def late_names(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, of which these names are imported when they are first asked for.

    Args:
        places: name -> the module that defines it, as ``.linear.solvers``; ``.`` for a module of the package itself.
    """

    def __getattr__(name: str) -> Any:
        """What the name stands for; kept from then on."""
        place = places.get(name)
        if place is None:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        found = late_module(f"{package}.{name}") if place == "." else getattr(late_module(package + place), name)
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__, lambda: sorted({*vars(sys.modules[package]), *places})


class LazyModule:
    """The module called ``name``, imported at the first access to one of its names, which then becomes an attribute."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(late_module(self._name), name)
        self.__dict__[name] = value
        return value
