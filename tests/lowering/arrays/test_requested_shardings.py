"""Shardings as users ask for them."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax.effects.sharding.mesh import Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import PartitionSpec as P
from handlax.lowering.arrays.requested_shardings import for_leaves, over_mesh, requested, whole_shardings

MESH = Mesh(np.array(hx.devices()).reshape(2, 4), ("a", "b"))
A = NamedSharding(MESH, P("a"))


def test_a_prefix_is_repeated_for_the_leaves_below_it():
    tree = {"x": 1, "y": (2, [3, 4])}
    assert for_leaves("f", A, tree) == [A] * 4
    assert for_leaves("f", {"x": None, "y": (A, None)}, tree) == [None, A, None, None]
    with pytest.raises(errors.TreeMismatch, match="f: at"):
        for_leaves("f", {"x": None}, tree)


def test_a_spec_is_about_the_mesh_in_force_and_a_device_is_a_mesh_of_its_own():
    with MESH:
        assert requested("f", P("a")) == A
    device = hx.devices()[3]
    assert over_mesh(A) is A and over_mesh(SingleDeviceSharding(device)).device_set == {device}


@pytest.mark.parametrize("bad", [3, "a", P("a"), hx.devices()[0]])
def test_what_is_no_sharding_is_refused(bad):
    with pytest.raises(errors.BadArgument, match="f: a "):
        requested("f", bad)


def test_a_sharding_of_arguments_leaves_nothing_to_the_compiler():
    whole_shardings("f", {"x": (A, None), "y": P("a")})
    for bad in (P(P.UNCONSTRAINED), NamedSharding(MESH, P(None, P.UNCONSTRAINED))):
        with pytest.raises(errors.BadArgument, match="every dimension must be said"):
            whole_shardings("f", [A, bad])
