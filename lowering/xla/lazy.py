"""``runtime``, all calls to jaxlib's runtime of this folder: importing handlax loads no part of jaxlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...effects.base.lazy_module import LazyModule

if TYPE_CHECKING:
    from . import jaxlib_runtime as runtime
else:
    runtime = LazyModule("handlax.lowering.xla.jaxlib_runtime")
