"""Structures of trees as tables, with the types of nodes that were registered for it by name."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ...effects.base.errors import BadArgument, BadArtifact, HandlaxError, NotSerializable
from ...effects.trees import pytrees
from ...effects.trees.structure import assemble, is_leaf_structure, node_of
from .artifact_schema import REGISTERED, TREES
from .flat_tables import Fields, damaged

C = TypeVar("C", bound=type)


class NodeSerialization(NamedTuple):
    """How the nodes of a type are written: its name, and the maps of its static data to bytes and back.

    ``build`` makes a node of static data and children; None: the node that the tree registry makes.
    """

    nodetype: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_BY_TYPE: dict[type, NodeSerialization] = {}
_BY_NAME: dict[str, NodeSerialization] = {}


def register_pytree_node_serialization(
    nodetype: C,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> C:
    """Register how nodes of a type in the arguments and results of exported functions are serialized; gives the type.

    Args:
        serialized_name: by which the type is found again.
        serialize_auxdata, deserialize_auxdata: the maps of a node's static data to bytes and back.
        from_children: makes a node of its static data and its children; by default as the type was registered.

    Raises: BadArgument: the type or the name has been registered for it, or the type is no node.
    """
    for known, registry in ((nodetype, _BY_TYPE), (serialized_name, _BY_NAME)):
        if known in registry:
            other = registry[known]  # type: ignore[index]
            raise BadArgument(
                f"register_pytree_node_serialization: a type has one name and a name one type, got {nodetype} as "
                f"{serialized_name!r} after {other.nodetype} as {other.name!r}.",
            )
    if from_children is None and not pytrees.is_tree_node(nodetype):
        raise BadArgument(
            f"register_pytree_node_serialization: the type must be a node of trees, or have from_children, got "
            f"{nodetype}.",
            hint="register_pytree_node before.",
        )
    found = NodeSerialization(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _BY_TYPE[nodetype] = _BY_NAME[serialized_name] = found
    return nodetype


def register_namedtuple_serialization(nodetype: C, *, serialized_name: str) -> C:
    """Register that a named tuple is serialized by the names of its fields; gives the type.

    Raises: BadArgument: it is no named tuple, or the type or the name has been registered.

    >>> class Line(NamedTuple):
    ...     slope: float
    ...     height: float
    >>> register_namedtuple_serialization(Line, serialized_name="docs.Line") is Line
    True
    """
    fields = getattr(nodetype, "_fields", None)
    if not issubclass(nodetype, tuple) or fields is None:
        raise BadArgument(
            f"register_namedtuple_serialization: a named tuple is needed, got {nodetype}.",
            hint="register_pytree_node_serialization is for other types.",
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=lambda names, children: nodetype(**dict(zip(names, children, strict=True))),
    )


def _keys_to_bytes(keys: Any) -> bytes:
    """The keys of an ordered dictionary. Raises: NotSerializable: one is no string."""
    for key in keys:
        _checked_key(key)
    return json.dumps(list(keys)).encode()


register_pytree_node_serialization(
    OrderedDict, serialized_name="collections.OrderedDict", serialize_auxdata=_keys_to_bytes,
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
)


def tree_to_table(tree: Any) -> Fields:
    """The table of a structure. Raises: NotSerializable: a node is of a type that is not registered."""
    if is_leaf_structure(tree):
        return {"kind": 0}
    kind, data = node_of(tree)  # type: ignore[misc]
    table: Fields = {"children": [tree_to_table(child) for child in tree.children()] or None}
    if kind in TREES:
        names = [_checked_key(key) for key in data] if kind is dict else None
        return {**table, "kind": TREES.index(kind), "children_names": names or None}
    found = _BY_TYPE.get(kind)
    if found is None:
        raise NotSerializable(
            f"serialize: the nodes of trees must be of types with a name in serialized functions, got {kind}.",
            hint="export.register_pytree_node_serialization, or register_namedtuple_serialization.",
        )
    return {**table, "kind": REGISTERED, "custom_name": found.name, "custom_auxdata": found.write(data)}


def _checked_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotSerializable(f"serialize: the keys of dictionaries must be strings, got {key!r}.")


def table_to_tree(table: Fields) -> Any:
    """The structure of a table. Raises: BadArtifact: it is none, or has nodes of a type that is not registered."""
    kind, children = table["kind"], [table_to_tree(child) for child in table["children"]]
    if kind == 0 and not children:
        return assemble(None, ())
    if kind == REGISTERED:
        return _registered(table, children)
    if not 0 < kind < REGISTERED:
        raise damaged(f"a tree of the kind {kind}")
    if TREES[kind] is dict:
        keys = table["children_names"]
        if sorted({*keys}) != keys:
            raise damaged(f"a dictionary with the keys {keys}")
        return _assembled(dict, list(keys), children)
    return _assembled(TREES[kind], None, children)


def _registered(table: Fields, children: Sequence[Any]) -> Any:
    """The structure of a node of a registered type."""
    found = _BY_NAME.get(table["custom_name"])
    if found is None:
        raise BadArtifact(
            f"deserialize: the nodes of trees must be of types that are registered for it, got "
            f"{table['custom_name']!r}.",
            hint="export.register_pytree_node_serialization, or register_namedtuple_serialization.",
        )
    try:
        data = found.read(table["custom_auxdata"] or b"")
        if found.build is None:
            return _assembled(found.nodetype, data, children)
        return pytrees.structure(found.build(data, [child.unflatten([0] * child.num_leaves) for child in children]))
    except HandlaxError:
        raise
    except Exception as error:
        raise damaged(f"a {found.name} that cannot be read: {error}") from error


def _assembled(kind: Any, data: Any, children: Sequence[Any]) -> Any:
    try:
        return assemble((kind, data), children)
    except HandlaxError as error:
        raise damaged(f"a tree of another form: {error.what}") from error
