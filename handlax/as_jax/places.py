"""Where a module of JAX's, or a name in one, stands in handlax: the rule, and the table of its exceptions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec

# Folders and modules of handlax that are no namespaces of JAX's.
OWN = frozenset((
    "ad", "as_jax", "effects", "interpreters", "late_operations", "launch", "library", "lowering", "operations",
    "probability", "testing",
))

# A module of JAX's -> the module whose names it hands on.
MODULES: Mapping[str, str] = {
    "jax": "handlax",
    "jax.interpreters": "handlax.extend",
    "jax.interpreters.ad": "handlax.extend.ad",
    "jax.interpreters.batching": "handlax.extend.batching",
    "jax.interpreters.mlir": "handlax.extend.mlir",
    "jax.interpreters.partial_eval": "handlax.extend.partial_eval",
    "jax.version": "handlax.as_jax.version",
}

# A module of JAX's -> its names that stand elsewhere, each as ``module:name``.
NAMES: Mapping[str, Mapping[str, str]] = {
    "jax": {
        "__version__": "handlax.as_jax.version:__version__",
        "__version_info__": "handlax.as_jax.version:__version_info__",
    },
}


def place_of(module: str) -> str | None:
    """The module whose names a module of JAX's hands on; None where handlax has none.

        place_of("jax.X") == "handlax.X"

    >>> place_of("jax.numpy.linalg"), place_of("jax.interpreters.ad"), place_of("jax.lowering")
    ('handlax.numpy.linalg', 'handlax.extend.ad', None)
    """
    _, _, rest = module.partition(".")
    if module not in MODULES and rest.partition(".")[0] in OWN:
        return None
    place = MODULES.get(module, f"handlax.{rest}")
    with suppress(ModuleNotFoundError):  # a package on the way is missing, or is no package
        return place if find_spec(place) or place in sys.modules else None  # or is made by its package, without a file
    return None
