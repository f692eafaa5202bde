"""Vector quantisation against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.vq

from handlax import errors
from handlax.scipy.cluster.vq import vq

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("rest", [(), (3,)])
def test_codes_and_distances_are_those_of_scipy(rest, dtype):
    x, book = (10 * RNG.normal(size=(n, *rest)) for n in (20, 4))
    x, book = x.astype(dtype), book.astype(dtype)
    code, distance = vq(x, book)
    codes, distances = scipy.cluster.vq.vq(x, book)
    np.testing.assert_array_equal(code, codes)
    np.testing.assert_allclose(distance, distances, rtol=1e-5)


def test_rows_of_other_sizes_are_refused():
    with pytest.raises(errors.ShapeMismatch, match="equal rows"):
        vq(np.ones((2, 3)), np.ones((2, 2)))
