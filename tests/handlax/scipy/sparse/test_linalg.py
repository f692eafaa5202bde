"""Solvers in Krylov spaces: residuals, derivatives, trees of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax.scipy.sparse import linalg
from handlax.test_util import check_grads

RNG = np.random.default_rng(5)
SOLVERS = {"cg": linalg.cg, "bicgstab": linalg.bicgstab, "gmres": linalg.gmres}


def system(n, dtype, definite):
    a = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if dtype.startswith("c") else 0)
    b = RNG.normal(size=n) + (1j * RNG.normal(size=n) if dtype.startswith("c") else 0)
    return (a @ a.conj().T + n * np.eye(n) if definite else a + 2 * n * np.eye(n)).astype(dtype), b.astype(dtype)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SOLVERS)
def test_residuals_are_as_small_as_asked_for(name, dtype):
    a, b = system(10, dtype, name == "cg")
    x, info = SOLVERS[name](a, b, tol=1e-9)
    assert info is None and x.dtype == dtype
    assert np.linalg.norm(a @ x - b) <= 1e-9 * np.linalg.norm(b)
    if dtype == "float64":
        x, _ = SOLVERS[name](lambda v: a @ v, b, b, tol=0.0, atol=1e-6, M=np.linalg.inv(a))
        assert np.linalg.norm(a @ x - b) <= 1e-6


@pytest.mark.parametrize("name", SOLVERS)
def test_steps_are_counted(name):
    a, b = system(12, "float64", True)
    exact = np.linalg.solve(a, b)
    small = {"restart": 2} if name == "gmres" else {}
    found = [SOLVERS[name](a, b, tol=0.0, maxiter=n, **small)[0] for n in (1, 3)]
    distances = [np.linalg.norm(x - exact) for x in found]
    assert np.linalg.norm(exact) > distances[0] > distances[1] > 1e-12


def test_generalised_residuals_are_least_in_the_krylov_space():
    a, b = system(12, "float64", False)
    x, _ = linalg.gmres(a, b, tol=0.0, restart=4, maxiter=1, solve_method="incremental")
    space = np.stack([np.linalg.matrix_power(a, k) @ b for k in range(4)], 1)
    best = np.linalg.lstsq(a @ space, b)[0]
    np.testing.assert_allclose(x, space @ best, rtol=1e-7)
    np.testing.assert_allclose(linalg.gmres(np.eye(3), np.ones(3))[0], np.ones(3))  # the space ends early
    np.testing.assert_array_equal(linalg.gmres(a, 0 * b)[0], 0 * b)


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_in_both_modes(name):
    a, b = system(3, "float64", True)
    check_grads(lambda a, b: SOLVERS[name]((a + a.T) / 2, b, tol=1e-13)[0], (a, b), 1)
    lanes = hx.jit(hx.vmap(lambda b: SOLVERS[name](a, b, tol=1e-12)[0]))(np.stack([b, 3 * b]))
    np.testing.assert_allclose(lanes @ a.T, np.stack([b, 3 * b]), rtol=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_vectors_may_be_trees(name):
    a = lambda x: {"a": x["a"] + 0.5 * x["b"], "b": 0.5 * x["a"] + x["b"]}
    x, _ = SOLVERS[name](a, {"a": 1.0, "b": np.float64(-4.0)})
    np.testing.assert_allclose([float(x["a"]), float(x["b"])], [4.0, -6.0], rtol=1e-5)


def test_mistakes_are_named():
    b = np.zeros(2)
    with pytest.raises(errors.TreeMismatch, match="x0 and b must have the same structure"):
        linalg.cg(lambda x: x, {"x": b}, {"y": b})
    with pytest.raises(errors.ShapeMismatch, match="x0 and b must have the same shapes"):
        linalg.cg(lambda x: x, b, b[:, None])
    with pytest.raises(errors.ShapeMismatch, match="must be a square matrix"):
        linalg.gmres(np.zeros((3, 2)), b)
    with pytest.raises(TypeError, match="must be a function or a matrix"):
        linalg.bicgstab([[1]], b)
    with pytest.raises(errors.BadArgument, match="solve_method"):
        linalg.gmres(np.eye(2), b, solve_method="other")
