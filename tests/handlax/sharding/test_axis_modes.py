"""Functions with automatic and explicit axes: their values are those of the function, placed as was said."""

import numpy as np
import pytest

import handlax as hx
from handlax import P, lax
from handlax import numpy as hnp
from handlax.sharding import AxisType, auto_axes, explicit_axes, get_abstract_mesh, reshard

MESH = hx.make_mesh((2, 4), ("a", "b"), devices=hx.devices("cpu"))
X, Y = np.arange(8.0, dtype="float32"), np.ones((4, 8), "float32")


def f(x, y, *, scale=2.0):
    return x * scale + y


def constraints(g, *args):
    """The specs to which a program constrains values, in order."""
    program = hx.make_program(g)(*args)
    return [op.sharding.spec for op in program.ops if type(op).__name__ == "ShardingConstraint"]


@pytest.mark.parametrize("axes", [None, "a", ("a", "b")])
@pytest.mark.parametrize("wrap", [lambda g: g, hx.jit])
def test_the_results_are_placed(axes, wrap):
    with hx.set_mesh(MESH):
        for g in (auto_axes(f, axes=axes, out_sharding=P(None, "a")),
                  auto_axes(axes=axes, out_sharding=P(None, "a"))(f),
                  lambda x, y: auto_axes(f, axes=axes)(x, y, out_sharding=P(None, "a"))):
            np.testing.assert_array_equal(wrap(g)(X, Y), f(X, Y))
            assert constraints(g, X, Y) == [P(None, "a")]


@pytest.mark.parametrize("wrap", [lambda g: g, hx.jit])
def test_the_arguments_are_placed(wrap):
    with hx.set_mesh(MESH):
        for g in (explicit_axes(f, in_sharding=(P("b"), P("a", "b"))),
                  lambda x, y: explicit_axes(f, axes="b")(x, y, scale=2.0, in_sharding=(P("b"), P("a", "b")))):
            np.testing.assert_array_equal(wrap(g)(X, Y), f(X, Y))
            assert constraints(g, X, Y) == [P("b"), P("a", "b")]
        assert constraints(explicit_axes(f, in_sharding=P()), X, Y) == [P(), P()]


AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


@pytest.mark.parametrize("wrap", [lambda g: g, hx.jit])
@pytest.mark.parametrize(("axes", "kinds", "inside"), [
    ("a", (AUTO, EXPLICIT), ["f32[8,4@b]", "f32[8,4@b]"]),
    ("b", (EXPLICIT, AUTO), ["f32[8@a,4]", "f32[8,4]"]),
    (None, (AUTO, AUTO), ["f32[8,4]", "f32[8,4]"]),
])
def test_types_within_state_nothing_of_automatic_axes_alone(wrap, axes, kinds, inside):
    found = []

    def summed(x, y):
        return hnp.cumsum(x, 1 if axes == "b" else 0) + y

    def noted(x, y):
        found.append((get_abstract_mesh().axis_types, str(x.type), str(y.type)))
        return summed(x, y)

    m = np.arange(32, dtype="float32").reshape(8, 4)
    with hx.set_mesh(MESH):
        x, y = hx.device_put(m, P("a", "b")), hx.device_put(m, P(None, "b"))
        placed = auto_axes(noted, axes=axes, out_sharding=P("b", "a"))
        z = wrap(placed)(x, y)
        grads = wrap(hx.grad(lambda x, y: (placed(x, y) ** 2).sum(), (0, 1)))(x, y)
    assert {*found} == {(kinds, *inside)}
    assert [str(v.type) for v in (z, *grads)] == ["f32[8@b,4@a]", "f32[8@a,4@b]", "f32[8,4@b]"]
    np.testing.assert_array_equal(z, summed(m, m))
    for a, b in zip(grads, hx.grad(lambda x, y: (summed(x, y) ** 2).sum(), (0, 1))(hnp.asarray(m), hnp.asarray(m))):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_without_a_mesh_in_force_it_is_that_of_the_sharding():
    by_a, by_b = [hx.NamedSharding(MESH, P(axis)) for axis in "ab"]
    x = hx.device_put(np.ones((8, 4), "float32"), by_a)
    types = []
    z = auto_axes(lambda x: (types.append(str(x.type)), hnp.cumsum(x, 0))[1], axes="a", out_sharding=by_b)(x)
    y = explicit_axes(lambda x: (types.append(str(x.type)), 2 * x)[1], in_sharding=by_b)(x)
    assert types == ["f32[8,4]", "f32[8@b,4]"] and str(z.type) == str(y.type) == "f32[8@b,4]"


def test_within_automatic_axes_constraints_cut_and_explicit_ones_state():
    def f(x):
        y = lax.with_sharding_constraint(hnp.cumsum(x, 0), P("b"))
        return explicit_axes(lambda y: (types.append(str(y.type)), 2 * y)[1], axes="a", in_sharding=P("a"))(y) + 1

    types = []
    with hx.set_mesh(MESH):
        z = hx.jit(auto_axes(f, out_sharding=P("b")))(hx.device_put(np.ones((8, 4), "float32"), P("a")))
    assert types == ["f32[8@a,4]"] and str(z.type) == "f32[8@b,4]"
    np.testing.assert_array_equal(z, 2 * np.cumsum(np.ones((8, 4)), 0) + 1)


def test_derivatives_and_lanes_of_placed_functions():
    with hx.set_mesh(MESH):
        placed = auto_axes(lambda x: x * x, out_sharding=P("a"))
        np.testing.assert_array_equal(hx.grad(lambda x: placed(x).sum())(X), 2 * X)
        np.testing.assert_array_equal(hx.vmap(placed)(Y), Y * Y)


def test_reshard_changes_no_value():
    np.testing.assert_array_equal(reshard(X, hx.NamedSharding(MESH, P("b"))), X)
    with hx.set_mesh(MESH):
        moved = hx.reshard({"x": X, "y": Y}, {"x": P("a"), "y": P("b", "a")})
    np.testing.assert_array_equal(moved["y"], Y)


@pytest.mark.parametrize(("call", "found"), [
    (lambda: auto_axes(f)(X, Y), "out_sharding must be given"),
    (lambda: explicit_axes(f)(X, Y), "in_sharding must be given"),
    (lambda: auto_axes(f, axes="c", out_sharding=P())(X, Y), "got 'c'"),
    (lambda: auto_axes(3), "a function is needed"),
    (lambda: reshard(X, P("c")), "got 'c'"),
    (lambda: reshard(X[:6], P("b")), "got size 6"),
])
def test_what_is_refused(call, found):
    with hx.set_mesh(MESH), pytest.raises(hx.errors.HandlaxError, match=found):
        call()


def renamed(x, axes=(8,)):
    with hx.sharding.use_abstract_mesh(hx.sharding.AbstractMesh(axes, ("i",), (EXPLICIT,))):
        return reshard(x, P("i")) * 2


@pytest.mark.parametrize("in_force", [None, MESH])
@pytest.mark.parametrize("wrap", [lambda g: g, lambda g: lambda x: hx.jit(g)(x)])
def test_an_abstract_mesh_names_the_axes_of_the_same_devices_otherwise(in_force, wrap):
    m = np.arange(32, dtype="float32").reshape(8, 4)
    x = hx.device_put(m, hx.NamedSharding(MESH, P("a", "b")))
    there_and_back = lambda x: reshard(wrap(renamed)(x), hx.NamedSharding(MESH, P("a"))) + x
    with hx.set_mesh(in_force):
        y, z = hx.jit(renamed)(x), hx.jit(there_and_back)(x)
        (ct,) = hx.jit(hx.grad(lambda x: (renamed(x) ** 2).sum(), (0,)))(x)
    assert [str(v.type) for v in (y, z, ct)] == ["f32[8@i,4]", "f32[8@a,4@b]", "f32[8@a,4@b]"]
    assert y.sharding.mesh.axis_names == ("i",) and y.sharding._device_assignment == x.sharding._device_assignment
    assert [shard.data.tolist() for shard in y.addressable_shards] == [[row] for row in (2 * m).tolist()]
    np.testing.assert_array_equal(z, 3 * m)
    np.testing.assert_array_equal(ct, 8 * m)


def test_an_abstract_mesh_stands_for_the_devices_of_the_mesh_in_force():
    with hx.set_mesh(MESH):
        y = hx.jit(renamed)(X)
    assert str(y.type) == "f32[8@i]" and y.sharding.device_set == {*MESH.devices.flat}
    np.testing.assert_array_equal(y, 2 * X)


def test_an_abstract_mesh_of_another_size_than_the_devices_is_refused():
    x = hx.device_put(X, hx.NamedSharding(MESH, P("a")))
    with pytest.raises(hx.errors.DeviceMismatch, match=r"devices \[0, 1, 2, 3, 4, 5, 6, 7\] and AbstractMesh\('i': 4"):
        hx.jit(lambda x: renamed(x, (4,)))(x)
