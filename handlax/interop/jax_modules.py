"""JAX itself, imported when a function of ``handlax.interop.jax`` is first called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from ..as_jax import is_installed
from ..effects.base.caches import per_process
from ..effects.base.errors import MissingModule
from ..effects.base.lazy_module import LazyModule, late_module
from ..effects.base.source_locations import register_exclusion

jax: Any = LazyModule("jax")
lax: Any = LazyModule("jax.lax")
_HAVE_PRIMITIVES = ("jax.lax.linalg", "jax.lax", "jax.extend.core.primitives")


def need_jax(where: str) -> None:
    """Raises MissingModule: JAX is not installed, or ``handlax.as_jax`` stands for it in this process."""
    if is_installed():
        raise MissingModule(
            f"{where}: JAX itself is needed, and in this process handlax stands for it.",
            hint="behind as_jax a function written for JAX is one of handlax already.",
        )
    if "jax" not in sys.modules and find_spec("jax") is None:
        raise MissingModule(f"{where}: JAX itself is needed, and it is not installed.", hint="pip install jax.")
    _exclude_frames()


@per_process
def _exclude_frames() -> None:
    """From now on a line of JAX's source is no user's: messages and programs name the line that called it."""
    register_exclusion(os.path.join(os.path.dirname(late_module("jax").__file__), ""))


@per_process
def jax_primitives() -> Mapping[str, Any]:
    """JAX's primitives by their names."""
    return {p.name: p for p in _primitives_in([late_module(name) for name in _HAVE_PRIMITIVES])}


_OF_JAX: set[Any] = set()
"""The primitives that modules of JAX's have, as far as they were looked for."""


def is_of_jax(primitive: Any) -> bool:
    """Whether a primitive is JAX's own. Any library may make another one of the same name, which means something else.

    JAX's own are those that one of its modules has, and that module is loaded.
    """
    if primitive not in _OF_JAX:
        loaded = [module for name, module in sys.modules.copy().items() if name.partition(".")[0] == "jax"]
        _OF_JAX.update(_primitives_in(loaded))
    return primitive in _OF_JAX


def _primitives_in(modules: Iterable[Any]) -> list[Any]:
    kind = late_module("jax.extend.core").Primitive
    return [value for module in modules for value in [*vars(module).values()] if isinstance(value, kind)]
