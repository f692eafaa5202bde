"""Walks from trees to leaves: the built-in node types, ``flatten`` and ``flatten_with_path``.

The walks of the three containers that fill programs are written out, since a call costs as much as their work.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import BadArgument
from .treedefs import (
    LEAF,
    LEAF_TYPES,
    WALKS,
    Keyed,
    Kind,
    Parts,
    TreeDef,
    assemble,
    at,
    classify,
    install,
    kind_of,
    need_structure,
    node,
    register,
    spread,
)
from .treekeys import DictKey, KeyPath, SequenceKey


def _walk_tuple(x: tuple[Any, ...], leaves: list[Any]) -> TreeDef:
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, x)):
        leaves += x
    elif (children := spread(x, leaves)) is not None:
        return node(TUPLE, None, children, len(leaves) - start, False)
    n = len(x)
    return _FLAT_TUPLES[n] if n < 129 else node(TUPLE, None, (LEAF,) * n, n, True)


def _walk_list(x: list[Any], leaves: list[Any]) -> TreeDef:
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, x)):
        leaves += x
    elif (children := spread(x, leaves)) is not None:
        return node(LIST, None, children, len(leaves) - start, False)
    n = len(x)
    return _FLAT_LISTS[n] if n < 129 else node(LIST, None, (LEAF,) * n, n, True)


class Unsortable(BadArgument):
    """The keys of a dict cannot be sorted; ``flatten`` walks again to name the path."""


# Insertion order of the keys -> (sorted keys, or None where they are in order; the structure if all values are leaves).
# Only keys that are all strings are kept, since 1 and True would share an entry. Bounded: emptied when full.
_Order = tuple[tuple[Any, ...] | None, TreeDef]
_ORDERS: dict[tuple[Any, ...], _Order] = {}
_MOST_ORDERS, _MOST_KEYS = 4096, 1024


def clear_caches() -> int:
    """Empty the memo of dict orders; gives how many entries it held."""
    count = len(_ORDERS)
    _ORDERS.clear()
    return count


def _order(keys: tuple[Any, ...]) -> _Order:
    try:
        ordered = tuple(sorted(keys))
    except TypeError:
        names = sorted({type(key).__name__ for key in keys})
        raise Unsortable(
            f"flatten: the keys of a dict must be sortable, got {', '.join(names)}.",
            hint="use keys of one type, or an OrderedDict, whose keys keep their order.",
        ) from None
    flat = node(DICT, ordered, (LEAF,) * len(keys), len(keys), True)
    # Compared by identity: the order may differ between equal keys only if they are not strings.
    order = None if all([a is b for a, b in zip(keys, ordered)]) else ordered, flat
    if len(keys) <= _MOST_KEYS and all([key.__class__ is str for key in keys]):
        if len(_ORDERS) >= _MOST_ORDERS:
            _ORDERS.clear()
        _ORDERS[keys] = order
    return order


def _walk_dict(x: dict[Any, Any], leaves: list[Any]) -> TreeDef:
    keys = tuple(x)
    ordered, flat = _ORDERS.get(keys) or _order(keys)
    values: Any = x.values() if ordered is None else [x[key] for key in ordered]
    start = len(leaves)
    if LEAF_TYPES.issuperset(map(type, values)):
        leaves += values
        return flat
    children = spread(values, leaves)
    return flat if children is None else node(DICT, flat.data, children, len(leaves) - start, False)


def _sorted_keys(x: dict[Any, Any]) -> tuple[Any, ...]:
    keys = tuple(x)
    return (_ORDERS.get(keys) or _order(keys))[1].data


def _dict_parts(x: dict[Any, Any]) -> Parts:
    keys = _sorted_keys(x)
    return [x[key] for key in keys], keys


def _dict_keyed(x: dict[Any, Any]) -> Keyed:
    keys = _sorted_keys(x)
    return [(DictKey(key), x[key]) for key in keys], keys


def _sequence_keyed(x: Sequence[Any]) -> Keyed:
    return [(SequenceKey(i), value) for i, value in enumerate(x)], None


def _ordered_keyed(x: OrderedDict[Any, Any]) -> Keyed:
    return [(DictKey(key), value) for key, value in x.items()], tuple(x)


def _defaultdict_parts(x: defaultdict[Any, Any]) -> Parts:
    keys = _sorted_keys(x)
    return [x[key] for key in keys], (x.default_factory, keys)


def _defaultdict_keyed(x: defaultdict[Any, Any]) -> Keyed:
    keys = _sorted_keys(x)
    return [(DictKey(key), x[key]) for key in keys], (x.default_factory, keys)


NONE_KIND = Kind(type(None), "None", lambda x: ((), None), lambda _, children: None, lambda x: ((), None))
TUPLE = Kind(tuple, "tuple", lambda x: (x, None), lambda _, children: tuple(children), _sequence_keyed)
LIST = Kind(list, "list", lambda x: (x, None), lambda _, children: list(children), _sequence_keyed)
DICT = Kind(
    dict, "dict", _dict_parts, lambda keys, children: dict(zip(keys, children)), _dict_keyed
)
ORDERED_DICT = Kind(
    OrderedDict,
    "OrderedDict",
    lambda x: (list(x.values()), tuple(x)),
    lambda keys, children: OrderedDict(zip(keys, children)),
    _ordered_keyed,
)
DEFAULT_DICT = Kind(
    defaultdict,
    "defaultdict",
    _defaultdict_parts,
    lambda data, children: defaultdict(data[0], zip(data[1], children)),
    _defaultdict_keyed,
)

NONE = node(NONE_KIND, None, (), 0, True)
_RUNS = [(LEAF,) * n for n in range(129)]
_FLAT_TUPLES = [node(TUPLE, None, run, len(run), True) for run in _RUNS]
_FLAT_LISTS = [node(LIST, None, run, len(run), True) for run in _RUNS]
install(NONE_KIND, lambda x, leaves: NONE)
install(TUPLE, _walk_tuple)
install(LIST, _walk_list)
install(DICT, _walk_dict)
register(ORDERED_DICT)
register(DEFAULT_DICT)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, in order, and its structure.

        unflatten(treedef, leaves) == tree

    ``is_leaf(x)`` is asked of every node: where it is true, the walk stops and ``x`` is a leaf.

    >>> flatten({"b": (1, None), "a": 2})
    ([2, 1], PyTreeDef({'a': *, 'b': (*, None)}))
    """
    if tree.__class__ is tuple and is_leaf is None and LEAF_TYPES.issuperset(map(type, tree)) and len(tree) < 129:
        return list(tree), _FLAT_TUPLES[len(tree)]  # the arguments of most calls
    leaves: list[Any] = []
    try:
        if is_leaf is not None:
            return leaves, _walk_until(tree, is_leaf, leaves)
        try:
            walk = WALKS[type(tree)]
        except KeyError:
            walk = classify(type(tree))
        if walk is None:
            return [tree], LEAF
        return leaves, walk(tree, leaves)
    except Unsortable:
        flatten_with_path(tree, is_leaf)  # finds the same keys, and raises with their path
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


def _walk_until(x: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> TreeDef:
    kind = None if is_leaf(x) else kind_of(type(x))
    if kind is None:
        leaves.append(x)
        return LEAF
    values, data = kind.parts(x)
    return assemble(kind, data, tuple([_walk_until(value, is_leaf, leaves) for value in values]))


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """``flatten`` with the path of keys beside each leaf.

    >>> flatten_with_path({"w": [1]})[0]
    [((DictKey(key='w'), SequenceKey(idx=0)), 1)]
    """
    stop: Callable[[KeyPath, Any], bool] | None = None
    if is_leaf is not None:
        given = is_leaf
        stop = given if is_leaf_takes_path else (lambda _, x: given(x))
    found: list[tuple[KeyPath, Any]] = []
    return found, _walk_paths(tree, (), stop, found)


def _walk_paths(
    x: Any, path: KeyPath, stop: Callable[[KeyPath, Any], bool] | None, found: list[tuple[KeyPath, Any]]
) -> TreeDef:
    kind = None if stop is not None and stop(path, x) else kind_of(type(x))
    if kind is None:
        found.append((path, x))
        return LEAF
    try:
        pairs, data = kind.keyed(x)
    except Unsortable as error:
        raise BadArgument(f"{error.what[:-1]} at {at(path)}.", hint=error.hint) from None
    children = [_walk_paths(value, path if key is None else (*path, key), stop, found) for key, value in pairs]
    return assemble(kind, data, tuple(children))
