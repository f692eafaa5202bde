"""Statistics of complex numbers and of 16-bit floats."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp


@pytest.mark.parametrize("mode", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_a_median_is_undefined_where_a_part_of_an_element_is(mode):
    """Complex numbers are sorted by their real parts first, so that such an element need not be the last."""
    x = np.array([[1, complex(2, np.nan), 3, 4, 5], [1, 2, 3, 4, 5]], "complex64")
    found = mode(lambda x: hnp.median(x, axis=1))(x)
    assert np.isnan(found[0]) and found[1] == 3
    assert np.isnan(mode(hnp.median)(x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("mode", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_counts_of_16_bit_floats_do_not_saturate(dtype, mode):
    x = hnp.asarray(np.repeat([0.1, 0.9], [3000, 1000]), dtype=dtype)
    counts = mode(lambda x: hnp.histogram(x, bins=2, range=(0, 1))[0])(x)
    assert counts.dtype == dtype
    np.testing.assert_allclose(counts.astype("float32"), [3000, 1000], rtol=1e-2)
    densities = mode(lambda x: hnp.histogram(x, bins=2, range=(0, 1), density=True)[0])(x)
    np.testing.assert_allclose(densities.astype("float32"), [1.5, 0.5], rtol=1e-2)
