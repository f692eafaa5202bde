"""tridiagonal_solve against the solution of the dense system."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.base.stack import perform
from handlax.effects.operations.linalg import tridiagonal_systems
from handlax.effects.operations.linalg.tridiagonal_systems import TridiagonalSolve
from handlax.interpreters.core.record import record
from handlax.lax.linalg import tridiagonal_solve
from handlax.lowering.compile.stablehlo_modules import lower_program
from handlax.test_util import check_grads

WAYS = pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "compiled"])


def dense(dl, d, du):
    m = d.shape[-1]
    a = np.zeros((*d.shape, m), d.dtype)
    for i in range(m):
        a[..., i, i] = d[..., i]
        if i:
            a[..., i, i - 1] = dl[..., i]
            a[..., i - 1, i] = du[..., i - 1]
    return a


def system(shape, k, dtype="float64", seed=0, middle=1.0):
    draw = np.random.default_rng(seed)
    parts = [draw.normal(size=shape), middle * draw.normal(size=shape), draw.normal(size=shape)]
    parts.append(draw.normal(size=(*shape, k)))
    if np.dtype(dtype).kind == "c":
        parts = [x + 1j * draw.normal(size=x.shape) for x in parts]
    return [x.astype(dtype) for x in parts]


@pytest.mark.each_choice
@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (3, 5), (2, 2, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@WAYS
def test_the_solution_is_that_of_the_dense_system(shape, dtype, wrap):
    *diagonals, b = system(shape, 2, dtype)
    got = np.asarray(wrap(tridiagonal_solve)(*diagonals, b))
    assert got.dtype == dtype
    np.testing.assert_allclose(dense(*diagonals) @ got, b, atol=1e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("middle", [0.0, 1e-12])
def test_rows_are_exchanged_where_the_diagonal_is_small(middle):
    *diagonals, b = system((6,), 1, middle=middle)
    got = np.asarray(tridiagonal_solve(*diagonals, b))
    np.testing.assert_allclose(got, np.linalg.solve(dense(*diagonals), b), rtol=1e-9)


def test_derivatives_and_lanes_are_those_of_the_solution():
    with hx.configure(default_float="float64"):
        args = system((2, 4), 2, seed=3)
        check_grads(tridiagonal_solve, tuple(args), order=2, rtol=1e-3)
        each = hx.vmap(tridiagonal_solve)(*args)
    np.testing.assert_allclose(np.asarray(each), np.asarray(tridiagonal_solve(*args)), rtol=1e-12)


@pytest.mark.parametrize(("args", "error"), [
    ((hnp.ones(3), hnp.ones(3), hnp.ones(3), hnp.ones(3)), errors.ShapeMismatch),
    ((hnp.ones(2), hnp.ones(3), hnp.ones(3), hnp.ones((3, 1))), errors.ShapeMismatch),
    ((np.ones(3, "int32"),) * 3 + (np.ones((3, 1), "int32"),), errors.DTypeMismatch),
    ((hnp.ones(3),) * 3 + (hnp.ones((3, 1), "float16"),), errors.DTypeMismatch),
    ((hnp.ones(3, "float16"),) * 3 + (hnp.ones((3, 1), "float16"),), errors.DTypeMismatch),
])
def test_what_does_not_fit_is_refused(args, error):
    with pytest.raises(error):
        tridiagonal_solve(*args)


@pytest.mark.each_choice
@WAYS
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_solution_of_a_singular_system_is_nan_or_large_where_pivots_are_moved(wrap, dtype):
    *diagonals, b = system((3, 4), 2, dtype)
    dl, d, du = diagonals
    d[1] = dl[1] = du[1] = 0
    d[2, 0], du[2, 0], dl[2, 1], d[2, 1], du[2, 1] = 1, 3, 1, 3, 0  # the second row is the first, and ends there
    plain, moved = (
        np.asarray(wrap(lambda *xs: tridiagonal_solve(*xs, perturb_singular=flag))(*diagonals, b))
        for flag in (False, True)
    )
    assert np.isfinite(plain[0]).all() and np.isnan(plain[1:]).all()
    np.testing.assert_allclose(moved[0], plain[0], rtol=1e4 * np.finfo(dtype).eps)
    assert np.isfinite(moved).all() and (abs(moved[1]) > 1e6).all() and (abs(moved[2, :2]) > 1e6).all()


@WAYS
@pytest.mark.parametrize("perturb_singular", [False, True])
def test_what_lies_outside_the_matrix_is_not_read(wrap, perturb_singular):
    dl, d, du, b = system((2, 5), 1)
    f = wrap(lambda *xs: tridiagonal_solve(*xs, perturb_singular=perturb_singular))
    expected = np.asarray(f(dl, d, du, b))
    dl[:, 0], du[:, -1] = np.nan, np.inf
    np.testing.assert_array_equal(f(dl, d, du, b), expected)
    assert f(dl[:, :0], d[:, :0], du[:, :0], b[:, :0]).shape == (2, 0, 1)


@pytest.mark.parametrize("perturb_singular", [False, True])
def test_the_loops_of_platforms_without_the_routine_solve_too(perturb_singular):
    *diagonals, b = system((2, 6), 2, "complex64")
    solve = TridiagonalSolve(perturb_singular)
    program = record(lambda *xs: [perform(solve, *xs)], [hx.typeof(x) for x in (*diagonals, b)])
    text = lower_program(program, "f", platform="tpu").text
    assert text.count("stablehlo.while") == 2 and "custom_call" not in text


def test_the_loops_give_nan_for_singular_matrices_alone():
    d = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])  # [[1, 1, 0], [1, 1, 0], [0, 0, 1]] is singular
    low, up = np.array([[0.0, 1.0, 0.0]] * 2), np.array([[1.0, 0.0, 0.0]] * 2)
    with hx.rules(lower={TridiagonalSolve: lambda op, emit, *xs: tridiagonal_systems._emitted(emit, False, *xs)}):
        found = hx.jit(lambda *xs: tridiagonal_solve(*xs))(low, d, up, np.ones((2, 3, 1)))
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1, :, 0], [1 / 3, 1 / 3, 1 / 2], rtol=1e-12)
