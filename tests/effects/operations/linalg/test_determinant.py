"""Derivatives of determinants, also of matrices that have none of full rank."""

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp


def cofactors(x):
    """The derivative of the determinant, by the determinants of its minors."""
    found = np.empty_like(x)
    for i, j in itertools.product(*map(range, x.shape)):
        minor = np.delete(np.delete(x, i, 0), j, 1)
        found[i, j] = (-1.0) ** (i + j) * np.linalg.det(minor)
    return found


FULL = np.random.default_rng(0).normal(size=(5, 5))
MATRICES = {
    "of full rank": FULL, "zero": np.zeros((5, 5)), "diagonal of rank 3": np.diag([2.0, 0.0, 3.0, 0.0, 1.0]),
    "diagonal of rank 4": np.diag([2.0, 0.0, 3.0, 5.0, 1.0]), "of rank 1": np.ones((5, 5)), "small": FULL[:2, :2],
    "of rank 4": FULL - np.outer(FULL @ np.eye(5)[0], np.eye(5)[0]), "small and zero": np.zeros((3, 3)),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_the_derivative_is_the_matrix_of_cofactors(name, wrap):
    x = MATRICES[name]
    np.testing.assert_allclose(wrap(hx.grad(hnp.linalg.det))(x), cofactors(x), rtol=1e-9, atol=1e-9)
