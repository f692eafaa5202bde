"""The table of contents: what it keeps of a tree, and that no byte of it changes unseen."""

import json
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import errors
from handlax.checkpoints import restore, save
from handlax.checkpoints.contents import TABLE, outline_of, plain, read_contents
from handlax.lowering.clients.agreement import digest
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
    assert sorted(hx.tree.leaves(plain(outline, numbers))) == [*range(len(leaves))] and next(numbers, None) is None
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


@pytest.fixture
def forged(tmp_path):
    """Writes a table whose digest is right."""
    save(tmp_path, {"x": np.arange(4.0), "n": 1})

    def write(change):
        table = json.loads((tmp_path / TABLE).read_text())
        attributes = table["attributes"]
        number, array = attributes["handlax"]["leaves"]
        change(attributes["handlax"], number, array)
        attributes["sha256"] = digest(json.dumps(attributes["handlax"]).encode())
        (tmp_path / TABLE).write_text(json.dumps(table))
        return tmp_path

    return write


@pytest.mark.parametrize("change", [
    dict(shape=[2**45], chunk=[2**20]), dict(shape=[2**30], chunk=[2**30]), dict(shape=[2**62, 2**62]),
    dict(shape=[-1]), dict(shape=[4.0]), dict(shape=[1] * 99, chunk=[1] * 99), dict(shape="4"), dict(chunk=[0]),
    dict(chunk=[-1]),
    dict(chunk=[2, 2]), dict(dtype="object"), dict(dtype=4), dict(name="../.."), dict(name="9.x"), dict(kind="list"),
    dict(more=1),
], ids=str)
def test_an_array_that_no_save_has_described_is_an_error_and_takes_little_memory(forged, change):
    folder = forged(lambda said, number, array: array.update(change))
    tracemalloc.start()
    try:
        with pytest.raises(errors.BadCheckpoint):
            restore(folder)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("change", [
    lambda said, number, array: number.update(text="zz"), lambda said, number, array: number.update(text=3),
    lambda said, number, array: number.update(kind="float", text="00"),
    *[lambda said, number, array, outline=outline: said.update(outline=outline) for outline in (
        {"list": [0, 0, 0]}, {"list": [0]}, {"other": [0, 0]}, {"dict": [0, 0]}, {"dict": [[[], 0], ["a", 0]]}, 5,
        [0, 0])],
    lambda said, number, array: said.update(data=5), lambda said, number, array: said.update(data="../x"),
    lambda said, number, array: said.update(notes=5),
])
def test_a_table_that_no_save_has_written_is_an_error(forged, change):
    with pytest.raises(errors.BadCheckpoint, match="must be the table of contents of a saved tree, got "):
        restore(forged(change))


def test_what_is_no_file_is_an_error(tmp_path):
    os.mkfifo(tmp_path / TABLE)
    with pytest.raises(errors.BadCheckpoint, match="the table of contents of a saved tree, got no regular file"):
        restore(tmp_path)


def test_another_format_is_told_apart(saved):
    folder, data = saved
    (folder / TABLE).write_bytes(data.replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(errors.BadCheckpoint, match="got one of the format 9, where this version reads 1"):
        read_contents("restore", folder)
