"""What is restored is what was saved, bit for bit, on the devices that are asked for."""

from collections import OrderedDict
from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest
from helpers.own_pytree_nodes import Bag, Couple, Layer, Point
from helpers.saved_trees import bits, same
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import NamedSharding, P, errors, random
from handlax import numpy as hnp
from handlax.checkpoints import restore, restoring, save
from handlax.experimental.layout import Format, Layout
from handlax.testing.strategies import arrays, dtypes, shapes, shardings, trees
from handlax.tree_util import DictKey, GetAttrKey, register_pytree_with_keys_class

NUMBERS = st.one_of(st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(max_size=3))


@dataclass
class Both:
    """A leaf that is saved, and the like of what is restored."""

    saved: object
    like: object


@st.composite
def both(draw):
    kind = draw(st.sampled_from(["number", "numpy", "scalar", "array", "weak", "sharded"]))
    if kind == "number":
        x = draw(NUMBERS)
    elif kind == "weak":
        x = hnp.sin(draw(st.floats(-9, 9)))
    elif kind == "scalar":
        x = draw(arrays(shape=(), bits=True))[()]
    else:
        x = draw(arrays(dtypes(keys=kind != "numpy"), shapes(), bits=True))
    if kind not in ("array", "sharded"):
        return Both(x, x)
    x = hnp.asarray(x)
    like = hx.ShapeDtypeStruct(x.shape, x.dtype)
    if kind == "array":
        return Both(x, draw(st.sampled_from([x, like])))
    return Both(hx.device_put(x, draw(shardings(x.shape))), like.update(sharding=draw(shardings(x.shape))))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root, numbers = tmp_path_factory.mktemp("saved"), count()
    return lambda: root / str(next(numbers))


@given(tree=trees(both(), max_leaves=5))
def test_what_is_restored_is_what_was_saved_where_it_is_asked_for(folders, tree):
    folder, saved = folders(), hx.tree.map(lambda x: x.saved, tree)
    save(folder, saved)
    restored = restore(folder, hx.tree.map(lambda x: x.like, tree))
    assert hx.tree.structure(restored) == hx.tree.structure(saved)
    for x, wanted in zip(hx.tree.leaves(restored), hx.tree.leaves(tree)):
        assert bits(x)[:3] == bits(wanted.saved)[:3]
        if isinstance(wanted.like, hx.ShapeDtypeStruct):
            assert (x.sharding if x.committed else None) == wanted.like.sharding
    same(hx.tree.leaves(restore(folder, saved)), hx.tree.leaves(saved))


MESHES = [(hx.make_mesh((rows, size // rows), ("a", "b")), P(*spec))
          for size, rows in ((1, 1), (2, 2), (4, 2), (8, 4)) for spec in (("a", "b"), (None, ("b", "a")))]


@pytest.mark.parametrize("source", MESHES, ids=lambda pair: f"{pair[0].axis_sizes}, {pair[1]}")
def test_on_every_pair_of_meshes(tmp_path, source):
    x = np.arange(128, dtype="float32").reshape(8, 16)
    y = hx.device_put(x, NamedSharding(source[0], P()))
    save(tmp_path, {"x": hx.device_put(x, NamedSharding(*source)), "y": y})
    for target in MESHES:
        wanted = hx.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(*target))
        restored = restore(tmp_path, {"x": wanted, "y": wanted})
        assert all(y.sharding == wanted.sharding and (np.asarray(y) == x).all() for y in restored.values())


def test_the_sharding_of_a_type_is_over_the_mesh_in_force(tmp_path):
    mesh, spec = MESHES[-2]
    x = np.arange(128, dtype="float32").reshape(8, 16)
    save(tmp_path, x)
    with hx.set_mesh(mesh):
        like = hx.typeof(hx.reshard(x, spec))
        restored = restore(tmp_path, like)
    assert (restored.type, restored.sharding) == (like, NamedSharding(mesh, spec))
    assert (np.asarray(restored) == x).all()


def test_every_dtype_is_kept(tmp_path):
    x = np.arange(6).astype("int8").reshape(2, 3)
    every = [x.astype(dtype) for dtype in sorted(hx.dtypes.EVERY, key=str)]
    tree = [[y, hnp.asarray(y), y[0, 2]] for y in every]
    tree += [np.zeros((2, 3), hx.float0), x[:, ::2]]
    save(tmp_path, tree)
    same(restore(tmp_path), tree)
    same(restore(tmp_path, tree), tree)


def test_numbers_and_texts_are_kept(tmp_path):
    numbers = [True, 0, -(16**5000), 0.1, -0.0, float("nan"), -float("inf"), 1j, complex(-0.0, 0.0), "", "é\n"]
    numbers += ["\ud800"]  # half of a pair
    save(tmp_path, numbers)
    same(restore(tmp_path), numbers)
    same(restore(tmp_path, numbers), numbers)


def test_keys_may_be_names_that_others_have_for_themselves(tmp_path):
    tree = {name: np.arange(3) for name in ("__lock", "a__lock", "____lock", "\0", "..", "x" * 5000)}
    save(tmp_path, tree)
    same(restore(tmp_path), tree)


def test_without_like_containers_are_plain(tmp_path):
    tree = {"b": [1, (2.0, None), ()], "a": OrderedDict(z=3, y=[]), 3: Point(1, 2), "bag": Bag([1, 2], "label"),
            "layer": Layer(1), "couple": Couple([1], 2), "frozen": hx.tree.freeze({"w": (1, 2)})}
    save(tmp_path, {str(key): x for key, x in tree.items()})
    assert restore(tmp_path) == {
        "b": [1, (2.0, None), ()], "a": {"z": 3, "y": []}, "3": {"x": 1, "y": 2}, "bag": {"0": 1, "1": 2},
        "layer": {"w": 1, "b": None}, "couple": {"left": [1], "right": 2}, "frozen": {"w": (1, 2)},
    }
    save(tmp_path, [{1: "one"}, {(2, 3): "two"}])
    assert restore(tmp_path) == [{1: "one"}, {"(2, 3)": "two"}]


def test_like_decides_the_containers_and_the_kinds(tmp_path):
    save(tmp_path, {"a": np.arange(3.0), "n": 3, "t": "text"})
    like = OrderedDict(a=hnp.zeros(3, "float64"), n=hx.typeof(3), t="")
    same(restore(tmp_path, like), OrderedDict(a=hnp.arange(3.0, dtype="float64"), n=hnp.asarray(3), t="text"))
    same(restore(tmp_path, hx.tree.freeze(like)).thaw(), restore(tmp_path, like))
    like = hx.eval_shape(lambda: {"a": hnp.zeros(3, "float64"), "n": 0}) | {"t": ""}
    assert hx.typeof(restore(tmp_path, like)["n"]) == hx.typeof(0)


def test_leaves_are_found_by_their_paths_in_any_order(tmp_path):
    save(tmp_path, OrderedDict(a=np.zeros(1), b=1))
    same(restore(tmp_path, OrderedDict(b=0, a=np.ones(1))), OrderedDict(b=1, a=np.zeros(1)))


@pytest.mark.parametrize("keys", [(GetAttrKey("p"), DictKey("p")), (GetAttrKey("p"), GetAttrKey("p"))], ids=str)
def test_of_children_whose_names_meet_no_leaf_is_lost(tmp_path, keys):
    @register_pytree_with_keys_class
    class Node:
        def __init__(self, *children):
            self.children = children

        def tree_flatten_with_keys(self):
            return tuple(zip((keys[0], GetAttrKey("q"), keys[1]), self.children)), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    save(tmp_path, {"node": Node(1, 2, np.arange(3))})
    same(restore(tmp_path), {"node": [1, 2, np.arange(3)]})
    same(restore(tmp_path, {"node": Node(0, 0, np.zeros(3, int))})["node"].children, (1, 2, np.arange(3)))


def test_a_layout_is_kept_where_it_is_asked_for(tmp_path):
    format = Format(Layout((1, 0)), NamedSharding(*MESHES[2]))
    x = hx.device_put(np.arange(32.0, dtype="float32").reshape(4, 8), format)
    row_major = hx.device_put(x, Format(Layout((0, 1)), format.sharding))
    save(tmp_path, {"x": x, "n": 1})
    for like, wanted in ((x, format), (hx.ShapeDtypeStruct(x.shape, x.dtype, sharding=format), format),
                         (row_major, row_major.format)):
        restored = restore(tmp_path, {"x": like, "n": 0})["x"]
        assert (restored.format.layout.major_to_minor, restored.sharding) == (
            wanted.layout.major_to_minor, wanted.sharding)
        assert (np.asarray(restored) == np.asarray(x)).all()
    x.delete()  # as by donation
    assert restore(tmp_path, {"x": x, "n": 0})["x"].format.layout.major_to_minor == (1, 0)


def test_a_tree_that_is_replaced_while_it_is_read_is_the_next_one(tmp_path, monkeypatch):
    save(tmp_path, {"x": np.zeros(3)})
    read, saves = restoring.read_folder, iter([1, 2])

    def replaced(folder):
        found = read(folder)
        for number in saves:
            save(tmp_path, {"x": np.full(3, number)})
            break
        return found

    monkeypatch.setattr(restoring, "read_folder", replaced)
    assert restore(tmp_path)["x"].tolist() == [2, 2, 2]


def test_states_of_optimisers_and_keys_go_on(tmp_path):
    init, update, params = hx.example_libraries.optimizers.adam(0.1)
    loss = lambda w, key: (w * random.normal(key, (3,))).sum()
    step = hx.jit(lambda i, state, key: update(i, hx.grad(loss)(params(state), key), state))
    state, key = init(hnp.arange(3.0)), random.key(0)
    state = step(0, state, key)
    save(tmp_path, (state, key))
    state_again, key_again = restore(tmp_path, (init(hnp.zeros(3)), random.key(1)))
    same(step(1, state_again, key_again), step(1, state, key))


SAVED = {"w": np.arange(6.0).reshape(2, 3), "n": 1, "t": "text"}
MISTAKES = {
    "a leaf is missing": ({"w": SAVED["w"], "n": 1}, errors.TreeMismatch, r"got none at \['t'\]"),
    "a leaf is more": (SAVED | {"u": 1}, errors.TreeMismatch, r"got more at \['u'\]"),
    "another tree": ([1], errors.TreeMismatch, r"got none at \['n'\], \['t'\], \['w'\] and more at \[0\]"),
    "another shape": (
        SAVED | {"w": np.zeros((3, 2))}, errors.ShapeMismatch, r"\(3, 2\) at \['w'\], which has \(2, 3\)"),
    "another dtype": (SAVED | {"w": hnp.zeros((2, 3))}, errors.DTypeMismatch, r"float32 at \['w'\], which has float64"),
    "an array as a number": (SAVED | {"w": 1.0}, errors.DTypeMismatch, r"got float at \['w'\], which is numpy"),
    "a number as another": (SAVED | {"n": 1.0}, errors.DTypeMismatch, r"got float at \['n'\], which is int"),
    "a text as an array": (SAVED | {"t": hnp.zeros(())}, errors.DTypeMismatch, r"got array at \['t'\], which is str"),
    "a sharding that does not fit": (
        SAVED | {"w": hx.ShapeDtypeStruct((2, 3), "float64", sharding=NamedSharding(MESHES[2][0], P(None, "a")))},
        errors.ShapeMismatch, r"dimension 1 of the leaf at \['w'\] must be a multiple of 2"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_like_that_differs_is_an_error_that_names_the_leaf(tmp_path, mistake):
    like, kind, message = MISTAKES[mistake]
    save(tmp_path, SAVED)
    with pytest.raises(kind, match=f"^restore: .*{message}") as caught:
        restore(tmp_path, like)
    assert "test_restoring.py" in str(caught.value).splitlines()[1]


def test_what_is_nothing_saved_is_an_error(tmp_path):
    for name in ("nothing", "nothing.safetensors"):
        with pytest.raises(FileNotFoundError, match=f"there must be a saved tree at .*{name}, got no folder") as caught:
            restore(tmp_path / name)
        assert type(caught.value) is errors.MissingCheckpoint
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.BadCheckpoint, match=r"zarr\.json must be the table of contents .* got none"):
        restore(tmp_path / "empty")
    np.savez(tmp_path / "arrays.npz", x=np.ones(2))
    with pytest.raises(errors.BadCheckpoint, match=r"(?s)must be a folder .*got a file of another kind.*numpy\.load"):
        restore(tmp_path / "arrays.npz")
