"""Shardings as users ask for them."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
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


def test_a_sharding_over_the_axes_in_force_is_over_their_devices():
    asked = lambda: NamedSharding(hx.sharding.get_abstract_mesh(), P("a"))
    with hx.set_mesh(MESH):
        assert requested("f", asked()) == A
        y = hx.jit(lambda x: lax.with_sharding_constraint(2 * x, asked()))(np.ones(4))
        assert y.sharding.is_equivalent_to(A, 1) and y.tolist() == [2.0] * 4
        other = NamedSharding(hx.sharding.AbstractMesh((8,), ("a",)), P("a"))
        assert requested("f", other) is other
    with hx.sharding.use_abstract_mesh(MESH.abstract_mesh):
        assert requested("f", asked()) == asked()


@pytest.mark.parametrize("bad", [3, "a", P("a"), hx.devices()[0]])
def test_what_is_no_sharding_is_refused(bad):
    with pytest.raises(errors.BadArgument, match="f: a "):
        requested("f", bad)


def test_a_sharding_of_arguments_leaves_nothing_to_the_compiler():
    whole_shardings("f", {"x": (A, None), "y": P("a")})
    for bad in (P(P.UNCONSTRAINED), NamedSharding(MESH, P(None, P.UNCONSTRAINED))):
        with pytest.raises(errors.BadArgument, match="every dimension must be said"):
            whole_shardings("f", [A, bad])


def cut(*spec):
    return NamedSharding(hx.make_mesh((2, 4), ("d", "m")), hx.P(*spec))


def first(w, b):
    return w


TREE = {"a": [np.ones((3, 3), "f")]}


@pytest.mark.parametrize(("call", "message"), [
    (lambda: hx.device_put(TREE, cut("m")), "device_put: dimension 0 of x['a'][0] must be a multiple of 4"),
    (lambda: hx.device_put(np.ones((2, 3)), cut(None, "m")), "device_put: dimension 1 of x must be a multiple of 4"),
    (lambda: hx.jit(first, in_shardings=(cut("m"), None))(TREE, 1.0), "first: dimension 0 of w['a'][0] must be a mul"),
    (lambda: hx.jit(first, in_shardings=(cut("m"), None)).lower(TREE, 1.0), "first: dimension 0 of w['a'][0] must be"),
    (lambda: hx.jit(first, in_shardings=(None, cut("m")))(TREE, 1.0), "first: a spec has at most one entry per dimens"),
    (lambda: hx.jit(first, out_shardings=cut("m"))(TREE, 1.0), "first: dimension 0 of the result['a'][0] must be a mu"),
    (lambda: hx.jit(first, out_shardings={"a": [cut(None, ("d", "m"))]})(TREE, 1.0), "first: dimension 1 of the resul"),
    (lambda: lax.with_sharding_constraint(TREE, cut("d")), "with_sharding_constraint: dimension 0 of x['a'][0] must "),
    (
        lambda: hx.jit(lambda x: lax.with_sharding_constraint((x, x), cut(None, None, "d")))(np.ones((2, 2))),
        "with_sharding_constraint: a spec has at most one entry per dimension, got P(None, None, 'd') for x[0] of ",
    ),
    (
        lambda: hx.make_array_from_callback((6,), cut("m"), lambda index: np.ones(1)),
        "make_array_from_callback: dimension 0 of the array must be a multiple of 4",
    ),
    (lambda: cut("m").shard_shape((6,)), "NamedSharding: dimension 0 of an array must be a multiple of 4"),
])
def test_an_array_that_cannot_be_cut_is_named_with_its_function_and_dimension(call, message):
    with pytest.raises(hx.errors.ShapeMismatch) as found:
        call()
    assert found.value.what.startswith(message) and "Mesh(" not in found.value.what
    assert "at most one" in message or found.value.hint.startswith("pad it to ")
