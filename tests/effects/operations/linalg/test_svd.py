"""Singular values: residuals, derivatives that do not depend on phases, and matrices that have none."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax

RNG = np.random.default_rng(0)
KINDS = ("float32", "float64", "complex64", "complex128")
QR = lax.linalg.SvdAlgorithm.QR


def matrices(kind, *shape):
    x = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if kind[0] == "c" else 0)
    return x.astype(kind)


def wide(*ys):
    return [np.asarray(y).astype("complex128") for y in ys]


@pytest.mark.each_choice
@pytest.mark.parametrize("algorithm", [None, QR], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_residuals_are_of_the_size_of_rounding(kind, algorithm):
    for m, n, full in ((1, 1, True), (3, 3, True), (40, 5, False), (5, 40, True)):
        x = matrices(kind, 2, m, n)
        f = lambda x: lax.linalg.svd(x, full_matrices=full, algorithm=algorithm)
        alone = lambda x: lax.linalg.svd(x, compute_uv=False, algorithm=algorithm)
        for g, h in ((f, alone), (hx.jit(f), hx.jit(alone))):
            u, s, vh = g(x)
            assert u.dtype == vh.dtype == kind and s.dtype == x.real.dtype and np.all(np.diff(s) <= 0)
            np.testing.assert_allclose(h(x), s, rtol=100 * np.finfo(kind).eps)
            u, s, vh, a = wide(u, s, vh, x)
            k, bound = min(m, n), 10 * max(m, n) * np.finfo(kind).eps
            assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
            residuals = np.linalg.norm((u[..., :k] * s[:, None]) @ vh[..., :k, :] - a, 2, (-2, -1))
            assert np.all(residuals <= bound * np.linalg.norm(a, 2, (-2, -1)))
            for q in (u, vh.conj().swapaxes(-1, -2)):
                assert np.abs(q.conj().swapaxes(-1, -2) @ q - np.eye(q.shape[-1])).max() <= bound


@pytest.mark.parametrize("compiled", [False, True])
def test_matrices_of_nan_and_of_nothing_are_answered(compiled):
    svd = hx.jit(lax.linalg.svd) if compiled else lax.linalg.svd
    u, s, vh = svd(np.stack([np.full((3, 2), np.nan), np.eye(3, 2)]))
    assert np.isnan(s[0]).all() and np.isnan(u[0]).all() and np.isnan(vh[0]).all() and s[1].tolist() == [1, 1]
    u, s, vh = svd(np.zeros((2, 3, 0)))
    np.testing.assert_array_equal(u, np.broadcast_to(np.eye(3), (2, 3, 3)))
    assert s.shape == (2, 0) and vh.shape == (2, 0, 0)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_derivatives_of_what_does_not_depend_on_phases(kind, shape):
    x, dx, weights = matrices(kind, *shape), matrices(kind, *shape), RNG.normal(size=(3, min(shape)))

    def invariant(x):
        u, s, vh = lax.linalg.svd(x, full_matrices=False)
        v = vh.conj().T
        return [(u * weights[0]) @ u.conj().T, (v * weights[1]) @ v.conj().T, (u * weights[2]) @ vh, hx.numpy.sin(s)]

    step = 1e-6
    tangents = hx.jvp(invariant, (x,), (dx,))[1]
    for tangent, up, down in zip(tangents, invariant(x + step * dx), invariant(x - step * dx)):
        np.testing.assert_allclose(tangent, (np.asarray(up) - np.asarray(down)) / (2 * step), atol=1e-6)
    cts = [matrices(kind if y.dtype == kind else "float64", *y.shape) for y in tangents]
    pulled = np.asarray(hx.vjp(invariant, x)[1](cts)[0])
    forward = sum((np.asarray(ct) * np.asarray(t)).sum().real for ct, t in zip(cts, tangents))
    assert abs((pulled * dx).sum().real - forward) < 1e-10


def test_values_alone_have_derivatives_where_they_are_equal_or_0():
    dx = RNG.normal(size=(3, 3))
    for f in (lambda x: lax.linalg.svd(x, compute_uv=False).sum(), lambda x: lax.linalg.svd(x)[1].sum()):
        np.testing.assert_allclose(hx.jvp(f, (np.eye(3),), (dx,))[1], np.trace(dx))
    largest = lambda x: lax.linalg.svd(x, compute_uv=False)[0]
    np.testing.assert_allclose(hx.grad(largest)(np.diag([3.0, 0, 0])), np.diag([1.0, 0, 0]), atol=1e-15)
    assert not np.isfinite(hx.jvp(lambda x: lax.linalg.svd(x)[0], (np.eye(3),), (dx,))[1]).all()


def test_the_derivative_of_other_vectors_is_refused():
    x = matrices("float64", 3, 2)
    with pytest.raises(hx.errors.NotDifferentiable, match="vectors that no singular value determines"):
        hx.grad(lambda x: lax.linalg.svd(x)[0].sum())(x)


def test_a_subset_is_a_part_of_all():
    x = matrices("float64", 3, 5, 4)
    whole, part = (lax.linalg.svd(x, full_matrices=False, subset_by_index=s) for s in (None, (1, 3)))
    np.testing.assert_array_equal(part[0], whole[0][..., 1:3])
    np.testing.assert_array_equal(part[1], whole[1][..., 1:3])
    np.testing.assert_array_equal(part[2], whole[2][..., 1:3, :])
    np.testing.assert_allclose(
        lax.linalg.svd(x, full_matrices=False, compute_uv=False, subset_by_index=(0, 2)), whole[1][..., :2])
    with pytest.raises(ValueError, match="a subset of the vectors is no full matrix"):
        lax.linalg.svd(x, subset_by_index=(1, 3))


def test_algorithms_are_the_devices():
    for f in (lax.linalg.svd, hx.jit(lax.linalg.svd, static_argnames="algorithm")):
        with pytest.raises(hx.errors.MissingRule, match=r"no SvdAlgorithm.JACOBI on the platform 'cpu'"):
            f(np.eye(2), algorithm=lax.linalg.SvdAlgorithm.JACOBI)
