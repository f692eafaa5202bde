"""Systems with a triangular matrix, against substitution in Python."""

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import lax

INF, NAN = np.inf, np.nan
MATRICES = (
    [[1.0, 2.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.0, 2.0]], [[0.0, 2.0, NAN], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]],
    [[2.0, INF, 1.0], [0.0, 4.0, 1.0], [0.0, 0.0, INF]],
)
MODES = list(itertools.product((True, False), repeat=3))


def substituted(a, b):
    """The solution of an upper triangular system, last row first."""
    y = np.array(b)
    for k in reversed(range(len(a))):
        y[k] = y[k] / a[k, k]
        for i in range(k):
            y[i] = y[i] - a[i, k] * y[k]
    return y


@pytest.mark.parametrize("modes", MODES, ids=str)
@pytest.mark.parametrize("matrix", MATRICES, ids=str)
def test_singular_and_infinite_matrices_spoil_no_element_that_does_not_depend_on_them(matrix, modes):
    left_side, lower, transpose_a = modes
    batched = lower
    a, b = np.array(matrix), np.arange(2.0 * len(matrix)).reshape(len(matrix), 2)
    with np.errstate(all="ignore"):
        if lower == transpose_a:
            expected = substituted(a, b)
        else:  # the lower triangular system of the transpose, as an upper one with both orders reversed
            expected = substituted(a.T[::-1, ::-1], b[::-1])[::-1]
    a, b = (a.T if lower else a), b
    if not left_side:  # y op(a) = b
        a, b, expected = a.T, b.T, expected.T
        lower = not lower
    if batched:
        a, b, expected = np.stack([a, np.eye(len(a))]), np.stack([b, b]), np.stack([expected, b])
    solve = lambda a, b: lax.linalg.triangular_solve(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a)
    np.testing.assert_allclose(solve(a, b), expected)
    np.testing.assert_allclose(hx.jit(solve)(a, b), expected)


@pytest.mark.parametrize("conjugate_a", [False, True])
def test_complex_singular_matrices_keep_finite_elements_compiled_too(conjugate_a):
    a = np.array([[1 + 1j, 0], [2, 0]], "complex64")
    b = np.array([[1, 2], [3j, 4]], "complex64")
    solve = lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, conjugate_a=conjugate_a)
    eager, compiled = np.asarray(solve(a, b)), np.asarray(hx.jit(solve)(a, b))
    first = b[0] / (a[0, 0].conj() if conjugate_a else a[0, 0])
    for y in (eager, compiled):
        np.testing.assert_allclose(y[0], first, rtol=1e-6)
        assert not np.isfinite(y[1]).any()
