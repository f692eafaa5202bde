"""Linear systems, determinants and factors, against NumPy."""

import numpy as np
import pytest
from helpers.matrices import matrix, residual

import handlax as hx
from handlax import numpy as hnp

WAYS = pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
DTYPES = "float32", "float64", "complex64", "complex128"


def of_all_dtypes(way, f, *operands):
    """By dtype, operands, each made by a function of it, and the results of ``f``, all by one function."""
    xs = {dtype: [operand(dtype) for operand in operands] for dtype in DTYPES}
    results = way(lambda xs: {dtype: f(*own) for dtype, own in xs.items()})(xs)
    return [(dtype, xs[dtype], results[dtype]) for dtype in DTYPES]


@pytest.mark.each_choice
@WAYS
@pytest.mark.parametrize(("left", "right"), [
    ((5, 5), (5,)), ((5, 5), (5, 2)), ((3, 5, 5), (5,)), ((5, 5), (3, 5, 2)), ((3, 5, 5), (2, 1, 5, 2)),
    ((0, 0), (0, 2)), ((0, 2, 2), (2, 3)),
])
def test_solutions_are_numpys(left, right, way):
    makes = lambda dtype: matrix(left, dtype) + 3 * np.eye(left[-1], dtype=dtype), lambda dtype: matrix(right, dtype, 1)
    for dtype, (a, b), x in of_all_dtypes(way, hnp.linalg.solve, *makes):
        tolerance = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=tolerance, atol=tolerance)
        assert x.dtype == dtype


@WAYS
def test_a_singular_system_has_an_infinite_solution_or_nan_and_spoils_no_other(way):
    a = np.array([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 4.0]]])
    x = np.asarray(way(hnp.linalg.solve)(a, np.array([2.0, 4.0])))
    assert not np.isfinite(x[0]).all()
    np.testing.assert_allclose(x[1], [1, 1])


@pytest.mark.each_choice
@WAYS
@pytest.mark.parametrize("shape", [(2, 2), (1, 1), (3, 3), (3, 6, 6), (0, 0), (2, 0, 0)], ids=str)
def test_determinants_and_inverses_are_numpys(shape, way):
    f = lambda a: (hnp.linalg.det(a), hnp.linalg.slogdet(a), hnp.linalg.inv(a))
    for dtype, (a,), (determinant, logarithm, inverse) in of_all_dtypes(way, f, lambda dtype: matrix(shape, dtype)):
        tolerance = {"rtol": 1e3 * np.finfo(dtype).eps, "atol": 1e2 * np.finfo(dtype).eps}
        np.testing.assert_allclose(determinant, np.linalg.det(a), **tolerance)
        for found, expected in zip(logarithm, np.linalg.slogdet(a)):
            np.testing.assert_allclose(found, expected, **tolerance)
            assert found.dtype == expected.dtype
        y, one = np.asarray(inverse), np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)
        assert residual(one, a @ y) < 500 if y.size else y.shape == shape


def minors(a):
    """The matrix of cofactors, the derivative of the determinant."""
    n = range(len(a))
    cut = lambda i, j: np.delete(np.delete(a, i, 0), j, 1)
    return np.array([[(-1) ** (i + j) * np.linalg.det(cut(i, j)) for j in n] for i in n])


SINGULAR = {
    "last": np.diag([1.0, 2.0, 3.0, 0.0]), "first": np.diag([0.0, 1.0, 2.0, 3.0]), "two": np.diag([0.0, 0.0, 2.0, 3.0]),
    "zero": np.zeros((4, 4)), "ones": np.ones((5, 5)), "column": np.delete(np.eye(4, 5, 1), 4, 1) + np.tri(4, 4, -2),
    "small": np.array([[1.0, 2.0], [2.0, 4.0]]), "three": np.arange(9.0).reshape(3, 3),
    "whole": matrix((5, 5), "float64"),
}


@pytest.mark.parametrize("case", SINGULAR)
def test_the_gradient_of_a_determinant_are_the_cofactors_of_singular_matrices_too(case):
    a = SINGULAR[case]
    np.testing.assert_allclose(hx.grad(hnp.linalg.det)(a), minors(a), atol=1e-10)


def test_a_derivative_factorises_the_matrix_once():
    a, b = matrix((8, 8), "float64"), matrix((8,), "float64", 1)
    f = hx.jit(hx.value_and_grad(lambda a: hnp.linalg.solve(a, b).sum()))
    assert f.lower(a).compile().as_text().count("lapack_dgetrf_ffi") == 1
    y = np.linalg.solve(a, b)
    np.testing.assert_allclose(f(a)[1], -np.outer(np.linalg.solve(a.T, np.ones(8)), y), rtol=1e-9)


def test_second_derivatives_of_the_logarithm_of_a_determinant():
    a = matrix((4, 4), "float64")
    inverse = np.linalg.inv(a)
    found = hx.hessian(lambda a: hnp.linalg.slogdet(a)[1])(a)
    np.testing.assert_allclose(found, -np.einsum("jk,li->ijkl", inverse, inverse), rtol=1e-8)


@WAYS
@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_factors_by_mode_are_numpys(mode, way):
    factors = of_all_dtypes(way, lambda a: hnp.linalg.qr(a, mode), lambda dtype: matrix((6, 4), dtype))
    for dtype, (a,), found in factors:
        expected = np.linalg.qr(a, mode)
        for x, y in zip([found] if mode == "r" else found, [expected] if mode == "r" else expected):
            np.testing.assert_allclose(x, y, atol=1e2 * np.finfo(dtype).eps)


def test_tensors_are_solved_for_and_inverted():
    a, b = matrix((2, 3, 6), "float64"), matrix((2, 3), "float64", 1)
    np.testing.assert_allclose(hnp.linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b), rtol=1e-9)
    moved = np.moveaxis(a, 2, 1)
    np.testing.assert_allclose(
        hnp.linalg.tensorsolve(moved, b, axes=(1,)), np.linalg.tensorsolve(moved, b, axes=(1,)), rtol=1e-9)
    np.testing.assert_allclose(hnp.linalg.tensorinv(a), np.linalg.tensorinv(a), rtol=1e-9)
    c = matrix((3, 3), "float64")
    np.testing.assert_allclose(hnp.linalg.matrix_power(c, -3), np.linalg.matrix_power(c, -3), rtol=1e-8)


@pytest.mark.parametrize("call", [
    lambda x: hnp.linalg.solve(x, np.ones(3)), lambda x: hnp.linalg.inv(x[:1]), lambda x: hnp.linalg.det(x[0]),
    lambda x: hnp.linalg.solve(x, np.ones((3, 2, 2)).sum(0)[:, :1][:0]), lambda x: hnp.linalg.tensorinv(x, 3),
])
def test_other_shapes_are_refused(call):
    with pytest.raises(hx.errors.ShapeMismatch):
        call(np.ones((2, 2)))


@pytest.mark.each_choice
@WAYS
@pytest.mark.parametrize("dtype", DTYPES)
def test_pseudo_inverses_ranks_and_condition_numbers_are_numpys(dtype, way):
    orders = ("nuc", 2, -2, 1, "fro")

    @way
    def everything(a, h):
        inverses = hnp.linalg.pinv(a), hnp.linalg.pinv(h, 1e-3, hermitian=True)
        norms = [hnp.linalg.norm(a, order, (1, 2)) for order in orders]
        return *inverses, hnp.linalg.matrix_rank(h), hnp.linalg.cond(a), norms

    a = matrix((2, 5, 3), dtype)
    h = a @ np.conj(np.swapaxes(a, -1, -2))
    inverse, hermitian, rank, condition, norms = everything(a, h)
    tolerance = {"rtol": 1e4 * np.finfo(dtype).eps, "atol": 1e4 * np.finfo(dtype).eps}
    np.testing.assert_allclose(inverse, np.linalg.pinv(a), **tolerance)
    np.testing.assert_allclose(hermitian, np.linalg.pinv(h, 1e-3), **tolerance)
    assert rank.tolist() == [3, 3]
    np.testing.assert_allclose(condition, np.linalg.cond(a), **tolerance)
    for order, found in zip(orders, norms, strict=True):
        np.testing.assert_allclose(found, np.linalg.norm(a, order, (1, 2)), **tolerance)


def test_the_rank_counts_what_is_more_than_a_bound():
    a = np.diag([4.0, 2.0, 1.0])
    assert hnp.linalg.matrix_rank(a, tol=1.5) == 2 and hnp.linalg.matrix_rank(a, rtol=0.3) == 2
    assert hnp.linalg.matrix_rank(np.ones(3)) == 1 and hnp.linalg.matrix_rank(np.zeros((3, 2))) == 0
    assert hnp.linalg.cond(np.ones((2, 2))) > 1e15 and hnp.linalg.cond(np.ones((2, 2)), 1) == np.inf


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)], ids=str)
def test_least_squares_are_numpys(shape):
    a, b = matrix(shape, "float64"), matrix((shape[0], 2), "float64", 1)
    for found, expected in zip(hnp.linalg.lstsq(a, b, numpy_resid=True), np.linalg.lstsq(a, b)):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert hx.jit(hnp.linalg.lstsq)(a, b[:, 0])[0].shape == (shape[1],)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (3, 3)], ids=str)
def test_the_derivative_of_a_pseudo_inverse_holds_for_equal_singular_values(shape):
    a, da = np.eye(*shape), matrix(shape, "float64")
    step = 1e-6
    difference = (np.linalg.pinv(a + step * da) - np.linalg.pinv(a - step * da)) / (2 * step)
    np.testing.assert_allclose(hx.jvp(hnp.linalg.pinv, (a,), (da,))[1], difference, atol=1e-8)


@pytest.mark.parametrize("matrix_of", [lambda a: a, lambda a: a.T], ids=["tall", "wide"])
@pytest.mark.parametrize("rank", [2, 3])
def test_the_derivative_of_least_squares_is_the_one_along_matrices_of_one_rank(rank, matrix_of):
    a, da, b = np.eye(5, 3), matrix((5, 3), "float64"), matrix((5, 2), "float64", 1)
    if rank == 2:
        a[:, 2], da[:, 2] = a[:, 1], da[:, 1]
    a, da = matrix_of(a), matrix_of(da)
    f, step = lambda a: hnp.linalg.lstsq(a, b[: len(a)]).x, 1e-6
    difference = (np.asarray(f(a + step * da)) - np.asarray(f(a - step * da))) / (2 * step)
    np.testing.assert_allclose(hx.jvp(f, (a,), (da,))[1], difference, atol=1e-7)
    pulled = np.asarray(hx.grad(lambda a: f(a).sum())(a))
    np.testing.assert_allclose((pulled * da).sum(), difference.sum(), atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_singular_values_of_hermitian_matrices_are_those_of_others(dtype):
    a = matrix((4, 4), dtype)
    h = a + np.conj(a.T)
    u, s, vh = hnp.linalg.svd(h, hermitian=True)
    np.testing.assert_allclose(s, np.linalg.svd(h)[1], rtol=1e-4)
    assert residual(h, np.asarray(u * s @ vh)) < 10
    np.testing.assert_allclose(hnp.linalg.eigvalsh(h), np.linalg.eigvalsh(h), rtol=1e-4)
    w, v = hnp.linalg.eig(a)
    assert residual(a, np.asarray(v * w @ hnp.linalg.inv(v))) < 500
    np.testing.assert_allclose(np.sort_complex(hnp.linalg.eigvals(a)), np.sort_complex(w), rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_the_sign_of_a_determinant_of_nan_is_nan(dtype):
    x = np.array([[[np.nan, 1], [1, 2]], [[0, 1], [1, 0]]], dtype)
    for f in (hnp.linalg.slogdet, hx.jit(hnp.linalg.slogdet)):
        sign, size = f(x)
        assert np.isnan(sign[0]) and np.isnan(size[0]) and sign[1] == -1 and size[1] == 0
