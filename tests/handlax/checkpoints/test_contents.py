"""The table of contents: what it keeps of a tree, and that no byte of it changes unseen."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import errors
from handlax.checkpoints import restore, save
from handlax.checkpoints.contents import TABLE, outline_of, plain, read_contents
from handlax.testing.strategies import trees

PLAIN = st.recursive(
    st.one_of(st.integers(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
                            st.dictionaries(st.text(max_size=2), inner, max_size=3),
                            st.dictionaries(st.integers(), inner, max_size=3)),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_containers_are_kept(tree):
    outline = json.loads(json.dumps(outline_of(tree)))
    found = plain(outline, iter(hx.tree.leaves(tree)))
    assert found == tree and hx.tree.structure(found) == hx.tree.structure(tree)


@given(trees(st.integers()))
def test_of_other_containers_the_leaves_are_kept_in_order(tree):
    leaves, outline = hx.tree.leaves(tree), json.loads(json.dumps(outline_of(tree)))
    numbers = iter(range(len(leaves)))
    assert {*hx.tree.leaves(plain(outline, numbers))} <= {*range(len(leaves))} and next(numbers, None) is None
    assert outline_of(hx.tree.freeze(tree)) == outline_of(tree)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    save(folder, {"x": np.arange(3.0), "n": [1, "é"]})
    return folder, (folder / TABLE).read_bytes()


@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_changed_bit_is_an_error(saved, place, bit):
    folder, data = saved
    changed = bytearray(data)
    changed[place % len(data)] ^= 1 << bit
    (folder / TABLE).write_bytes(changed)
    with pytest.raises(errors.BadCheckpoint, match="must be the table of contents of a saved tree, got "):
        restore(folder)


@given(length=st.integers(0, 10**6))
def test_a_part_of_it_is_an_error(saved, length):
    folder, data = saved
    (folder / TABLE).write_bytes(data[:length % len(data)])
    with pytest.raises(errors.BadCheckpoint):
        restore(folder)


def test_a_damaged_one_is_replaced_by_the_next_save(saved):
    folder, data = saved
    (folder / TABLE).write_bytes(data.replace(b'"n"', b'"m"'))
    save(folder, {"x": 1})
    assert restore(folder) == {"x": 1}


def test_another_format_is_told_apart(saved):
    folder, data = saved
    (folder / TABLE).write_bytes(data.replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(errors.BadCheckpoint, match="got one of the format 9, where this version reads 1"):
        read_contents("restore", folder)
