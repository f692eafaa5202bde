"""Normal numbers between bounds: their distribution in tails, their derivatives, and that they are finite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp

KEY = random.key(6)
MANY = 50_000
UNLIKELY = 1e-3
BOUNDS = [
    (-1.0, 2.0), (0.0, np.inf), (-1e-3, 1e-3), (2.0, np.inf), (-np.inf, -3.0), (5.0, 6.0), (9.0, np.inf),
    (-30.0, -29.0), (100.0, np.inf), (-np.inf, np.inf), (-np.inf, 7.0),
]


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_distribution_is_that_of_the_interval(bounds, dtype):
    drawn = np.asarray(random.truncated_normal(KEY, *bounds, (MANY,), dtype)).astype(np.float64)
    assert stats.kstest(drawn, stats.truncnorm(*bounds).cdf).pvalue > UNLIKELY


@pytest.mark.each_choice
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


def test_a_draw_moves_with_its_quantile():
    """The derivatives against differences of SciPy's quantile function."""
    draw = lambda low, high: random.truncated_normal(KEY, low, high, (5,), "float64")
    everything = hx.jit(lambda *bounds: (draw(*bounds), *[t(draw, (0, 1))(*bounds) for t in (hx.jacrev, hx.jacfwd)]))
    for bounds in ((-1.0, 2.0), (2.0, 4.0), (-6.0, -5.5)):
        x, backward, forward = everything(*map(hnp.float64, bounds))
        share, step = stats.truncnorm.cdf(np.asarray(x), *bounds), 1e-5
        for i, (da, db) in enumerate([(step, 0), (0, step)]):
            after, before = [stats.truncnorm.ppf(share, bounds[0] + s * da, bounds[1] + s * db) for s in (1, -1)]
            np.testing.assert_allclose(backward[i], (after - before) / (2 * step), rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(forward[i], backward[i], rtol=1e-9)


def test_an_infinite_bound_has_no_effect_on_the_derivative():
    slope = hx.grad(lambda low: hnp.sum(random.truncated_normal(KEY, low, np.inf, (5,))))(4.0)
    assert np.isfinite(slope) and 4 < slope < 5 + 1e-3


@pytest.mark.each_choice
@pytest.mark.parametrize("way", [lambda f: f, hx.jit])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_beyond_any_finite_bound_are_next_to_it(dtype, way):
    """Mills' ratio underflows from the inverse of the smallest normal float on, and squares of bounds overflow."""
    info = hnp.finfo(dtype)
    largest, infinite = float(info.max), float(hnp.asarray(np.inf, dtype))
    both = way(lambda low: (random.truncated_normal(KEY, low, infinite, (3,), dtype),
                            random.truncated_normal(KEY, -infinite, -low, (3,), dtype)))
    for bound in (largest**0.5, largest / 8, largest / 4, largest / 2, largest * 0.9, largest):
        low = hnp.asarray(bound, dtype)
        wanted = min(float(lax.nextafter(low, hnp.asarray(np.inf, dtype))), largest)
        right, left = both(low)
        np.testing.assert_allclose(np.asarray(right, "float64"), wanted, rtol=2 * float(info.eps))
        np.testing.assert_allclose(np.asarray(left, "float64"), -wanted, rtol=2 * float(info.eps))
        assert bound == largest or (np.all(right > low) and np.all(left < -low))


def test_a_bound_that_rounds_to_infinity_has_the_largest_float_beyond():
    low = np.float32([1e6])
    assert random.truncated_normal(KEY, low, np.inf, dtype="float16") == 65504
    assert random.truncated_normal(KEY, -np.inf, -low, dtype="float16") == -65504


def test_a_bound_that_is_nan_gives_nan():
    for bounds in ((np.nan, np.inf), (2.0, np.nan), (-np.inf, np.nan), (np.nan, -2.0)):
        assert np.isnan(random.truncated_normal(KEY, *bounds))
