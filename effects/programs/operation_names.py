"""Look-up of the names in program texts: operations, and objects of loaded modules or of this package."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..base.lazy_module import late_module
from ..base.source_locations import is_ours
from ..core.operation import LATE_OPERATIONS, OPERATIONS, Operation
from .printer import resolve


def operation_called(name: str) -> type[Operation] | None:
    """The operation that texts call ``name``, or None; imports the module of a declared one."""
    if name not in OPERATIONS:
        module = LATE_OPERATIONS.get(name, name.partition(":")[0])
        if module in LATE_OPERATIONS.values():
            late_module(module)
    return OPERATIONS.get(name)


def every_operation() -> set[type[Operation]]:
    """All registered operations; imports the modules of those that are only declared."""
    for module in {*LATE_OPERATIONS.values()}:
        late_module(module)
    return {*OPERATIONS.values()}


def find_object(module: str, qualname: str) -> Any:
    """The object ``module:qualname``, or None. A module that is not loaded is imported only if of this package."""
    target = resolve(module, qualname)
    if target is None and is_ours(module):
        with suppress(ModuleNotFoundError):
            late_module(module)
            target = resolve(module, qualname)
    return target
