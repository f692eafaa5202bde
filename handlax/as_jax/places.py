"""Where a module of JAX's, or a name in one, stands in handlax: the rule, and the table of its exceptions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec

# Folders and modules of handlax that are no namespaces of JAX's.
OWN = frozenset((
    "ad", "as_jax", "checkpoints", "effects", "interop", "interpreters", "late_operations", "launch", "library",
    "lowering", "operations", "probability", "testing",
))

# A module of JAX's -> the module whose names it hands on.
MODULES: Mapping[str, str] = {
    "jax": "handlax",
    "jax.experimental.hijax": "handlax.extend.hijax",
    "jax.interpreters.ad": "handlax.extend.ad",
    "jax.interpreters.batching": "handlax.extend.batching",
    "jax.interpreters.mlir": "handlax.extend.mlir",
    "jax.interpreters.partial_eval": "handlax.extend.partial_eval",
    "jax.interpreters.xla": "handlax.extend.xla",
    "jax.version": "handlax.as_jax.version",
    # Private modules, each with the libraries that import it.
    "jax._src.api_util": "handlax.api_util",  # e3nn-jax
    "jax._src.checkify": "handlax.experimental.checkify",  # flax
    "jax._src.core": "handlax.core",  # flax, numpyro
    "jax._src.dtypes": "handlax.dtypes",  # equinox, flax, tinygp
    "jax._src.flatten_util": "handlax.flatten_util",  # blackjax
    "jax._src.tree_util": "handlax.tree_util",  # orbax
    "jax._src.public_test_util": "handlax.test_util",  # tinygp
}

_VERSION = {name: f"handlax.as_jax.version:{name}" for name in ("__version__", "__version_info__")}
# A module of JAX's -> names of it that stand elsewhere, each as ``module:name``; a module may have these alone, or
# none: then a library imports it for what it uses elsewhere than here, and a name is missing where it is used.
NAMES: Mapping[str, Mapping[str, str]] = {
    "jax": _VERSION,
    "jax.version": _VERSION,
    # orbax: Python, meshes and programs on the machines of a cloud
    "jax.experimental.colocated_python": {},
    "jax.experimental.colocated_python.func": {},
    "jax.experimental.colocated_python.serialization": {"DeviceList": "jaxlib._jax:DeviceList"},
    "jax.experimental.hijax": {  # flax.nnx
        "AbstractValue": "handlax.core:AbstractValue", "ShapedArray": "handlax.core:ShapedArray",
    },
    "jax.experimental.pjit": {"pjit": "handlax:jit"},
    "jax.extend.ifrt_programs": {},
    "jax.extend.ifrt_programs.ifrt_programs": {},
    "jax.interpreters.pxla": {},
    "jax.extend.core": {"valid_jaxtype": "handlax.core:valid_jaxtype"},
    "jax.interpreters": {},
    "jax.lib": {"__version__": "jaxlib:__version__"},
    "jax._src": {},
    "jax._src.ad_util": {"stop_gradient_p": "handlax.lax:stop_gradient_p"},  # lineax
    "jax._src.compiler": {  # chex, which replaces it
        "backend_compile_and_load": "handlax.lowering.xla.executables:backend_compile_and_load",
    },
    "jax._src.dispatch": {"wait_for_tokens": "handlax:effects_barrier"},  # equinox
    "jax._src.interpreters": {},
    "jax._src.interpreters.ad": {"CustomVJPException": "handlax.errors:NotDifferentiable"},  # diffrax's tests
    "jax._src.state": {},
    "jax._src.state.types": {"AbstractRef": "handlax.interpreters.references.reference:RefType"},  # flax.nnx
    "jax._src.distributed": {"global_state": "handlax.distributed:global_state"},  # orbax
    "jax._src.tree_util": {"_registry": "handlax.effects.trees.node_types:_KEYED"},  # flax.nnx
    "jax._src.traceback_util": {  # equinox, flax, jaxtyping
        "api_boundary": "handlax.effects.base.tracebacks:boundary",
        "include_frame": "handlax.effects.base.source_locations:include_frame",
        "register_exclusion": "handlax.effects.base.source_locations:register_exclusion",
    },
    "jax._src.xla_bridge": {"_backends": "handlax.lowering.clients.platforms:_backends"},  # chex
}

# Classes that a library takes where it is imported, and that mean nothing here; what is made of them has no use.
ABSENT: Mapping[str, tuple[str, ...]] = {
    # flax.nnx, for variables that have types of their own
    "jax.experimental.hijax": ("AvalMutableQDD", "AvalQDD", "MutableHiType", "aval_method", "aval_property"),
}


def place_of(module: str) -> str | None:
    """The module whose names a module of JAX's hands on; None where handlax has none.

        place_of("jax.X") == "handlax.X"

    >>> place_of("jax.numpy.linalg"), place_of("jax.version"), place_of("jax.lowering")
    ('handlax.numpy.linalg', 'handlax.as_jax.version', None)
    """
    _, _, rest = module.partition(".")
    if module not in MODULES and rest.partition(".")[0] in OWN:
        return None
    place = MODULES.get(module, f"handlax.{rest}")
    with suppress(ModuleNotFoundError):  # a package on the way is missing, or is no package
        return place if find_spec(place) or place in sys.modules else None  # or is made by its package, without a file
    return None


def is_there(module: str) -> bool:
    """Whether a module of JAX's has names here.

    >>> is_there("jax.numpy"), is_there("jax._src.dispatch"), is_there("jax._src.numpy")
    (True, True, False)
    """
    return module in NAMES or place_of(module) is not None


def children_of(module: str) -> list[str]:
    """The names within a module of JAX's of the modules in the tables.

    >>> {"core", "dispatch"} <= {*children_of("jax._src")}
    True
    """
    inner = [m.removeprefix(f"{module}.") for m in (*MODULES, *NAMES) if m.startswith(f"{module}.")]
    return sorted({name for name in inner if "." not in name and is_there(f"{module}.{name}")})
