"""Pytrees: the registry of node types, and structures as values.

    unflatten(structure(t), leaves(t)) == t

A tree is a leaf or a node; the exact type decides, by one look-up. ``None`` is a node without children, the keys of
a ``dict`` are sorted, a named tuple is a node of its own type. Any other type is a leaf until it is registered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import NoneType
from typing import Any

from .errors import BadArgument, BadStaticArgument, Immutable, TreeMismatch
from .treekeys import FlattenedIndexKey, GetAttrKey, KeyPath, keystr

Parts = tuple[Sequence[Any], Any]
Keyed = tuple[Sequence[tuple[Any, Any]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What the registry knows of one node type.

    ``parts(x)`` gives the children and the static data, ``make(data, children)`` puts them together again, ``keyed(x)``
    is ``parts`` with a key beside each child (the key ``None`` adds nothing to the path). ``build(node, leaves)`` is
    there for a node that keeps its ``leaves`` and ``treedef`` itself, and rebuilds it without building what is inside.
    """

    cls: type
    label: str
    parts: Callable[[Any], Parts]
    make: Callable[[Any, Sequence[Any]], Any]
    keyed: Callable[[Any], Keyed]
    build: Callable[[TreeDef, Iterator[Any]], Any] | None = None


class TreeDef:
    """The structure of a tree: what is left when every leaf is replaced by ``*``. Immutable, hashable.

    Static data compare by type and value, so ``1``, ``1.0`` and ``True`` are three structures.

    It prints as ``PyTreeDef({'a': *, 'b': (*, None)})``.
    """

    __slots__ = ("kind", "data", "_children", "num_leaves", "flat", "_hash")
    kind: Kind | None
    data: Any
    _children: tuple[TreeDef, ...]
    num_leaves: int
    flat: bool
    _hash: int

    def __new__(cls, *_: Any, **__: Any) -> TreeDef:
        raise BadArgument("TreeDef: a structure is made from a tree, not called.", hint="hx.tree.structure(tree).")

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("structures of trees", name, "set", "hx.tree.structure(tree) makes another one.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("structures of trees", name, "deleted", "hx.tree.structure(tree) makes another one.")

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
            return self.kind.make(self.data, values)  # type: ignore[union-attr]
        return values[0] if self.kind is None else _build(self, iter(values))

    def flatten_up_to(self, tree: Any, what: str = "flatten_up_to") -> list[Any]:
        """The sub-trees of ``tree`` at the places of this structure's leaves.

        Raises: TreeMismatch: this is not a prefix of ``tree``; names the key path and both sides.
        """
        found: list[Any] = []
        if not _up_to(self, tree, found):
            raise mismatch(self, tree, what)
        return found

    def compose(self, inner: TreeDef) -> TreeDef:
        """This structure with ``inner`` in the place of every leaf."""
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
            result = hash((self.kind, self.data, self._children))
        except TypeError as error:
            raise BadStaticArgument(
                f"hash of a structure: static data of every node must be hashable, got {error} in {self}.",
                hint="keep arrays and containers among the children, and only hashable values in the static data.",
            ) from None
        object.__setattr__(self, "_hash", result)
        return result

    def __repr__(self) -> str:
        return f"PyTreeDef({_show(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (None if self.kind is None else self.kind.cls, self.data, self._children)


class _Draft:
    """A ``TreeDef`` while it is built; its class is set when complete, which is cheaper than a guarded constructor."""

    __slots__ = ("kind", "data", "_children", "num_leaves", "flat", "_hash")


_new_draft = object.__new__


def node(kind: Kind | None, data: Any, children: tuple[TreeDef, ...], num_leaves: int, flat: bool) -> TreeDef:
    """The structure of a node; ``flat``: every child is a leaf."""
    new: Any = _new_draft(_Draft)
    new.kind = kind
    new.data = data
    new._children = children
    new.num_leaves = num_leaves
    new.flat = flat
    new.__class__ = TreeDef
    return new


LEAF = node(None, None, (), 1, False)


def assemble(kind: Kind, data: Any, children: tuple[TreeDef, ...]) -> TreeDef:
    """``node`` with what it counts read off the children."""
    flat = kind.build is None and all([child is LEAF for child in children])
    return node(kind, data, children, sum([child.num_leaves for child in children]), flat)


def same_data(a: Any, b: Any) -> bool:
    """Equal in type and value, tuples by element; ``0.0`` and ``-0.0`` differ."""
    if a is b:
        return True
    cls = a.__class__
    if cls is not b.__class__:
        return False
    if cls is tuple:
        return len(a) == len(b) and all([same_data(x, y) for x, y in zip(a, b)])
    return bool(a == b) and (cls is not float or a.hex() == b.hex())


def _restore(cls: type | None, data: Any, children: tuple[TreeDef, ...]) -> TreeDef:
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


# The registry: append-only, and the only global state beside the bounded memo of dict orders.
# WALKS answers the hot question, "what is this type?": a walk, None for a leaf, KeyError for a type not met before.

Walk = Callable[[Any, list[Any]], TreeDef]
_LOCK = threading.RLock()
_KINDS: dict[type, Kind] = {}
WALKS: dict[type, Walk | None] = {}
LEAF_TYPES: set[type] = set()
_ANNOUNCED: list[Kind] = []
_LISTENERS: list[Callable[[type, Any, Any], None]] = []


def kind_of(cls: type) -> Kind | None:
    """The kind of a node type, ``None`` for a type of leaves."""
    if cls not in WALKS:
        classify(cls)
    return _KINDS.get(cls)


def classify(cls: type) -> Walk | None:
    """Decide once what a type is that was not met before; a later registration still replaces "leaf"."""
    with _LOCK:
        if cls in WALKS:
            return WALKS[cls]
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            install(_namedtuple_kind(cls))
        else:
            WALKS[cls] = None
            LEAF_TYPES.add(cls)
        return WALKS[cls]


def install(kind: Kind, walk: Walk | None = None) -> None:
    """Add a node type that every registry knows; ``register`` is for all others."""

    def walk_parts(x: Any, leaves: list[Any]) -> TreeDef:
        values, data = parts(x)
        return grow(kind, data, values, leaves)

    parts = kind.parts
    _KINDS[kind.cls] = kind
    LEAF_TYPES.discard(kind.cls)
    WALKS[kind.cls] = walk or walk_parts


def register(kind: Kind, walk: Walk | None = None) -> None:
    """Add a node type, once and for all, and tell every listener.

    Raises: BadArgument: the type is registered already.
    """
    with _LOCK:
        known = _KINDS.get(kind.cls)
        if known is not None and not known.label.startswith("namedtuple["):
            raise BadArgument(f"register: a type is registered once, {kind.cls.__qualname__} is registered already.")
        install(kind, walk)
        _ANNOUNCED.append(kind)
        for listener in _LISTENERS:
            listener(kind.cls, kind.parts, kind.make)


def on_register(callback: Callable[[type, Callable[[Any], Parts], Callable[[Any, Sequence[Any]], Any]], None]) -> None:
    """Call ``callback(cls, to_iter, from_iter)`` once for every registered type, those of before and those to come.

    Left out are ``None``, ``tuple``, ``list``, ``dict`` and named tuples, which every pytree registry knows by itself.
    """
    with _LOCK:
        for kind in _ANNOUNCED:
            callback(kind.cls, kind.parts, kind.make)
        _LISTENERS.append(callback)


def spread(values: Sequence[Any], leaves: list[Any]) -> tuple[TreeDef, ...] | None:
    """Append the leaves of every value; the structures of the values, or None where all of them are leaves after all.

    Callers ask ``LEAF_TYPES`` first, the quick answer for types met before; it stands there since a call costs as much.
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


def grow(kind: Kind, data: Any, values: Sequence[Any], leaves: list[Any]) -> TreeDef:
    """Append the leaves of a node's children; the structure of the node."""
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, values)):
        leaves += values
        children = None
    else:
        children = spread(values, leaves)
    if children is None:
        return node(kind, data, (LEAF,) * len(values), len(values), True)
    return node(kind, data, children, len(leaves) - start, False)


def _namedtuple_kind(cls: Any) -> Kind:
    return Kind(
        cls,
        f"namedtuple[{cls.__name__}]",
        parts=lambda x: (x, None),
        make=lambda _, children: cls(*children),
        keyed=lambda x: ([(GetAttrKey(name), value) for name, value in zip(cls._fields, x)], None),
    )


def indexed(parts: Callable[[Any], Parts]) -> Callable[[Any], Keyed]:
    """``keyed`` for a node type that names no keys: its children are counted."""

    def keyed(x: Any) -> Keyed:
        values, data = parts(x)
        return [(FlattenedIndexKey(i), value) for i, value in enumerate(values)], data

    return keyed


def at(path: KeyPath) -> str:
    """A path in words."""
    return keystr(path) or "the root"


def _build(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    kind = treedef.kind
    if kind is None:
        return next(leaves)
    children = treedef._children
    if treedef.flat:
        if kind.cls is dict:
            return dict(zip(treedef.data, leaves))  # the keys end first: no leaf is taken in excess
        return kind.make(treedef.data, list(islice(leaves, len(children))))
    if kind.build is not None:
        return kind.build(treedef, leaves)
    return kind.make(treedef.data, [next(leaves) if child is LEAF else _build(child, leaves) for child in children])


def _up_to(treedef: TreeDef, x: Any, found: list[Any]) -> bool:
    """Append the sub-trees of x at the leaves; False where the structure is not a prefix of x."""
    kind: Any = treedef.kind
    if kind is None:
        found.append(x)
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
    elif kind.build is not None and x.treedef == treedef:
        found += x.leaves
        return True
    else:
        values, data = kind.parts(x)
        if len(values) != len(children) or not same_data(data, treedef.data):
            return False
    if treedef.flat:
        found += values
        return True
    for child, value in zip(children, values):
        if not _up_to(child, value, found):
            return False
    return True


def mismatches(treedef: TreeDef, x: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str, str]]:
    """Every place where the structure is not a prefix of ``x``: the path, and both sides in words."""
    kind = treedef.kind
    if kind is None or _up_to(treedef, x, []):
        return
    children = treedef._children
    pairs: Sequence[tuple[Any, Any]] = ()
    agrees = type(x) is kind.cls
    if agrees:
        pairs, data = kind.keyed(x)
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
    return TreeMismatch(f"{what}: at {at(path)} the prefix is {wanted} but the tree has {got}.", hint=hint)


def need_structure(where: str, x: object) -> None:
    """Raises BadArgument where ``x`` is no structure."""
    if not isinstance(x, TreeDef):
        raise BadArgument(f"{where}: a structure is needed, got {x!r}.", hint="hx.tree.structure(tree).")


def describe(x: Any) -> str:
    """One level of a tree in words."""
    kind = kind_of(type(x))
    if kind is None:
        return f"a leaf of type {type(x).__name__}"
    values, data = kind.parts(x)
    return _describe(kind, data, len(values))


def _describe(kind: Kind, data: Hashable, size: int) -> str:
    if kind.cls is NoneType:
        return "None"
    if kind.cls is tuple or kind.cls is list:
        return f"a {kind.label} of {size}"
    if kind.cls is dict:
        return f"a dict with keys {list(data)}"  # type: ignore[call-overload]
    name = kind.cls.__name__ if kind.label.startswith("namedtuple[") else kind.label
    return f"a {name} of {size}" + ("" if data is None else f" with static data {data!r}")
