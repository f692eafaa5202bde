"""Layers of ``stax``: shapes that ``init`` says, values by the definitions, keys that reach the layers that draw."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import BadArgument, BadCall
from handlax.example_libraries import stax

KEY = hx.random.key(0)
IMAGES = hnp.asarray(np.random.default_rng(0).normal(size=(2, 8, 6, 3)), "float32")
ROWS = hnp.asarray(np.random.default_rng(1).normal(size=(5, 4)), "float32")
LAYERS = {
    "dense": (stax.Dense(3), ROWS), "conv": (stax.Conv(4, (3, 2), (2, 1), "SAME"), IMAGES),
    "conv transpose": (stax.ConvTranspose(2, (3, 3), (2, 2), "SAME"), IMAGES),
    "max": (stax.MaxPool((2, 2), (2, 2)), IMAGES), "sum": (stax.SumPool((3, 2), padding="SAME"), IMAGES),
    "average": (stax.AvgPool((3, 3), (2, 2), "SAME"), IMAGES), "batch norm": (stax.BatchNorm(), IMAGES),
    "flatten": (stax.Flatten, IMAGES), "identity": (stax.Identity, ROWS), "softmax": (stax.Softmax, ROWS),
    "serial": (stax.serial(stax.Conv(2, (2, 2)), stax.Relu, stax.Flatten, stax.Dense(5), stax.LogSoftmax), IMAGES),
    "shape": (stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1])), ROWS),
    "fan": (stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Tanh), stax.FanInConcat()), ROWS),
}


@pytest.mark.parametrize("name", LAYERS)
def test_init_says_the_shape_of_the_result(name):
    (init, apply), x = LAYERS[name]
    for batch in (x.shape[0], -1):
        shape, params = init(KEY, (batch, *x.shape[1:]))
        y = hx.jit(apply)(params, x)
        assert y.shape == tuple(n if size == -1 else size for size, n in zip(shape, y.shape))
        slopes = hx.tree.leaves(hx.grad(lambda p: apply(p, x).sum())(params))
        assert all(bool(hnp.isfinite(slope).all()) for slope in slopes)


def test_values():
    (_, dense), (_, pool), (_, norm) = stax.Dense(2), stax.AvgPool((2, 3), (2, 3)), stax.BatchNorm(axis=0)
    np.testing.assert_allclose(dense((hnp.eye(4), 1.0), ROWS), ROWS + 1)
    np.testing.assert_allclose(
        pool((), IMAGES), np.asarray(IMAGES).reshape(2, 4, 2, 2, 3, 3).mean((2, 4)), rtol=1e-5, atol=1e-6
    )
    y = norm((hnp.zeros(4), hnp.ones(4)), ROWS)
    np.testing.assert_allclose(y.mean(0), np.zeros(4), atol=1e-6)
    np.testing.assert_allclose(y.var(0), np.ones(4), atol=1e-3)
    init, apply = stax.serial(stax.FanOut(3), stax.FanInSum)
    assert init(KEY, (-1, 4)) == ((-1, 4), [(), ()])
    np.testing.assert_array_equal(apply([(), ()], ROWS), ROWS * 3)


def test_an_average_at_the_border_is_of_what_is_inside():
    _, pool = stax.AvgPool((3, 3), padding="SAME")
    np.testing.assert_allclose(pool((), hnp.full((1, 4, 5, 2), 2.0)), np.full((1, 4, 5, 2), 2.0), rtol=1e-6)


def test_dropout_draws():
    _, apply = stax.serial(stax.Dropout(0.8), stax.Identity)
    y = apply([(), ()], hnp.ones((100, 100)), rng=KEY)
    assert set(np.unique(y).tolist()) == {0.0, 1.25}
    assert abs(float(y.mean()) - 1.0) < 0.02
    with pytest.raises(BadCall, match="a key"):
        apply([(), ()], ROWS)
    np.testing.assert_array_equal(stax.Dropout(0.8, mode="test")[1]((), ROWS, rng=KEY), ROWS)


def test_parallel_layers_have_an_input_each():
    with pytest.raises(BadArgument, match="each of 2 layers"):
        stax.parallel(stax.Relu, stax.Relu)[0](KEY, [(-1, 3)])


def test_initializers_and_activations_are_there_under_the_names_of_jax():
    assert stax.glorot is hx.nn.initializers.glorot_normal and stax.randn is hx.nn.initializers.normal
    assert stax.logsoftmax is hx.nn.log_softmax and stax.relu is hx.nn.relu
