"""Arrays over devices, made of their parts."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax.effects.sharding.mesh import Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import PartitionSpec as P

DEVICES = hx.devices()
MESH = Mesh(np.array(DEVICES[::-1]).reshape(2, 4), ("a", "b"))
X = np.arange(32, dtype="float32").reshape(8, 4)
SHARDINGS = [
    *[NamedSharding(MESH, spec) for spec in (P("a"), P("b", "a"), P(None, "b"), P(("b", "a")), P())],
    SingleDeviceSharding(DEVICES[3]),
]


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_the_array_of_the_parts_that_a_function_gives(sharding):
    asked = []
    x = hx.make_array_from_callback(X.shape, sharding, lambda index: asked.append(index) or X[index])
    assert x.tolist() == X.tolist() and x.sharding == sharding
    assert len(asked) == len({str(index) for index in asked})
    assert hx.make_array_from_callback(X.shape, sharding, lambda index: X[index], dtype="int8").dtype == "int8"


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_the_array_of_its_parts_on_their_devices(sharding):
    indices = sharding.devices_indices_map(X.shape)
    parts = [hx.device_put(X[index], device) for device, index in reversed([*indices.items()])]
    x = hx.make_array_from_single_device_arrays(X.shape, sharding, parts)
    assert x.tolist() == X.tolist() and x.devices() == sharding.device_set
    assert hx.jit(lambda x: x * 2)(x).tolist() == (X * 2).tolist()


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_the_data_of_a_single_process_are_the_array(sharding):
    x = hx.make_array_from_process_local_data(sharding, {"x": X})["x"]
    assert x.tolist() == X.tolist() and x.sharding == sharding
    assert hx.make_array_from_process_local_data(sharding, X, X.shape).tolist() == X.tolist()


@pytest.mark.parametrize("sharding", [NamedSharding(MESH, spec) for spec in (P("a"), P("b"), P())], ids=str)
def test_arrays_of_random_keys(sharding):
    keys = hx.random.split(hx.random.key(3), 8)
    for x in (hx.make_array_from_callback((8,), sharding, lambda index: keys[index]),
              hx.make_array_from_callback((8,), sharding, lambda index: keys[index], keys.dtype),
              hx.make_array_from_process_local_data(sharding, keys)):
        assert x.dtype == keys.dtype and x.sharding == sharding
        assert hx.random.key_data(x).tolist() == hx.random.key_data(keys).tolist()


def test_parts_of_several_dtypes_are_refused():
    key, dtypes = hx.random.key(3), iter(("int32", "float32") * 2)
    with pytest.raises(errors.DTypeMismatch, match="one dtype, got float32, int32"):
        hx.make_array_from_callback((8,), NamedSharding(MESH, P("b")), lambda index: np.zeros(2, next(dtypes)))
    with pytest.raises(errors.DTypeMismatch, match="one dtype"):
        hx.make_array_from_callback((8,), NamedSharding(MESH, P()), lambda index: np.zeros(8, "int32"), key.dtype)


def test_parts_of_other_shapes_or_devices_are_refused():
    sharding = SHARDINGS[0]
    with pytest.raises(errors.ShapeMismatch, match="has the shape"):
        hx.make_array_from_callback(X.shape, sharding, lambda index: X)
    with pytest.raises(errors.ShapeMismatch, match="dimension 0 of the local data"):
        hx.make_array_from_process_local_data(sharding, X[:5], X.shape)
    parts = [hx.device_put(X, device) for device in DEVICES]
    for other in (parts[:1], [*parts, parts[0]]):
        with pytest.raises(errors.DeviceMismatch, match="an array on each of the devices"):
            hx.make_array_from_single_device_arrays(X.shape, sharding, other)
    with pytest.raises(errors.ShapeMismatch, match="has the shape"):
        hx.make_array_from_single_device_arrays(X.shape, sharding, parts)


def test_parts_must_be_known_and_of_one_dtype():
    cut = hx.NamedSharding(hx.make_mesh((8,), ("a",)), hx.P("a"))
    with pytest.raises(errors.TracerArrayConversionError):
        hx.jit(lambda x: hx.make_array_from_callback((8,), cut, lambda index: x[index]))(np.arange(8))
    part = hx.device_put(np.arange(3), hx.devices()[0])
    with pytest.raises(errors.DTypeMismatch, match="the parts must have one dtype"):
        hx.make_array_from_single_device_arrays((3,), part.sharding, [part], dtype="float32")


def test_the_data_of_a_process_go_to_a_device_or_by_a_spec_over_the_mesh_in_force():
    assert hx.make_array_from_process_local_data(hx.devices()[1], np.arange(3)).devices() == {hx.devices()[1]}
    with hx.set_mesh(hx.make_mesh((8,), ("a",))) as _:
        assert hx.make_array_from_process_local_data(hx.P("a"), np.arange(8)).sharding.spec == hx.P("a")


@pytest.mark.parametrize("shape", [(8, 4), [8, 4], (np.int64(8), np.int32(4)), np.array([8, 4])], ids=repr)
def test_a_global_shape_may_consist_of_numbers_of_numpy(shape):
    one = SHARDINGS[-1]
    assert hx.make_array_from_process_local_data(one, X, shape).tolist() == X.tolist()
    assert hx.make_array_from_process_local_data(one, {"a": X}, {"a": shape})["a"].tolist() == X.tolist()
    assert hx.make_array_from_process_local_data(one, [X, X[0]], [shape, None])[1].tolist() == X[0].tolist()


@pytest.mark.parametrize("shape", [(8.0, 4.0), "x", {"a": (8, 4)}, [(8, 4)], np.array([[8, 4]]), (), (8, 4, 1), (32,)],
                         ids=repr)
def test_what_is_no_global_shape_of_the_data_is_refused(shape):
    with pytest.raises(errors.HandlaxError, match="make_array_from_process_local_data"):
        hx.make_array_from_process_local_data(SHARDINGS[-1], X, shape)
