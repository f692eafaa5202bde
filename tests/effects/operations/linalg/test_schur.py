"""Reductions by unitary matrices: residuals, forms, and matrices of NaN or of nothing."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax

RNG = np.random.default_rng(0)
KINDS = ("float32", "float64", "complex64", "complex128")


def matrices(kind, *shape):
    x = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if kind[0] == "c" else 0)
    return x.astype(kind)


def product_of(a, taus):
    """q of a form that is stored below the diagonal beneath its own."""
    first = np.zeros((*a.shape[:-2], a.shape[-1], 1), a.dtype)
    first[..., 0, 0] = 1
    inner = np.asarray(lax.linalg.householder_product(np.asarray(a)[..., 1:, :-1], taus))
    rest = np.concatenate([np.zeros((*a.shape[:-2], 1, a.shape[-1] - 1), a.dtype), inner], -2)
    return np.concatenate([first, rest], -1)


def residual(x, q, t):
    """The largest norm of x - q t q^H and of q^H q - 1, in roundings of x."""
    x, q, t = (np.asarray(y).astype("complex128") for y in (x, q, t))
    qh = q.conj().swapaxes(-1, -2)
    unit = np.linalg.norm(qh @ q - np.eye(q.shape[-1]), 2, (-2, -1)).max()
    return max(unit, (np.linalg.norm(x - q @ t @ qh, 2, (-2, -1)) / np.linalg.norm(x, 2, (-2, -1))).max())


@pytest.mark.each_choice
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_residuals_are_of_the_size_of_rounding(kind, compiled):
    x = matrices(kind, 2, 20, 20)
    bound = 200 * np.finfo(kind).eps
    wrap = hx.jit if compiled else lambda f: f
    t, z = wrap(lax.linalg.schur)(x)
    assert residual(x, z, t) <= bound and not np.tril(t, -1 if kind[0] == "c" else -2).any()
    (alone,) = wrap(lambda x: lax.linalg.schur(x, compute_schur_vectors=False))(x)
    np.testing.assert_allclose(alone, t, atol=1000 * bound)
    a, taus = wrap(lax.linalg.hessenberg)(x)
    assert residual(x, product_of(a, taus), np.triu(a, -1)) <= bound
    h = x + x.conj().swapaxes(-1, -2)
    a, d, e, taus = wrap(lax.linalg.tridiagonal)(np.tril(h))
    form = np.zeros_like(h)
    for k, part in ((0, d), (1, e), (-1, e)):
        form += np.stack([np.diag(np.asarray(row), k) for row in part]).astype(kind)
    assert d.dtype == e.dtype == x.real.dtype and residual(h, product_of(a, taus), form) <= bound


@pytest.mark.parametrize("compiled", [False, True])
def test_matrices_of_nan_and_of_nothing_are_answered(compiled):
    wrap = hx.jit if compiled else lambda f: f
    t, z = wrap(lax.linalg.schur)(np.stack([np.full((3, 3), np.nan), np.diag([3.0, 2.0, 1.0])]))
    assert np.isnan(t[0]).all() and np.isnan(z[0]).all() and t[1].tolist() == np.diag([3.0, 2.0, 1.0]).tolist()
    for n in (0, 1):
        x = np.full((2, n, n), 2.0)
        assert wrap(lax.linalg.schur)(x)[0].tolist() == x.tolist()
        a, taus = wrap(lax.linalg.hessenberg)(x)
        assert a.tolist() == x.tolist() and taus.shape == (2, 0)
    assert np.isnan(wrap(lax.linalg.hessenberg)(np.full((3, 3), np.nan))[0]).any()
    assert np.isnan(wrap(lax.linalg.tridiagonal)(np.full((3, 3), np.nan))[1]).any()
    a, d, e, taus = wrap(lax.linalg.tridiagonal)(np.array([[2 + 0j]]))
    assert d.tolist() == [2] and e.shape == taus.shape == (0,)


def test_what_lapack_does_not_offer_is_refused():
    with pytest.raises(ValueError, match="sort_eig_vals must be False"):
        lax.linalg.schur(np.eye(2), sort_eig_vals=True)
    with pytest.raises(ValueError, match="must not be empty"):
        lax.linalg.tridiagonal(np.zeros((0, 0)))
    with pytest.raises(hx.errors.MissingRule, match="jvp"):
        hx.jvp(lax.linalg.schur, (np.eye(2),), (np.eye(2),))
