"""``freeze``: an immutable tree that stores its leaves and structure, so that flattening it visits no node."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

from ..base.caches import process_lock
from ..base.errors import BadArgument
from ..base.value_identity import leaf_key
from .flatten import StoredTree, flatten
from .node_types import Flattened, FlattenedWithKeys, NodeType, flatten_with_keys_of, register
from .structure import assemble, node_of

if TYPE_CHECKING:
    from .cpp_pytrees import PyTreeDef

_LEAVES_LOCK = process_lock()


class Frozen(StoredTree):
    """An immutable tree that stores its ``leaves`` and ``treedef``.

        freeze(t).thaw() == t        leaves(freeze(t)) == leaves(t)

    It is read like the original tree, by key, index or attribute; a sub-tree that is read is frozen too. As a pytree it
    is one node around the original structure. Two are equal if their structures and leaves are: numbers and strings by
    type and value, other leaves by identity.

    >>> params = freeze({"w": [1.0, 2.0], "b": 3.0})
    >>> params["w"][1], params.leaves, params.treedef
    (2.0, (3.0, 1.0, 2.0), PyTreeDef(CustomNode(Frozen[None], [{'b': *, 'w': [*, *]}])))
    """

    __slots__ = ("_hash", "_top", "_dispatch", "_compute_leaves", "__weakref__")
    _guard = ("frozen trees", "thaw() gives a tree to change.")
    _hash: int
    _top: Any  # cached ``_top_level()``
    _dispatch: Any  # (signature, buffers) of the leaves, stored by ``jit``
    _compute_leaves: Any  # of a deferred tree whose leaves were not read yet: a function that returns them

    def __init__(self, tree: Any):
        if isinstance(tree, Frozen):
            _set_leaves(self, tree.leaves, tree.treedef)
            return
        leaves, inner = flatten(tree)
        _set_leaves(self, tuple(leaves), _wrap(inner))

    def thaw(self) -> Any:
        """The tree, with new containers and the same leaves."""
        return self.treedef.children()[0].unflatten(self.leaves)

    def _top_level(self) -> Any:
        """The top node of the tree, its children frozen; cached if the node is an immutable mapping or a tuple."""
        try:
            return self._top
        except AttributeError:
            pass
        (inner,) = self.treedef.children()
        node, children = node_of(inner), _children(inner, self.leaves)
        if node is None:
            seen = self.leaves[0]
        else:
            seen = assemble(node, [assemble(None, ())] * len(children)).unflatten(children)
            if node[0] in (dict, OrderedDict, defaultdict):
                seen = MappingProxyType(dict(seen))
            elif node[0] is list:
                seen = tuple(seen)
            elif not isinstance(seen, tuple):
                return seen  # its methods may change it: a new one for each call
        object.__setattr__(self, "_top", seen)
        return seen

    def __getitem__(self, key: Any) -> Any:
        return self._top_level()[key]

    def __getattr__(self, name: str) -> Any:
        if name == "leaves":
            with _LEAVES_LOCK:
                if getattr(self, "_compute_leaves", None) is not None:
                    object.__setattr__(self, "leaves", tuple(self._compute_leaves()))
                    object.__setattr__(self, "_compute_leaves", None)
            return object.__getattribute__(self, "leaves")
        if name.startswith("__") or name in {"_hash", "_top", "_dispatch", "_compute_leaves"}:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = getattr(self._top_level(), name)
        return value if value is None or flatten_with_keys_of(type(value)) is None else freeze(value)

    def __len__(self) -> int:
        return len(self._top_level())

    def __bool__(self) -> bool:
        return bool(self._top_level())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._top_level())

    def __contains__(self, item: Any) -> bool:
        return item in self._top_level()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Frozen):
            return NotImplemented
        return self.treedef == other.treedef and all(
            [a is b or leaf_key(a) == leaf_key(b) for a, b in zip(self.leaves, other.leaves)]
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            pass
        result = hash((self.treedef, tuple([leaf_key(leaf) for leaf in self.leaves])))
        object.__setattr__(self, "_hash", result)
        return result

    def __repr__(self) -> str:
        return f"Frozen({self.thaw()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.leaves, self.treedef)


def freeze(tree: Any) -> Frozen:
    """The immutable tree with these leaves and structure: flattening it visits no node.

        freeze(t).thaw() == t        leaves(freeze(t)) == leaves(t)

    Containers are copied and leaves are not: a NumPy array that is changed in place is changed here too.
    """
    return tree if isinstance(tree, Frozen) else Frozen(tree)


def deferred_tree(treedef: PyTreeDef, leaves: Callable[[], Iterable[Any]], dispatch: Any) -> Frozen:
    """The frozen tree of this structure, whose leaves are computed once, when they are first read."""
    new = Frozen.__new__(Frozen)
    object.__setattr__(new, "treedef", treedef)
    object.__setattr__(new, "_compute_leaves", leaves)
    if dispatch is not None:
        object.__setattr__(new, "_dispatch", dispatch)
    return new


def thaw(tree: Any) -> Any:
    """``tree.thaw()``; the identity on what is not frozen."""
    return tree.thaw() if isinstance(tree, Frozen) else tree


def _set_leaves(new: Frozen, leaves: tuple[Any, ...], treedef: PyTreeDef) -> Frozen:
    object.__setattr__(new, "leaves", leaves)
    object.__setattr__(new, "treedef", treedef)
    return new


def _restore(leaves: tuple[Any, ...], treedef: PyTreeDef) -> Frozen:
    return _set_leaves(Frozen.__new__(Frozen), leaves, treedef)


def _wrap(inner: PyTreeDef) -> PyTreeDef:
    """The structure of a frozen tree from that of the tree."""
    return assemble((Frozen, None), [inner])


def _children(treedef: PyTreeDef, leaves: tuple[Any, ...]) -> list[Any]:
    """The children of a node, each a leaf, None or a frozen tree."""
    rest = iter(leaves)
    children: list[Any] = []
    for child in treedef.children():
        node = child.node_data()
        if node is None:
            children.append(next(rest))
        elif node[0] is NoneType:
            children.append(None)
        else:
            own = tuple(islice(rest, child.num_leaves))
            children.append(_restore(own, child if node[0] is Frozen else _wrap(child)))
    return children


def _flatten(x: Frozen) -> Flattened:
    return (x.thaw(),), None


def _flatten_with_keys(x: Frozen) -> FlattenedWithKeys:
    return ((None, x.thaw()),), None


def _unflatten(_: Any, children: Any) -> Frozen:
    if len(children) != 1:
        raise BadArgument(f"freeze: a frozen tree has one child, got {len(children)}.")
    return freeze(children[0])


register(NodeType(Frozen, _flatten, _unflatten, _flatten_with_keys))
