"""Functions with automatic and explicit axes: their values are those of the function, placed as was said."""

import numpy as np
import pytest

import handlax as hx
from handlax import P
from handlax.sharding import auto_axes, explicit_axes, reshard

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
