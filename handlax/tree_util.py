"""``handlax.tree_util``: functions on pytrees, node types and key paths under the names of ``jax.tree_util``.

A structure, ``PyTreeDef``, is jaxlib's: the nodes of a tree with ``*`` in place of each leaf, immutable and hashable.
Static data of nodes compare by type and value, so ``1``, ``1.0`` and ``True`` are three structures; the keys of a
``dict`` compare by ``==``.

>>> tree_structure({"a": 1, "b": (2, None)})
PyTreeDef({'a': *, 'b': (*, None)})
"""

from collections.abc import Hashable as _Hashable
from typing import TypeVar as _TypeVar

from .effects.trees.cpp_pytrees import TREES as _TREES
from .effects.trees.cpp_pytrees import PyTreeDef as PyTreeDef
from .effects.trees.path_keys import DictKey as DictKey
from .effects.trees.path_keys import FlattenedIndexKey as FlattenedIndexKey
from .effects.trees.path_keys import GetAttrKey as GetAttrKey
from .effects.trees.path_keys import SequenceKey as SequenceKey
from .effects.trees.pytrees import KeyPath as KeyPath
from .effects.trees.pytrees import Partial as Partial
from .effects.trees.pytrees import all_leaves as all_leaves
from .effects.trees.pytrees import build_tree as build_tree
from .effects.trees.pytrees import flatten_one_level as flatten_one_level
from .effects.trees.pytrees import flatten_one_level_with_keys as flatten_one_level_with_keys
from .effects.trees.pytrees import is_tree_node as is_tree_node
from .effects.trees.pytrees import keystr as keystr
from .effects.trees.pytrees import register_dataclass as register_dataclass
from .effects.trees.pytrees import register_pytree_node as register_pytree_node
from .effects.trees.pytrees import register_pytree_node_class as register_pytree_node_class
from .effects.trees.pytrees import register_pytree_with_keys as register_pytree_with_keys
from .effects.trees.pytrees import register_pytree_with_keys_class as register_pytree_with_keys_class
from .effects.trees.pytrees import register_static as register_static
from .effects.trees.pytrees import tree_all as tree_all
from .effects.trees.pytrees import tree_broadcast as tree_broadcast
from .effects.trees.pytrees import tree_flatten as tree_flatten
from .effects.trees.pytrees import tree_flatten_with_path as tree_flatten_with_path
from .effects.trees.pytrees import tree_leaves as tree_leaves
from .effects.trees.pytrees import tree_leaves_with_path as tree_leaves_with_path
from .effects.trees.pytrees import tree_map as tree_map
from .effects.trees.pytrees import tree_map_with_path as tree_map_with_path
from .effects.trees.pytrees import tree_reduce as tree_reduce
from .effects.trees.pytrees import tree_reduce_associative as tree_reduce_associative
from .effects.trees.pytrees import tree_structure as tree_structure
from .effects.trees.pytrees import tree_transpose as tree_transpose
from .effects.trees.pytrees import tree_unflatten as tree_unflatten
from .effects.trees.pytrees import treedef_children as treedef_children
from .effects.trees.pytrees import treedef_is_leaf as treedef_is_leaf
from .effects.trees.pytrees import treedef_tuple as treedef_tuple

default_registry = _TREES
"""The node types of pytrees, as jaxlib keeps them."""
KeyEntry = _TypeVar("KeyEntry", bound=_Hashable)
"""One step of a path: any of the keys above, or a node type's own."""
