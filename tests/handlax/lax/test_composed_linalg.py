"""The polar decomposition: residuals, matrices of any condition, and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax

RNG = np.random.default_rng(0)
qdwh = lax.linalg.qdwh


def matrices(kind, *shape):
    x = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if kind[0] == "c" else 0)
    return x.astype(kind)


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 9, 4), (20, 20)], ids=str)
def test_residuals_are_of_the_size_of_rounding(shape, kind):
    x = matrices(kind, *shape)
    for f in (qdwh, hx.jit(qdwh)):
        u, h, steps, converged = f(x)
        assert u.dtype == h.dtype == kind and bool(converged) and int(steps) <= 6
        u, h, a = (np.asarray(y).astype("complex128") for y in (u, h, x))
        bound, uh = 10 * shape[-1] * np.finfo(kind).eps, u.conj().swapaxes(-1, -2)
        size = np.linalg.norm(a, 2, (-2, -1))
        assert np.all(np.linalg.norm(u @ h - a, 2, (-2, -1)) <= bound * size)
        assert np.all(np.linalg.norm(uh @ u - np.eye(shape[-1]), 2, (-2, -1)) <= bound)
        assert np.all(np.linalg.eigvalsh(h) >= -bound * size.max())


def test_singular_values_of_any_size_become_1():
    q, r = (np.linalg.qr(RNG.normal(size=(4, 4)))[0] for _ in range(2))
    x = (q * [1, 1e-5, 1e-10, 1e-15]) @ r
    u, h, *_ = qdwh(x)
    np.testing.assert_allclose(np.linalg.svd(u, compute_uv=False), 1, rtol=1e-13)
    np.testing.assert_allclose(u @ np.asarray(h), x, atol=1e-15)
    u, h, *_ = qdwh(np.zeros((3, 2)))
    assert not np.asarray(u).any() and not np.asarray(h).any()
    assert qdwh(np.zeros((3, 0)))[1].shape == (0, 0)
    assert not qdwh(x, max_iterations=1)[3]


def test_derivatives_are_those_of_quotients():
    x, dx, step = matrices("float64", 4, 3), matrices("float64", 4, 3), 1e-6
    f = lambda x: qdwh(x)[0]
    expected = (np.asarray(f(x + step * dx)) - np.asarray(f(x - step * dx))) / (2 * step)
    np.testing.assert_allclose(hx.jvp(f, (x,), (dx,))[1], expected, atol=1e-8)
    np.testing.assert_allclose((np.asarray(hx.grad(lambda x: f(x).sum())(x)) * dx).sum(), expected.sum(), atol=1e-8)


def test_wide_matrices_and_dynamic_shapes_are_refused():
    with pytest.raises(ValueError, match="more columns than rows"):
        qdwh(np.ones((2, 3)))
    with pytest.raises(ValueError, match="no dynamic_shape"):
        qdwh(np.eye(3), dynamic_shape=(2, 2))
