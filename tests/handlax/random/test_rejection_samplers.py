"""Counts of successes: their distributions, their limits, and what is not allowed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import handlax as hx
from handlax import errors, random
from handlax import numpy as hnp
from handlax.random.rejection_samplers import _log_probability

KEY = random.key(6)
MANY = 50_000
UNLIKELY = 1e-3


def probability(drawn, law):
    """Of a chi-square at least as large, if the drawn counts have the law."""
    edges = np.unique(law.ppf(np.linspace(0.02, 0.98, 30)))
    cells = np.concatenate([[-1.0], edges, [np.inf]])
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * len(drawn)
    found = np.histogram(drawn, np.nextafter(cells, np.inf))[0]
    keep = expected > 5
    rest = [[found[~keep].sum()], [expected[~keep].sum()]] if expected[~keep].sum() > 5 else [[], []]
    found, expected = np.concatenate([found[keep], rest[0]]), np.concatenate([expected[keep], rest[1]])
    return stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("rate", [0.5, 8.0, 40.0, 1e3, 1e4])
def test_the_probability_of_a_count_is_exact_for_small_and_large_rates(rate):
    k = np.unique(stats.poisson(rate).ppf(np.linspace(0.01, 0.99, 9)))
    found = _log_probability(hnp.asarray(k), hnp.full(k.shape, rate, "float64"))
    np.testing.assert_allclose(found, stats.poisson(rate).logpmf(k), rtol=1e-9, atol=1e-8)


@pytest.mark.each_choice
@pytest.mark.parametrize("n", [1, 12, 40, 3000])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.85])
def test_binomial_counts_are_as_probable_as_they_should_be(n, p):
    drawn = np.asarray(hx.jit(lambda k, n, p: random.binomial(k, n, p, (MANY,)))(KEY, np.float32(n), np.float32(p)))
    assert drawn.dtype == "float32" and drawn.min() >= 0 and drawn.max() <= n
    law = stats.binom(n, p)
    assert abs(drawn.mean() - law.mean()) < 4 * law.std() / MANY**0.5
    if n > 1:
        assert probability(drawn, law) > UNLIKELY


def test_the_counts_of_multinomial_are_as_probable_as_they_should_be():
    p = np.array([0.1, 0.0, 0.6, 0.3], "float32")
    drawn = np.asarray(random.multinomial(KEY, 25, p, shape=(MANY,)))
    assert drawn.shape == (MANY, 4)
    np.testing.assert_array_equal(drawn.sum(1), 25)
    assert not drawn[:, 1].any()
    for i in (0, 2, 3):
        assert probability(drawn[:, i], stats.binom(25, float(p[i]))) > UNLIKELY
    got, want = np.cov(drawn.T), 25 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(got, want, atol=0.15)


def test_at_its_limits_binomial_is_certain():
    n, p, wanted = np.float32([
        (0, 0.5, 0.0), (10, 0.0, 0.0), (10, 1.0, 10.0), (1e4, 1.0, 1e4), (np.inf, 0.5, np.inf), (np.inf, 0.0, np.inf),
        (-1, 0.5, np.nan), (np.nan, 0.5, np.nan), (5, np.nan, np.nan), (5, -0.1, np.nan), (5, 1.1, np.nan),
    ]).T
    np.testing.assert_array_equal(random.binomial(KEY, n, p), wanted)
    np.testing.assert_array_equal(random.binomial(KEY, 10, 1.0), 10)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_the_dtype_is_that_of_the_result_alone(dtype):
    counts = random.binomial(KEY, 30, 0.4, (50,))
    np.testing.assert_array_equal(
        np.asarray(random.binomial(KEY, 30, 0.4, (50,), dtype)).astype("float32"), np.asarray(counts)
    )


def test_lanes_draw_what_their_keys_draw():
    keys = random.split(KEY, 5)
    lanes = hx.vmap(lambda k: random.multinomial(k, 40, hnp.array([0.2, 0.5, 0.3])))(keys)
    each = [random.multinomial(k, 40, hnp.array([0.2, 0.5, 0.3])) for k in keys]
    np.testing.assert_array_equal(np.asarray(lanes), np.asarray(hnp.stack(each)))


@pytest.mark.parametrize(("call", "error"), [
    (lambda: random.binomial(KEY, 3, 0.5, dtype="int32"), errors.DTypeMismatch),
    (lambda: random.binomial(KEY, hnp.ones(3), 0.5, (2,)), errors.ShapeMismatch),
    (lambda: random.multinomial(KEY, hnp.ones(3), hnp.ones(2)), errors.ShapeMismatch),
    (lambda: random.ball(KEY, 2, hnp.ones(2)), errors.ShapeMismatch),
])
def test_what_does_not_fit_is_refused(call, error):
    with pytest.raises(error):
        call()
