"""``handlax.scipy.integrate`` against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate

import handlax as hx

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("spacing", ["dx", "shared", "own"])
def test_samples_are_integrated_as_by_scipy(axis, spacing):
    y = RNG.normal(size=(4, 5))
    x = {"shared": np.sort(RNG.normal(size=y.shape[axis])), "own": np.sort(RNG.normal(size=y.shape), axis)}.get(spacing)
    expected = scipy.integrate.trapezoid(y, x, 0.5, axis)
    found = hx.scipy.integrate.trapezoid(y, x, 0.5, axis)
    assert found.dtype == "float64"
    np.testing.assert_allclose(found, expected, rtol=1e-14)
