"""``freeze``: a tree that knows its leaves and its structure, so that flattening it costs nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import MappingProxyType
from typing import Any

from .errors import BadArgument, Immutable
from .treedefs import LEAF, LEAF_TYPES, Keyed, Kind, Parts, TreeDef, assemble, kind_of, register
from .treewalks import DEFAULT_DICT, DICT, LIST, NONE, ORDERED_DICT, TUPLE, flatten

_WRAPPING = threading.RLock()


class Frozen:
    """An immutable tree with its ``leaves`` and ``treedef`` kept.

        freeze(t).thaw() == t        leaves(freeze(t)) == leaves(t)

    It reads like what it wraps: by key, by index, by attribute; what is read and is a tree itself is frozen too.
    As a pytree it is one node around the original structure. Two are equal when structure and leaves are: numbers and
    strings by type and value, other leaves by identity.

    >>> params = freeze({"w": [1.0, 2.0], "b": 3.0})
    >>> params["w"][1], params.leaves, params.treedef
    (2.0, (3.0, 1.0, 2.0), PyTreeDef(CustomNode(Frozen[None], [{'b': *, 'w': [*, *]}])))
    """

    __slots__ = ("leaves", "treedef", "_hash", "_seen", "_dispatch", "_later", "__weakref__")
    leaves: tuple[Any, ...]
    treedef: TreeDef
    _hash: int
    _seen: Any
    _dispatch: Any  # what a compiler keeps here
    _later: Any  # gives the leaves, where nobody has asked for them yet

    def __init__(self, tree: Any):
        if isinstance(tree, Frozen):
            _fill(self, tree.leaves, tree.treedef)
            return
        leaves, inner = flatten(tree)
        _fill(self, tuple(leaves), _wrap(inner))

    def thaw(self) -> Any:
        """The tree itself, its containers made afresh."""
        return self.treedef._children[0].unflatten(self.leaves)

    def _view(self) -> Any:
        """One level of the tree, trees inside frozen; kept where it is a mapping or tuple that cannot be changed."""
        try:
            return self._seen
        except AttributeError:
            pass
        inner = self.treedef._children[0]
        kind, data = inner.kind, inner.data
        children = _split(inner, self.leaves)
        if kind is None:
            seen = self.leaves[0]
        elif kind is DICT or kind is ORDERED_DICT:
            seen = MappingProxyType(dict(zip(data, children)))
        elif kind is DEFAULT_DICT:
            seen = MappingProxyType(dict(zip(data[1], children)))
        elif kind is TUPLE or kind is LIST:
            seen = tuple(children)
        elif issubclass(kind.cls, tuple):
            seen = kind.make(data, children)
        else:
            return kind.make(data, children)  # may be changed by its own methods: a new one each time
        object.__setattr__(self, "_seen", seen)
        return seen

    def __getitem__(self, key: Any) -> Any:
        return self._view()[key]

    def __getattr__(self, name: str) -> Any:
        if name == "leaves":
            with _WRAPPING:
                if getattr(self, "_later", None) is not None:
                    object.__setattr__(self, "leaves", tuple(self._later()))
                    object.__setattr__(self, "_later", None)
            return object.__getattribute__(self, "leaves")
        if name.startswith("__") or name in {"_hash", "_seen", "_dispatch", "_later"}:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = getattr(self._view(), name)
        return found if kind_of(type(found)) is None or found is None else freeze(found)

    def __setattr__(self, name: str, value: Any) -> None:
        raise Immutable.of("frozen trees", name, "set", "thaw() gives a tree to change.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("frozen trees", name, "deleted", "thaw() gives a tree to change.")

    def __len__(self) -> int:
        return len(self._view())

    def __bool__(self) -> bool:
        return bool(self._view())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view())

    def __contains__(self, item: Any) -> bool:
        return item in self._view()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Frozen):
            return NotImplemented
        return self.treedef == other.treedef and all(
            [a is b or _identity(a) == _identity(b) for a, b in zip(self.leaves, other.leaves)]
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            pass
        result = hash((self.treedef, tuple([_identity(leaf) for leaf in self.leaves])))
        object.__setattr__(self, "_hash", result)
        return result

    def __repr__(self) -> str:
        return f"Frozen({self.thaw()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.leaves, self.treedef)


def freeze(tree: Any) -> Frozen:
    """The tree, immutable, with its leaves and structure kept: flattening it visits no node.

        freeze(t).thaw() == t        leaves(freeze(t)) == leaves(t)

    Containers are copied, leaves are not: an array inside that is changed in place is changed here too.
    """
    return tree if isinstance(tree, Frozen) else Frozen(tree)


def delayed(treedef: TreeDef, leaves: Callable[[], Iterable[Any]], dispatch: Any) -> Frozen:
    """The frozen tree of this structure, whose leaves are made when somebody looks at them."""
    new = Frozen.__new__(Frozen)
    object.__setattr__(new, "treedef", treedef)
    object.__setattr__(new, "_later", leaves)
    if dispatch is not None:
        object.__setattr__(new, "_dispatch", dispatch)
    return new


def thaw(tree: Any) -> Any:
    """``tree.thaw()``; the identity on what is not frozen."""
    return tree.thaw() if isinstance(tree, Frozen) else tree


def _fill(new: Frozen, leaves: tuple[Any, ...], treedef: TreeDef) -> Frozen:
    object.__setattr__(new, "leaves", leaves)
    object.__setattr__(new, "treedef", treedef)
    return new


def _restore(leaves: tuple[Any, ...], treedef: TreeDef) -> Frozen:
    return _fill(Frozen.__new__(Frozen), leaves, treedef)


def _wrap(inner: TreeDef) -> TreeDef:
    return assemble(FROZEN, None, (inner,))


def _split(treedef: TreeDef, leaves: tuple[Any, ...]) -> list[Any]:
    rest = iter(leaves)
    children = []
    for child in treedef._children:
        if child is LEAF:
            children.append(next(rest))
        elif child == NONE:
            children.append(None)
        else:
            mine = tuple(islice(rest, child.num_leaves))
            children.append(_restore(mine, child if child.kind is FROZEN else _wrap(child)))
    return children


_BY_VALUE = {bool, int, str, bytes, type(None)}


def _identity(leaf: Any) -> tuple[Any, Any]:
    cls = type(leaf)
    if cls in _BY_VALUE:
        return cls, leaf
    if cls is float:
        return cls, leaf.hex()
    if cls is complex:
        return cls, (leaf.real.hex(), leaf.imag.hex())
    return cls, id(leaf)


def _parts(x: Frozen) -> Parts:
    return (x.thaw(),), None


def _keyed(x: Frozen) -> Keyed:
    return ((None, x.thaw()),), None


def _make(_: Any, children: Any) -> Frozen:
    if len(children) != 1:
        raise BadArgument(f"freeze: a frozen tree has one child, got {len(children)}.")
    return freeze(children[0])


def _build(treedef: TreeDef, leaves: Iterator[Any]) -> Frozen:
    mine = tuple(islice(leaves, treedef.num_leaves))
    if LEAF_TYPES.issuperset(map(type, mine)) or all([kind_of(type(leaf)) is None for leaf in mine]):
        return _restore(mine, treedef)
    return freeze(treedef._children[0].unflatten(mine))  # trees in the place of leaves: the structure grows


def _walk(x: Frozen, leaves: list[Any]) -> TreeDef:
    leaves += x.leaves
    return x.treedef


FROZEN = Kind(Frozen, "Frozen", _parts, _make, _keyed, _build)
register(FROZEN, _walk)
