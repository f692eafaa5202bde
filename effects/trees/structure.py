"""Functions of the structures of trees: their nodes, what they are made of, and where one is a prefix of a tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..base.errors import BadArgument, TreeMismatch, shortened
from ..base.lazy_module import LazyModule
from ..base.value_identity import ByData, same_data
from .node_types import fields_of, flatten_with_keys_of, has_static_data
from .paths import KeyPath, keystr, path_keys, path_text

if TYPE_CHECKING:
    from . import cpp_pytrees
    from .cpp_pytrees import PyTreeDef
else:
    cpp_pytrees = LazyModule("handlax.effects.trees.cpp_pytrees")


def is_leaf_structure(treedef: PyTreeDef) -> bool:
    """Whether this is the structure of a leaf."""
    return treedef.num_nodes == treedef.num_leaves  # a node counts in the former alone


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether this is the structure of a leaf, or of a node without children, such as ``None`` and ``()``."""
    return treedef.num_nodes == 1


def node_of(treedef: PyTreeDef) -> tuple[type, Any] | None:
    """The node's type and static data; ``None`` for a leaf."""
    node = treedef.node_data()
    return (node[0], node[1].value) if node is not None and type(node[1]) is ByData else node


def node_types(treedef: PyTreeDef) -> set[type]:
    """The types of all nodes."""
    types, rest = set(), [treedef]
    while rest:
        part = rest.pop()
        if (node := part.node_data()) is not None:
            types.add(node[0])
            if part.num_nodes > part.num_leaves + 1:  # not all children are leaves
                rest += part.children()
    return types


def assemble(node: tuple[type, Any] | None, children: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a node with these children; ``None`` stands for a leaf.

        assemble(node_of(t), t.children()) == t

    Raises: TreeMismatch: the type is not a node, or has another number of children. BadArgument: one is no structure.
    """
    children = list(children)
    for child in children:
        need_structure("structure", child)
    if node is not None:
        cls, data = node
        if flatten_with_keys_of(cls) is None:
            raise TreeMismatch(f"structure: {cls.__qualname__} must be registered as a node, it is not.")
        if data is not None and has_static_data(cls):
            node = cls, ByData(data)
        size = _size_of(cls, data)
        if size is not None and size != len(children):
            raise TreeMismatch(f"structure: {_describe(cls, data, size, ())} has {size} children, got {len(children)}.")
    return cpp_pytrees.assemble(cpp_pytrees.TREES, node, children)


def _size_of(cls: type, data: Any) -> int | None:
    """How many children a node has, where its type or static data say."""
    if cls is NoneType:
        return 0
    if cls is dict:
        return len(data)
    return len(cls._fields) if issubclass(cls, tuple) and hasattr(cls, "_fields") else None


def flatten_up_to(treedef: PyTreeDef, tree: Any, what: str, prefix: bool = False) -> list[Any]:
    """The sub-trees of ``tree`` at the positions of the structure's leaves. ``what`` begins the error message.

    ``prefix``: the structure is that of an argument called a prefix, such as ``in_axes``, as the message then says.

    Raises: TreeMismatch: the structure is not a prefix of ``tree``; names the key path and both sides.
    """
    try:
        return treedef.flatten_up_to(tree)
    except ValueError:
        for position in mismatches(treedef, tree):
            raise mismatch(what, *position, prefix=prefix) from None
        raise


Level = tuple[type, Any, Sequence[Any], Sequence[Any]] | None
"""A node's type, its static data, its children's keys and its children; None for a leaf."""


def level(x: Any) -> Level:
    """The root of a tree."""
    flatten_with_keys = flatten_with_keys_of(type(x))
    if flatten_with_keys is None:
        return None
    pairs, data = flatten_with_keys(x)
    return type(x), data, [key for key, _ in pairs], [child for _, child in pairs]


def level_of_structure(treedef: PyTreeDef) -> Level:
    """The root of a structure."""
    node = node_of(treedef)
    return None if node is None else (*node, _keys_of(treedef), treedef.children())


def _keys_of(treedef: PyTreeDef) -> list[Any]:
    """The keys of the children, as ``flatten_with_path`` gives them for a tree of this structure.

    Keys are given by a node, and so one is built around numbers. A class that refuses these has indices.
    """
    node, children = treedef.node_data(), treedef.children()
    cls: type = node[0]  # type: ignore[index]
    if fields := fields_of(cls):
        return [path_keys.GetAttrKey(name) for name in fields]
    try:
        leaves = [cpp_pytrees.checked_flatten(0)[1]] * len(children)
        built = cpp_pytrees.assemble(cpp_pytrees.TREES, node, leaves).unflatten(range(len(children)))
        return [key for key, _ in flatten_with_keys_of(cls)(built)[0]]  # type: ignore[misc]
    except Exception:  # of the class's own
        return [path_keys.FlattenedIndexKey(i) for i in range(len(children))]


def leaf_paths(treedef: PyTreeDef, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of each leaf of a structure, without a tree."""
    root = level_of_structure(treedef)
    if root is None:
        yield path
        return
    for key, child in zip(*root[2:]):
        yield from leaf_paths(child, path if key is None else (*path, key))


def mismatches(
    treedef: PyTreeDef, x: Any, path: KeyPath = (), level: Callable[[Any], Level] = level
) -> Iterator[tuple[KeyPath, str, str]]:
    """Every position where the structure is not a prefix of ``x``: the path, and a description of both sides.

    ``x`` is a tree, or with ``level_of_structure`` a structure.
    """
    node = node_of(treedef)
    if node is None:
        return
    cls, data = node
    children, other = treedef.children(), level(x)
    agrees = other is not None and other[0] is cls and len(other[3]) == len(children)
    if agrees and (data == list(other[1]) if cls is dict else same_data(data, other[1])):  # type: ignore[index]
        for child, key, value in zip(children, *other[2:]):  # type: ignore[index]
            yield from mismatches(child, value, path if key is None else (*path, key), level)
        return
    both = other is not None and cls is other[0] is dict
    wanted = _describe(cls, data, len(children), set(other[1]) if both else ())  # type: ignore[index]
    found = "a leaf" if isinstance(x, cpp_pytrees.PyTreeDef) else f"a leaf of type {type(x).__name__}"
    if other is not None:
        found = _describe(other[0], other[1], len(other[3]), set(data) if both else ())
    yield path, wanted, found


def difference(one: PyTreeDef, other: PyTreeDef, below: int = 0) -> tuple[str, str, str]:
    """The first difference of two unequal structures: descriptions of both sub-trees, and their path, `` at ['key']``.

    The path has not its first ``below`` keys; it is empty at the root.
    """
    for path, first, second in mismatches(one, other, level=level_of_structure):
        return first, second, at(path[below:])
    path, second, first = next(mismatches(other, one, level=level_of_structure))
    return first, second, at(path[below:])


def at(path: KeyPath) -> str:
    """A path for messages, `` at ['key']``; empty for the root."""
    return f" at {keystr(path)}" if path else ""


def mismatch(what: str, path: KeyPath, wanted: str, got: str, *, prefix: bool) -> TreeMismatch:
    """The error for a structure that is not a prefix of a tree at this position, and may be called one."""
    if not prefix:
        return TreeMismatch(f"{what}: at {path_text(path)} there must be {wanted}, got {got}.")
    hint = "None is an empty node here; is_leaf=lambda x: x is None makes it a leaf." if wanted == "None" else None
    return TreeMismatch(f"{what}: at {path_text(path)} the prefix is {wanted} but the tree has {got}.", hint=hint)


def need_structure(where: str, x: object) -> None:
    """Raises BadArgument if ``x`` is not a structure."""
    if not isinstance(x, cpp_pytrees.PyTreeDef):
        raise BadArgument(f"{where}: a structure is needed, got {x!r}.", hint="hx.tree.structure(tree).")


def describe(x: Any) -> str:
    """One level of a tree, for messages."""
    root = level(x)
    return f"a leaf of type {type(x).__name__}" if root is None else _describe(root[0], root[1], len(root[3]), ())


def _describe(cls: type, data: Any, size: int, beside: Collection[Any]) -> str:
    if cls is NoneType:
        return "None"
    if cls is dict and size > 20:
        own = [key for key in data if key not in beside] if beside else []
        return f"a dict of {size} keys" + (f", among them {shortened(str(own), 400)}" if own else "")
    if cls is dict:
        return f"a dict with keys {shortened(str(list(data)), 400)}"
    return f"a {cls.__name__} of {size}" + ("" if data is None else f" with static data {shortened(repr(data), 400)}")
