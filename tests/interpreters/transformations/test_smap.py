"""smap: shard_map over one axis of the mesh in force, with axes in place of specs."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.sharding import PartitionSpec as P

X = np.arange(24, dtype="float32").reshape(4, 6)


@pytest.fixture
def mesh():
    mesh = hx.make_mesh((4, 2), ("a", "b"))
    with hx.set_mesh(mesh):
        yield mesh


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_smap_is_shard_map_over_one_axis(mesh, wrap):
    f = lambda x: (x - lax.pmean(x, "a"), lax.psum(x.sum(), "a"))
    of_specs = hx.shard_map(f, in_specs=P("a"), out_specs=(P("a"), P()), axis_names={"a"})
    of_axes = hx.smap(f, in_axes=0, out_axes=(0, None), axis_name="a")
    for found, wanted in zip(wrap(of_axes)(X), wrap(of_specs)(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_axes_count_from_the_end_and_are_prefixes_of_trees(mesh):
    f = hx.smap(lambda t, s: {"y": t["x"] * s, "z": [t["x"] + t["w"]]}, in_axes=({"x": -1, "w": -1}, None),
                out_axes={"y": -1, "z": -2}, axis_name="b")
    found = f({"x": X, "w": 2 * X}, 3.0)
    np.testing.assert_array_equal(found["y"], 3 * X)
    np.testing.assert_array_equal(found["z"][0], np.concatenate(np.split(3 * X, 2, 1), 0))


def test_smaps_nest_and_differentiate(mesh):
    inner = lambda x: hx.smap(lambda y: lax.psum(y.sum(), ("a", "b")), in_axes=1, out_axes=None, axis_name="b")(x)
    f = hx.smap(inner, in_axes=0, out_axes=None, axis_name="a")
    assert float(hx.jit(f)(X)) == X.sum()
    np.testing.assert_array_equal(hx.grad(lambda x: f(x) ** 2)(X), np.full_like(X, 2 * X.sum()))


def test_a_decorator_and_arguments_where_they_lie(mesh):
    @hx.smap(out_axes=0, axis_name="a")
    def centred(x):
        return x - lax.pmean(x, "a")

    x = hx.device_put(X, hx.NamedSharding(mesh, P("a")))
    np.testing.assert_allclose(centred(x), X - X.mean(0, keepdims=True))


@pytest.mark.parametrize(("axes", "error", "message"), [
    ({"axis_name": ("a", "b")}, errors.BadArgument, "axis_name must be one axis"),
    ({"axis_name": "c"}, errors.BadArgument, "'c'"),
    ({"in_axes": 2}, errors.BadArgument, "in_axes must name a dimension"),
    ({"out_axes": 2}, errors.BadArgument, "smap: out_axes must name a dimension of the result, got 2 for 2"),
    ({"out_axes": "a"}, errors.BadCall, "an axis must be an int or None"),
    ({"out_axes": None}, errors.BadArgument, "varies"),
    ({"in_axes": 1, "out_axes": 1}, errors.ShapeMismatch, "multiple of 4"),
])
def test_errors(mesh, axes, error, message):
    chosen = {"in_axes": 0, "out_axes": 0, "axis_name": "a", **axes}
    with pytest.raises(error, match=message):
        hx.smap(lambda x: x, **chosen)(X)


def test_smap_needs_a_mesh():
    with pytest.raises(errors.BadArgument, match="mesh"):
        hx.smap(lambda x: x, in_axes=0, out_axes=0, axis_name="a")(hnp.ones(4))
