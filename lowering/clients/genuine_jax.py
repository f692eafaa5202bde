"""Whether JAX itself is in the process: ``handlax.as_jax`` puts modules of handlax's under the same name."""

from __future__ import annotations

import sys

from ...effects.base.source_locations import is_internal


def jax_is_loaded() -> bool:
    """Whether the module ``jax`` is loaded and is no view of ``handlax``."""
    loaded = sys.modules.get("jax")
    return loaded is not None and not is_internal(getattr(loaded, "__file__", None) or "")
