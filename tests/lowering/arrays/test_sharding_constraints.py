"""with_sharding_constraint: where values are, also inside of programs; as a function it is the identity."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.sharding.mesh import Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import PartitionSpec as P
from handlax.lowering.arrays.sharding_constraints import reshard, with_sharding_constraint
from handlax.lowering.xla import jaxlib_runtime

MESH = Mesh(np.array(hx.devices()).reshape(2, 4), ("a", "b"))
X = np.arange(32, dtype="float32").reshape(8, 4)


def by(*spec):
    return NamedSharding(MESH, P(*spec))


def spec(x):
    return jaxlib_runtime.named_sharding(x.buffer).spec


@pytest.mark.parametrize("constrain", [with_sharding_constraint, reshard])
@pytest.mark.parametrize("call", [lambda f: f, hx.jit])
def test_the_values_of_a_tree_are_those_of_before_and_cut_as_said(constrain, call):
    tree = {"x": X, "y": [X[0], 2.0]}
    made = call(lambda t: constrain(t, {"x": by("a", "b"), "y": [by("b"), by()]}))(tree)
    assert [spec(made["x"]), spec(made["y"][0]), spec(made["y"][1])] == [P("a", "b"), P("b"), P()]
    assert made["x"].tolist() == X.tolist() and made["y"][0].tolist() == X[0].tolist() and made["y"][1] == 2.0
    prefixed = call(lambda t: constrain(t, by()))(tree)
    assert {spec(x) for x in hx.tree.leaves(prefixed)} == {P()}


def test_a_spec_is_about_the_mesh_in_force():
    with MESH:
        assert spec(with_sharding_constraint(X, P("b"))) == spec(hx.jit(lambda x: reshard(x, P("b")))(X)) == P("b")
    with pytest.raises(errors.BadArgument, match="mesh in force"):
        with_sharding_constraint(X, P("b"))


def test_it_is_its_own_derivative_and_transpose():
    f = lambda x: hnp.sum(with_sharding_constraint(hnp.sin(x), by("a")) ** 2)
    np.testing.assert_allclose(hx.jit(hx.grad(f))(X), 2 * np.sin(X) * np.cos(X), rtol=1e-5, atol=1e-6)
    text = str(hx.make_program(hx.grad(f))(X))
    assert text.count("sharding_constraint") == 2


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_under_vmap_the_mapped_dimension_is_left_to_the_compiler(axis):
    xs = np.arange(64, dtype="float32").reshape(4, 4, 4)
    f = lambda x: with_sharding_constraint(x, by("b")) * 2
    mapped = hx.vmap(f, in_axes=axis, out_axes=axis)
    assert hx.jit(mapped)(xs).tolist() == (xs * 2).tolist()
    dims = ["{?}", '{"b"}', "{}"]
    wanted = dims if axis == 0 else [dims[1], *(dims[0], dims[2])[:: 1 if axis == 1 else -1]]
    assert f"[{', '.join(wanted)}]" in hx.jit(mapped).lower(xs).as_text()


def test_a_sharding_on_one_device_is_one_too():
    device = hx.devices()[2]
    made = hx.jit(lambda x: with_sharding_constraint(x + 1, SingleDeviceSharding(device)))(X)
    assert made.devices() == {device} and made.tolist() == (X + 1).tolist()


@pytest.mark.parametrize(
    ("shardings", "error", "message"),
    [
        ((by("a", "b", None),), errors.ShapeMismatch, "at most one entry per dimension"),
        ((None,), errors.BadArgument, "each array needs a sharding"),
        ((3,), errors.BadArgument, "a sharding or a PartitionSpec is needed, got 3"),
        ((by(), by()), errors.TreeMismatch, "prefix"),
    ],
)
@pytest.mark.parametrize("call", [lambda f: f, hx.jit])
def test_what_cannot_be_is_refused(call, shardings, error, message):
    with pytest.raises(error, match=message):
        call(lambda x: with_sharding_constraint((x,), shardings))(X)


@pytest.mark.parametrize("size", [1, 3, 4, 11])
def test_sizes_that_do_not_divide_are_padded_inside_of_programs(size):
    cut = NamedSharding(MESH, P(("a", "b")))
    x = np.arange(size, dtype="float32")
    f = lambda x: with_sharding_constraint(x + 1, cut) * x
    assert hx.jit(f)(x).tolist() == ((x + 1) * x).tolist()
    assert hx.jit(hx.grad(lambda x: f(x).sum()))(x).tolist() == (2 * x + 1).tolist()
    assert hx.jit(hx.vmap(f))(np.stack([x, 2 * x])).tolist() == [((y + 1) * y).tolist() for y in (x, 2 * x)]
    with pytest.raises(errors.ShapeMismatch, match="must be a multiple of 8"):
        with_sharding_constraint(hnp.asarray(x), cut)


def test_arrays_of_other_devices_are_refused():
    there = hx.device_put(X, hx.devices()[3])
    for f in (lambda x: with_sharding_constraint(x, by("a")), hx.jit(lambda x: with_sharding_constraint(x, by("a")))):
        with pytest.raises(errors.DeviceMismatch, match="same devices in the same order"):
            f(there)
