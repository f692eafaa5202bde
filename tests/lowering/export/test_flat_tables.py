"""Tables in bytes: what is written is read, and what is damaged is refused."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlax.errors import BadArtifact, NotExportable
from handlax.lowering.export.flat_tables import Bytes, Many, Number, Table, Text, decode, encode

SCHEMA = {
    "Node": {"small": Number("b"), "name": Text(), "children": Many(Table("Node")), "wide": Number("I"),
             "data": Bytes(), "numbers": Many(Number("H")), "words": Many(Text()), "other": Table("Leaf")},
    "Leaf": {"flag": Number("?"), "half": Number("H")},
}
LEAVES = st.fixed_dictionaries({"flag": st.booleans(), "half": st.integers(0, 2**16 - 1)})
NODES = st.recursive(st.just([]), lambda inner: st.lists(st.fixed_dictionaries({
    "small": st.integers(-128, 127), "name": st.none() | st.text(), "children": inner,
    "wide": st.integers(0, 2**32 - 1), "data": st.none() | st.binary(),
    "numbers": st.lists(st.integers(0, 2**16 - 1)), "words": st.lists(st.text()), "other": st.none() | LEAVES,
}), min_size=1, max_size=3), max_leaves=5)


@given(NODES)
def test_what_is_written_is_read(nodes):
    for node in nodes:
        assert decode(SCHEMA, "Node", encode(SCHEMA, "Node", node)) == node


def test_a_field_that_was_not_written_is_absent():
    read = decode(SCHEMA, "Node", encode(SCHEMA, "Node", {"small": 3}))
    assert read == {"small": 3, "name": None, "children": [], "wide": 0, "data": None, "numbers": [], "words": [],
                    "other": None}


def test_fields_of_a_later_schema_are_passed_over():
    later = {**SCHEMA, "Leaf": {**SCHEMA["Leaf"], "new": Text()}}
    assert decode(SCHEMA, "Leaf", encode(later, "Leaf", {"half": 7, "new": "x"})) == {"flag": 0, "half": 7}


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    with suppress(BadArtifact):
        decode(SCHEMA, "Node", data)


@given(NODES, st.data())
def test_a_changed_byte_is_found_by_the_checksum(nodes, data):
    for node in nodes:
        written = bytearray(encode(SCHEMA, "Node", node))
        place = data.draw(st.sampled_from([*range(4), *range(8, len(written))]))  # outside of the identifier
        written[place] ^= data.draw(st.integers(1, 255))
        with pytest.raises(BadArtifact):
            decode(SCHEMA, "Node", bytes(written))


def test_a_table_that_is_read_a_thousand_times_is_refused():
    with pytest.raises(BadArtifact, match="more values than bytes"):
        decode(SCHEMA, "Node", bytes(_chain(40, 2)))


def _chain(depth, times):
    """Write a chain of tables, each of which refers to the next one several times."""
    out = bytearray(struct.pack("<I", 16))
    out += struct.pack("<HHHHH", 10, 8, 0, 0, 4) + bytes(2)  # the vtable: of the fields the children alone
    for left in reversed(range(depth)):
        out += struct.pack("<iII", len(out) - 4, 4, times if left else 0)
        out += b"".join([struct.pack("<I", 4 * (times - i)) for i in range(times if left else 0)])
    return out


def nested(depth):
    node = {}
    for _ in range(depth - 1):
        node = {"children": [node]}
    return node


def test_tables_are_in_each_other_up_to_a_depth():
    assert decode(SCHEMA, "Node", encode(SCHEMA, "Node", nested(200)))["children"]
    with pytest.raises(NotExportable, match="at most 200 levels"):
        encode(SCHEMA, "Node", nested(201))
    with pytest.raises(BadArtifact, match="more than 200 tables inside of each other"):
        decode(SCHEMA, "Node", bytes(_chain(201, 1)))
