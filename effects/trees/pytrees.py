"""Functions on pytrees, with the names and rules of ``jax.tree`` and ``jax.tree_util``.

    map(f, t) == unflatten(structure(t), [f(x) for x in leaves(t)])

This module redefines ``map``, ``all`` and ``reduce``, and uses none of the builtins of these names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.errors import BadArgument, TreeMismatch, need_function
from .flatten import flatten, flatten_with_path, structure, unflatten
from .frozen_tree import Frozen, freeze, thaw
from .node_types import flatten_with_keys_of, on_register
from .paths import KeyPath, keystr
from .registration import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
)
from .structure import (
    assemble,
    flatten_up_to,
    is_leaf_structure,
    leaf_paths,
    mismatch,
    mismatches,
    need_structure,
    treedef_is_leaf,
)

if TYPE_CHECKING:
    from .cpp_pytrees import PyTreeDef

__all__ = [
    "Frozen", "KeyPath", "Partial", "Unspecified", "all",
    "all_leaves", "broadcast", "broadcast_prefix", "build_tree", "flatten", "flatten_one_level",
    "flatten_one_level_with_keys", "flatten_up_to", "flatten_with_path", "freeze", "is_leaf_structure", "is_tree_node",
    "keystr", "leaf_paths", "leaves", "leaves_with_path", "map", "map_with_path", "on_register", "prefix_errors",
    "reduce", "reduce_associative", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "static", "structure", "thaw",
    "transpose", "tree_all", "tree_broadcast", "tree_flatten", "tree_flatten_with_path", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce", "tree_reduce_associative",
    "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
    "unflatten",
]

T = TypeVar("T")
IsLeaf = Callable[[Any], bool]


class Unspecified:
    """The default of an argument for which None is a value."""

    def __repr__(self) -> str:
        return "<unspecified>"


_UNSPECIFIED = Unspecified()


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, in order."""
    return flatten(tree, is_leaf)[0]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """``f`` of every leaf and of the sub-trees of the other trees at its position.

        map(f, t, u) == unflatten(structure(t), [f(x, y) for x, y in zip(leaves(t), structure(t).flatten_up_to(u))])

    Raises: TreeMismatch: the first tree is not a prefix of another; names the key path and both sides.

    >>> tree_map(lambda x, y: (x, y), {"a": 1}, {"a": [2, 3]})
    {'a': (1, [2, 3])}
    """
    need_function("tree.map", f)
    leaves, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = [flatten_up_to(treedef, other, f"tree.map, argument {i}") for i, other in enumerate(rest, 2)]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *columns)])


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with its path of keys."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """``map`` for an ``f`` that takes the path first.

    >>> tree_map_with_path(lambda path, x: keystr(path) + str(x), {"a": (1, 2)})
    {'a': ("['a'][0]1", "['a'][1]2")}
    """
    need_function("tree.map_with_path", f)
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [flatten_up_to(treedef, other, f"tree.map_with_path, argument {i}") for i, other in enumerate(rest, 2)]
    rows = zip(pairs, *columns)
    return treedef.unflatten([f(path, x, *xs) for (path, x), *xs in rows])


def tree_reduce(
    function: Callable[[T, Any], T],
    tree: Any,
    initializer: T | Unspecified = _UNSPECIFIED,
    is_leaf: IsLeaf | None = None,
) -> T:
    """Fold the leaves from the left."""
    need_function("tree.reduce", function)
    leaves = tree_leaves(tree, is_leaf)
    if isinstance(initializer, Unspecified):
        if not leaves:
            raise BadArgument("tree.reduce: a tree without leaves needs an initializer.", hint="reduce(f, tree, 0).")
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[T, T], T],
    tree: Any,
    *,
    identity: T | Unspecified = _UNSPECIFIED,
    is_leaf: IsLeaf | None = None,
) -> T:
    """Fold the leaves as a balanced tree: ``operation`` must be associative, its depth is logarithmic."""

    def fold(xs: list[Any]) -> Any:
        half = len(xs) // 2
        return operation(fold(xs[:half]), fold(xs[half:])) if half else xs[0]

    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return fold(leaves)
    if isinstance(identity, Unspecified):
        raise BadArgument("tree.reduce_associative: a tree without leaves needs an identity.", hint="pass identity=...")
    return identity


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether every leaf is true."""
    return False not in [bool(leaf) for leaf in tree_leaves(tree, is_leaf)]


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Exchange two levels of structure: a tree of trees becomes the other tree of trees.

        transpose(inner, outer, transpose(outer, inner, t)) == t

    ``inner_treedef=None``: the structure of the first inner tree.

    >>> tree_transpose(structure([0, 0]), None, [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
    """
    need_structure("tree.transpose", outer_treedef)
    if inner_treedef is None:
        subtrees = flatten_up_to(outer_treedef, pytree_to_transpose, "tree.transpose")
        if not subtrees:
            raise TreeMismatch("tree.transpose: the outer structure must have a leaf to show the inner one; pass it.")
        inner_treedef = structure(subtrees[0])
    need_structure("tree.transpose", inner_treedef)
    expected = outer_treedef.compose(inner_treedef)
    leaves = flatten_up_to(expected, pytree_to_transpose, "tree.transpose")
    if not all_leaves(leaves):
        raise TreeMismatch(f"tree.transpose: the tree must be {expected}, got {structure(pytree_to_transpose)}.")
    width = inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[column::width]) for column in range(width)])


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None, *, what: str = "broadcast_prefix"
) -> list[Any]:
    """The leaves of the prefix, each repeated for every leaf of the full tree's sub-tree at its position.

    ``is_leaf`` applies to the prefix. ``what`` begins the error message.

    Raises: TreeMismatch: "vmap in_axes: at ['w'][1] the prefix is a tuple of 2 but the tree has a list of 3."

    >>> broadcast_prefix((0, 1), ([7, 8], 9))
    [0, 0, 1]
    """
    leaves, treedef = flatten(prefix_tree, is_leaf)
    result: list[Any] = []
    for leaf, subtree in zip(leaves, flatten_up_to(treedef, full_tree, what, prefix=True)):
        result += [leaf] * structure(subtree).num_leaves
    return result


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """``broadcast_prefix`` as a tree of the full tree's structure.

    >>> tree_broadcast((0, 1), ([7, 8], 9))
    ([0, 0], 1)
    """
    return structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf, what="tree.broadcast"))


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None, *, what: str = "prefix"
) -> list[TreeMismatch]:
    """An error, not raised, for every position at which ``prefix_tree`` is not a prefix of ``full_tree``."""
    positions = mismatches(structure(prefix_tree, is_leaf), full_tree)
    return [mismatch(what, *position, prefix=True) for position in positions]


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of this structure, with leaves from iterables that are nested like it.

    >>> build_tree(structure({"a": 0, "b": (0, 0)}), [1, [2, 3]])
    {'a': 1, 'b': (2, 3)}
    """
    return treedef.unflatten(_nested_leaves(treedef, xs))


def _nested_leaves(treedef: PyTreeDef, xs: Any) -> list[Any]:
    """The leaves of iterables that are nested like this structure."""
    if is_leaf_structure(treedef):
        return [xs]
    children, values = treedef.children(), list(xs)
    if len(children) != len(values):
        raise TreeMismatch(f"build_tree: {treedef} has {len(children)} children, got {len(values)}.")
    return [leaf for child, value in zip(children, values) for leaf in _nested_leaves(child, value)]


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Whether every element is a leaf; ``None`` is a node."""
    return False not in [(is_leaf is not None and is_leaf(x)) or not is_tree_node(type(x)) for x in iterable]


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees."""
    return assemble((tuple, None), treedefs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures one level down."""
    return treedef.children()


def is_tree_node(typ: type) -> bool:
    """Whether values of this type are nodes."""
    return flatten_with_keys_of(typ) is not None


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children and the static data of a node. Raises BadArgument: it is a leaf."""
    pairs, data = flatten_one_level_with_keys(tree)
    return tuple([child for _, child in pairs]), data


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """The children of a node, each with its key, and the static data. Raises BadArgument: it is a leaf."""
    flatten_with_keys = flatten_with_keys_of(type(tree))
    if flatten_with_keys is None:
        raise BadArgument(f"flatten_one_level: {type(tree).__qualname__} must be a registered node type, it is a leaf.")
    pairs, data = flatten_with_keys(tree)
    return tuple(pairs), data


map = tree_map
leaves = tree_leaves
reduce = tree_reduce
reduce_associative = tree_reduce_associative
all = tree_all
transpose = tree_transpose
broadcast = tree_broadcast
leaves_with_path = tree_leaves_with_path
map_with_path = tree_map_with_path
tree_flatten = flatten
tree_unflatten = unflatten
tree_structure = structure
tree_flatten_with_path = flatten_with_path
