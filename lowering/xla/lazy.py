"""Modules imported at first use: importing handlax loads no part of jaxlib.

    if TYPE_CHECKING:
        from . import jaxlib_runtime as runtime
    else:
        runtime = LazyModule("handlax.lowering.xla.jaxlib_runtime")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class LazyModule:
    """The module called ``name``, imported at the first access to one of its names, which then becomes an attribute."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        self.__dict__[name] = value
        return value


if TYPE_CHECKING:
    from . import jaxlib_runtime as runtime
else:
    runtime = LazyModule("handlax.lowering.xla.jaxlib_runtime")
