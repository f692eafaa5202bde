"""Quotients and remainders towards minus infinity: signed zeros and infinities, eager and compiled."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

INF = np.inf
# x, y, floor(x / y), the remainder: Python array API standard 2024.12, floor_divide and remainder; the quotients of
# finite numbers by infinities are NumPy's, which belong with these remainders
CASES = [
    (0.0, 2.0, 0.0, 0.0), (-0.0, 2.0, -0.0, 0.0), (0.0, -2.0, -0.0, -0.0), (-0.0, -2.0, 0.0, -0.0),
    (INF, 2.0, np.nan, np.nan), (INF, -2.0, np.nan, np.nan), (-INF, 2.0, np.nan, np.nan), (-INF, -2.0, np.nan, np.nan),
    (INF, INF, np.nan, np.nan), (3.0, INF, 0.0, 3.0), (-3.0, -INF, 0.0, -3.0), (3.0, -INF, -1.0, -INF),
    (-3.0, INF, -1.0, INF), (3.0, 0.0, INF, np.nan), (-3.0, 0.0, -INF, np.nan), (0.0, 0.0, np.nan, np.nan),
    (6.0, 3.0, 2.0, 0.0), (-6.0, 3.0, -2.0, 0.0), (6.0, -3.0, -2.0, -0.0), (7.0, -3.0, -3.0, -2.0),
    (np.nan, 1.0, np.nan, np.nan), (1.0, np.nan, np.nan, np.nan),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("mode", [lambda f: f, hx.jit])
def test_special_values(dtype, mode):
    x, y, quotient, rest = (hnp.array(column, dtype) for column in zip(*CASES))
    for f, expected in ((hnp.floor_divide, quotient), (hnp.remainder, rest)):
        z, expected = (np.asarray(v, "float64") for v in (mode(f)(x, y), expected))
        np.testing.assert_array_equal(z, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(z)[numbers], np.signbit(expected)[numbers])


def test_a_remainder_of_zero_has_a_derivative():
    assert hx.grad(hnp.remainder)(6.0, 3.0) == 1.0
    assert hx.grad(hnp.remainder, 1)(6.0, 3.0) == -2.0
    assert hx.grad(hnp.floor_divide)(6.0, 3.0) == 0.0
