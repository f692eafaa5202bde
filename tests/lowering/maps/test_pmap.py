"""pmap: against vmap, lane by lane on devices."""


import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

X = np.random.RandomState(0).randn(8, 3, 2).astype(np.float32)


def close(actual, expected):
    for y, z in zip(hx.tree.leaves(actual), hx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("f", "options"),
    [
        (hnp.sin, {}),
        (lambda x: lax.psum(x, "i"), {"axis_name": "i"}),
        (lambda x: x - lax.pmean(x, "i") * lax.axis_index("i"), {"axis_name": "i"}),
        (lambda x: (x.sum(0), lax.pmax(x, "i")), {"axis_name": "i", "out_axes": (1, None)}),
        (lambda x: {"y": lax.all_gather(x, "i")}, {"axis_name": "i", "out_axes": {"y": -1}}),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (3, 7)]), {"axis_name": "i"}),
        (lambda x: hx.grad(lambda y: hnp.sum(lax.psum(y**2, "i") * y))(x), {"axis_name": "i"}),
        (lambda x: hx.pmap(lambda r: lax.psum(r, ("i", "j")), axis_name="j")(x), {"axis_name": "i"}),
        (lambda x: 1.0, {}),
    ],
)
def test_pmap_is_vmap(f, options):
    expected = hx.vmap(f, **options)(X)
    close(hx.pmap(f, **options)(X), expected)
    close(hx.jit(hx.pmap(f, **options))(X), expected)


@pytest.mark.parametrize("in_axes", [(1, 0), (1, None), (None, 0), (-1, {"w": 0})])
def test_axes_of_arguments(in_axes):
    x, y = np.moveaxis(X, 0, 1 if in_axes[0] == 1 else 2), {"w": X[:, 0]}
    x = x if in_axes[0] is not None else X[0]
    y = y if in_axes[1] is not None else {"w": X[0, 0]}

    def f(x, y):
        return x * y["w"]

    close(hx.pmap(f, in_axes=in_axes)(x, y), hx.vmap(f, in_axes=in_axes)(x, y))


def test_transformations_around():
    f = hx.pmap(lambda w, x: lax.psum(hnp.sum(hnp.sin(w * x)), "i"), axis_name="i", in_axes=(None, 0), out_axes=None)

    def g(w, x):
        return hnp.sum(hnp.sin(w * x))

    close(hx.grad(f, (0, 1))(2.0, X), hx.grad(g, (0, 1))(2.0, X))
    close(hx.jvp(f, (2.0, X), (1.0, X)), hx.jvp(g, (2.0, X), (1.0, X)))
    close(hx.vmap(f, (0, None))(hnp.arange(3.0), X), hx.vmap(g, (0, None))(hnp.arange(3.0), X))


def test_one_program_may_name_the_axis_of_its_devices_in_two_ways():
    rows, columns = [hx.pmap(lambda x, name=name: x * lax.psum(x, name), axis_name=name) for name in "ij"]
    ring = hx.pmap(lambda x: lax.all_gather(lax.ppermute(x, "k", [(0, 1), (1, 0)]), "k"), axis_name="k")
    f = lambda x: rows(x).sum() + columns(x**2).sum() + ring(x)[0, 0].sum()
    close(hx.jit(hx.value_and_grad(f))(X), hx.value_and_grad(f)(X))


def test_static_arguments_keywords_and_devices():
    f = hx.pmap(lambda n, x, *, y: n * x + y, static_broadcasted_argnums=0)
    close(f(3, X, y=X), 4 * X)
    last = hx.pmap(lambda x: x + lax.axis_index("i"), axis_name="i", devices=hx.devices("cpu")[::-1])
    close(last(X), X + np.arange(8)[:, None, None])
    assert hx.pmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=5)().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("order", [slice(4, None), slice(None, 4), slice(3, None, -1)], ids=str)
def test_arrays_on_other_devices_are_moved_to_those_of_the_lanes(order):
    chosen = hx.devices("cpu")[order]
    by_lane = hx.pmap(lambda x, y: x * y, in_axes=(0, None), devices=chosen)
    one, other = hx.device_put(X[:4], hx.devices("cpu")[1]), hx.device_put(2.0, hx.devices("cpu")[2])
    for x in (one, hx.pmap(lambda x: x)(one), hx.pmap(lambda x: x, devices=hx.devices("cpu")[2:6])(X[:4])):
        y = by_lane(x, other)
        close(y, X[:4] * 2)
        assert [*y.sharding.mesh.devices] == chosen


def test_the_function_that_is_mapped():
    f = lambda x: x
    assert hx.pmap(f).__wrapped__ is f


def test_errors():
    with pytest.raises(errors.BadArgument, match="there must be devices for the lanes"):
        hx.pmap(lambda x: x, devices=[])
    with pytest.raises(errors.BadArgument, match="every lane needs a device, got 9 lanes for 8 devices"):
        hx.pmap(lambda x: x)(np.ones(9))
    with pytest.raises(errors.ShapeMismatch, match=r"one size, got 4 of mapped argument 0 .*; 3 of mapped argument 1"):
        hx.pmap(lambda x, y: x)(np.ones(4), np.ones(3))
    with pytest.raises(errors.BadArgument, match="pmap: in_axes must name a dimension"):
        hx.pmap(lambda x: x, in_axes=1)(np.ones(4))
    with pytest.raises(errors.NotAFunction, match="pmap: a function is needed"):
        hx.pmap(3)


@pytest.mark.parametrize(("axis", "error"), [(3, errors.BadArgument), (-3, errors.BadArgument), ("a", errors.BadCall)])
def test_out_axes_must_be_a_dimension_of_the_result(axis, error):
    with pytest.raises(error, match=r"pmap: (out_axes must name a dimension|an axis must be an int)"):
        hx.pmap(lambda x: x, out_axes=axis)(np.ones((2, 3), "f"))


@pytest.mark.parametrize("where", ["pmap", "smap", "shard_map"])
def test_an_error_names_the_function_that_the_user_called(where):
    @hx.effect
    class Turn:
        def result_type(op):
            return None

    def noted(x):
        hx.perform(Turn())
        return x

    maps = {
        "pmap": hx.pmap,
        "smap": lambda f: hx.smap(f, in_axes=0, out_axes=0, axis_name="d"),
        "shard_map": lambda f: hx.shard_map(f, in_specs=hx.P("d"), out_specs=hx.P("d")),
    }
    with hx.set_mesh(hx.make_mesh((4,), ("d",))), pytest.raises(errors.CannotCross) as found:
        maps[where](noted)(np.ones(4))
    assert found.value.what == f"{where}: every device would perform turn, in no order."
    assert found.value.hint.startswith(f"handle it inside: {where}(hx.handle(h)(f), ...); or declare")


def test_arrays_whose_types_state_a_cut_over_another_mesh_are_taken():
    devices = hx.devices()[:4]
    cut = hx.NamedSharding(hx.make_mesh((4,), ("z",), devices=devices), hx.P("z"))
    for chosen in (None, devices, hx.devices()[4:8]):
        np.testing.assert_array_equal(hx.pmap(lambda x: 2 * x, devices=chosen)(hx.device_put(np.arange(4.0), cut)),
                                      [0, 2, 4, 6])
