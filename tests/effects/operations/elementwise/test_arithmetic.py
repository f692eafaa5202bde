"""Arithmetic where floating point is delicate: signed zeros, and quotients far from one."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp


def test_the_sign_of_a_negative_zero_is_a_negative_zero():
    for x in (hnp.float32(-0.0), hnp.bfloat16(-0.0)):
        assert np.signbit(np.asarray(hnp.sign(x)).astype(np.float32))
        assert np.signbit(np.asarray(hx.jit(hnp.sign)(x)).astype(np.float32))


@pytest.mark.parametrize(("x", "y"), [(1e-30, 1e-20), (1e30, 1e20), (1e-20, 1e-25), (3.0, -2.0)])
def test_the_derivative_of_a_quotient_squares_no_denominator(x, y):
    dx, dy = hx.grad(lambda x, y: x / y, (0, 1))(hnp.float32(x), hnp.float32(y))
    np.testing.assert_allclose([dx, dy], [1 / y, -x / y / y], rtol=1e-6)
