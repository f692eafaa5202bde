"""Pytrees flattened in C++, by jaxlib, under a registry of our own; to be imported when the first function is traced.

Its structures are compared and hashed faster than a ``TreeDef``, and have neither paths nor messages.
"""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # XLA reads it when its library is loaded

from jaxlib import _jax

from ..base.value_identity import ByData
from .structure import Flattened, on_register

CppTreeDef: TypeAlias = Any

TREES = _jax.pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
TREES.__name__, TREES.__module__ = "TREES", __name__  # a CppTreeDef is pickled with the name of its registry

flatten: Callable[..., tuple[list[Any], CppTreeDef]] = TREES.flatten
"""``leaves, treedef = flatten(tree, is_leaf=None)``, and ``treedef.unflatten(leaves) == tree``."""


def _register(cls: type, parts: Callable[[Any], Flattened], make: Callable[[Any, Any], Any]) -> None:
    """Register a node type of the package's pytrees; static data compare as those of a ``TreeDef``."""

    def to_iter(x: Any) -> tuple[Any, Any]:
        children, data = parts(x)
        return children, None if data is None else ByData(data)

    TREES.register_node(cls, to_iter, lambda data, children: make(None if data is None else data.value, children))


on_register(_register)
