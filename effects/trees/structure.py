"""The registry of pytree nodes, and ``TreeDef``, the structure of a tree as a value.

    unflatten(structure(t), leaves(t)) == t

Whether a value is a leaf or a node is decided by its exact type, in one look-up. ``None`` is a node without children,
the keys of a ``dict`` are sorted, a named tuple is a node of its own type. Any other type is a leaf until it is
registered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import NoneType
from typing import Any

from ..base.errors import BadArgument, TreeMismatch
from ..base.immutables import ImmutableObject
from ..base.value_identity import same_data
from .paths import FlattenedIndexKey, GetAttrKey, KeyPath, keystr

Flattened = tuple[Sequence[Any], Any]  # one node: (children, static data)
FlattenedWithKeys = tuple[Sequence[tuple[Any, Any]], Any]  # one node: ((key, child) pairs, static data)


@dataclass(frozen=True, slots=True, eq=False)
class NodeKind:
    """The registry's entry for one node type: how to flatten and unflatten one level of it.

        unflatten(data, children) == x    where children, data = flatten(x)

    ``flatten_with_keys(x)`` has a key beside each child; the key ``None`` adds nothing to the path. ``from_leaves`` is
    set for node types that store their ``leaves`` and ``treedef``: it rebuilds a node without building its children.
    """

    cls: type
    label: str
    flatten: Callable[[Any], Flattened]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    flatten_with_keys: Callable[[Any], FlattenedWithKeys]
    from_leaves: Callable[[TreeDef, Iterator[Any]], Any] | None = None


class _Draft:
    """A ``TreeDef`` under construction. Setting its ``__class__`` makes it immutable, at less cost than ``setter``."""

    __slots__ = ("kind", "data", "_children", "num_leaves", "flat", "_hash")
    kind: NodeKind | None
    data: Any
    _children: tuple[TreeDef, ...]
    num_leaves: int
    flat: bool
    _hash: int


class TreeDef(_Draft, ImmutableObject):
    """The structure of a tree: its nodes, with ``*`` in place of each leaf. Immutable, hashable.

    Static data compare by type and value, so ``1``, ``1.0`` and ``True`` are three structures. Those that cannot be
    hashed count in ``==`` alone; they must not change, for caches keep them.

    It prints as ``PyTreeDef({'a': *, 'b': (*, None)})``.
    """

    __slots__ = ()
    _guard = ("structures of trees", "hx.tree.structure(tree) makes another one.")

    def __new__(cls, *_: Any, **__: Any) -> TreeDef:
        raise BadArgument("TreeDef: a structure is made from a tree, not called.", hint="hx.tree.structure(tree).")

    @property
    def num_nodes(self) -> int:
        """The number of nodes, leaves included."""
        return 1 + sum(child.num_nodes for child in self._children)

    def children(self) -> list[TreeDef]:
        """The structures one level down."""
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """The node's type and static data; ``None`` for a leaf."""
        if self.kind is None:
            return None
        return self.kind.cls, list(self.data) if self.kind.cls is dict else self.data

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves."""
        values: Any = leaves
        if values.__class__ is not list and values.__class__ is not tuple:
            values = list(leaves)
        if len(values) != self.num_leaves:
            raise TreeMismatch(f"unflatten: {self} has {self.num_leaves} leaves, got {len(values)}.")
        if self.flat:
            return self.kind.unflatten(self.data, values)  # type: ignore[union-attr]
        return values[0] if self.kind is None else _unflatten(self, iter(values))

    def flatten_up_to(self, tree: Any, what: str = "flatten_up_to") -> list[Any]:
        """The sub-trees of ``tree`` at the positions of this structure's leaves.

        Raises: TreeMismatch: this is not a prefix of ``tree``; names the key path and both sides.
        """
        subtrees: list[Any] = []
        if not _append_up_to(self, tree, subtrees):
            raise mismatch(self, tree, what)
        return subtrees

    def compose(self, inner: TreeDef) -> TreeDef:
        """This structure with ``inner`` in place of every leaf."""
        if self.kind is None:
            return inner
        return assemble(self.kind, self.data, tuple([child.compose(inner) for child in self._children]))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not TreeDef:
            return NotImplemented
        return (
            self.kind is other.kind
            and self.num_leaves == other.num_leaves
            and same_data(self.data, other.data)
            and self._children == other._children
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            pass
        try:
            number = hash(self.data)
        except TypeError:
            number = 0
        result = hash((self.kind, number, self._children))
        object.__setattr__(self, "_hash", result)
        return result

    def __repr__(self) -> str:
        return f"PyTreeDef({_show(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (None if self.kind is None else self.kind.cls, self.data, self._children)


_new_draft = object.__new__


def node(kind: NodeKind | None, data: Any, children: tuple[TreeDef, ...], num_leaves: int, flat: bool) -> TreeDef:
    """The structure of a node, which the caller has counted; ``flat``: every child is a leaf."""
    new: Any = _new_draft(_Draft)
    new.kind = kind
    new.data = data
    new._children = children
    new.num_leaves = num_leaves
    new.flat = flat
    new.__class__ = TreeDef
    return new


LEAF = node(None, None, (), 1, False)


def assemble(kind: NodeKind, data: Any, children: tuple[TreeDef, ...]) -> TreeDef:
    """The structure of a node with these children."""
    flat = kind.from_leaves is None and all([child is LEAF for child in children])
    return node(kind, data, children, sum([child.num_leaves for child in children]), flat)


def _restore(cls: type | None, data: Any, children: tuple[TreeDef, ...]) -> TreeDef:
    """A structure from a pickle, where a node type is stored as its class."""
    if cls is None:
        return LEAF
    kind = kind_of(cls)
    if kind is None:
        raise TreeMismatch(f"unpickle: {cls.__qualname__} must be registered as a node, it is not.")
    return assemble(kind, data, children)


def _show(treedef: TreeDef) -> str:
    kind = treedef.kind
    if kind is None:
        return "*"
    inner = [_show(child) for child in treedef._children]
    if kind.cls is NoneType:
        return "None"
    if kind.cls is tuple:
        return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"
    if kind.cls is dict:
        return "{" + ", ".join([f"{key!r}: {child}" for key, child in zip(treedef.data, inner)]) + "}"
    joined = f"[{', '.join(inner)}]"
    if kind.cls is list:
        return joined
    label = kind.label if kind.label.startswith("namedtuple[") else f"{kind.label}[{treedef.data}]"
    return f"CustomNode({label}, {joined})"


# The registry is append-only. WALKS is its hot table: type -> the function that flattens such a node (it appends the
# leaves to a list and returns the structure), or None for a type of leaves; no entry: ``classify`` has to be called.

Walk = Callable[[Any, list[Any]], TreeDef]
_LOCK = threading.RLock()
_KINDS: dict[type, NodeKind] = {}
WALKS: dict[type, Walk | None] = {}
LEAF_TYPES: set[type] = set()
_ANNOUNCED: list[NodeKind] = []
_LISTENERS: list[Callable[[type, Any, Any], None]] = []


def kind_of(cls: type) -> NodeKind | None:
    """The registry's entry for a node type; None for a type of leaves."""
    if cls not in WALKS:
        classify(cls)
    return _KINDS.get(cls)


def classify(cls: type) -> Walk | None:
    """Enter a new type in the registry, as a named tuple or as a leaf, which a later registration can replace."""
    with _LOCK:
        if cls in WALKS:
            return WALKS[cls]
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            install(_namedtuple_kind(cls))
        else:
            WALKS[cls] = None
            LEAF_TYPES.add(cls)
        return WALKS[cls]


def install(kind: NodeKind, walk: Walk | None = None) -> None:
    """Add a node type without telling the listeners: for types that every pytree registry knows by itself."""

    def walk_children(x: Any, leaves: list[Any]) -> TreeDef:
        children, data = flatten(x)
        return flatten_node(kind, data, children, leaves)

    flatten = kind.flatten
    _KINDS[kind.cls] = kind
    LEAF_TYPES.discard(kind.cls)
    WALKS[kind.cls] = walk or walk_children


def register(kind: NodeKind, walk: Walk | None = None) -> None:
    """Add a node type, and call every listener of ``on_register``.

    Raises: BadArgument: the type is registered already.
    """
    with _LOCK:
        known = _KINDS.get(kind.cls)
        if known is not None and not known.label.startswith("namedtuple["):
            raise BadArgument(f"register: a type is registered once, {kind.cls.__qualname__} is registered already.")
        install(kind, walk)
        _ANNOUNCED.append(kind)
        for listener in _LISTENERS:
            listener(kind.cls, kind.flatten, kind.unflatten)


def on_register(
    callback: Callable[[type, Callable[[Any], Flattened], Callable[[Any, Sequence[Any]], Any]], None],
) -> None:
    """Call ``callback(cls, flatten, unflatten)`` once for every type registered so far, and for each later one.

    Left out are ``None``, ``tuple``, ``list``, ``dict`` and named tuples, which every pytree registry knows by itself.
    """
    with _LOCK:
        for kind in _ANNOUNCED:
            callback(kind.cls, kind.flatten, kind.unflatten)
        _LISTENERS.append(callback)


def flatten_children(values: Sequence[Any], leaves: list[Any]) -> tuple[TreeDef, ...] | None:
    """Append the leaves of every value; return the structures of the values, or None if all of them are leaves.

    Callers check ``LEAF_TYPES`` first, which avoids this call where all types are known to be leaves.
    """
    children: list[TreeDef] = []
    only_leaves = True
    for value in values:
        try:
            walk = WALKS[type(value)]
        except KeyError:
            walk = classify(type(value))
        if walk is None:
            leaves.append(value)
            children.append(LEAF)
        else:
            only_leaves = False
            children.append(walk(value, leaves))
    return None if only_leaves else tuple(children)


def flatten_node(kind: NodeKind, data: Any, values: Sequence[Any], leaves: list[Any]) -> TreeDef:
    """Append the leaves of a node's children; return the structure of the node."""
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, values)):
        leaves += values
        children = None
    else:
        children = flatten_children(values, leaves)
    if children is None:
        return node(kind, data, (LEAF,) * len(values), len(values), True)
    return node(kind, data, children, len(leaves) - start, False)


def _namedtuple_kind(cls: Any) -> NodeKind:
    return NodeKind(
        cls,
        f"namedtuple[{cls.__name__}]",
        flatten=lambda x: (x, None),
        unflatten=lambda _, children: cls(*children),
        flatten_with_keys=lambda x: ([(GetAttrKey(name), value) for name, value in zip(cls._fields, x)], None),
    )


def indexed(flatten: Callable[[Any], Flattened]) -> Callable[[Any], FlattenedWithKeys]:
    """``flatten_with_keys`` for a node type without keys: child i has ``FlattenedIndexKey(i)``."""

    def flatten_with_indices(x: Any) -> FlattenedWithKeys:
        children, data = flatten(x)
        return [(FlattenedIndexKey(i), child) for i, child in enumerate(children)], data

    return flatten_with_indices


def path_text(path: KeyPath) -> str:
    """A path for messages."""
    return keystr(path) or "the root"


def _unflatten(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    """The tree of this structure, which consumes as many of the leaves as it has."""
    kind = treedef.kind
    if kind is None:
        return next(leaves)
    children = treedef._children
    if treedef.flat:
        if kind.cls is dict:
            return dict(zip(treedef.data, leaves))  # zip reads the keys first, so that no excess leaf is consumed
        return kind.unflatten(treedef.data, list(islice(leaves, len(children))))
    if kind.from_leaves is not None:
        return kind.from_leaves(treedef, leaves)
    values = [next(leaves) if child is LEAF else _unflatten(child, leaves) for child in children]
    return kind.unflatten(treedef.data, values)


def _append_up_to(treedef: TreeDef, x: Any, subtrees: list[Any]) -> bool:
    """Append the sub-trees of ``x`` at the leaves of ``treedef``; False if it is not a prefix of ``x``."""
    kind: Any = treedef.kind
    if kind is None:
        subtrees.append(x)
        return True
    if type(x) is not kind.cls:
        return False
    children = treedef._children
    if kind.cls is dict:
        if len(x) != len(children):
            return False
        try:
            values: Sequence[Any] = [x[key] for key in treedef.data]
        except KeyError:
            return False
    elif kind.from_leaves is not None and x.treedef == treedef:
        subtrees += x.leaves
        return True
    else:
        values, data = kind.flatten(x)
        if len(values) != len(children) or not same_data(data, treedef.data):
            return False
    if treedef.flat:
        subtrees += values
        return True
    for child, value in zip(children, values):
        if not _append_up_to(child, value, subtrees):
            return False
    return True


def mismatches(treedef: TreeDef, x: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str, str]]:
    """Every position where the structure is not a prefix of ``x``: the path, and a description of both sides."""
    kind = treedef.kind
    if kind is None or _append_up_to(treedef, x, []):
        return
    children = treedef._children
    pairs: Sequence[tuple[Any, Any]] = ()
    agrees = type(x) is kind.cls
    if agrees:
        pairs, data = kind.flatten_with_keys(x)
        agrees = len(pairs) == len(children) and same_data(data, treedef.data)
    if not agrees:
        yield path, _describe(kind, treedef.data, len(children)), describe(x)
        return
    for child, (key, value) in zip(children, pairs):
        yield from mismatches(child, value, path if key is None else (*path, key))


def mismatch(treedef: TreeDef, x: Any, what: str) -> TreeMismatch:
    """The error for a structure that is not a prefix of ``x``."""
    path, wanted, got = next(mismatches(treedef, x))
    hint = "None is an empty node here; is_leaf=lambda x: x is None makes it a leaf." if wanted == "None" else None
    return TreeMismatch(f"{what}: at {path_text(path)} the prefix is {wanted} but the tree has {got}.", hint=hint)


def need_structure(where: str, x: object) -> None:
    """Raises BadArgument if ``x`` is not a structure."""
    if not isinstance(x, TreeDef):
        raise BadArgument(f"{where}: a structure is needed, got {x!r}.", hint="hx.tree.structure(tree).")


def describe(x: Any) -> str:
    """One level of a tree, for messages."""
    kind = kind_of(type(x))
    if kind is None:
        return f"a leaf of type {type(x).__name__}"
    values, data = kind.flatten(x)
    return _describe(kind, data, len(values))


def _describe(kind: NodeKind, data: Hashable, size: int) -> str:
    if kind.cls is NoneType:
        return "None"
    if kind.cls is tuple or kind.cls is list:
        return f"a {kind.label} of {size}"
    if kind.cls is dict:
        return f"a dict with keys {list(data)}"  # type: ignore[call-overload]
    name = kind.cls.__name__ if kind.label.startswith("namedtuple[") else kind.label
    return f"a {name} of {size}" + ("" if data is None else f" with static data {data!r}")
