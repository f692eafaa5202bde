"""What the names in the texts of programs mean: modules that are loaded hold it, or those of this package."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from .operations import OPERATIONS, Operation, operation
from .printing import resolve

_OURS = __name__.partition(".")[0]


class Declared(Operation):
    """Keeps its name free for an operation of this package whose module is not loaded yet."""

    __slots__ = ()


def declare(module: str, names: Iterable[str]) -> None:
    """Say which operations ``module`` will define, when it is loaded; one that it has defined stays what it is."""
    for name in names:
        if f"{module}:{name}" not in OPERATIONS:
            operation(type(name, (Declared,), {"__module__": module}))


def operation_called(name: str) -> type[Operation] | None:
    """The operation that is called so in a text, or None."""
    kind = OPERATIONS.get(name)
    if kind is not None and issubclass(kind, Declared):
        importlib.import_module(kind.__module__)
        kind = OPERATIONS[name]
    return kind


def every_operation() -> set[type[Operation]]:
    """All operations that there are. Loads the modules of this package that define some."""
    return {kind for name in list(OPERATIONS) if (kind := operation_called(name)) is not None}


def held(module: str, qualname: str) -> Any:
    """What a module holds under this name, or None. Only modules of this package are loaded to look there."""
    found = resolve(module, qualname)
    if found is None and module.partition(".")[0] == _OURS:
        with suppress(ModuleNotFoundError):
            importlib.import_module(module)
            found = resolve(module, qualname)
    return found
