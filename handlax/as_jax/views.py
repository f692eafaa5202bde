"""Views: modules under JAX's names that hand on the names of handlax's modules, and the finder that imports them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..effects.base.config import config
from ..effects.base.errors import JaxIsLoaded, MissingModule
from ..effects.base.lazy_module import late_module
from .places import ABSENT, NAMES, children_of, is_there, place_of


class View(ModuleType):
    """The module ``jax.X``: ``getattr(jax.X, name) is getattr(handlax.X, name)``, where that is no module.

    A module within it is a view again. A name that has been looked up, or assigned, is an attribute of the view, except
    a private one of the table: it is read and assigned where it stands, since who replaces one means what JAX does.
    """

    def __init__(self, name: str):
        place = place_of(name)
        base = late_module(place) if place else None
        super().__init__(name, base.__doc__ if base else f"Names of ``{name}`` that stand elsewhere in handlax.")
        self.__dict__.update(_base=base, __file__=getattr(base, "__file__", None) or __file__)

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if name in NAMES.get(module, ()):
            stands, attribute = _standing(module, name)
            value = getattr(stands, attribute)
        elif name in ABSENT.get(module, ()):
            value = _absent(f"{module}.{name}")
        elif hasattr(self._base, name) and _is_handed_on(name, getattr(self._base, name)):
            value = getattr(self._base, name)
        elif is_there(f"{module}.{name}"):
            return import_module(f"{module}.{name}")
        else:
            raise AttributeError(
                f"module {module!r} has no attribute {name!r}: handlax, behind as_jax, has no such name.",
                name=name, obj=self,
            )
        if not _is_private(module, name):
            self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if _is_private(self.__name__, name):
            setattr(*_standing(self.__name__, name), value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        named = NAMES.get(self.__name__, ())
        return sorted({*vars(self), *dir(self._base), *named, *children_of(self.__name__)} - {"_base"})


def _absent(name: str) -> type:
    """A class of which instances and subclasses can be made, and which handlax does not have: its use says so."""

    def __getattr__(self: object, attribute: str) -> Any:
        raise AttributeError(
            f"{type(self).__name__} has no attribute {attribute!r}: handlax, behind as_jax, has no {name}."
        )

    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        """Nothing is kept."""

    return type(name.rpartition(".")[2], (), {"__init__": __init__, "__getattr__": __getattr__})


def _is_private(module: str, name: str) -> bool:
    """Whether a name stands in the table among those of JAX's private modules."""
    return module.startswith("jax._src.") and name in NAMES.get(module, ())


def _standing(module: str, name: str) -> tuple[ModuleType, str]:
    """The module in which a name of the table stands, and its name there."""
    place, _, attribute = NAMES[module][name].partition(":")
    return late_module(place), attribute


def _is_handed_on(name: str, value: Any) -> bool:
    """Whether a name of a module of handlax's is one of its view: public, and no module."""
    return name == "__all__" or not (name.startswith("_") or isinstance(value, ModuleType))


class ViewFinder(MetaPathFinder, Loader):
    """Finds ``jax`` and all modules below it as views; a module that handlax does not have is missing."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name.partition(".")[0] != "jax":
            return None
        _refuse_genuine_jax(f"import {name}")
        if not is_there(name):
            # Without ``name``, by which ``from jax import x`` would replace this message by one of its own.
            raise MissingModule(f"import {name}: handlax, behind as_jax, has no module or name {name}.")
        return ModuleSpec(name, self, origin=f"handlax behind as_jax, {place_of(name)}", is_package=True)

    def create_module(self, spec: ModuleSpec) -> View:
        return View(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: a view has its names when they are looked up."""


def is_installed() -> bool:
    """Whether ``import jax`` leads to handlax in this process."""
    return any([isinstance(finder, ViewFinder) for finder in sys.meta_path])


def install() -> None:
    """From now on ``import jax`` leads to handlax, in this process; a second call changes nothing.

    Raises: JaxIsLoaded: JAX itself has been imported already.
    """
    _refuse_genuine_jax("as_jax.install")
    if is_installed():
        return
    if config.enable_x64 is None:
        config.update("enable_x64", False)
    sys.meta_path.insert(0, ViewFinder())


def _refuse_genuine_jax(where: str) -> None:
    """Raises JaxIsLoaded: the module ``jax`` of this process is no view."""
    loaded = sys.modules.get("jax")
    if loaded is not None and not isinstance(loaded, View):
        raise JaxIsLoaded(
            f"{where}: handlax cannot stand for jax, which is loaded from {getattr(loaded, '__file__', 'elsewhere')}.",
            hint="call install() before the first import of jax, or start with python -m handlax.as_jax.",
        )
