"""Eigenvalues of square matrices: residuals, derivatives along LAPACK's phases, and matrices that have none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import lax

RNG = np.random.default_rng(0)
KINDS = ("float32", "float64", "complex64", "complex128")
eig = lax.linalg.eig


def matrices(kind, *shape):
    x = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if kind[0] == "c" else 0)
    return x.astype(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_residuals_are_of_the_size_of_rounding(kind):
    for n in (1, 2, 30):
        x = matrices(kind, 2, n, n)
        for f in (eig, hx.jit(eig)):
            w, vl, vr = [np.asarray(y).astype("complex128") for y in f(x)]
            assert f(x)[0].dtype == f(x)[1].dtype == np.result_type(kind, "complex64")
            bound = 10 * n * np.finfo(kind).eps * np.linalg.norm(x.astype("complex128"), 2, (-2, -1))
            assert np.all(np.linalg.norm(x @ vr - vr * w[:, None], 2, (-2, -1)) <= bound)
            left = vl.conj().swapaxes(-1, -2)
            assert np.all(np.linalg.norm(left @ x - w[..., None] * left, 2, (-2, -1)) <= bound)
            np.testing.assert_allclose(np.linalg.norm(vr, axis=-2), 1, rtol=100 * np.finfo(kind).eps)


def test_those_that_are_asked_for_are_there():
    x = matrices("float64", 3, 3)
    w, vl, vr = eig(x)
    for left, right in itertools.product((False, True), repeat=2):
        options = {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right}
        for f in (eig, hx.jit(eig, static_argnames=tuple(options))):
            found = f(x, **options)
            assert len(found) == 1 + left + right
            for y, expected in zip(found, (w, *[vl] * left, *[vr] * right)):
                np.testing.assert_allclose(y, expected, atol=1e-14)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_derivatives_are_those_of_unit_vectors_whose_largest_element_is_real(kind):
    x, dx, step = matrices(kind, 4, 4), matrices(kind, 4, 4), 1e-6
    f = lambda x: eig(x, enable_eigvec_derivs=True)
    found, tangents = hx.jvp(f, (x,), (dx,))
    order = lambda ys: [np.asarray(y)[..., np.argsort(np.asarray(ys[0]))] for y in ys]
    for tangent, up, down in zip(order([found[0], *tangents])[1:], order(f(x + step * dx)), order(f(x - step * dx))):
        np.testing.assert_allclose(tangent, (up - down) / (2 * step), atol=1e-6)
    pulled = hx.vjp(f, x)[1]([np.conj(t) for t in tangents])[0]
    assert pulled.dtype == kind
    np.testing.assert_allclose((np.asarray(pulled) * dx).sum().real, sum(np.sum(abs(t) ** 2) for t in tangents))


def test_vectors_have_no_derivative_unless_it_is_enabled():
    x = matrices("float64", 3, 3)
    with pytest.raises(hx.errors.NotDifferentiable, match="enable_eigvec_derivs=True"):
        hx.jvp(eig, (x,), (x,))
    values = lambda x: eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
    np.testing.assert_allclose(hx.grad(lambda x: values(x).sum().real)(x), np.eye(3), atol=1e-13)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_eigenvalues_have_second_derivatives(kind):
    x, a, b = matrices(kind, 3, 4, 4)
    sizes = lambda x: hx.numpy.sort(abs(eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]))
    slope = lambda x: hx.jvp(sizes, (x,), (a,))[1]
    step = 1e-5
    quotient = (np.asarray(slope(x + step * b)) - np.asarray(slope(x - step * b))) / (2 * step)
    np.testing.assert_allclose(hx.jvp(slope, (x,), (b,))[1], quotient, rtol=1e-5, atol=1e-6)
    loss = lambda x: (sizes(x) ** 2 * np.arange(4)).sum()
    backward = sum(hx.jvp(hx.grad(loss), (x,), (b,))[1].ravel() * a.ravel()).real
    forward = hx.jvp(lambda x: hx.jvp(loss, (x,), (a,))[1], (x,), (b,))[1]
    np.testing.assert_allclose(backward, forward, rtol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_matrices_of_nan_and_of_nothing_are_answered(compiled):
    f = hx.jit(eig) if compiled else eig
    w, vl, vr = f(np.stack([np.full((3, 3), np.nan), np.eye(3), np.full((3, 3), np.inf)]))
    assert all(np.isnan(y[i]).all() for y in (w, vl, vr) for i in (0, 2)) and w[1].tolist() == [1, 1, 1]
    w, _, vr = f(np.zeros((2, 0, 0), "float32"))
    assert w.shape == (2, 0) and vr.shape == (2, 0, 0) and vr.dtype == "complex64"


def test_there_is_one_implementation():
    kinds = lax.linalg.EigImplementation
    assert eig(np.eye(2), implementation=kinds.LAPACK)[0].tolist() == [1, 1]
    with pytest.raises(hx.errors.MissingRule, match=r"must be EigImplementation.LAPACK"):
        eig(np.eye(2), implementation=kinds.MAGMA)
