"""Keeps jaxlib's C++ from importing jax where it has to invent the type of a buffer."""

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...effects.base.caches import per_process, process_lock
from ...effects.types.array_type import Shape
from ..clients.genuine_jax import jax_is_loaded
from ..clients.jaxlib_modules import _jax, xc
from .buffer_types import Aval


def _shaped_array(shape: Shape, dtype: Any, weak_type: bool = False, *rest: Any, **more: Any) -> Any:
    """What jaxlib caches as ``jax.core.ShapedArray``; it forwards to jax's own class once jax is imported."""
    core = sys.modules.get("jax._src.core") if jax_is_loaded() else None
    real = getattr(core, "ShapedArray", None)
    return Aval(shape, dtype) if real is None else real(shape, dtype, weak_type, *rest, **more)


_import_lock = process_lock()
_IMPORTED = "jax._src.sharding_impls"


@per_process
def _plant_shaped_array() -> None:
    """Make jaxlib's one-time look-up of ``jax.core.ShapedArray`` find ``_shaped_array``.

    jaxlib would cache a failed look-up as None until the process ends, which breaks a jax that is imported later.
    """
    package, core = types.ModuleType("jax"), types.ModuleType("jax.core")
    core.ShapedArray = _shaped_array  # type: ignore[attr-defined]
    package.core = core  # type: ignore[attr-defined]
    package.__path__ = []
    # jaxlib caches the aval of this buffer, so its shape is one that no other array is likely to have.
    capsule = np.zeros((1,) * 7, np.int8).__dlpack__()
    views = {name: sys.modules.get(name) for name in ("jax", "jax.core")}  # of handlax.as_jax
    sys.modules.update({"jax": package, "jax.core": core})
    try:
        _jax.dlpack_managed_tensor_to_buffer(capsule, xc.make_cpu_client(num_devices=1).devices()[0], None)
    finally:
        for name, view in views.items():
            if view is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = view


@contextmanager
def without_jax() -> Iterator[None]:
    """Keep calls of jaxlib that invent the type of a buffer from importing jax, unless it is imported already."""
    with _import_lock:
        if jax_is_loaded() or _IMPORTED in sys.modules:  # the latter within such a call, in a finalizer
            yield
            return
        # jaxlib imports this module too, at every call; None in sys.modules makes the import fail at once.
        sys.modules[_IMPORTED] = None  # type: ignore[assignment]
        try:
            _plant_shaped_array()
            yield
        finally:
            sys.modules.pop(_IMPORTED, None)
