"""Values of all processes brought together; here there is one, over whose devices everything is done all the same."""

import json

import numpy as np
import pytest

import handlax as hx
from handlax import NamedSharding, P
from handlax.experimental import multihost_utils as mh
from handlax.lowering.clients import agreement

MESH = hx.make_mesh((2, 4), ("a", "b"), devices=hx.devices("cpu"))
VALUES = [
    np.arange(3), np.array(1.5), np.array([np.nan, -0.0, np.inf]), np.array([[True], [False]]), np.zeros((0, 2)),
    np.array([1 + 2j], "complex64"), np.arange(4, dtype="int8"),
]


def same(x, y):
    """Bit for bit, of one dtype and shape."""
    return isinstance(x, np.ndarray) and (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


@pytest.mark.parametrize("x", VALUES, ids=str)
def test_the_arrays_of_every_process(x):
    gathered, tiled = mh.process_allgather({"x": x}), mh.process_allgather([x], tiled=True)
    assert same(gathered["x"], x[None]) and same(tiled[0], x if x.ndim else x[None])


@pytest.mark.parametrize("x", VALUES, ids=str)
def test_the_arrays_of_one_process_are_on_all(x):
    assert same(mh.broadcast_one_to_all((x,))[0], x)
    assert same(mh.broadcast_one_to_all(x, is_source=True), x)
    taken = mh._of_all_processes(mh._bytes(x), mh._sum_of_bytes)      # the way with several processes
    assert same(taken.view(x.dtype).reshape(x.shape), x)


def test_an_array_over_devices_is_given_whole():
    x = np.arange(8.0, dtype="float32")
    placed = hx.device_put(x, NamedSharding(MESH, P("b")))
    assert same(mh.process_allgather(placed), x[None]) and same(mh.process_allgather(placed, tiled=True), x)
    assert same(mh.broadcast_one_to_all(placed), x)


def test_processes_that_differ(monkeypatch):
    tree = {"a": np.array([np.nan, -0.0]), "b": 3}
    mh.assert_equal(tree)
    mh.sync_global_devices("start")
    others = []  # what process 1 says

    def differ(*facts):
        others[:] = ["", json.dumps(facts)]

    monkeypatch.setattr(agreement, "said_by_all", lambda text: {0: text, 1: others.pop(0)})
    differ(["['a']", "float64(1,)", "0.0"])
    with pytest.raises(AssertionError, match=r"same, got 0.0 in process 1 .* array\(\[-0.\]\), at \['a'\]"):
        mh.assert_equal({"a": np.array([-0.0])})
    differ()
    with pytest.raises(hx.errors.ProcessesDiffer, match="no luck, got nothing in process 1 where the first has 3"):
        mh.assert_equal(3, "no luck")
    differ(["", "end", "'end'"])
    with pytest.raises(hx.errors.ProcessesDiffer, match=r"the same name, got 'end' in process 1 .* has 'start'"):
        mh.sync_global_devices("start")


@pytest.mark.parametrize("spec", [P(), P("a"), P(None, "b"), P(("b", "a")), P("a", "b")])
def test_arrays_over_a_mesh_of_what_each_process_has(spec):
    x = np.arange(64.0, dtype="float32").reshape(8, 8)
    placed = mh.host_local_array_to_global_array({"x": x, "y": [x]}, MESH, {"x": spec, "y": P()})
    assert placed["x"].sharding == NamedSharding(MESH, spec) and placed["y"][0].sharding == NamedSharding(MESH, P())
    back = mh.global_array_to_host_local_array(placed, MESH, spec)
    assert all([y.sharding.is_equivalent_to(NamedSharding(MESH, spec), 2) for y in (back["x"], back["y"][0])])
    for leaf in hx.tree.leaves((placed, back)):
        np.testing.assert_array_equal(leaf, x)


@pytest.mark.parametrize("specs", [None, "a", [P()], {"x": P("c")}, {"x": P("b")}, {"x": P(None, None, "a")}])
def test_specs_that_do_not_fit(specs):
    with pytest.raises(hx.errors.HandlaxError):
        mh.host_local_array_to_global_array({"x": np.ones((6, 6))}, MESH, specs)


def test_a_process_that_is_alone_does_not_save_because_others_end():
    assert mh.reached_preemption_sync_point(3) is False
