"""vtile(f) joins the results of f on the tiles of an axis."""

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

R = np.random.RandomState(0)
X = R.randn(4, 6, 8).astype(np.float32)


def by_loop(f, in_axes, out_axes, count):
    """The definition, for functions of flat arguments and results."""

    def joined(*args):
        tiles = zip(*[[x] * count if d is None else np.split(x, count, d) for x, d in zip(args, in_axes)])
        results = [f(*tile) for tile in tiles]
        return [ys[0] if d is None else np.concatenate(ys, d) for ys, d in zip(zip(*results), out_axes)]

    return joined


def several(x, y):
    return hnp.cumsum(x, 1) + y.sum(), hnp.flip(x, 0).reshape(-1, x.shape[-1]), 2 * y


@pytest.mark.each_choice
@pytest.mark.parametrize(("axis", "out", "count"), [*itertools.product((0, 1, 2, -1, -3), (0, 1, -1), (1, 2))])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_it_is_the_concatenation_over_the_tiles(wrap, axis, out, count):
    in_axes, out_axes = (axis, 0), (out, 0, -1)
    y = R.randn(8).astype(np.float32)
    found = wrap(hx.vtile(several, in_axes, out_axes, tile_size=count))(X, y)
    for z, wanted in zip(found, by_loop(several, in_axes, out_axes, count)(X, y), strict=True):
        np.testing.assert_allclose(z, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", range(3))
def test_without_a_size_each_element_is_a_tile(axis):
    f = lambda x: [hnp.cumsum(x, axis)]
    (found,) = hx.vtile(f, axis, axis)(X)
    np.testing.assert_array_equal(found, X)
    assert hx.vtile(lambda x: x + 1)(np.zeros((0, 3))).shape == (0, 3)


def test_the_gradient_is_that_of_the_loop():
    w = R.randn(2, 6, 8).astype(np.float32)
    f = lambda x, w: hnp.tanh(x * w).sum(0, keepdims=True)
    tiled = lambda x, w: (hx.vtile(f, (0, None), tile_size=2)(x, w) ** 2).sum()
    looped = lambda x, w: (hnp.concatenate([f(t, w) for t in hnp.split(x, 2)]) ** 2).sum()
    for found, wanted in zip(hx.jit(hx.grad(tiled, (0, 1)))(X, w), hx.grad(looped, (0, 1))(X, w)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_axis_of_tiles_has_a_name():
    f = lambda x: (x - lax.pmean(x, "t"), lax.psum(x.sum(), "t"), lax.axis_index("t")[None] * x[0, 0, :1])
    centred, total, scaled = hx.vtile(f, out_axes=(0, None, 0), tile_size=2, axis_name="t")(X)
    np.testing.assert_allclose(centred, X - np.tile(X.reshape(2, 2, 6, 8).mean(0), (2, 1, 1)), atol=1e-6)
    np.testing.assert_allclose(total, X.sum(), rtol=1e-5)
    np.testing.assert_array_equal(scaled, np.arange(2) * X[::2, 0, 0])


def test_prefixes_keywords_and_tiles_of_several_sizes():
    f = lambda tree, *, scale: {"a": tree["x"] * scale[0], "b": [tree["x"] + tree["y"][0, :3]]}
    x, y, scale = R.randn(6), R.randn(2, 10), np.arange(2.0)
    found = hx.vtile(f, ({"x": 0, "y": 1},), {"a": 0, "b": -1}, tile_size=2)({"x": x, "y": y}, scale=scale)
    np.testing.assert_allclose(found["a"], np.concatenate([0 * x[:3], x[3:]]), rtol=1e-6)
    np.testing.assert_allclose(found["b"][0], np.concatenate([x[:3] + y[0, :3], x[3:] + y[0, 5:8]]), rtol=1e-5)


def test_it_nests_with_itself_and_vmap():
    reverse = lambda x: x[::-1]
    blocks = hx.vtile(lambda x: hx.vtile(reverse, tile_size=2)(x), tile_size=3)
    np.testing.assert_array_equal(blocks(np.arange(12)), np.arange(12).reshape(6, 2)[:, ::-1].ravel())
    both = hx.vmap(hx.vtile(hx.vmap(lambda x: x.sum()), tile_size=2), in_axes=1)
    np.testing.assert_allclose(both(X), X.sum(2).T, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tile_size": 3}, errors.ShapeMismatch, r"multiple of the number of tiles, 3, got f32\[4,6,8\] along 0"),
        ({"in_axes": 3}, errors.BadArgument, "vtile: in_axes must name a dimension"),
        ({"in_axes": None}, errors.BadArgument, "an argument must be cut, or tile_size be set"),
        ({"tile_size": 2, "out_axes": 3}, errors.BadArgument, "vtile: out_axes must name a dimension"),
        ({"tile_size": 2, "out_axes": None}, errors.ShapeMismatch, "needs a result that all lanes share"),
        ({"tile_size": 2, "in_axes": (0, 1)}, errors.TreeMismatch, "an entry for each of 1 positional arguments"),
        ({"tile_size": 2, "in_axes": hx.ragged_axis}, errors.BadArgument, "vtile: axes are those of arrays"),
        ({"tile_size": 0}, errors.BadCall, "tile_size must be a positive integer or None, got 0"),
    ],
)
def test_what_cannot_be_cut_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        hx.vtile(lambda x: x, **options)(X)
