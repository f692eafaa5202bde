"""Eigenvalues of Hermitian matrices: residuals, derivatives without phases, and matrices that have none."""

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


def hermitian(kind, *shape):
    x = matrices(kind, *shape)
    return (x + x.conj().swapaxes(-1, -2)) / 2


def wide(*ys):
    return [np.asarray(y).astype("complex128") for y in ys]


@pytest.mark.parametrize("kind", KINDS)
def test_residuals_are_of_the_size_of_rounding(kind):
    for n in (1, 2, 40):
        x = hermitian(kind, 2, n, n)
        for f in (lax.linalg.eigh, hx.jit(lax.linalg.eigh)):
            v, w = f(x)
            assert v.dtype == kind and w.dtype == x.real.dtype and np.all(np.diff(w) >= 0)
            v, w, a = wide(v, w, x)
            bound = 10 * n * np.finfo(kind).eps * np.linalg.norm(a, 2, (-2, -1))
            assert np.all(np.linalg.norm(a @ v - v * w[:, None], 2, (-2, -1)) <= bound)
            assert np.all(np.linalg.norm(v.conj().swapaxes(-1, -2) @ v - np.eye(n), 2, (-2, -1)) <= bound.min() / n)


@pytest.mark.parametrize("compiled", [False, True])
def test_one_triangle_is_read_or_both(compiled):
    x = matrices("complex128", 4, 4)
    for lower, symmetrize in ((True, True), (True, False), (False, False)):
        f = lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=symmetrize)
        triangle = np.tril(x) if lower else np.triu(x).conj().T
        half = triangle - np.diag(np.diag(triangle).real / 2 + 1j * np.diag(triangle).imag)
        expected = np.linalg.eigvalsh((x + x.conj().T) / 2 if symmetrize else half + half.conj().T)
        np.testing.assert_allclose((hx.jit(f) if compiled else f)(x)[1], expected, atol=1e-13)


def test_a_subset_is_a_part_of_all():
    x = hermitian("float64", 3, 5, 5)
    v, w = lax.linalg.eigh(x)
    part = lax.linalg.eigh(x, subset_by_index=(1, 3))
    np.testing.assert_array_equal(part[0], v[..., 1:3])
    np.testing.assert_array_equal(part[1], w[..., 1:3])
    with pytest.raises(ValueError, match="subset_by_index must be a part of the 5"):
        lax.linalg.eigh(x, subset_by_index=(1, 6))


@pytest.mark.parametrize("compiled", [False, True])
def test_matrices_of_nan_and_of_nothing_are_answered(compiled):
    x = np.stack([np.full((3, 3), np.nan), np.diag([3.0, 1.0, 2.0]), np.full((3, 3), np.inf)])
    v, w = (hx.jit(lax.linalg.eigh) if compiled else lax.linalg.eigh)(x)
    assert np.isnan(w[0]).all() and np.isnan(v[0]).all() and np.isnan(w[2]).all() and w[1].tolist() == [1, 2, 3]
    v, w = (hx.jit(lax.linalg.eigh) if compiled else lax.linalg.eigh)(np.zeros((2, 0, 0), "complex64"))
    assert v.shape == (2, 0, 0) and w.shape == (2, 0) and w.dtype == "float32"


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_derivatives_of_what_does_not_depend_on_phases(kind):
    x, dx, weights = hermitian(kind, 4, 4), hermitian(kind, 4, 4), RNG.normal(size=4)

    def projections(x):
        v, w = lax.linalg.eigh(x)
        return (v * weights) @ v.conj().T + hx.numpy.sin(w)[:, None]

    step = 1e-6
    expected = (np.asarray(projections(x + step * dx)) - np.asarray(projections(x - step * dx))) / (2 * step)
    tangent = hx.jvp(projections, (x,), (dx,))[1]
    np.testing.assert_allclose(tangent, expected, atol=1e-7)
    ct = matrices(kind, 4, 4)
    pulled = hx.vjp(projections, x)[1](ct)[0]
    assert abs((np.asarray(pulled) * dx).sum().real - (ct * np.asarray(tangent)).sum().real) < 1e-12


def test_equal_eigenvalues_have_derivatives_of_their_sum_and_vectors_have_none():
    x, dx = np.diag([1.0, 1.0, 2.0]), hermitian("float64", 3, 3)
    total = lambda x: lax.linalg.eigh(x)[1][:2].sum()
    np.testing.assert_allclose(hx.jvp(total, (x,), (dx,))[1], dx[0, 0] + dx[1, 1])
    np.testing.assert_allclose(hx.grad(lambda x: lax.linalg.eigh(x)[1].sum())(x), np.eye(3), atol=1e-15)
    assert not np.isfinite(hx.jvp(lambda x: lax.linalg.eigh(x)[0], (x,), (dx,))[1]).all()


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", ["float32", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 3, 40])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_matrices_that_are_not_finite_have_no_eigenvalues_and_no_singular_values(kind, size, value):
    reads_lower = lambda x: lax.linalg.eigh(x, symmetrize_input=False)
    singular_values = lambda x: lax.linalg.svd(x, compute_uv=False)
    functions = (hx.numpy.linalg.eigvalsh, lax.linalg.eigh, reads_lower, lax.linalg.svd, singular_values)
    for i, j in {(0, 0), (size - 1, 0), (size - 1, size - 1)}:
        x = np.eye(size, dtype=kind)
        x[i, j] = value
        both = np.stack([x, np.eye(size, dtype=kind)])
        for f in functions:
            for y in hx.tree.leaves([f(both), hx.jit(f)(both)]):
                assert np.isnan(y[0]).all() and np.isfinite(y[1]).all()
        for f in (reads_lower, hx.jit(reads_lower)) if i != j else ():
            assert np.isfinite(f(x.T)[1]).all()


def test_implementations_are_the_devices():
    x, kinds = hermitian("float64", 3, 3), lax.linalg.EighImplementation
    np.testing.assert_allclose(lax.linalg.eigh(x, implementation=kinds.QR)[1], np.linalg.eigvalsh(x))
    for f in (lax.linalg.eigh, hx.jit(lax.linalg.eigh, static_argnames="implementation")):
        with pytest.raises(hx.errors.MissingRule, match=r"no EighImplementation.JACOBI on the platform 'cpu'"):
            f(x, implementation=kinds.JACOBI)


@pytest.mark.parametrize(("x", "message"), [
    (np.ones((2, 3)), "must form a square matrix"), (np.ones(3), "must form a matrix"),
    (np.ones((2, 2), "float16"), "32- or 64-bit"),
])
def test_other_arrays_are_refused(x, message):
    with pytest.raises((ValueError, TypeError), match=message):
        lax.linalg.eigh(x)
