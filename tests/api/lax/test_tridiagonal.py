"""tridiagonal_solve against the solution of the dense system."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.lax.linalg import tridiagonal_solve
from handlax.test_util import check_grads


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


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (3, 5), (2, 2, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "jit"])
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


@pytest.mark.parametrize(("args", "options", "error"), [
    ((hnp.ones(3), hnp.ones(3), hnp.ones(3), hnp.ones(3)), {}, errors.ShapeMismatch),
    ((hnp.ones(2), hnp.ones(3), hnp.ones(3), hnp.ones((3, 1))), {}, errors.ShapeMismatch),
    ((np.ones(3, "int32"),) * 3 + (np.ones((3, 1), "int32"),), {}, errors.DTypeMismatch),
    ((hnp.ones(3),) * 3 + (hnp.ones((3, 1), "float16"),), {}, errors.DTypeMismatch),
    ((hnp.ones(3),) * 3 + (hnp.ones((3, 1)),), {"perturb_singular": True}, errors.BadArgument),
])  # fmt: skip
def test_what_does_not_fit_is_refused(args, options, error):
    with pytest.raises(error):
        tridiagonal_solve(*args, **options)
