"""Cholesky factors of matrices that have none, or infinite pivots."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_cholesky_factor_of_a_matrix_that_is_not_positive_definite_is_nan(way, dtype):
    x = np.array([[[1, 2], [2, 4]], [[4, 2], [2, 5]], [[-1, 0], [0, 1]], [[0, 0], [0, 0]]], dtype)
    y = np.asarray(way(lax.linalg.cholesky)(x))
    np.testing.assert_allclose(y[1], [[2, 0], [1, 2]])
    for row in (y[0], y[2], y[3]):
        assert np.isnan(row[np.tril_indices(2)]).all()
        assert row[0, 1] == 0


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("k", range(3))
def test_an_infinite_pivot_of_a_cholesky_factor_ends_its_column(k, dtype, way):
    x = np.array([[4, 2, 1], [2, 5, 3], [1, 3, 9]], dtype)
    others = [i for i in range(3) if i != k]
    rest = np.linalg.cholesky(x[np.ix_(others, others)])
    expected = np.zeros((3, 3), dtype)
    expected[np.ix_(others, others)] = rest
    expected[k, :k] = np.linalg.cholesky(x)[k, :k]  # which the pivot does not enter
    expected[k, k] = x[k, k] = np.inf
    stack = np.stack([x, np.array([[-1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype)])
    y = np.asarray(way(lax.linalg.cholesky)(stack))
    np.testing.assert_allclose(y[0], expected, rtol=1e-6, atol=1e-6)
    assert np.isnan(y[1][np.tril_indices(3)]).all()


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_an_updated_factor_is_that_of_the_sum(way):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((6, 5)), rng.standard_normal(5) * [0, 1, 0, 1, 1]
    r = np.linalg.cholesky(x.T @ x).T
    y = np.asarray(way(lax.linalg.cholesky_update)(r, w))
    np.testing.assert_allclose(y.T @ y, x.T @ x + np.outer(w, w))
    assert not np.tril(y, -1).any()
    c = x @ x.T
    found = way(lambda x, c: lax.linalg.symmetric_product(x, c, alpha=2.0, beta=0.5, symmetrize_output=True))(x, c)
    np.testing.assert_allclose(found, 2.5 * c)
