"""Interpolation on grids against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate

import handlax as hx
from handlax import errors
from handlax.scipy.interpolate import RegularGridInterpolator

RNG = np.random.default_rng(1)
GRID = [np.array([0.0, 0.5, 2.0, 3.0]), np.array([4.0, 2.5, 1.0]), np.linspace(-1, 1, 5)]


@pytest.mark.each_choice
@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 7.0, None])
@pytest.mark.parametrize("trailing", [(), (2,)])
@pytest.mark.parametrize("count", [1, 3])
def test_values_are_those_of_scipy(count, trailing, fill, method):
    values = RNG.normal(size=(*[len(axis) for axis in GRID[:count]], *trailing))
    points = RNG.uniform([-0.5, 0.5, -1.2][:count], [3.5, 4.5, 1.2][:count], (6, 5, count))
    ours, theirs = (make(GRID[:count], values, method, bounds_error=False, fill_value=fill)
                    for make in (RegularGridInterpolator, scipy.interpolate.RegularGridInterpolator))
    np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-12, atol=1e-12)
    corners = np.stack([np.resize(axis, 5) for axis in GRID[:count]], -1)
    np.testing.assert_allclose(ours(corners), theirs(corners), rtol=1e-12, atol=1e-12)
    if count > 1:
        np.testing.assert_allclose(ours(tuple(points.T), "linear"), theirs(tuple(points.T), "linear"), rtol=1e-12)


def test_a_point_is_a_row_of_one():
    f = RegularGridInterpolator((np.arange(3.0), np.arange(3.0)), np.arange(9.0).reshape(3, 3))
    assert f(np.array([0.5, 0.5])).tolist() == [2.0] and f((0.5, 0.5)).tolist() == 2.0
    assert hx.vmap(f)(np.ones((4, 2))).shape == (4, 1)


def test_derivatives_are_slopes():
    f = RegularGridInterpolator([GRID[0]], np.array([0.0, 1.0, 7.0, 3.0]))
    np.testing.assert_allclose(hx.jit(hx.vmap(hx.grad(lambda x: f(x[None])[0])))(np.array([0.2, 1.0, 2.5])), [2, 4, -4])


@pytest.mark.parametrize("points", [GRID[0], GRID[0][::-1].copy()])
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids_are_read_while_functions_are_traced(method, points):
    values, at = np.array([0.0, 1.0, 7.0, 3.0]), np.array([[0.2], [1.3], [2.9]])
    make = lambda points, at: RegularGridInterpolator([points], values, method)(at)
    expected = scipy.interpolate.RegularGridInterpolator([points], values, method)(at)
    np.testing.assert_allclose(hx.jit(lambda at: make(points, at))(at), expected, rtol=1e-12)
    np.testing.assert_allclose(hx.jit(make)(points, at), expected, rtol=1e-12)
    assert np.isnan(hx.jit(make)(np.array([0.0, 2.0, 1.0, 3.0]), at)).all()


@pytest.mark.parametrize(("arguments", "words"), [
    ({"method": "cubic"}, "method must be"), ({"bounds_error": True}, "bounds_error must be False"),
    ({"points": [[0.0, 0.0, 1.0]]}, "strictly increasing or decreasing"), ({"points": [[0.0, 1.0]]}, "have the sizes"),
])
def test_mistakes_are_named(arguments, words):
    with pytest.raises(errors.HandlaxError, match=words):
        RegularGridInterpolator(**{"points": [[0.0, 1.0, 2.0]], "values": np.zeros(3), **arguments})


def test_a_grid_that_is_not_known_is_taken_as_increasing():
    f = lambda p, v, x: RegularGridInterpolator((p,), v)(x)
    p, v, x = np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, 5.0]), np.array([[0.5], [2.0]])
    np.testing.assert_allclose(hx.jit(f)(p, v, x), f(p, v, x))
