"""Dimensions of an operand among those of a result."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax


@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (2, 0), (1, 2), (2, 1)])
def test_dimensions_of_broadcast_in_dim_stand_in_any_order(dims):
    shape = (2, 3, 4)
    x = np.arange(shape[dims[0]], dtype="float32")[:, None]
    index = np.indices(shape)
    expected = x[index[dims[0]], 0]
    f = lambda x: lax.broadcast_in_dim(x, shape, dims)
    for g in (f, hx.jit(f)):
        np.testing.assert_array_equal(g(x), expected)
    np.testing.assert_array_equal(hx.grad(lambda x: f(x).sum())(x), np.full(x.shape, 24 / len(x)))
