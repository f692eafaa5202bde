"""Normal numbers between bounds: their distribution in tails, their derivatives, and that they are finite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import handlax as hx
from handlax import numpy as hnp
from handlax import random

KEY = random.key(6)
MANY = 50_000
UNLIKELY = 1e-3
BOUNDS = [
    (-1.0, 2.0), (0.0, np.inf), (-1e-3, 1e-3), (2.0, np.inf), (-np.inf, -3.0), (5.0, 6.0), (9.0, np.inf),
    (-30.0, -29.0), (100.0, np.inf), (-np.inf, np.inf), (-np.inf, 7.0),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_distribution_is_that_of_the_interval(bounds, dtype):
    drawn = np.asarray(random.truncated_normal(KEY, *bounds, (MANY,), dtype)).astype(np.float64)
    assert stats.kstest(drawn, stats.truncnorm(*bounds).cdf).pvalue > UNLIKELY


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_infinite_bounds_have_finite_neighbours(bounds, dtype):
    """Random bits that are all 0 or all 1 gave the largest float: one in 128 of bfloat16, in 2**23 of float32."""
    low, high = bounds
    drawn = np.asarray(random.truncated_normal(KEY, low, high, (MANY,), dtype)).astype(np.float64)
    near = min(abs(low), abs(high)) if low * high > 0 else 0
    assert np.abs(drawn).max() < near + 7
    assert drawn.min() > low and drawn.max() < high


def test_many_bounds_at_once_are_those_of_each():
    low, high = np.float32([[-1], [3], [-9]]), np.float32([[1], [np.inf], [-8]])
    many = random.truncated_normal(KEY, low, high, (3, 4))
    lanes = hx.vmap(lambda low, high: random.truncated_normal(KEY, low, high, (3, 4)))(low[:, 0], high[:, 0])
    np.testing.assert_allclose(many, np.stack([np.asarray(lanes[i, i]) for i in range(3)]), rtol=1e-6)
    compiled = hx.jit(lambda k: random.truncated_normal(k, low, high, (3, 4)))(KEY)
    np.testing.assert_allclose(many, compiled, rtol=1e-6)


@pytest.mark.parametrize("bounds", [(-1.0, 2.0), (2.0, 4.0), (-6.0, -5.5)])
def test_a_draw_moves_with_its_quantile(bounds):
    """The derivatives against differences of SciPy's quantile function."""
    low, high = map(hnp.float64, bounds)
    draw = lambda low, high: random.truncated_normal(KEY, low, high, (5,), "float64")
    x = np.asarray(draw(low, high))
    share, step = stats.truncnorm.cdf(x, *bounds), 1e-5
    for i, (da, db) in enumerate([(step, 0), (0, step)]):
        after, before = [stats.truncnorm.ppf(share, bounds[0] + s * da, bounds[1] + s * db) for s in (1, -1)]
        slope = hx.jacrev(draw, argnums=i)(low, high)
        np.testing.assert_allclose(slope, (after - before) / (2 * step), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(hx.jacfwd(draw, argnums=i)(low, high), slope, rtol=1e-9)


def test_an_infinite_bound_has_no_effect_on_the_derivative():
    slope = hx.grad(lambda low: hnp.sum(random.truncated_normal(KEY, low, np.inf, (5,))))(4.0)
    assert np.isfinite(slope) and 4 < slope < 5 + 1e-3
