"""Meshes, specs and shardings side by side with JAX: parts, indices, equivalence and texts over random specs."""

import importlib
import random

import numpy as np
import pytest

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


class Meshes:
    """The same meshes in the words of one library."""

    def __init__(self, root):
        self.hx = importlib.import_module(root)
        s = self.sharding = importlib.import_module(f"{root}.sharding")
        devices = np.array(self.hx.devices("cpu"))
        shuffled = devices[[3, 0, 1, 7, 5, 6, 2, 4]]
        self.meshes = [
            s.Mesh(devices, "x"), s.Mesh(devices.reshape(2, 4), ("a", "b")), s.Mesh(devices[:1], "one"),
            s.Mesh(shuffled.reshape(2, 1, 2, 2), ("p", "q", "r", "s")), s.Mesh(devices.reshape(4, 2).T, ("a", "b")),
            self.hx.make_mesh((2, 2), ("a", "b")), s.AbstractMesh((2, 3), ("a", "b")),
        ]

    def named(self, which, entries):
        return self.sharding.NamedSharding(self.meshes[which], self.sharding.PartitionSpec(*entries))


@pytest.fixture(scope="module")
def sides():
    return Meshes("handlax"), Meshes("jax")


def random_entries(rng, mesh, rank):
    """Entries of a spec that use each axis of the mesh at most once."""
    entries = [[] for _ in range(rank)]
    for name in rng.sample(mesh.axis_names, len(mesh.axis_names)):
        if rank and rng.random() < 0.7:
            rng.choice(entries).append(name)
    return [tuple(names) or rng.choice([None, ()]) for names in entries][: rng.randint(0, rank)]


def indices(sharding, shape):
    return [(device.id, index) for device, index in sharding.devices_indices_map(shape).items()]


def test_the_text_of_meshes(sides):
    for ours, theirs in zip(*[side.meshes for side in sides]):
        assert str(ours) == str(theirs) and repr(ours) == repr(theirs)
        assert repr(ours.abstract_mesh) == repr(theirs.abstract_mesh) and repr(ours.shape) == repr(theirs.shape)
        assert ours.size == theirs.size and ours.empty == theirs.empty and ours.shape_tuple == theirs.shape_tuple


@pytest.mark.parametrize("seed", range(100))
def test_the_parts_of_arrays(seed, sides):
    rng = random.Random(seed)
    which, shape = rng.randrange(7), tuple(rng.choices([1, 4, 8, 24, 36], k=rng.randint(0, 3)))
    entries = random_entries(rng, sides[0].meshes[which], len(shape))
    ours, theirs = [side.named(which, entries) for side in sides]
    assert str(ours) == str(theirs) and ours.num_devices == theirs.num_devices
    assert ours.is_fully_replicated == theirs.is_fully_replicated
    try:
        expected = theirs.shard_shape(shape)
    except ValueError:
        with pytest.raises(ValueError, match="must be a multiple of"):
            ours.shard_shape(shape)
        return
    assert ours.shard_shape(shape) == expected
    if which != 6:
        assert indices(ours, shape) == indices(theirs, shape)


@pytest.mark.parametrize("seed", range(100))
def test_equivalent_shardings(seed, sides):
    rng = random.Random(seed)
    rank, pair = rng.randint(0, 3), []
    for which in rng.choices(range(6), k=2):
        pair.append((which, random_entries(rng, sides[0].meshes[which], rank)))
    ours, theirs = [[side.named(*one) for one in pair] for side in sides]
    assert ours[0].is_equivalent_to(ours[1], rank) == theirs[0].is_equivalent_to(theirs[1], rank)
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])


@pytest.mark.parametrize("write", [
    lambda P: P(), lambda P: P("a"), lambda P: P(None, ("a",)), lambda P: P((), ["a", "b"]), lambda P: P("a") + ("b",),
    lambda P: ("a",) + P("b"), lambda P: P("a", "b")[0], lambda P: P("a", "b")[1:], lambda P: P(P.UNCONSTRAINED, 1),
    lambda P: P("a", None) == P("a"), lambda P: P(("a",)) == P("a"), lambda P: P("a") == ("a",), lambda P: len(P(None)),
    lambda P: P("a", "b").index("b"), lambda P: P("a", None, None).count(None), lambda P: "a" in P("a"),
])
def test_specs(write, sides):
    ours, theirs = [write(side.sharding.PartitionSpec) for side in sides]
    assert repr(ours) == repr(theirs)


def test_the_mesh_in_force(sides):
    def texts(side):
        s = side.sharding
        seen = [s.get_mesh(), s.get_abstract_mesh()]
        with side.hx.set_mesh(side.meshes[1]):
            seen += [s.get_mesh(), s.get_abstract_mesh()]
            with s.use_abstract_mesh(s.AbstractMesh((8,), ("y",))):
                seen += [s.get_mesh(), s.get_abstract_mesh()]
            with side.hx.set_mesh(side.meshes[0]):
                seen += [s.get_mesh()]
        with side.meshes[1]:
            seen += [s.get_mesh(), s.get_abstract_mesh()]
        return list(map(repr, seen))

    ours, theirs = map(texts, sides)
    assert ours == theirs


@pytest.mark.parametrize("call", [
    lambda mh, side: mh.process_allgather(np.arange(3)),
    lambda mh, side: mh.process_allgather(np.float32(2), tiled=True),
    lambda mh, side: mh.process_allgather({"a": np.ones((2, 3))}, tiled=True)["a"],
    lambda mh, side: mh.process_allgather(side.hx.numpy.ones((2, 3))),
    lambda mh, side: mh.broadcast_one_to_all(np.array([True, False])),
    lambda mh, side: mh.broadcast_one_to_all((np.float16(3), 1))[0],
    lambda mh, side: mh.host_local_array_to_global_array(np.ones((8, 4), "f"), side.meshes[1], spec(side, "b", "a")),
    lambda mh, side: mh.global_array_to_host_local_array(
        mh.host_local_array_to_global_array(np.ones(8, "f"), side.meshes[1], spec(side, "b")),
        side.meshes[1], spec(side, "b")),
])
def test_values_of_all_processes(call, sides):
    ours, theirs = [call(importlib.import_module(f"{side.hx.__name__}.experimental.multihost_utils"), side)
                    for side in sides]
    assert ours.dtype == theirs.dtype and isinstance(ours, np.ndarray) == isinstance(theirs, np.ndarray)
    np.testing.assert_array_equal(ours, theirs)
    assert str(getattr(ours, "sharding", None)) == str(getattr(theirs, "sharding", None))


def spec(side, *entries):
    return side.sharding.PartitionSpec(*entries)
