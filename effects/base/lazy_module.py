"""Modules imported at first use, so that ``import handlax`` loads what every program needs, and no more.

    if TYPE_CHECKING:
        from . import parser
    else:
        parser = LazyModule("handlax.effects.programs.parser")
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import resolve_name
from itertools import accumulate
from linecache import getlines
from types import ModuleType
from typing import Any

from .errors import MissingModule


def late_module(name: str) -> Any:
    """The module called ``name``, imported after its packages: ``a``, then ``a.b``, then ``a.b.c``.

    An import of ``a.b.c`` alone would lock it, and then its package, which itself may be locked by a thread that
    imports ``a.b`` and is to import ``a.b.c``: Python ends one of two such threads with an error.
    """
    for path in accumulate(name.split("."), "{}.{}".format):
        module = import_module(path)
    return module


def optional_module(name: str, extra: str) -> Any:
    """The module of a package that the extra brings. Raises MissingModule: it is not installed."""
    try:
        return late_module(name)
    except ModuleNotFoundError:
        message = f"the package {name} must be installed, it is not."
        raise MissingModule(message, hint=f"pip install 'handlax[{extra}]'.") from None


def late_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, of which some names are imported when first asked for.

        if TYPE_CHECKING:
            from .linear.solvers import solve as solve
        else:
            __getattr__, __dir__, __all__ = late_names(__name__)

    These are the names that the source imports under ``if TYPE_CHECKING``, for type checkers and for this function.
    ``__all__`` has them and every public name that the package has so far, except modules.
    """
    this = sys.modules[package]
    places = _seen_by_type_checkers(this)

    def __getattr__(name: str) -> Any:
        """The object exported under ``name``; imported on first access and stored in the package."""
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=this)
        value = late_module(f"{package}.{name}") if place == package else getattr(late_module(place), name)
        setattr(this, name, value)
        return value

    early = [name for name, value in vars(this).items() if name[0] != "_" and not isinstance(value, ModuleType)]
    return __getattr__, lambda: sorted({*vars(this), *places}), sorted({*early, *places})


def _seen_by_type_checkers(package: ModuleType) -> dict[str, str]:
    """The names that a package imports under ``if TYPE_CHECKING``, each with the module that it is imported from.

    ``linecache`` has the source whatever loaded the package: an archive, or a hook that rewrites what it imports, as
    pytest's does, which cannot tell the source itself.
    """
    source = "".join(getlines(str(package.__file__), vars(package)))
    places: dict[str, str] = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING"):
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    place = resolve_name(f"{'.' * node.level}{node.module or ''}", package.__name__)
                    places |= {alias.name: place for alias in node.names}
    return places


def primitives_of(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has the primitives of the package too: ``lax.add_p``."""
    primitives = LazyModule("handlax.effects.programs.primitives")

    def __getattr__(name: str) -> Any:
        """``add_p``: the primitive of this name."""
        if name.endswith("_p"):
            return getattr(primitives, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])

    return __getattr__


class LazyModule:
    """The module called ``name``, imported at the first access to one of its names, which then becomes an attribute."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what inspection asks of any object
            raise AttributeError(f"{self._name} is imported by its own names, not by {name!r}.", name=name, obj=self)
        value = getattr(late_module(self._name), name)
        self.__dict__[name] = value
        return value
