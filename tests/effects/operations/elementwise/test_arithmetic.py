"""Arithmetic where floating point is delicate: signed zeros, and quotients far from one."""

import math

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


def test_the_sign_of_a_negative_zero_is_a_negative_zero():
    for x in (hnp.float32(-0.0), hnp.bfloat16(-0.0)):
        assert np.signbit(np.asarray(hnp.sign(x)).astype(np.float32))
        assert np.signbit(np.asarray(hx.jit(hnp.sign)(x)).astype(np.float32))


@pytest.mark.parametrize(("x", "y"), [(1e-30, 1e-20), (1e30, 1e20), (1e-20, 1e-25), (3.0, -2.0)])
def test_the_derivative_of_a_quotient_squares_no_denominator(x, y):
    dx, dy = hx.grad(lambda x, y: x / y, (0, 1))(hnp.float32(x), hnp.float32(y))
    np.testing.assert_allclose([dx, dy], [1 / y, -x / y / y], rtol=1e-6)


def derivatives_of_power(x, y):
    """Value, both first, and the four second derivatives of x^y for x > 0."""
    log = math.log(x)
    mixed = x ** (y - 1) * (1 + y * log)
    return [x**y, y * x ** (y - 1), log * x**y, y * (y - 1) * x ** (y - 2), mixed, mixed, log**2 * x**y]


def derived_powers(x, y):
    first = [hx.grad(lax.pow, 0), hx.grad(lax.pow, 1)]
    return [lax.pow(x, y), *[f(x, y) for f in first], *[hx.grad(f, i)(x, y) for f in first for i in (0, 1)]]


@pytest.mark.each_choice
@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("x", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("y", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_all_derivatives_of_a_power(x, y, way):
    got = way(derived_powers)(*[hx.numpy.asarray(v, "float64") for v in (x, y)])
    np.testing.assert_allclose(np.array(got), derivatives_of_power(x, y), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_zero_have_the_limits_of_their_derivatives(dtype, way):
    inf = np.inf
    x, y = np.array([0.0, 0.0, 0.0, 0.0, np.inf], dtype), np.array([0.0, 1.0, 2.0, -1.0, -1.0], dtype)
    by_base, by_exponent = way(lambda x, y: hx.vjp(lax.pow, x, y)[1](hx.numpy.ones_like(x)))(x, y)
    np.testing.assert_array_equal(by_base, [0, 1, 0, -inf, 0])
    np.testing.assert_array_equal(by_exponent, [-inf, 0, 0, -inf, 0])
    own = lambda x: hx.jvp(lambda x: x**x, (x,), (hx.numpy.ones_like(x),))[1]
    zero = hx.numpy.zeros((), dtype)
    assert way(own)(zero) == -inf
    assert way(lambda x: hx.jvp(own, (x,), (hx.numpy.ones_like(x),))[1])(zero) == inf
