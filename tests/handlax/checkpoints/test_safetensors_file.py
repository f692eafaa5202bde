"""One file of the format safetensors: its own package reads ours, we read its files, and damaged ones are errors."""

import json
import os
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from helpers.many_processes import in_processes
from helpers.saved_trees import same
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import NamedSharding, P, errors, random
from handlax import numpy as hnp
from handlax.checkpoints import restore, safetensors_file, save, save_async
from handlax.checkpoints.folder_lock import FolderLock
from handlax.checkpoints.safetensors_file import _NAMES as NAMES
from handlax.testing.faults import failing_files, full_disk, kills
from handlax.testing.strategies import arrays, shapes, shardings

WIDE = [name for name in NAMES if name != "float4_e2m1fn"]
TREE = {"layers": [{"w": np.arange(6, dtype="float32").reshape(2, 3)}, {"w": np.ones(2, "float16")}], "b": np.int8([1])}
FLAT = {"layers.0.w": TREE["layers"][0]["w"], "layers.1.w": TREE["layers"][1]["w"], "b": TREE["b"]}


def file_of(entries, data=b"", length=None):
    """The bytes of a file with these entries in its header."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.fixture(scope="module")
def package():
    """The package of the format."""
    return pytest.importorskip("safetensors")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("saved") / "tree.safetensors"


@st.composite
def flat_trees(draw):
    names = draw(st.lists(st.text(max_size=4), max_size=4, unique=True))
    return {name: hnp.asarray(draw(arrays(st.sampled_from(WIDE), shapes(), bits=True))) for name in names}


@given(tree=flat_trees(), data=st.data())
def test_what_is_restored_is_what_was_saved_where_it_is_asked_for(file, tree, data):
    saved = {name: hx.device_put(x, data.draw(shardings(x.shape))) for name, x in tree.items()}
    save(file, saved)
    like = {name: hx.ShapeDtypeStruct(x.shape, x.dtype, sharding=data.draw(shardings(x.shape)))
            for name, x in tree.items()}
    restored = restore(file, like)
    for name, x in tree.items():
        assert np.asarray(restored[name]).tobytes() == np.asarray(x).tobytes()
        assert (restored[name].dtype, restored[name].sharding) == (x.dtype, like[name].sharding)
    same(restore(file), tree)


@given(tree=flat_trees())
def test_the_package_reads_what_is_saved_and_writes_what_is_restored(package, file, tree):
    save(file, tree)
    found = package.deserialize(file.read_bytes())
    assert {name: (facts["dtype"], (*facts["shape"],), bytes(facts["data"])) for name, facts in found} == {
        name: (NAMES[x.dtype.name], x.shape, np.asarray(x).tobytes()) for name, x in tree.items()}
    parts = {name: np.ascontiguousarray(x) for name, x in tree.items()}
    specs = {name: package.TensorSpec(dtype=x.dtype.name, shape=tree[name].shape, data_ptr=x.ctypes.data,
                                          data_len=x.nbytes) for name, x in parts.items()}
    package.serialize_file(specs, str(file), {"format": "np"})
    same(restore(file), tree)


def test_elements_of_four_bits_are_two_to_a_byte(package, file, monkeypatch):
    x = hnp.arange(8).astype("float4_e2m1fn").reshape(2, 4)
    mesh = hx.make_mesh((4,), ("i",))
    save(file, {"x": hx.device_put(x, NamedSharding(hx.make_mesh((2,), ("i",)), P(None, "i")))})
    low, high = np.asarray(x).reshape(4, 2).view(np.uint8).T
    (_, facts), = package.deserialize(file.read_bytes())
    assert (facts["dtype"], facts["shape"], bytes(facts["data"])) == ("F4", [2, 4], (low | high << 4).tobytes())
    for spec in (P(), P(None, "i")):  # of the second the parts are half bytes
        like = hx.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec))
        assert (np.asarray(restore(file, {"x": like})["x"]) == np.asarray(x)).all()
    columns = {"x": hx.device_put(x, NamedSharding(mesh, P(None, "i")))}
    save(file, columns)
    assert (np.asarray(restore(file)["x"]) == np.asarray(x)).all()
    monkeypatch.setattr(safetensors_file, "_joined", lambda leaf, own: own)  # as where others have the columns between
    with pytest.raises(errors.NotSaved, match="must have an even number of elements along the last dimension"):
        save(file, columns)
    with pytest.raises(errors.DTypeMismatch, match=r"must have an even number of elements, got \[3\] at x"):
        save(file, {"x": hnp.zeros(3, "float4_e2m1fn")})


def test_names_are_keys_joined_by_dots_and_the_order_is_that_of_like(file):
    save(file, TREE)
    same(restore(file, hx.tree.map(np.zeros_like, TREE)), TREE)
    same({name: np.asarray(x) for name, x in restore(file).items()}, FLAT)
    file.write_bytes(file_of({"b": entry("U8", (1,), (0, 1)), "a": entry("U8", (1,), (1, 2))}, b"\1\2"))
    assert [x.item() for x in restore(file, {"a": np.uint8([0]), "b": np.uint8([0])}).values()] == [2, 1]


def test_parts_that_fill_a_box_are_one_write_and_one_read(file, monkeypatch):
    x = np.arange(4000.0, dtype="float32").reshape(1000, 4)
    columns = {"x": hx.device_put(x, NamedSharding(hx.make_mesh((2, 2), ("i", "j")), P("i", "j")))}
    writes, write = [], os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda number, data, place: writes.append(place) or write(number, data, place))
    save(file, columns)
    assert len(writes) == 1
    reads, fill = [], safetensors_file.FileArray._filled
    monkeypatch.setattr(safetensors_file.FileArray, "_filled", lambda *args: reads.append(args) or fill(*args))
    restored = restore(file, columns)["x"]
    assert len(reads) == 1 and restored.sharding == columns["x"].sharding and (np.asarray(restored) == x).all()


def test_every_array_is_aligned(file):
    save(file, {"a": np.int8([1]), "b": np.ones(3), "c": np.float32(1), "d": np.zeros(0)})
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    assert length % 8 == 0
    assert {name: facts["data_offsets"][0] for name, facts in header.items()} == {"b": 0, "d": 24, "c": 24, "a": 28}


@pytest.mark.parametrize(("tree", "error", "message"), [
    ({"n": 1}, errors.NotAnArray, "the leaves of a tree in one file must be arrays, got int at n"),
    ({"z": np.complex128([1])}, errors.DTypeMismatch, "must have the dtype of an array, got complex128 at z"),
    ({"k": random.key(0)}, errors.DTypeMismatch, r"safetensors must have the dtype of an array, got key<fry> at k"),
    ({"a.b": np.ones(1), "a": {"b": np.int8([1])}, "c": np.ones(1)}, errors.BadArgument,
     "got two with the keys 'a.b', joined by dots"),
    ({"__metadata__": np.ones(1)}, errors.BadArgument, "must not have the key '__metadata__'"),
])
def test_what_the_format_does_not_have_is_an_error_and_changes_nothing(file, tree, error, message):
    save(file, TREE)
    with pytest.raises(error, match=message):
        save(file, tree)
    same(restore(file, TREE), TREE)


FINE_FOR_THE_PACKAGE = ("an unknown dtype", "very many dimensions")
WRONG = {
    "nothing": (b"", "a header of 0 bytes in a file of 0"),
    "a part of the length": (b"\1\0\0", "a header of 1 bytes in a file of 3"),
    "a header beyond the end": (file_of({}, length=3), "a header of 3 bytes in a file of 10"),
    "a header of exabytes": (file_of({}, length=2**63), f"a header of {2**63} bytes in a file of 10"),
    "no JSON": (file_of(b"{'a': 1}"), "Expecting property name enclosed in double quotes: line 1 column 2"),
    "no text": (file_of(b"\xff\xfe\0"), "'utf-8' codec can't decode byte 0xff in position 0"),
    "nested lists": (file_of(b"[" * 100_000), "a header of deeply nested lists"),
    "a number of a million digits": (file_of(b"9" * 1_000_000), "Exceeds the limit"),
    "a list": (file_of([1]), r"a header that is no object of JSON, but \[1\]"),
    "a name twice": (file_of(b'{"a": {}, "a": {}}'), "the name 'a' twice"),
    "an unknown dtype": (file_of({"a": entry("F6_E2M3", (4,), (0, 3))}, b"abc"), "'F6_E2M3'.* as the array 'a'"),
    "a dtype that is no text": (file_of({"a": entry(1)}, bytes(8)), "as the array 'a'"),
    "a negative size": (file_of({"a": entry(shape=(-2,))}, bytes(8)), "as the array 'a'"),
    "a size that is a truth value": (file_of({"a": entry("U8", (True,), (0, 1))}, b"a"), "as the array 'a'"),
    "no offsets": (file_of({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)), "as the array 'a'"),
    "offsets in another order": (file_of({"a": entry(offsets=(8, 0))}, bytes(8)), "as the array 'a'"),
    "another number of bytes": (file_of({"a": entry(offsets=(0, 7))}, bytes(7)), "as the array 'a'"),
    "sizes whose product is small": (file_of({"a": entry(shape=(2**62, 2**62, 0), offsets=(0, 0))}), "got f32"),
    "very many elements": (file_of({"a": entry(shape=(2**70,), offsets=(0, 2**72))}), "fewer than 2\\*\\*63 bytes"),
    "very many dimensions": (file_of({"a": entry("U8", [1] * 99, (0, 1))}, b"a"), "dimension"),
    "half a byte": (file_of({"a": entry("F4", (3,), (0, 2))}, b"ab"), "must have an even number of elements"),
    "a gap": (file_of({"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)), "'b' from byte .* on, where the one"),
    "arrays that overlap": (file_of({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)), "'b' from byte"),
    "fewer bytes": (file_of({"a": entry()}, bytes(7)), "bytes, where the last array ends at"),
    "more bytes": (file_of({"a": entry()}, bytes(9)), "bytes, where the last array ends at"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_such_file_is_an_error_that_says_why(file, wrong):
    data, message = WRONG[wrong]
    file.write_bytes(data)
    with pytest.raises(errors.BadCheckpoint, match=f"(?s)must be a file of the format safetensors, got .*{message}"):
        restore(file)


@pytest.mark.parametrize("wrong", [wrong for wrong in WRONG if wrong not in FINE_FOR_THE_PACKAGE])
def test_the_package_refuses_the_same(package, wrong):
    with pytest.raises(package.SafetensorError):
        package.deserialize(WRONG[wrong][0])


def test_other_places_are_errors(file, tmp_path):
    (tmp_path / "folder.safetensors").mkdir()
    os.mkfifo(tmp_path / "pipe.safetensors")
    for name, found in (("folder", "no regular file"), ("pipe", "no regular file")):
        with pytest.raises(errors.BadCheckpoint, match=f"must be a file of the format safetensors, got {found}"):
            restore(tmp_path / f"{name}.safetensors")
    file.write_bytes(file_of({"a": entry("BOOL", (2,), (0, 2))}, b"\1\2"))
    with pytest.raises(errors.BadCheckpoint, match="the array a must have booleans, got the byte 2"):
        restore(file)


@pytest.fixture(scope="module")
def whole(file):
    save(file.with_stem("whole"), {**TREE, "flag": np.array([True]), "half": hnp.zeros(4, "float4_e2m1fn")})
    return file.with_stem("whole").read_bytes()


@given(data=st.data())
def test_any_bytes_are_a_tree_or_an_error_and_take_little_memory(file, whole, data):
    changed = bytearray(data.draw(st.one_of(st.just(whole), st.binary(max_size=200))))
    for place, byte in data.draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3)):
        if changed:
            changed[place % len(changed)] = byte
    file.write_bytes(changed[:data.draw(st.one_of(st.none(), st.integers(0, len(changed))))])
    tracemalloc.start()
    try:
        with suppress(errors.BadCheckpoint):
            restore(file)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@given(words=st.lists(st.sampled_from(
    ["{", "}", "[", "]", ":", ",", '"a"', '"b"', '"dtype"', '"F32"', '"F4"', '"shape"', '"data_offsets"', "0", "1", "2",
     "8", "-1", "1e400", "NaN", "null", "true", str(2**63), '"__metadata__"', json.dumps(entry())]), max_size=12))
def test_any_header_is_a_tree_or_an_error(file, words):
    file.write_bytes(file_of(" ".join(words).encode(), bytes(8)))
    with suppress(errors.BadCheckpoint):
        restore(file)


# What happens while it is written


def test_a_write_of_a_part_is_followed_by_one_of_the_rest(file, monkeypatch):
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda number, data, place: write(number, data[:7], place))
    save(file, TREE)
    same(restore(file, TREE), TREE)


def test_a_full_disk_leaves_the_old_file_alone(tmp_path):
    file = tmp_path / "a.safetensors"
    save(file, TREE)
    with full_disk(2048), pytest.raises(errors.NotSaved, match=f"files must be written to {file}, got File too large"):
        save(file, {"x": np.zeros(10_000)})
    same(restore(file, TREE), TREE)
    assert os.listdir(tmp_path) == [file.name]


def test_any_change_that_fails_leaves_the_old_file_or_the_new_one(tmp_path):
    file, new = tmp_path / "a.safetensors", hx.tree.map(lambda x: x + 1, TREE)
    save(file, TREE)
    for fault in failing_files(lambda: save(file, new), tmp_path):
        assert fault.left is None or isinstance(fault.left, errors.NotSaved)
        same(restore(file, TREE), TREE if fault.left is not None and restore(file)["b"].item() == 1 else new)
    assert os.listdir(tmp_path) == [file.name]


def test_a_kill_at_any_change_leaves_the_old_file_or_the_new_one(tmp_path):
    file = tmp_path / "a.safetensors"
    save(file, {"x": np.zeros(4)})
    program = f"""
import numpy as np
from handlax import checkpoints
checkpoints.save({str(file)!r}, {{"x": np.ones(4)}})
"""
    for _ in kills(program, tmp_path):
        assert len({*restore(file)["x"].tolist()}) == 1
    assert restore(file)["x"].tolist() == [1.0] * 4
    assert os.listdir(tmp_path) == [file.name]


def test_one_save_at_a_time_writes_a_file(tmp_path):
    file = tmp_path / "a.safetensors"
    lock = FolderLock(tmp_path, "a.safetensors.lock")
    lock.acquire()
    with pytest.raises(errors.NotSaved, match="one save at a time"):
        save(file, TREE)
    lock.release()
    saved = save_async(file, TREE)
    saved.result(60)
    same(restore(file, TREE), TREE)
    assert os.listdir(tmp_path) == [file.name]


def test_files_of_others_are_left_alone_and_those_of_killed_saves_are_removed(tmp_path):
    file, names = tmp_path / "a.safetensors", ("b.safetensors.data.01234567", "a.safetensors.data.0123", "precious")
    for name in names:
        (tmp_path / name).write_text("precious")
    for name in ("new", "lock"):
        (tmp_path / f"a.safetensors.{name}").symlink_to(tmp_path / "precious")
    (tmp_path / "a.safetensors.data.01234567").touch()
    save(file, TREE)
    same(restore(file, TREE), TREE)
    assert {*os.listdir(tmp_path)} == {*names, file.name, "a.safetensors.new", "a.safetensors.lock"}
    assert not file.is_symlink() and {(tmp_path / name).read_text() for name in names} == {"precious"}


def test_what_is_left_of_a_save_takes_no_bytes_of_another_process(tmp_path):
    program = """
import os
import numpy as np
from handlax import NamedSharding, P, checkpoints
folder = os.environ["FOLDER"] + "/" + str(hx.process_index())
x = hx.device_put(np.arange(8, dtype=np.float32), NamedSharding(hx.make_mesh((4,), ("a",)), P("a")))
try:
    checkpoints.save(folder + "/a.safetensors", {"x": x})
except hx.errors.NotSaved as error:
    print(error.what)
"""
    for number in (0, 1):
        (tmp_path / str(number)).mkdir()
        for name in ("new", "data.01234567"):
            (tmp_path / str(number) / f"a.safetensors.{name}").write_bytes(bytes(8))
    for number, (said,) in enumerate(in_processes(program, 2, 2, FOLDER=str(tmp_path))):
        assert said.startswith("save: all processes must have one folder, got none with "), number
    assert not (tmp_path / "0" / "a.safetensors").exists()


MANY = """
import os
import numpy as np
from handlax import NamedSharding, P, checkpoints
mesh = hx.make_mesh((2, 2), ("a", "b"))
x = np.arange(64, dtype=np.float32).reshape(8, 8)
put = lambda *spec: hx.device_put(x, NamedSharding(mesh, P(*spec)))
tree = {"both": put("a", "b"), "columns": put(None, ("b", "a")), "whole": put(), "host": x[0]}
file = os.environ["FILE"]
if os.environ["SAVES"]:
    checkpoints.save(file, tree)
found = checkpoints.restore(file, {**tree, "both": put("b", None)})
print(all(np.array_equal(shard.data, x[shard.index]) for y in (found["both"], found["columns"], found["whole"])
          for shard in y.addressable_shards), np.array_equal(found["host"], x[0]), [*checkpoints.restore(file)])
"""


def test_what_so_many_processes_save_others_restore(tmp_path):
    names = "['both', 'columns', 'host', 'whole']"
    for saves, restores in ((2, 1), (1, 2)):
        file = str(tmp_path / f"{saves}.safetensors")
        for count, word in ((saves, "yes"), (restores, "")):
            assert in_processes(MANY, count, 4 // count, FILE=file, SAVES=word) == [[f"True True {names}"]] * count
