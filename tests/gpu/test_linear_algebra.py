"""Factorisations on an accelerator: the products of the factors are the matrices, whoever computes them."""

import numpy as np
import pytest
from helpers.matrices import matrix, residual

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.operations.linalg.eigh import EighImplementation
from handlax.effects.operations.linalg.svd import SvdAlgorithm
from handlax.scipy import linalg

pytestmark = pytest.mark.gpu

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((5, 5), (3, 4, 4), (2, 3, 6, 4), (2, 3, 5), (70, 70), (130, 40))  # batches, tall, wide, beyond 64
SQUARE = [shape for shape in SHAPES if shape[-1] == shape[-2]]


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(shape, dtype):
    x = matrix(shape, dtype)
    return (x + adjoint(x)) / 2


def definite(shape, dtype):
    x = matrix(shape, dtype)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def computed(f, *xs):
    """The results of a compiled function on the default device, in NumPy."""
    results = hx.jit(f)(*xs)
    found = hx.tree.leaves(results)
    assert all(y.devices() == {hx.devices()[0]} for y in found)
    return [np.asarray(y) for y in found]


each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
each_square = pytest.mark.parametrize("shape", SQUARE, ids=str)


@each_dtype
@each_square
def test_cholesky(shape, dtype):
    x = definite(shape, dtype)
    (l,) = computed(lax.linalg.cholesky, x)
    assert residual(x, l @ adjoint(l)) < 10 and not np.triu(l, 1).any()


def test_cholesky_of_what_is_not_definite_is_nan_for_that_matrix_alone():
    x = np.stack([np.eye(3), -np.eye(3), 2 * np.eye(3)]).astype("float32")
    (l,) = computed(lax.linalg.cholesky, x)
    assert np.isnan(l).any((1, 2)).tolist() == [False, True, False]


@each_dtype
@each_shape
def test_lu(shape, dtype):
    x = matrix(shape, dtype)
    lu, pivots, permutation = computed(lax.linalg.lu, x)
    k = min(shape[-2:])
    l = np.tril(lu, -1)[..., :k] + np.eye(shape[-2], k, dtype=dtype)
    rows = np.take_along_axis(x, permutation[..., None], -2)
    assert residual(rows, l @ np.triu(lu)[..., :k, :]) < 10
    (again,) = computed(lambda p: lax.linalg.lu_pivots_to_permutation(p, shape[-2]), pivots)
    np.testing.assert_array_equal(again, permutation)


@pytest.mark.parametrize("full", [False, True])
@each_dtype
@each_shape
def test_qr(shape, dtype, full):
    x = matrix(shape, dtype)
    q, r = computed(lambda x: lax.linalg.qr(x, full_matrices=full), x)
    assert residual(x, q @ r) < 10 and not np.tril(r, -1).any()
    assert residual(np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), (*q.shape[:-2], *q.shape[-1:] * 2)),
                    adjoint(q) @ q) < 10


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [False, True])
@each_dtype
def test_products_with_reflections(dtype, transpose, left):
    x, c = matrix((2, 6, 4), dtype), matrix((2, 6, 6), dtype, 1)
    a, taus = computed(lax.linalg.geqrf, x)
    (q,) = computed(lambda x: lax.linalg.qr(x, full_matrices=True)[0], x)
    (y,) = computed(lambda *xs: lax.linalg.ormqr(*xs, left=left, transpose=transpose), a, taus, c)
    q = adjoint(q) if transpose else q
    assert residual(q @ c if left else c @ q, y) < 10


@pytest.mark.parametrize("implementation", [None, EighImplementation.QR, EighImplementation.JACOBI], ids=str)
@pytest.mark.parametrize("lower", [True, False])
@each_dtype
@each_square
def test_eigh(shape, dtype, lower, implementation):
    x = hermitian(shape, dtype)
    half = np.tril(x) if lower else np.triu(x)
    v, w = computed(
        lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False, implementation=implementation), half)
    assert residual(x, v * w[..., None, :] @ adjoint(v)) < 20 and (np.diff(w) >= 0).all()


@each_dtype
@each_square
def test_eig(shape, dtype):
    x = matrix(shape, dtype)
    w, v = computed(lambda x: lax.linalg.eig(x, compute_left_eigenvectors=False), x)
    assert residual(x.astype(v.dtype) @ v, v * w[..., None, :]) < 50
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=1e-5)
    (alone,) = computed(hnp.linalg.eigvals, x)
    np.testing.assert_allclose(alone.sum(-1), np.trace(x, axis1=-2, axis2=-1), rtol=1e-3, atol=1e-3)


def algorithms():
    """Those of a singular value decomposition that the platform has."""
    on_gpu = [SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR]
    return [None, SvdAlgorithm.QR, *(on_gpu if hx.default_backend() == "gpu" else [])]


@pytest.mark.parametrize("full", [False, True])
@each_dtype
@each_shape
def test_svd(shape, dtype, full):
    x = matrix(shape, dtype)
    for algorithm in algorithms():
        u, s, vh = computed(lambda x, a=algorithm: lax.linalg.svd(x, full_matrices=full, algorithm=a), x)
        k = s.shape[-1]
        assert u.shape[-1] == (x.shape[-2] if full else k) and vh.shape[-2] == (x.shape[-1] if full else k), algorithm
        assert residual(x, u[..., :k] * s[..., None, :] @ vh[..., :k, :]) < 50, algorithm
        assert (np.diff(s) <= 0).all(), algorithm
    (alone,) = computed(lambda x: lax.linalg.svd(x, compute_uv=False), x)
    np.testing.assert_allclose(alone, s, rtol=1e-4 if s.dtype == "float32" else 1e-10)


@each_dtype
def test_matrices_that_are_not_finite_have_nan_factors(dtype):
    x = np.stack([np.eye(4), np.full((4, 4), np.nan), np.full((4, 4), np.inf)]).astype(dtype)
    for f in (lax.linalg.eigh, lax.linalg.svd):
        for y in computed(f, x):
            assert np.isnan(y.reshape(3, -1)).all(1).tolist() == [False, True, True], f.__name__


@each_dtype
@each_square
def test_tridiagonal_form(shape, dtype):
    x = hermitian(shape, dtype)
    _, d, e, _ = computed(lax.linalg.tridiagonal, x)
    off = e[..., None] * np.eye(shape[-1] - 1, dtype=e.dtype)
    t = d[..., None] * np.eye(shape[-1], dtype=d.dtype)
    t[..., 1:, :-1] += off
    t[..., :-1, 1:] += off
    np.testing.assert_allclose(
        np.linalg.eigvalsh(t), np.linalg.eigvalsh(x), atol=1e-3 if t.dtype == "float32" else 1e-10)


@each_dtype
def test_systems(dtype):
    x, b = matrix((3, 5, 5), dtype) + 5 * np.eye(5, dtype=dtype), matrix((3, 5, 2), dtype, 1)
    dl, d, du = np.moveaxis(x, -1, 0)[:3]
    cases = [
        (hnp.linalg.solve, x, b), (hnp.linalg.inv, x), (hnp.linalg.det, x), (hnp.linalg.pinv, x[..., :3]),
        (lambda *xs: lax.linalg.triangular_solve(*xs, left_side=True, lower=True, conjugate_a=True, transpose_a=True),
         x, b),
        (lambda *xs: lax.linalg.triangular_solve(*xs, unit_diagonal=True), x, np.swapaxes(b, 1, 2)),
        (lax.linalg.tridiagonal_solve, dl, d + 10, du, b), (linalg.expm, x / 10), (hnp.linalg.matrix_power, x, 3),
    ]
    for f, *xs in cases:
        with hx.default_matmul_precision("highest"):
            static = xs[1:] if isinstance(xs[-1], int) else ()
            arrays = xs[:1] if static else xs
            g = lambda *arrays, f=f, static=static: f(*arrays, *static)
            (found,) = computed(g, *arrays)
            with hx.default_device(hx.devices("cpu")[0]):
                expected = np.asarray(g(*arrays))
        rtol = 2e-4 if expected.real.dtype == "float32" else 1e-10
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * abs(expected).max(), err_msg=str(f))


@pytest.mark.parametrize("f", [
    lambda x: lax.linalg.cholesky(x @ x.T + hnp.eye(4)), lambda x: lax.linalg.lu(x)[0], lambda x: lax.linalg.qr(x)[1],
    lambda x: lax.linalg.eigh(x + x.T)[1], lambda x: lax.linalg.svd(x, compute_uv=False),
    lambda x: hnp.linalg.slogdet(x)[1], lambda x: hnp.linalg.inv(x),
], ids=["cholesky", "lu", "qr", "eigh", "svd", "slogdet", "inv"])
def test_derivatives_are_those_of_the_host(f):
    x = matrix((4, 4), "float64")
    squares = hx.grad(lambda x: (f(x) ** 2).sum())
    both = lambda x: (hx.jacrev(f)(x), hx.jacfwd(f)(x), hx.vmap(squares)(hnp.stack([x, x.T])))
    with hx.default_device(hx.devices("cpu")[0]):
        expected = hx.tree.leaves(hx.device_get(both(x)))
    for y, z in zip(computed(both, x), expected, strict=True):
        np.testing.assert_allclose(abs(y), abs(z), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("f", [
    lax.linalg.eig, linalg.schur, lax.linalg.hessenberg, lambda x: lax.linalg.qr(x, pivoting=True),
], ids=["left eigenvectors", "schur", "hessenberg", "pivoted"])
def test_what_gpus_lack_is_refused_with_the_way_to_the_host(f):
    x = matrix((4, 4), "float32")
    if hx.default_backend() == "gpu":
        with pytest.raises(hx.errors.MissingRule, match=r"(?s)no counterpart on the platform 'cuda'.*devices\('cpu'\)"):
            hx.jit(f)(x)
    assert all(y.devices() == {hx.devices("cpu")[0]} for y in hx.tree.leaves(hx.jit(f, device=hx.devices("cpu")[0])(x)))
