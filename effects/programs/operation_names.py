"""Look-up of the names in program texts: operations, and objects of loaded modules or of this package."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from ..base.lazy_module import late_module
from ..core.operation import OPERATIONS, Operation, register_operation_name, snake_case
from .printer import resolve

_OURS = __name__.partition(".")[0]


class Declared(Operation):
    """Registered for an operation of this package whose module is not imported yet."""

    __slots__ = ()


def declare(module: str, names: Iterable[str]) -> None:
    """Register the names of operations that ``module`` defines when imported; defined ones are left alone."""
    for name in names:
        if f"{module}:{name}" not in OPERATIONS:
            namespace = {"__slots__": (), "__module__": module, "name": snake_case(name)}
            register_operation_name(type(name, (Declared,), namespace))


def operation_called(name: str) -> type[Operation] | None:
    """The operation that texts call ``name``, or None; imports the module of a declared one."""
    kind = OPERATIONS.get(name)
    if kind is not None and issubclass(kind, Declared):
        late_module(kind.__module__)
        kind = OPERATIONS[name]
    return kind


def every_operation() -> set[type[Operation]]:
    """All registered operations; imports the modules of those that are only declared."""
    return {kind for name in list(OPERATIONS) if (kind := operation_called(name)) is not None}


def is_ours(module: str) -> bool:
    """Whether a module is one of this package."""
    return module.partition(".")[0] == _OURS


def find_object(module: str, qualname: str) -> Any:
    """The object ``module:qualname``, or None. A module that is not loaded is imported only if of this package."""
    found = resolve(module, qualname)
    if found is None and is_ours(module):
        with suppress(ModuleNotFoundError):
            late_module(module)
            found = resolve(module, qualname)
    return found
