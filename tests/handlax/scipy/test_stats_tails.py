"""Distribution functions, quantiles and their slopes in the tails, beside SciPy's in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import handlax as hx
from handlax.scipy import stats

CASES = {
    "beta": (2.5, 0.7), "cauchy": (), "chi2": (3.2,), "expon": (), "gamma": (2.3,), "gumbel_l": (), "gumbel_r": (),
    "laplace": (), "logistic": (), "norm": (), "pareto": (2.7,), "truncnorm": (-1.5, 6.0), "uniform": (),
}
TAILS = np.array([1e-300, 1e-100, 1e-30, 1e-16, 1e-10, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-5, 1 - 1e-10])
TOLERANCE = {"float64": 1e-10, "float32": 3e-5}


def points(name, dtype):
    """Arguments from the far left to the far right, rounded to the dtype, and the frozen distribution of SciPy."""
    frozen = getattr(scipy.stats, name)(*CASES[name])
    low, high = frozen.support()
    with np.errstate(all="ignore"):
        x = np.unique(np.concatenate([frozen.ppf(TAILS), frozen.isf(TAILS)]).astype(dtype))
    inside = (x > low + 1e-12 * np.abs(low)) & (x < high) if np.isfinite(low) else x < high
    return x[inside & ((x == 0) | (np.abs(x) >= np.finfo(dtype).tiny))], frozen


def close(y, expected, x, dtype):
    """Assert that ``y`` is ``expected(x)`` within the tolerance and what a few roundings of ``x`` change."""
    y, x, by = np.asarray(y, float), np.asarray(x, float), 32 * float(np.finfo(dtype).eps)
    with np.errstate(all="ignore"):
        value, below, above = expected(x), expected(x * (1 - by)), expected(x * (1 + by))
        bound = TOLERANCE[dtype] * np.abs(value) + np.nan_to_num(np.abs(above - below))
        bound += 4 * float(np.finfo(dtype).tiny)
        wrong = ~((np.abs(y - value) <= bound) | (y == value))
    assert not wrong.any(), (x[wrong], y[wrong], value[wrong])


def functions(name, kinds):
    """Those of these functions that a distribution has, as functions of one argument in a dtype."""
    module = getattr(stats, name)
    shapes = lambda x: [hx.numpy.asarray(p, x.dtype) for p in CASES[name]]
    taking = lambda f: lambda x: f(x, *shapes(x))
    return {kind: taking(getattr(module, kind)) for kind in kinds if hasattr(module, kind)}


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_tails_and_their_logarithms(name, dtype):
    x, frozen = points(name, dtype)
    for kind, f in functions(name, ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")).items():
        close(f(x), getattr(frozen, kind), x, dtype)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_slopes_are_densities(name, dtype):
    x, frozen = points(name, dtype)
    slopes = {
        "cdf": frozen.pdf, "sf": lambda x: -frozen.pdf(x),
        "logcdf": lambda x: np.exp(frozen.logpdf(x) - frozen.logcdf(x)),
        "logsf": lambda x: -np.exp(frozen.logpdf(x) - frozen.logsf(x)),
    }
    for kind, f in functions(name, slopes).items():
        expected = slopes[kind]
        with np.errstate(all="ignore"):
            size = np.abs(expected(x.astype(float)))
        known = x[(size > np.finfo(dtype).tiny) & (size < np.finfo(dtype).max / 4)]
        close(hx.vmap(hx.grad(f))(known), expected, known, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("inverse", ["ppf", "isf"])
@pytest.mark.parametrize("name", [name for name in CASES if hasattr(getattr(stats, name), "ppf")])
def test_quantiles_and_their_slopes(name, inverse, dtype):
    frozen, f = points(name, dtype)[1], functions(name, ("ppf", "isf")).get(inverse)
    if f is None:
        pytest.skip(f"{name} has no {inverse}")
    q = TAILS.astype(dtype)
    q = q[(q > np.finfo(dtype).tiny) & (q < 1)]
    with np.errstate(all="ignore"):
        q = q[np.abs(getattr(frozen, inverse)(q.astype(float))) < np.finfo(dtype).max ** 0.5]
    close(f(q), getattr(frozen, inverse), q, dtype)
    sign = 1 if inverse == "ppf" else -1
    close(hx.vmap(hx.grad(f))(q), lambda q: sign / frozen.pdf(getattr(frozen, inverse)(q)), q, dtype)


@pytest.mark.parametrize(("name", "kind", "shapes", "at"), [
    ("beta", "sf", (0.7, 2.5), (1e-30, 1e-8, 1e-3, 0.5, 0.999)),  # 1 - x is rounded to 1
    ("beta", "sf", (2.0, 300.0), (1e-3, 0.01, 0.1, 0.2)),
    ("gamma", "logsf", (0.3,), (1e-3, 1.0, 80.0, 500.0)),  # the tail underflows
    ("gamma", "logsf", (50.0,), (30.0, 50.0, 150.0, 400.0)),
    ("gumbel_r", "logsf", (), (-1.0, 10.0, 200.0)),
    ("gumbel_l", "logcdf", (), (1.0, -10.0, -200.0)),
    ("cauchy", "logsf", (), (1e5, 1e10, 1e20, 1e30)),  # the square of x is infinite
    ("cauchy", "logcdf", (), (-1e5, -1e10, -1e20, -1e30)),
    ("cauchy", "ppf", (), (0.1, 0.25, 0.5, 0.75, 0.9)),
    ("cauchy", "isf", (), (0.1, 0.25, 0.5, 0.75, 0.9)),
    ("logistic", "cdf", (), (-60.0, -20.0, 0.0, 20.0, 60.0)),  # of y (1 - y) the difference is rounded to 0
    ("logistic", "sf", (), (-60.0, -20.0, 0.0, 20.0, 60.0)),
])
def test_slopes_where_a_step_is_rounded_to_a_constant(name, kind, shapes, at):
    frozen, x = getattr(scipy.stats, name)(*shapes), np.array(at, "float32")
    slope = {
        "cdf": frozen.pdf, "sf": lambda x: -frozen.pdf(x),
        "logcdf": lambda x: np.exp(frozen.logpdf(x) - frozen.logcdf(x)),
        "logsf": lambda x: -np.exp(frozen.logpdf(x) - frozen.logsf(x)),
        "ppf": lambda q: 1 / frozen.pdf(frozen.ppf(q)), "isf": lambda q: -1 / frozen.pdf(frozen.isf(q)),
    }[kind]
    f = lambda x: getattr(getattr(stats, name), kind)(x, *[hx.numpy.asarray(p, "float32") for p in shapes])
    close(hx.vmap(hx.grad(f))(x), slope, x, "float32")
