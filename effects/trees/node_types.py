"""The registry of pytree node types: how a node of each type is taken apart, with keys, and built again.

Whether a value is a node is decided by its exact type. ``None`` is a node without children, the keys of a ``dict`` are
sorted, a named tuple is a node of its own type. Any other type is a leaf until it is registered.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, NamedTuple

from ..base.caches import process_lock
from ..base.errors import BadArgument
from .paths import path_keys

Flattened = tuple[Sequence[Any], Any]  # one node: (children, static data)
FlattenedWithKeys = tuple[Sequence[tuple[Any, Any]], Any]  # one node: ((key, child) pairs, static data)


class NodeType(NamedTuple):
    """A registered node type.

        unflatten(data, children) == x    where children, data = flatten(x)

    ``flatten_with_keys(x)`` has a key beside each child; the key ``None`` adds nothing to the path. Without it the
    children have the keys of ``fields``, the attributes that they are, where all nodes of the type have the same; else
    their indices. ``static``: whether the static data may differ between nodes; else they are ``()``.
    """

    cls: type
    flatten: Callable[[Any], Flattened]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    flatten_with_keys: Callable[[Any], FlattenedWithKeys] | None
    fields: tuple[str, ...] = ()
    static: bool = True

    @property
    def attributes_alone(self) -> bool:
        """Whether its children are attributes and there are no static data, which jaxlib knows how to take apart."""
        return bool(self.fields) and not self.static


NodeListener = Callable[[NodeType], None]


def _keyed(node: NodeType) -> Callable[[Any], FlattenedWithKeys]:
    """``flatten_with_keys`` for a node type without one."""

    def flatten_with_keys(x: Any) -> FlattenedWithKeys:
        children, data = node.flatten(x)
        if node.fields:
            return [(path_keys.GetAttrKey(name), child) for name, child in zip(node.fields, children)], data
        return [(path_keys.FlattenedIndexKey(i), child) for i, child in enumerate(children)], data

    return flatten_with_keys


class Unsortable(BadArgument):
    """The keys of a dict cannot be sorted. ``flatten`` catches it, and raises an error with the path to the dict."""


def _sorted_keys(x: dict[Any, Any]) -> tuple[Any, ...]:
    """The keys of a dict in ascending order, which is the order of its children."""
    try:
        return tuple(sorted(x))
    except TypeError:
        names = sorted({type(key).__name__ for key in x})
        raise Unsortable(
            f"flatten: the keys of a dict must be sortable, got {', '.join(names)}.",
            hint="use keys of one type, or an OrderedDict, whose keys keep their order.",
        ) from None


def _with_keys(x: dict[Any, Any], keys: tuple[Any, ...]) -> list[tuple[path_keys.DictKey, Any]]:
    return [(path_keys.DictKey(key), x[key]) for key in keys]


def _of_sequence(x: Sequence[Any]) -> FlattenedWithKeys:
    return [(path_keys.SequenceKey(i), value) for i, value in enumerate(x)], None


def _of_dict(x: dict[Any, Any]) -> FlattenedWithKeys:
    keys = _sorted_keys(x)
    return _with_keys(x, keys), keys


def _of_namedtuple(x: Any) -> FlattenedWithKeys:
    return [(path_keys.GetAttrKey(name), value) for name, value in zip(x._fields, x)], None


def _of_defaultdict(x: defaultdict[Any, Any]) -> FlattenedWithKeys:
    keys = _sorted_keys(x)
    return _with_keys(x, keys), (x.default_factory, keys)


def _defaultdict_parts(x: defaultdict[Any, Any]) -> Flattened:
    keys = _sorted_keys(x)
    return [x[key] for key in keys], (x.default_factory, keys)


# The registry is append-only. jaxlib's registry, once it is loaded, listens.
_LOCK = process_lock()
_KEYED: dict[type, Callable[[Any], FlattenedWithKeys]] = {
    NoneType: lambda x: ((), None), tuple: _of_sequence, list: _of_sequence, dict: _of_dict,
}
_REGISTERED: dict[type, NodeType] = {}
_LISTENERS: list[NodeListener] = []


def flatten_with_keys_of(cls: type) -> Callable[[Any], FlattenedWithKeys] | None:
    """The function that takes a node of this type apart; None for a type of leaves."""
    return _KEYED.get(cls) or (_of_namedtuple if issubclass(cls, tuple) and hasattr(cls, "_fields") else None)


def fields_of(cls: type) -> tuple[str, ...]:
    """The names of the attributes that are the children of each node of this type, where they are known."""
    return _REGISTERED[cls].fields if cls in _REGISTERED else ()


def has_static_data(cls: type) -> bool:
    """Whether the nodes of this type, which is not built in or a named tuple, may differ in their static data."""
    return cls in _REGISTERED and _REGISTERED[cls].static


def is_shielded(cls: type) -> bool:
    """Whether a function of ours takes nodes of this type apart for jaxlib, which else does so itself."""
    return cls in _REGISTERED and not _REGISTERED[cls].attributes_alone


def register(node: NodeType) -> None:
    """Add a node type.

    Raises: BadArgument: the type is registered already.
    """
    with _LOCK:
        if node.cls in _KEYED:
            raise BadArgument(f"register: a type is registered once, {node.cls.__qualname__} is registered already.")
        _KEYED[node.cls] = node.flatten_with_keys or _keyed(node)
        _REGISTERED[node.cls] = node
        for listener in _LISTENERS:
            listener(node)


def on_register(callback: NodeListener) -> None:
    """Call ``callback`` once with every node type registered so far, and with each later one.

    ``None``, ``tuple``, ``list``, ``dict`` and named tuples, which every pytree registry knows by itself, are left out.
    """
    with _LOCK:
        for node in _REGISTERED.values():
            callback(node)
        _LISTENERS.append(callback)


register(
    NodeType(
        OrderedDict,
        lambda x: (tuple(x.values()), tuple(x)),
        lambda keys, children: OrderedDict(zip(keys, children)),
        lambda x: (_with_keys(x, tuple(x)), tuple(x)),
    )
)
register(
    NodeType(
        defaultdict,
        _defaultdict_parts,
        lambda data, children: defaultdict(data[0], zip(data[1], children)),
        _of_defaultdict,
    )
)
