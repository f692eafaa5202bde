"""Zeros of polynomials, and fits, beside NumPy's."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import BadArgument, RankMismatch, ShapeMismatch


@pytest.mark.parametrize("p", [
    [1.0, -6.0, 11.0, -6.0], [0.0, 0.0, 2.0, 1.0, 0.0, 0.0], [3.0], [], [0.0, 0.0], [1.0, 0.0, 4.0], [2, 0, 0],
    [1j, 2.0, 1],
])
def test_zeros(p):
    found, expected = hnp.roots(hnp.array(p)), np.roots(p)
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), atol=1e-4)


def test_zeros_of_traced_coefficients():
    p = hnp.array([1.0, -3.0, 2.0])
    found = hx.jit(lambda p: hnp.roots(p, strip_zeros=False))(p)
    np.testing.assert_allclose(np.sort(found.real), [1.0, 2.0], rtol=1e-5)
    with pytest.raises(BadArgument, match="known values"):
        hx.jit(hnp.roots)(p)
    with pytest.raises(RankMismatch, match="a vector"):
        hnp.roots(hnp.ones((2, 2)))


X = np.linspace(-1.0, 2.0, 12)
Y = np.stack([np.sin(X), np.cos(2 * X)], 1)


@pytest.mark.parametrize("y", [Y[:, 0], Y], ids=["one", "two"])
@pytest.mark.parametrize("w", [None, np.arange(1.0, 13.0)], ids=["alike", "weighted"])
def test_fits(y, w):
    np.testing.assert_allclose(hnp.polyfit(X, y, 3, w=w), np.polyfit(X, y, 3, w=w), rtol=1e-8, atol=1e-10)
    for mine, theirs in zip(hnp.polyfit(X, y, 3, full=True, w=w), np.polyfit(X, y, 3, full=True, w=w), strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-6, atol=1e-10)
    for cov in (True, "unscaled"):
        mine, theirs = hnp.polyfit(X, y, 3, w=w, cov=cov)[1], np.polyfit(X, y, 3, w=w, cov=cov)[1]
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("q", [[0.0, 0.0, 2.0, 0.0, 1.0], [0.0, 0.0], [3.0], [0.0, 0.0, 0.0, 5.0]], ids=str)
def test_products_and_remainders_without_leading_zeros_are_numpys(q):
    p = [0.0, 1.0, 2.0]
    found = hnp.polymul(hnp.array(p), hnp.array(q), trim_leading_zeros=True)
    expected = np.polymul(p, q)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    assert hnp.polydiv(hnp.array(q), hnp.array([1.0, 0.0]), trim_leading_zeros=True)[1].tolist() == q[-1:]


def test_a_fit_has_a_derivative():
    slope = hx.jit(hx.jacobian(lambda y: hnp.polyfit(X, y, 2)))(Y[:, 0])
    np.testing.assert_allclose(slope @ Y[:, 0], hnp.polyfit(X, Y[:, 0], 2), rtol=1e-6)


def test_what_does_not_fit():
    with pytest.raises(BadArgument, match="negative"):
        hnp.polyfit(X, Y, -1)
    with pytest.raises(ShapeMismatch, match="a value for each"):
        hnp.polyfit(X, Y[:5], 1)
    with pytest.raises(ShapeMismatch, match="a weight for each"):
        hnp.polyfit(X, Y, 1, w=[1.0])
    with pytest.raises(BadArgument, match="more than 4 points"):
        hnp.polyfit(X[:4], Y[:4], 3, cov=True)
