"""Arrays on the disk: others read them, and a chunk that is changed or missing is an error."""

import numpy as np
import pytest
import tensorstore as ts
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import NamedSharding, P, errors, random
from handlax import numpy as hnp
from handlax.checkpoints import restore, save
from handlax.checkpoints.contents import read_contents
from handlax.effects.base import lazy_module
from handlax.effects.base.lazy_module import optional_module

TREE = {"w": np.arange(12, dtype="float32").reshape(3, 4), "b": [hnp.ones(3, "bfloat16"), hnp.zeros((0, 2))]}


def arrays_of(folder):
    """The folders of the arrays of a saved tree, by the paths of leaves."""
    contents = read_contents("test", folder)
    return {leaf.path: folder / contents.data / leaf.name for leaf in contents.leaves if leaf.name}


def test_others_read_the_arrays(tmp_path):
    x = hx.device_put(np.arange(32).reshape(4, 8), NamedSharding(hx.make_mesh((2, 4), ("a", "b")), P("a", "b")))
    save(tmp_path, {**TREE, "x": x, "key": random.key(3)})
    found = {path: ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(place)}}).result()
             for path, place in arrays_of(tmp_path).items()}
    assert (found["['w']"].read().result() == TREE["w"]).all()
    assert found["['b'][0]"].dtype.name == "bfloat16" and found["['b'][1]"].shape == (0, 2)
    assert (found["['x']"].read().result() == np.asarray(x)).all()
    assert found["['x']"].chunk_layout.write_chunk.shape == (2, 2)  # a chunk for each shard
    assert (found["['key']"].read().result() == np.asarray(random.key_data(random.key(3)))).all()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    save(folder, TREE)
    return folder, [(path, file, file.read_bytes()) for path, place in arrays_of(folder).items()
                    for file in place.glob("c/**/*") if file.is_file()]


@given(choice=st.integers(0, 10**6), place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_changed_bit_is_an_error_that_names_the_leaf(saved, choice, place, bit):
    folder, chunks = saved
    path, file, data = chunks[choice % len(chunks)]
    changed = bytearray(data)
    changed[place % len(data)] ^= 1 << bit
    file.write_bytes(changed)
    try:
        with pytest.raises(errors.BadCheckpoint) as caught:
            restore(folder)
    finally:
        file.write_bytes(data)
    assert f"the leaf at {path} must be as it was saved, got " in str(caught.value)


@pytest.mark.parametrize("change", [
    lambda file, data: file.unlink(), lambda file, data: file.write_bytes(data[:-5]),
    lambda file, data: file.write_bytes(b""),
], ids=["missing", "shorter", "empty"])
def test_a_chunk_that_is_missing_or_cut_off_is_an_error(saved, change):
    folder, chunks = saved
    _, file, data = chunks[0]
    change(file, data)
    try:
        with pytest.raises(errors.BadCheckpoint, match="must be as it was saved, got "):
            restore(folder)
    finally:
        file.write_bytes(data)
    restore(folder)


def test_without_tensorstore_the_error_says_what_to_install(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(lazy_module, "import_module", missing)
    with pytest.raises(errors.MissingModule, match="tensorstore must be installed") as caught:
        optional_module("tensorstore", "save")
    assert caught.value.hint == "pip install 'handlax[save]'."
