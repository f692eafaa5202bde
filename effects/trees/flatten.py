"""``flatten``, ``unflatten`` and ``flatten_with_path``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..base.errors import BadArgument, TreeMismatch
from ..base.immutables import ImmutableObject
from .node_types import Unsortable, flatten_with_keys_of
from .paths import KeyPath
from .structure import cpp_pytrees, need_structure, path_text

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
    try:
        return cpp_pytrees.checked_flatten(tree, is_leaf)
    except SystemError:  # of a RecursionError
        raise _too_deep() from None
    except ValueError:
        _explain(tree, (), None if is_leaf is None else lambda _, x: is_leaf(x))
        raise


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
    ask = is_leaf if is_leaf is None or is_leaf_takes_path else lambda _, x: is_leaf(x)
    try:
        return cpp_pytrees.checked_flatten_with_path(tree, ask)
    except SystemError:
        raise _too_deep() from None
    except ValueError:
        _explain(tree, (), ask)
        raise


def _too_deep() -> BadArgument:
    return BadArgument("flatten: the tree is nested too deeply, or contains itself.")


def _explain(x: Any, path: KeyPath, is_leaf: Callable[[KeyPath, Any], bool] | None) -> None:
    """Raises BadArgument where the keys of a dict cannot be sorted, with its path, or ``is_leaf`` gives no bool."""
    answer = None if is_leaf is None else is_leaf(path, x)
    if answer is not None and not isinstance(answer, bool):
        raise BadArgument(f"flatten: is_leaf must return a bool, got {answer!r}.")
    flatten_with_keys = flatten_with_keys_of(type(x))
    if answer or flatten_with_keys is None:
        return
    try:
        pairs, _ = flatten_with_keys(x)
    except Unsortable as error:
        raise BadArgument(f"{error.what[:-1]} at {path_text(path)}.", hint=error.hint) from None
    for key, value in pairs:
        _explain(value, path if key is None else (*path, key), is_leaf)
