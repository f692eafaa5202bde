"""``flatten``, ``unflatten`` and ``flatten_with_path``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..base.errors import TreeMismatch
from ..base.immutables import ImmutableObject
from .paths import KeyPath
from .structure import cpp_pytrees, need_structure

if TYPE_CHECKING:
    from .cpp_pytrees import PyTreeDef


class StoredTree(ImmutableObject):
    """A node type whose values store their leaves and structure, so that flattening one alone visits no node."""

    __slots__ = ("leaves", "treedef")
    leaves: tuple[Any, ...]
    treedef: PyTreeDef


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, in order, and its structure.

        unflatten(treedef, leaves) == tree

    Where ``is_leaf(x)`` is true, ``x`` is a leaf; it is called with every node and leaf, from the root down.

    >>> flatten({"b": (1, None), "a": 2})
    ([2, 1], PyTreeDef({'a': *, 'b': (*, None)}))
    """
    if is_leaf is None and isinstance(tree, StoredTree):
        return list(tree.leaves), tree.treedef
    return cpp_pytrees.checked_flatten(tree, is_leaf)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves.

    Raises: BadArgument: the first argument is no structure. TreeMismatch: these are not as many as its leaves.
    """
    try:
        count = treedef.num_leaves
    except AttributeError:
        need_structure("tree.unflatten", treedef)
        raise
    values = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
    if len(values) != count:
        raise TreeMismatch(f"unflatten: {treedef} has {count} leaves, got {len(values)}.")
    return treedef.unflatten(values)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a tree."""
    return flatten(tree, is_leaf)[1]


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """``flatten`` with the path of keys beside each leaf.

    >>> flatten_with_path({"w": [1]})[0]
    [((DictKey(key='w'), SequenceKey(idx=0)), 1)]
    """
    return cpp_pytrees.checked_flatten_with_path(
        tree, is_leaf if is_leaf is None or is_leaf_takes_path else lambda _, x: is_leaf(x)
    )
