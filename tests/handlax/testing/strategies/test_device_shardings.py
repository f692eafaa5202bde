"""Meshes, specs and shardings: ``device_put`` accepts each, and those of every kind are drawn."""

import numpy as np
from helpers.drawn_kinds import equal_to, missing
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax.sharding import AbstractMesh, NamedSharding, P, SingleDeviceSharding
from handlax.testing.strategies import arrays, meshes, partition_specs, shapes, shardings

MESH = AbstractMesh((2, 4), ("a", "b"))


def test_meshes_of_every_kind_are_drawn():
    sizes = equal_to([(8,), (2, 2, 2), (1, 3), (2, 4)])
    kinds = {name: lambda mesh, kind=kind: kind(mesh.axis_sizes) for name, kind in sizes.items()}
    assert not missing(meshes(), kinds | {"turned": lambda mesh: [d.id for d in mesh.devices.flat][::-1] == [2, 3]})


@given(meshes(hx.devices()[:4], axis_names=("data", "model")))
def test_meshes_have_the_devices_and_the_names_that_are_given(mesh):
    assert {*mesh.devices.flat} <= {*hx.devices()[:4]} and mesh.axis_names == ("data", "model")[: len(mesh.axis_names)]


def test_specs_of_every_kind_are_drawn():
    specs = P(), P(None), P("a"), P(None, "b"), P("b", "a"), P(("a", "b")), P(("b", "a"), None), P(None, ("a",))
    assert not missing(partition_specs((8, 4), MESH), equal_to(specs, repr))


@given(shapes(max_side=8), st.data())
def test_every_spec_cuts_its_shape_evenly(shape, data):
    sharding = NamedSharding(MESH, data.draw(partition_specs(shape, MESH)))
    sharding.check_compatible_aval(shape)


@given(arrays("float32", shapes(max_side=8, max_dims=2)), st.data())
def test_every_sharding_is_accepted_by_device_put(x, data):
    sharding = data.draw(shardings(x.shape))
    y = hx.device_put(x, sharding)
    assert y.sharding == sharding and np.asarray(y).tobytes() == x.tobytes()


def test_shardings_of_every_kind_are_drawn():
    assert not missing(shardings((4,)), {
        "cut": lambda sharding: not sharding.is_fully_replicated, "one": lambda s: type(s) is SingleDeviceSharding,
        "replicated": lambda s: type(s) is NamedSharding and s.is_fully_replicated and s.num_devices > 1})
