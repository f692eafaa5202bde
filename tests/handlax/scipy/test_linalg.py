"""Factors, functions and patterns of matrices, against SciPy."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg as peer
from helpers.matrices import matrix, residual

import handlax as hx
from handlax import numpy as hnp
from handlax.scipy import linalg

WAYS = pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
DTYPES = pytest.mark.parametrize("dtype", ["float32", "complex128"])


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def close(found, expected, dtype="float64", loose=1e3):
    eps = np.finfo(dtype).eps * loose
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps)


PATTERNS = {
    "toeplitz": ([1.0, 2, 3], [1.0, 5]), "hankel": ([1.0, 2, 3], [3.0, 5]), "circulant": ([1.0, 2, 3],),
    "companion": ([2.0, 3, 5, 7],), "leslie": ([0.1, 2.0, 1.0], [0.2, 0.8]), "fiedler": ([1.0, 4, 12, 45],),
    "hilbert": (4,), "invhilbert": (5,), "pascal": (5,), "invpascal": (5,), "hadamard": (8,),
    "helmert": (5,), "dft": (5,),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_scipys(name):
    arguments = [np.array(x) if isinstance(x, list) else x for x in PATTERNS[name]]
    found = getattr(linalg, name)(*arguments)
    expected = getattr(peer, name)(*arguments)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", range(2, 9))
def test_a_companion_with_five_diagonals_is_scipys(n):
    a = matrix((n,), "float64")
    close(linalg.fiedler_companion(a), peer.fiedler_companion(a))
    assert linalg.fiedler_companion(np.stack([a, a])).shape == (2, n - 1, n - 1)


@pytest.mark.parametrize("kind", ["symmetric", "lower", "upper"])
def test_pascals_triangles_and_their_inverses_are_scipys(kind):
    np.testing.assert_allclose(linalg.pascal(6, kind), peer.pascal(6, kind))
    np.testing.assert_allclose(linalg.invpascal(6, kind), peer.invpascal(6, kind))


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_matrix_of_convolution_convolves(n, mode):
    a, v = matrix((4,), "float64"), matrix((n,), "float64", 1)
    close(linalg.convolution_matrix(a, n, mode), peer.convolution_matrix(a, n, mode))
    assert n > 4 or np.allclose(linalg.convolution_matrix(a, n, mode) @ v, np.convolve(a, v, mode)[: 4 + n])


def test_blocks_and_scales():
    blocks = np.ones((2, 1)), np.arange(3), np.zeros((0, 2)), np.array(7)
    np.testing.assert_array_equal(linalg.block_diag(*blocks), peer.block_diag(*map(np.atleast_2d, blocks)))
    np.testing.assert_allclose(linalg.dft(4, "sqrtn"), peer.dft(4, "sqrtn"), atol=1e-6)
    np.testing.assert_allclose(linalg.helmert(4, full=True), peer.helmert(4, full=True), atol=1e-6)
    np.testing.assert_array_equal(linalg.toeplitz(np.array([1, 2j])), peer.toeplitz(np.array([1, 2j])))
    assert linalg.hankel(np.ones((2, 3)), np.ones(4)).shape == (2, 3, 4)


@pytest.mark.each_choice
@WAYS
@DTYPES
def test_factors_and_their_solutions_are_scipys(dtype, way):
    a, b = matrix((5, 5), dtype), matrix((5, 2), dtype, 1)
    for found, expected in zip(way(linalg.lu)(a), peer.lu(a)):
        close(found, expected, dtype)
    dominant = a + 5 * np.eye(5, dtype=dtype)
    for trans in (0, 1, 2):
        found = way(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans))(a, b)
        close(found, peer.lu_solve(peer.lu_factor(a), b, trans), dtype, 1e4)
        for lower in (False, True):
            found = way(lambda a, b: linalg.solve_triangular(a, b[:, 0], trans, lower))(dominant, b)
            close(found, peer.solve_triangular(dominant, b[:, 0], trans, lower), dtype)
    h = a @ adjoint(a) + np.eye(5, dtype=dtype)
    expected = np.linalg.solve(h, b)
    for lower in (False, True):
        part = np.tril(h) if lower else np.triu(h)
        close(way(lambda h: linalg.cholesky(h, lower))(part), peer.cholesky(h, lower), dtype)
        close(way(lambda h, b: linalg.cho_solve(linalg.cho_factor(h, lower), b))(h, b), expected, dtype, 1e4)
        found = way(lambda h, b: linalg.solve(h, b[:, 0], lower, assume_a="pos"))(part, b)
        close(found, expected[:, 0], dtype, 1e4)


@DTYPES
@pytest.mark.parametrize("mode", ["left", "right"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("conjugate", [False, True])
def test_products_with_the_orthogonal_factor_are_scipys(conjugate, pivoting, shape, mode, dtype):
    a = matrix(shape, dtype)
    k = min(shape)
    c = matrix((k, 2) if mode == "left" else (2, shape[0]), dtype, 1)
    found = linalg.qr_multiply(a, c, mode, pivoting, conjugate)
    q, r, *p = linalg.qr(a, mode="economic", pivoting=pivoting)
    q = np.conj(q) if conjugate else np.asarray(q)
    close(found[0], q @ c if mode == "left" else c @ q, dtype)
    close(found[1], r, dtype)
    assert not pivoting or found[2].tolist() == p[0].tolist()


@pytest.mark.each_choice
@WAYS
@DTYPES
@pytest.mark.parametrize("size", [0.01, 1.0, 12.0])
def test_the_exponential_is_scipys(size, dtype, way):
    a = matrix((2, 5, 5), dtype) * np.array([size, size / 7], dtype)[:, None, None]
    found = np.asarray(way(linalg.expm)(a))
    exact = np.stack([peer.expm(x.astype("complex128" if np.dtype(dtype).kind == "c" else "float64")) for x in a])
    assert found.dtype == dtype
    assert (abs(found - exact).max((1, 2)) < 1e3 * np.finfo(dtype).eps * max(size, 1) * abs(exact).max((1, 2))).all()


def test_the_exponential_has_derivatives_in_both_directions_and_ends_at_its_bound():
    a, e = matrix((4, 4), "float64"), matrix((4, 4), "float64", 1)
    dy = linalg.expm_frechet(a, e, compute_expm=False)
    close(dy, peer.expm_frechet(a, e)[1], loose=1e4)
    hx.test_util.check_grads(linalg.expm, (3 * a,), 1, rtol=1e-3)
    assert np.isnan(linalg.expm(a * 2.0**20)).all() and not np.isnan(linalg.expm(a * 8, max_squarings=8)).any()
    np.testing.assert_allclose(linalg.expm(np.triu(a), upper_triangular=True), peer.expm(np.triu(a)), rtol=1e-10)


@WAYS
@DTYPES
def test_the_root_of_a_matrix_is_the_one_whose_square_it_is(dtype, way):
    a = matrix((2, 6, 6), dtype)
    y = np.asarray(way(linalg.sqrtm)(a))
    assert residual(a.astype(y.dtype), y @ y) < 50
    assert (np.linalg.eigvals(y).real > -1e-3).all()
    assert not linalg.sqrtm(np.zeros((3, 3), dtype)).any()


def test_the_derivative_of_a_root_solves_sylvesters_equation():
    a = matrix((4, 4), "complex128")
    hx.test_util.check_grads(linalg.sqrtm, (a @ a,), 1)


@pytest.mark.each_choice
@WAYS
@DTYPES
def test_sylvesters_equation_is_solved(dtype, way):
    a, b, c = matrix((2, 4, 4), dtype), matrix((3, 3), dtype, 1), matrix((2, 4, 3), dtype, 2)
    x = np.asarray(way(linalg.solve_sylvester)(a, b, c))
    assert x.dtype == dtype and abs(a @ x + x @ b - c).max() < 1e4 * np.finfo(dtype).eps
    assert np.isnan(linalg.solve_sylvester(np.eye(2), -np.eye(2), np.ones((2, 2)))).all()


@pytest.mark.parametrize("dtype", ["float64", pytest.param("complex128", marks=pytest.mark.sweep)])
def test_the_derivatives_of_sylvesters_equation_are_those_of_a_linear_system(dtype):
    args, away = ([matrix(s, dtype, k + i) for i, s in enumerate([(3, 3), (2, 2), (3, 2)])] for k in (0, 3))
    loss = lambda x: (hnp.abs(x) ** 2).sum()

    def system(a, b, c):
        return hnp.linalg.solve(hnp.kron(a, hnp.eye(2)) + hnp.kron(hnp.eye(3), b.T), c.reshape(-1))

    def directional(f, forwards):
        """The derivative of ``f`` along its arguments, forwards or backwards."""
        if forwards:
            return lambda *xs: hx.jvp(f, xs, away)[1]
        return lambda *xs: sum([(g * x).sum().real for g, x in zip(hx.grad(f, (0, 1, 2))(*xs), away)])

    for modes in itertools.product((True, False), repeat=2):
        found, expected = lambda *xs: loss(linalg.solve_sylvester(*xs)), lambda *xs: loss(system(*xs))
        for forwards in modes:
            found, expected = directional(found, forwards), directional(expected, forwards)
            np.testing.assert_allclose(hx.jit(found)(*args), hx.jit(expected)(*args), rtol=1e-9)


@WAYS
def test_a_function_of_a_matrix_is_scipys(way):
    a = matrix((5, 5), "float64")
    close(way(lambda a: linalg.funm(a, hnp.exp))(a), peer.expm(a), loose=1e5)
    y, error = linalg.funm(a, hnp.sin, disp=False)
    close(y, peer.sinm(a), loose=1e5)
    assert 0 < error < 1e-10


@pytest.mark.each_choice
@WAYS
@DTYPES
def test_triangular_forms_are_factors(dtype, way):
    a = matrix((2, 6, 6), dtype)
    for output in ("real", "complex"):
        t, z = map(np.asarray, way(lambda a: linalg.schur(a, output))(a))
        assert residual(a.astype(z.dtype), z @ t @ adjoint(z)) < 10
    t, z = map(np.asarray, way(lambda a: linalg.rsf2csf(*linalg.schur(a)))(a))
    assert not np.tril(t, -1).any() or np.abs(np.tril(t, -1)).max() < 1e3 * np.finfo(dtype).eps
    assert residual(a.astype(z.dtype), z @ t @ adjoint(z)) < 50
    h, q = map(np.asarray, way(lambda a: linalg.hessenberg(a, calc_q=True))(a))
    assert residual(a, q @ h @ adjoint(q)) < 10 and not np.tril(h, -2).any()


@pytest.mark.each_choice
@WAYS
@DTYPES
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5)], ids=str)
def test_polar_factors_are_scipys(shape, side, dtype, way):
    a = matrix(shape, dtype)
    u, p = map(np.asarray, way(lambda a: linalg.polar(a, side))(a))
    close(p, peer.polar(a, side)[1], dtype)
    assert residual(a, u @ p if side == "right" else p @ u) < 50


@pytest.mark.each_choice
@WAYS
@DTYPES
@pytest.mark.parametrize("type", [1, 2, 3])
@pytest.mark.parametrize("lower", [False, True])
def test_generalized_eigenvalues_are_scipys(lower, type, dtype, way):
    a, b = matrix((4, 4), dtype), matrix((4, 4), dtype, 1)
    a, b = a + adjoint(a), b @ adjoint(b) + np.eye(4, dtype=dtype)
    cut = np.tril if lower else np.triu
    w, v = map(np.asarray, way(lambda a, b: linalg.eigh(a, b, lower, type=type))(cut(a), cut(b)))
    close(w, peer.eigh(a, b, type=type, eigvals_only=True), dtype, 1e4)
    left, right = {1: (a @ v, b @ v), 2: (a @ (b @ v), v), 3: (b @ (a @ v), v)}[type]
    close(left, right * w, dtype, 1e5)


@DTYPES
def test_eigenvalues_of_three_diagonals_are_scipys(dtype):
    d, e = matrix((6,), dtype).real.astype(dtype), matrix((5,), dtype, 1)
    full = np.diag(d) + np.diag(e, -1) + np.diag(np.conj(e), 1)
    close(linalg.eigh_tridiagonal(d, e, eigvals_only=True), np.linalg.eigvalsh(full), dtype)
    w, v = linalg.eigh_tridiagonal(d, e, select="i", select_range=(1, 3))
    assert w.shape == (3,) and residual(np.asarray(full @ v), np.asarray(v * w)) < 50


@pytest.mark.parametrize("call", [
    lambda x: linalg.solve(x, x, assume_a="none"), lambda x: linalg.qr(x, mode="raw"), lambda x: linalg.polar(x, "up"),
    lambda x: linalg.schur(x, "other"), lambda x: linalg.hadamard(6), lambda x: linalg.dft(2, "x"),
    lambda x: linalg.solve_triangular(x, x, 3), lambda x: linalg.eigh(x, type=4), lambda x: linalg.pascal(2, "x"),
    lambda x: linalg.solve_sylvester(x, x, x, method="x"), lambda x: linalg.sqrtm(x, 2),
    lambda x: linalg.eigh_tridiagonal(x[0], x[0, 1:], select="v"), lambda x: linalg.helmert(0),
])
def test_other_words_and_sizes_are_refused(call):
    with pytest.raises(hx.errors.BadArgument):
        call(np.eye(2))


def test_the_inverse_of_hilberts_matrix_is_exact():
    assert linalg.invhilbert(3).tolist() == peer.invhilbert(3, exact=True).tolist()
    assert math.isclose(float(linalg.invhilbert(10)[5, 5]), float(peer.invhilbert(10, exact=True)[5, 5]), rel_tol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_the_complex_form_of_reals_is_scipys_rotation_by_rotation(n):
    t, z = peer.schur(np.random.default_rng(n).normal(size=(n, n)))
    forms = linalg.rsf2csf(np.stack([t, np.triu(t)]), z)
    for lane, real in enumerate((t, np.triu(t))):
        for found, expected in zip(forms, peer.rsf2csf(real, z)):
            np.testing.assert_allclose(found[lane], expected, atol=1e-13)


@DTYPES
def test_of_a_matrix_that_is_no_real_form_the_rotations_are_scipys_too(dtype):
    t, z = matrix((9, 9), dtype), matrix((9, 9), dtype, 1)
    for found, expected in zip(linalg.rsf2csf(t, z), peer.rsf2csf(t, z)):
        close(found, expected, dtype)


def test_a_polar_factor_has_derivatives_where_singular_values_are_equal():
    dx = np.array([[1.0, 2.0], [4.0, 3.0]])
    for side in ("left", "right"):
        tangent = hx.jvp(lambda x: linalg.polar(x, side)[0], (np.eye(2),), (dx,))[1]
        np.testing.assert_allclose(tangent, (dx - dx.T) / 2, atol=1e-13)


@pytest.mark.each_choice
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_a_positive_system_are_those_of_any_system(dtype, lower):
    a, b, da, db = (matrix(shape, dtype, seed) for seed, shape in enumerate([(3, 3), (3, 2), (3, 3), (3, 2)]))
    a, da = a @ a.conj().T + np.eye(3), da + da.conj().T  # of a Hermitian matrix, along one
    solve = lambda assume: lambda a, b: linalg.solve(a, b, lower=lower, assume_a=assume)
    once = lambda f: lambda a, b: hx.jvp(f, (a, b), (da, db))[1]
    positive, general = solve("pos"), solve("gen")
    for _ in range(3):
        np.testing.assert_allclose(positive(a, b), general(a, b), rtol=1e-10, atol=1e-11)
        positive, general = once(positive), once(general)
    loss = lambda f: lambda a, b: hnp.sum(hnp.abs(f(a, b)) ** 2)
    along = lambda f: lambda a, b: hx.jvp(hx.grad(loss(f), (0, 1)), (a, b), (da, db))
    for found, expected in zip(*[hx.tree.leaves(hx.jit(along(solve(word)))(a, b)) for word in ("pos", "gen")]):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
