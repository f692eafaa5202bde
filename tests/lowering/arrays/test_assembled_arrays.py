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


def test_parts_of_other_shapes_or_devices_are_refused():
    sharding = SHARDINGS[0]
    with pytest.raises(errors.ShapeMismatch, match="has the shape"):
        hx.make_array_from_callback(X.shape, sharding, lambda index: X)
    with pytest.raises(errors.ShapeMismatch, match="dimension 0 of the local data"):
        hx.make_array_from_process_local_data(sharding, X[:5], X.shape)
    with pytest.raises(errors.DeviceMismatch, match="an array on each of the devices"):
        hx.make_array_from_single_device_arrays(X.shape, sharding, [hx.device_put(X, DEVICES[0])])
    parts = [hx.device_put(X, device) for device in DEVICES]
    with pytest.raises(errors.ShapeMismatch, match="has the shape"):
        hx.make_array_from_single_device_arrays(X.shape, sharding, parts)
