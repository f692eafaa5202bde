"""Structures of trees in serialized functions."""

from collections import OrderedDict
from typing import NamedTuple

import pytest

import handlax as hx
from handlax import export
from handlax.effects.trees import pytrees
from handlax.lowering.export.artifact_schema import SCHEMA
from handlax.lowering.export.flat_tables import decode, encode
from handlax.lowering.export.tree_serialization import table_to_tree, tree_to_table


class Line(NamedTuple):
    slope: float
    height: float


@hx.tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, x, unit):
        self.x, self.unit = x, unit

    def tree_flatten(self):
        return (self.x,), self.unit

    @classmethod
    def tree_unflatten(cls, unit, children):
        return cls(*children, unit)


class Unnamed(NamedTuple):
    x: float


export.register_namedtuple_serialization(Line, serialized_name="test.Line")
export.register_pytree_node_serialization(
    Scaled, serialized_name="test.Scaled", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
)


def reread(tree):
    return table_to_tree(decode(SCHEMA, "Tree", encode(SCHEMA, "Tree", tree_to_table(tree))))


@pytest.mark.parametrize("tree", [
    1.0, None, (), [], {}, (1.0,), [1.0, (2.0, None)], {"b": 1.0, "a": [2.0]}, {"": 1.0}, OrderedDict(z=1.0, a=2.0),
    Line(1.0, [2.0]), Scaled(Line(1.0, None), "m"), ((1.0, {"k": Scaled({}, "")}), {"key": [None]}),
], ids=lambda tree: str(pytrees.structure(tree)))
def test_a_structure_is_read_as_it_was(tree):
    structure = pytrees.structure(tree)
    assert reread(structure) == structure


def test_a_node_without_a_name_is_refused():
    with pytest.raises(hx.errors.NotSerializable, match=r"must be of types with a name .*Unnamed"):
        tree_to_table(pytrees.structure(Unnamed(1.0)))


def test_a_key_that_is_no_string_is_refused():
    for tree in ({1: 1.0}, OrderedDict({2: 1.0})):
        with pytest.raises(TypeError, match="keys of dictionaries must be strings"):
            tree_to_table(pytrees.structure(tree))


def test_a_name_that_nobody_registered_is_refused():
    with pytest.raises(hx.errors.BadArtifact, match="registered for it, got 'nobody'"):
        table_to_tree({**tree_to_table(pytrees.structure(Line(1.0, 2.0))), "custom_name": "nobody"} | {"children": []})


@pytest.mark.parametrize("changes", [
    {"kind": 9}, {"kind": -1}, {"kind": 0}, {"kind": 1}, {"kind": 4}, {"kind": 4, "children_names": ["b", "a"]},
    {"kind": 5, "custom_name": "test.Line", "custom_auxdata": b"["},
    {"kind": 5, "custom_name": "test.Line", "custom_auxdata": b'["slope"]'},
    {"kind": 5, "custom_name": "test.Scaled", "custom_auxdata": b"\xff"},
])
def test_a_table_that_is_no_tree_is_refused(changes):
    absent = {"children": [], "children_names": [], "custom_name": None, "custom_auxdata": None}
    leaf = {"kind": 0, **absent}
    with pytest.raises(hx.errors.BadArtifact):
        table_to_tree({**absent, "children": [leaf, leaf], **changes})


def test_a_type_and_a_name_are_registered_once():
    for nodetype, name in ((Line, "test.other"), (Unnamed, "test.Line")):
        with pytest.raises(hx.errors.BadArgument, match="one name and a name one type"):
            export.register_namedtuple_serialization(nodetype, serialized_name=name)


def test_what_is_no_node_is_not_registered():
    for nodetype in (tuple, list):
        with pytest.raises(hx.errors.BadArgument, match="named tuple is needed"):
            export.register_namedtuple_serialization(nodetype, serialized_name="test.tuple")
    with pytest.raises(hx.errors.BadArgument, match="must be a node of trees"):
        export.register_pytree_node_serialization(
            object, serialized_name="test.object", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
        )
