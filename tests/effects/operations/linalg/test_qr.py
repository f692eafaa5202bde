"""Orthogonal factors: residuals, columns in order of their rank, and products of reflections."""

import numpy as np
import pytest
from helpers.matrices import matrix, residual

import handlax as hx
from handlax import lax

WAYS = pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.mark.each_choice
@WAYS
@DTYPES
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", [(30, 30), (3, 30, 20), (2, 20, 30)], ids=str)
def test_the_factors_give_the_matrix_and_the_first_is_orthogonal(shape, full_matrices, dtype, way):
    x = matrix(shape, dtype)
    q, r = map(np.asarray, way(lambda x: lax.linalg.qr(x, full_matrices=full_matrices))(x))
    assert residual(x, q @ r) < 10
    one = np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), (*shape[:-2], q.shape[-1], q.shape[-1]))
    assert residual(one, adjoint(q) @ q) < 10
    assert not np.tril(r, -1).any()


@WAYS
@DTYPES
def test_pivoting_puts_columns_in_descending_order(dtype, way):
    x = matrix((3, 12, 9), dtype) @ np.diag(np.arange(9.0)).astype(dtype)
    q, r, p = map(np.asarray, way(lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False))(x))
    assert residual(np.take_along_axis(x, p[:, None], -1), q @ r) < 10
    sizes = abs(np.diagonal(r, axis1=-2, axis2=-1))
    assert (np.diff(sizes) <= 1e-5).all()
    assert p.dtype == np.int32


@pytest.mark.each_choice
@WAYS
@DTYPES
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_a_product_with_reflections_is_the_one_with_their_matrix(transpose, left, dtype, way):
    a, taus = lax.linalg.geqrf(matrix((2, 6, 4), dtype))
    square = np.concatenate([np.asarray(a), np.zeros((2, 6, 2), dtype)], -1)
    q = np.asarray(lax.linalg.householder_product(square, taus))
    q = adjoint(q) if transpose else q
    c = matrix((2, 6, 3) if left else (2, 3, 6), dtype, 1)
    y = way(lambda a, taus, c: lax.linalg.ormqr(a, taus, c, left=left, transpose=transpose))(a, taus, c)
    assert residual(q @ c if left else c @ q, np.asarray(y)) < 10


def test_a_product_with_reflections_has_the_derivative_by_its_operand():
    a, taus = lax.linalg.geqrf(matrix((4, 2), "complex128"))
    c, ct = matrix((4, 3), "complex128", 1), matrix((4, 3), "complex128", 2)
    apply = lambda c: lax.linalg.ormqr(a, taus, c)
    q = np.asarray(apply(np.eye(4, dtype="complex128")))
    (back,) = hx.vjp(apply, c)[1](ct)
    np.testing.assert_allclose(back, q.T @ ct)
    with pytest.raises(hx.errors.NotDifferentiable, match="reflections must be constants"):
        hx.jvp(lambda t: lax.linalg.ormqr(a, t, c), (taus,), (taus,))


@WAYS
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 2, 2)], ids=str)
@pytest.mark.parametrize("full_matrices", [False, True])
def test_the_orthogonal_factor_of_an_empty_matrix_is_the_identity(full_matrices, shape, way):
    q, r = way(lambda x: lax.linalg.qr(x, full_matrices=full_matrices))(np.zeros(shape))
    k = shape[-2] if full_matrices else min(shape[-2:])
    assert r.shape == (*shape[:-2], k, shape[-1])
    np.testing.assert_array_equal(q, np.broadcast_to(np.eye(shape[-2], k), (*shape[:-1], k)))


@WAYS
def test_a_matrix_with_nan_has_factors_of_nan(way):
    x = np.ones((2, 3, 3))
    x[0, 1, 1] = np.nan
    q = np.asarray(way(lax.linalg.qr)(x)[0])
    assert np.isnan(q[0]).any() and np.isfinite(q[1]).all()
