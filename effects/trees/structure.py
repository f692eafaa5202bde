"""Functions of the structures of trees: their nodes, what they are made of, and where one is a prefix of a tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..base.errors import BadArgument, TreeMismatch, shortened
from ..base.lazy_module import LazyModule
from ..base.value_identity import ByData, same_data
from .node_types import flatten_with_keys_of, is_registered
from .paths import KeyPath, keystr

if TYPE_CHECKING:
    from . import cpp_pytrees
    from .cpp_pytrees import PyTreeDef
else:
    cpp_pytrees = LazyModule("handlax.effects.trees.cpp_pytrees")


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether this is the structure of a leaf."""
    return treedef.num_nodes == treedef.num_leaves  # a node counts in the former alone


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

    Raises: TreeMismatch: the type is not a node.
    """
    if node is not None:
        cls, data = node
        if flatten_with_keys_of(cls) is None:
            raise TreeMismatch(f"structure: {cls.__qualname__} must be registered as a node, it is not.")
        if data is not None and is_registered(cls):
            node = cls, ByData(data)
    return cpp_pytrees.assemble(cpp_pytrees.TREES, node, list(children))


def flatten_up_to(treedef: PyTreeDef, tree: Any, what: str) -> list[Any]:
    """The sub-trees of ``tree`` at the positions of the structure's leaves. ``what`` begins the error message.

    Raises: TreeMismatch: the structure is not a prefix of ``tree``; names the key path and both sides.
    """
    try:
        return treedef.flatten_up_to(tree)
    except ValueError:
        for position in mismatches(treedef, tree):
            raise mismatch(what, *position) from None
        raise


def path_text(path: KeyPath) -> str:
    """A path for messages."""
    return keystr(path) or "the root"


def mismatches(treedef: PyTreeDef, x: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str, str]]:
    """Every position where the structure is not a prefix of ``x``: the path, and a description of both sides."""
    node = node_of(treedef)
    if node is None:
        return
    cls, data = node
    children = treedef.children()
    pairs: Sequence[tuple[Any, Any]] = ()
    agrees = type(x) is cls
    if agrees:
        pairs, other = _parts(x)
        agrees = len(pairs) == len(children) and (data == list(other) if cls is dict else same_data(data, other))
    if not agrees:
        both = cls is type(x) is dict
        yield path, _describe(cls, data, len(children), set(x) if both else ()), describe(x, data if both else ())
        return
    for child, (key, value) in zip(children, pairs):
        yield from mismatches(child, value, path if key is None else (*path, key))


def mismatch(what: str, path: KeyPath, wanted: str, got: str) -> TreeMismatch:
    """The error for a structure that is not a prefix of a tree at this position."""
    hint = "None is an empty node here; is_leaf=lambda x: x is None makes it a leaf." if wanted == "None" else None
    return TreeMismatch(f"{what}: at {path_text(path)} the prefix is {wanted} but the tree has {got}.", hint=hint)


def need_structure(where: str, x: object) -> None:
    """Raises BadArgument if ``x`` is not a structure."""
    if not isinstance(x, cpp_pytrees.PyTreeDef):
        raise BadArgument(f"{where}: a structure is needed, got {x!r}.", hint="hx.tree.structure(tree).")


def _parts(x: Any) -> Any:
    """The pairs of key and child of a node, and its static data; None for a leaf."""
    flatten_with_keys = flatten_with_keys_of(type(x))
    return None if flatten_with_keys is None else flatten_with_keys(x)


def describe(x: Any, beside: Collection[Any] = ()) -> str:
    """One level of a tree, for messages; of a large dict the keys that are not in ``beside``, the keys of another."""
    parts = _parts(x)
    if parts is None:
        return f"a leaf of type {type(x).__name__}"
    return _describe(type(x), parts[1], len(parts[0]), set(beside))


def _describe(cls: type, data: Any, size: int, beside: Collection[Any]) -> str:
    if cls is NoneType:
        return "None"
    if cls is dict and size > 20:
        own = [key for key in data if key not in beside] if beside else []
        return f"a dict of {size} keys" + (f", among them {shortened(str(own), 400)}" if own else "")
    if cls is dict:
        return f"a dict with keys {shortened(str(list(data)), 400)}"
    return f"a {cls.__name__} of {size}" + ("" if data is None else f" with static data {shortened(repr(data), 400)}")
