"""The factors of elimination with exchanges of rows: residuals, permutations, NaN and empty matrices."""

import numpy as np
import pytest
from helpers.matrices import matrix, residual

import handlax as hx
from handlax import lax

WAYS = pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])


@pytest.mark.each_choice
@WAYS
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (40, 40), (3, 30, 20), (2, 2, 20, 30)], ids=str)
def test_the_factors_give_the_permuted_matrix(shape, dtype, way):
    x = matrix(shape, dtype)
    factors, pivots, permutation = map(np.asarray, way(lax.linalg.lu)(x))
    k = min(shape[-2:])
    l = np.tril(factors[..., :k], -1) + np.eye(shape[-2], k, dtype=dtype)
    y = l @ np.triu(factors[..., :k, :])
    assert residual(np.take_along_axis(x, permutation[..., None], -2), y) < 10
    assert abs(l).max() <= 1.5  # of complex numbers LAPACK compares the sums of their parts
    np.testing.assert_array_equal(permutation, lax.linalg.lu_pivots_to_permutation(pivots, shape[-2]))


@WAYS
def test_a_singular_matrix_has_factors_and_one_with_nan_is_answered(way):
    x = np.array([[[1.0, 2.0], [2.0, 4.0]], [[np.nan, 1.0], [1.0, 1.0]]])
    factors = np.asarray(way(lax.linalg.lu)(x)[0])
    np.testing.assert_allclose(factors[0], [[2, 4], [0.5, 0]])
    assert np.isnan(factors[1]).any()


@WAYS
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 2, 2), (2, 0, 3)], ids=str)
def test_an_empty_matrix_has_empty_factors_and_its_rows_in_order(shape, way):
    factors, pivots, permutation = way(lax.linalg.lu)(np.zeros(shape))
    assert factors.shape == shape and pivots.shape == (*shape[:-2], min(shape[-2:]))
    assert (np.asarray(permutation) == np.arange(shape[-2])).all()


def test_the_second_derivative_of_a_determinant_is_that_of_its_polynomial():
    def determinant(x):  # of a matrix of two rows, without exchanges
        return hx.numpy.prod(hx.numpy.diagonal(lax.linalg.lu(x)[0]))

    x = np.array([[4.0, 1.0], [2.0, 3.0]])
    found = np.asarray(hx.hessian(determinant)(x)).reshape(4, 4)
    np.testing.assert_allclose(found, np.array([[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]]), atol=1e-12)
