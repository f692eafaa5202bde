"""Pytrees flattened in C++, under a registry of our own."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias

from ..clients.jaxlib_modules import _jax

CppTreeDef: TypeAlias = Any


def _registry() -> Any:
    trees = _jax.pytree.PyTreeRegistry(
        enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
    )
    # A CppTreeDef is pickled with the name of its registry.
    trees.__name__, trees.__module__ = "TREES", __name__
    trees.register_node(
        OrderedDict,
        lambda tree: (tuple(tree.values()), tuple(tree)),
        lambda keys, leaves: OrderedDict(zip(keys, leaves, strict=True)),
    )
    trees.register_node(
        defaultdict,
        lambda tree: (tuple(tree.values()), (tree.default_factory, tuple(tree))),
        lambda aux, leaves: defaultdict(aux[0], zip(aux[1], leaves, strict=True)),
    )
    return trees


TREES = _registry()
"""The package's registry of nodes: None, tuples, named tuples, lists, dicts, ordered dicts and default dicts."""

flatten: Callable[..., tuple[list[Any], CppTreeDef]] = TREES.flatten
"""``leaves, treedef = flatten(tree, is_leaf=None)``, and ``treedef.unflatten(leaves) == tree``."""
flatten_with_path: Callable[..., tuple[list[tuple[tuple[Any, ...], Any]], CppTreeDef]] = TREES.flatten_with_path
register_node: Callable[..., None] = TREES.register_node
"""``register_node(cls, to_iter, from_iter, to_iter_with_keys=None)``: ``to_iter(x) = (children, aux)``, and
``from_iter(aux, children)`` rebuilds the node."""
register_dataclass: Callable[..., None] = TREES.register_dataclass_node
"""``register_dataclass(cls, data_fields, meta_fields)``."""
