"""``flatten``, ``unflatten`` and ``flatten_with_path``, and the built-in node types.

The walks of tuples, lists and dicts are written out rather than composed of ``NodeKind.flatten`` and ``flatten_node``,
since the function calls would cost as much as the work.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..base.caches import Cache
from ..base.errors import BadArgument
from .paths import DictKey, KeyPath, SequenceKey
from .structure import (
    LEAF,
    LEAF_TYPES,
    WALKS,
    Flattened,
    FlattenedWithKeys,
    NodeKind,
    TreeDef,
    assemble,
    classify,
    flatten_children,
    install,
    kind_of,
    need_structure,
    node,
    path_text,
    register,
)


def _walk_tuple(x: tuple[Any, ...], leaves: list[Any]) -> TreeDef:
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, x)):
        leaves += x
    elif (children := flatten_children(x, leaves)) is not None:
        return node(TUPLE, None, children, len(leaves) - start, False)
    n = len(x)
    return _FLAT_TUPLES[n] if n < 129 else node(TUPLE, None, (LEAF,) * n, n, True)


def _walk_list(x: list[Any], leaves: list[Any]) -> TreeDef:
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, x)):
        leaves += x
    elif (children := flatten_children(x, leaves)) is not None:
        return node(LIST, None, children, len(leaves) - start, False)
    n = len(x)
    return _FLAT_LISTS[n] if n < 129 else node(LIST, None, (LEAF,) * n, n, True)


class Unsortable(BadArgument):
    """The keys of a dict cannot be sorted. ``flatten`` catches it, and raises an error with the path to the dict."""


# Keys as inserted -> (sorted keys, or None if the order is the same; structure if all values are leaves).
# Only keys that are all strings are cached, since 1 and True would share an entry.
_Order = tuple[tuple[Any, ...] | None, TreeDef]
_ORDERS = Cache("orders of dict keys")
"""The keys of a dict in the order of its leaves, by the keys in the order of the dict."""
_known_order = _ORDERS.entries.get
_MOST_KEYS = 1024


def _order(keys: tuple[Any, ...]) -> _Order:
    """The entry of ``_ORDERS`` for a dict with these keys. Raises Unsortable."""
    try:
        ordered = tuple(sorted(keys))
    except TypeError:
        names = sorted({type(key).__name__ for key in keys})
        raise Unsortable(
            f"flatten: the keys of a dict must be sortable, got {', '.join(names)}.",
            hint="use keys of one type, or an OrderedDict, whose keys keep their order.",
        ) from None
    flat = node(DICT, ordered, (LEAF,) * len(keys), len(keys), True)
    # `is` is enough, since both tuples have the same objects
    order = None if all([a is b for a, b in zip(keys, ordered)]) else ordered, flat
    if len(keys) <= _MOST_KEYS and all([key.__class__ is str for key in keys]):
        _ORDERS.add(keys, order)
    return order


def _walk_dict(x: dict[Any, Any], leaves: list[Any]) -> TreeDef:
    keys = tuple(x)
    ordered, flat = _known_order(keys) or _order(keys)
    values: Any = x.values() if ordered is None else [x[key] for key in ordered]
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, values)):
        leaves += values
        return flat
    children = flatten_children(values, leaves)
    return flat if children is None else node(DICT, flat.data, children, len(leaves) - start, False)


def _sorted_keys(x: dict[Any, Any]) -> tuple[Any, ...]:
    keys = tuple(x)
    return (_known_order(keys) or _order(keys))[1].data


def _flatten_dict(x: dict[Any, Any]) -> Flattened:
    keys = _sorted_keys(x)
    return [x[key] for key in keys], keys


def _flatten_dict_with_keys(x: dict[Any, Any]) -> FlattenedWithKeys:
    keys = _sorted_keys(x)
    return [(DictKey(key), x[key]) for key in keys], keys


def _flatten_sequence_with_keys(x: Sequence[Any]) -> FlattenedWithKeys:
    return [(SequenceKey(i), value) for i, value in enumerate(x)], None


def _flatten_ordered_dict_with_keys(x: OrderedDict[Any, Any]) -> FlattenedWithKeys:
    return [(DictKey(key), value) for key, value in x.items()], tuple(x)


def _flatten_defaultdict(x: defaultdict[Any, Any]) -> Flattened:
    keys = _sorted_keys(x)
    return [x[key] for key in keys], (x.default_factory, keys)


def _flatten_defaultdict_with_keys(x: defaultdict[Any, Any]) -> FlattenedWithKeys:
    keys = _sorted_keys(x)
    return [(DictKey(key), x[key]) for key in keys], (x.default_factory, keys)


NONE_KIND = NodeKind(type(None), "None", lambda x: ((), None), lambda _, children: None, lambda x: ((), None))
TUPLE = NodeKind(tuple, "tuple", lambda x: (x, None), lambda _, children: tuple(children), _flatten_sequence_with_keys)
LIST = NodeKind(list, "list", lambda x: (x, None), lambda _, children: list(children), _flatten_sequence_with_keys)
DICT = NodeKind(
    dict, "dict", _flatten_dict, lambda keys, children: dict(zip(keys, children)), _flatten_dict_with_keys
)
ORDERED_DICT = NodeKind(
    OrderedDict,
    "OrderedDict",
    lambda x: (list(x.values()), tuple(x)),
    lambda keys, children: OrderedDict(zip(keys, children)),
    _flatten_ordered_dict_with_keys,
)
DEFAULT_DICT = NodeKind(
    defaultdict,
    "defaultdict",
    _flatten_defaultdict,
    lambda data, children: defaultdict(data[0], zip(data[1], children)),
    _flatten_defaultdict_with_keys,
)

NONE = node(NONE_KIND, None, (), 0, True)
# the structures of tuples and lists of up to 128 leaves
_FLAT_TUPLES = [node(TUPLE, None, (LEAF,) * n, n, True) for n in range(129)]
_FLAT_LISTS = [node(LIST, None, (LEAF,) * n, n, True) for n in range(129)]
install(NONE_KIND, lambda x, leaves: NONE)
install(TUPLE, _walk_tuple)
install(LIST, _walk_list)
install(DICT, _walk_dict)
register(ORDERED_DICT)
register(DEFAULT_DICT)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, in order, and its structure.

        unflatten(treedef, leaves) == tree

    Where ``is_leaf(x)`` is true, ``x`` is a leaf; it is called with every node and leaf, from the root down.

    >>> flatten({"b": (1, None), "a": 2})
    ([2, 1], PyTreeDef({'a': *, 'b': (*, None)}))
    """
    if tree.__class__ is tuple and is_leaf is None and LEAF_TYPES.issuperset(map(type, tree)) and len(tree) < 129:
        return list(tree), _FLAT_TUPLES[len(tree)]  # the arguments of most function calls
    leaves: list[Any] = []
    try:
        if is_leaf is not None:
            return leaves, _walk_with_is_leaf(tree, is_leaf, leaves)
        try:
            walk = WALKS[type(tree)]
        except KeyError:
            walk = classify(type(tree))
        if walk is None:
            return [tree], LEAF
        return leaves, walk(tree, leaves)
    except Unsortable:
        flatten_with_path(tree, is_leaf)  # raises the error with the path of the keys
        raise


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves."""
    try:
        return treedef.unflatten(leaves)
    except AttributeError:
        need_structure("tree.unflatten", treedef)
        raise


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """The structure of a tree."""
    return flatten(tree, is_leaf)[1]


def _walk_with_is_leaf(x: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> TreeDef:
    kind = None if is_leaf(x) else kind_of(type(x))
    if kind is None:
        leaves.append(x)
        return LEAF
    values, data = kind.flatten(x)
    return assemble(kind, data, tuple([_walk_with_is_leaf(value, is_leaf, leaves) for value in values]))


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """``flatten`` with the path of keys beside each leaf.

    >>> flatten_with_path({"w": [1]})[0]
    [((DictKey(key='w'), SequenceKey(idx=0)), 1)]
    """
    stop: Callable[[KeyPath, Any], bool] | None = None
    if is_leaf is not None:
        predicate = is_leaf
        stop = predicate if is_leaf_takes_path else (lambda _, x: predicate(x))
    leaves: list[tuple[KeyPath, Any]] = []
    return leaves, _walk_with_path(tree, (), stop, leaves)


def _walk_with_path(
    x: Any, path: KeyPath, stop: Callable[[KeyPath, Any], bool] | None, leaves: list[tuple[KeyPath, Any]]
) -> TreeDef:
    kind = None if stop is not None and stop(path, x) else kind_of(type(x))
    if kind is None:
        leaves.append((path, x))
        return LEAF
    try:
        pairs, data = kind.flatten_with_keys(x)
    except Unsortable as error:
        raise BadArgument(f"{error.what[:-1]} at {path_text(path)}.", hint=error.hint) from None
    children = [_walk_with_path(value, path if key is None else (*path, key), stop, leaves) for key, value in pairs]
    return assemble(kind, data, tuple(children))
