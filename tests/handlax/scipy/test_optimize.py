"""``minimize`` against SciPy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.scipy.optimize import minimize


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def matyas(x):
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


@pytest.mark.parametrize(("f", "start"), [
    (rosenbrock, np.zeros(2)), (rosenbrock, np.zeros(7)), (himmelblau, np.ones(2)), (matyas, np.full(2, 6.0)),
])
def test_minima_are_those_of_scipy(f, start):
    found = hx.jit(lambda x: minimize(f, x, method="BFGS", options={"gtol": 1e-7}))(start)
    expected = scipy.optimize.minimize(f, start, method="BFGS", options={"gtol": 1e-7})
    assert found.success and found.status == 0 and found.nfev == found.njev > found.nit > 1
    np.testing.assert_allclose(found.x, expected.x, atol=1e-4)
    assert np.max(np.abs(found.jac)) <= 1e-7
    np.testing.assert_allclose(found.fun, f(np.asarray(found.x)), atol=1e-14)


def test_arguments_scales_and_lanes():
    f = lambda x, a, scale: scale * ((x - a) ** 2).sum()
    for scale in (1e-3, 1.0, 1e8):
        r = minimize(f, np.ones(3), (np.arange(3.0), scale), method="bfgs", tol=scale * 1e-9)
        np.testing.assert_allclose(r.x, np.arange(3.0), atol=1e-8)
    lanes = hx.vmap(lambda a: minimize(f, np.zeros(2), (a, 1.0), method="BFGS").x)(np.arange(6.0).reshape(3, 2))
    np.testing.assert_allclose(lanes, np.arange(6.0).reshape(3, 2), atol=1e-5)
    quadratic = np.array([[3.0, 1.0], [1.0, 2.0]])
    r = minimize(lambda x: x @ quadratic @ x / 2 - x[0], np.zeros(2), method="BFGS", tol=1e-10)
    np.testing.assert_allclose(r.x, np.linalg.solve(quadratic, [1, 0]), atol=1e-9)


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_an_objective_of_another_dtype_is_compared_in_that_of_the_vector(method):
    r = minimize(lambda x: ((x - 1) ** 2).sum().astype("float16"), np.zeros(2, "float32"), method=method)
    assert r.x.dtype == r.fun.dtype == "float32"
    np.testing.assert_allclose(r.x, 1.0, atol=1e-2)


def test_how_it_ends_is_said():
    r = minimize(rosenbrock, np.zeros(4), method="BFGS", options={"maxiter": 3})
    assert not r.success and r.status == 1 and r.nit == 3
    assert r.message == "maxiter steps were taken"
    r = minimize(lambda x: hnp.where(x[0] == 1, 0.0, hnp.nan) + x[0], np.ones(1))
    assert not r.success and r.status == 3 and r.x == 1 and r.message.startswith("no step makes fun less")
    assert minimize(matyas, np.zeros(2), method="BFGS").nit == 0


@pytest.mark.parametrize(("f", "start"), [
    (lambda x: (1 / x**2).sum() + x[0] ** 2, [0.0, 1.0]),
    (matyas, [np.nan, 0.0]),
    (lambda x: hnp.log(x).sum(), [-1.0, 1.0]),
    (lambda x: hnp.where(x > 0, x, hnp.nan).sum() * 0, [-1.0, 1.0]),
    (lambda x: hnp.sqrt(x).sum(), [0.0, 1.0]),
])
@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_a_search_does_not_start_where_value_or_gradient_is_not_finite(method, f, start):
    r = minimize(f, np.array(start), method=method)
    assert not r.success and (r.status, r.nit) == (6, 0) and r.message == "fun or its gradient is not finite at x0"
    np.testing.assert_array_equal(r.x, start)


def test_steps_to_points_whose_gradient_is_not_finite_are_too_long():
    """The square root has the value 0 at 0, but no derivative: the first step, of 1, leads there."""
    r = minimize(lambda x: hnp.sqrt(x[0]), np.ones(1), options={"maxiter": 1})
    assert 0 < r.x < 1 and hnp.isfinite(r.jac)
    r = minimize(lambda x: hnp.sqrt(hnp.abs(x[0] - 1)) * 2, np.zeros(1))
    assert hnp.isfinite(r.x) and hnp.isfinite(r.jac)


@pytest.mark.parametrize("around", [hx.jit, lambda f: lambda x: hx.vmap(f)(x[None])])
def test_the_message_is_read_outside_of_transformations(around):
    find = lambda x: minimize(matyas, x)
    assert minimize(matyas, np.zeros(2)).message == "the gradient is at most the tolerance"
    with pytest.raises(errors.TracerArrayConversionError, match=r"minimize: .* message") as caught:
        around(lambda x: find(x).message)(np.zeros(2))
    assert caught.value.hint == "read message outside of jit."


def test_a_search_ends_where_rounding_hides_progress():
    t = np.linspace(0.0, 10.0, 100, dtype="float32")
    noise = np.random.default_rng(0).normal(size=(8, 100)).astype("float32")
    wave = lambda p: p[0] * hnp.exp(-p[1] * t) * hnp.cos(p[2] * t + p[3])
    misfit = lambda p, y: (((y - wave(p)) / 0.1) ** 2).sum()
    ys = wave(np.array([2.0, 0.3, 2.0, 0.5], "float32")) + 0.1 * noise
    start = np.array([1.5, 0.2, 2.1, 0.3], "float32")
    fits = hx.jit(hx.vmap(lambda y: minimize(misfit, start, (y,))))(ys)
    assert not fits.success.any() and set(fits.status.tolist()) <= {3, 5}
    assert all(words.endswith("if jac is small") for words in fits.message)
    assert fits.nit.max() < 30 and fits.nfev.max() < 100
    left = hnp.einsum("ki,kij,kj->k", fits.jac, fits.hess_inv, fits.jac) / 2
    assert (left < 1e-6 * fits.fun).all()  # some roundings of the value
    for x, y in zip(fits.x, np.asarray(ys, float)):
        exact = minimize(misfit, np.asarray(x, float), (y,), tol=1e-4)
        assert exact.success
        np.testing.assert_allclose(x, exact.x, atol=1e-4)


def test_a_step_at_the_same_value_is_taken_where_the_gradient_becomes_smaller():
    r = minimize(lambda x: 1e9 + 0.3 * (x**2).sum(), np.array([1e-4, 2e-4]))
    assert r.success and r.fun == 1e9 and r.nit > 0


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ({"x0": np.ones((2, 2))}, errors.ShapeMismatch, "x0 must be a vector"),
    ({"x0": {"a": 1.0}}, errors.NotAnArray, "x0 must be a vector, got dict(.|\n)*flatten_util.ravel_pytree"),
    ({"method": None}, errors.BadArgument, "method must be"),
    ({"args": 3.0}, TypeError, "args must be a tuple"),
    ({"method": "Powell"}, errors.BadArgument, "l-bfgs-experimental(.|\n)*jac="),
    ({"options": {"xtol": 1}}, errors.BadArgument, "options must be of gtol"),
    ({"options": {"norm": 0}}, errors.BadArgument, "norm must be a number above 0, got 0"),
    ({"options": {"norm": np.nan}}, errors.BadArgument, "norm must be a number above 0, got nan"),
    ({"options": {"norm": -np.inf}}, errors.BadArgument, "norm must be a number above 0, got -inf"),
    ({"options": {"norm": "fro"}}, errors.BadArgument, "norm must be a number above 0, got 'fro'"),
    ({"options": {"norm": None}}, errors.BadArgument, "norm must be a number above 0, got None"),
    ({"options": {"norm": np.ones(2)}}, errors.BadArgument, "norm must be a number above 0, got array"),
])
def test_mistakes_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        minimize(**{"fun": matyas, "x0": np.ones(2), "method": "BFGS", **arguments})


@pytest.mark.parametrize("norm", [1, 2.0, np.float32(2), np.array(3.0), hnp.asarray(2), np.inf])
def test_the_norm_has_any_order_above_0(norm):
    r = minimize(matyas, np.ones(2), options={"norm": norm, "gtol": 1e-3})
    assert r.success and np.linalg.norm(np.asarray(r.jac), float(norm)) <= 1e-3


@pytest.mark.parametrize("jit", [False, True])
def test_limited_memory_finds_the_minimum_of_a_curved_valley(jit):
    options = {"maxcor": 5, "ftol": 0.0}
    find = lambda x: minimize(rosenbrock, x, method="l-bfgs-experimental-do-not-rely-on-this", options=options)
    found = (hx.jit(find) if jit else find)(np.zeros(8))
    assert found.success and found.hess_inv is None and found.nit < 100
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_limited_memory_ends_where_it_was_told_to():
    find = lambda **options: minimize(
        lambda x: (x**4).sum(), np.ones(3), method="L-BFGS-experimental-do-not-rely-on-this", options=options
    )
    assert find(maxiter=2).nit == 2 and find(maxiter=2).status == 1
    assert find(maxfun=5).status == 2 and find(ftol=1.0).status == 4


@pytest.mark.parametrize(("f", "start", "options", "status"), [
    (rosenbrock, [0.0, 0.0], {}, 0),
    (rosenbrock, [0.0, 0.0], {"maxiter": 3}, 1),
    (lambda x: hnp.where(x[0] == 1, 0.0, hnp.nan) + x[0], [1.0], {}, 3),
    (lambda x: hnp.where(x[0] > 6, x[0] ** 2, -x[0]), [0.0], {"line_search_maxiter": 3}, 5),
    (lambda x: x.sum(), [1.0, 1.0], {}, 5),
    (lambda x: -hnp.log(6 - x[0]) - 9 * x[0], [0.0], {"line_search_maxiter": 2}, 5),
])
def test_value_and_gradient_are_those_of_the_point_that_is_returned(f, start, options, status):
    r = minimize(f, np.array(start), options=options)
    value, gradient = hx.value_and_grad(f)(r.x)
    assert r.status == status and hnp.isfinite(r.fun)
    np.testing.assert_allclose(r.fun, value, rtol=1e-13)
    np.testing.assert_allclose(r.jac, gradient, rtol=1e-7, atol=1e-13)


def test_a_line_search_that_runs_out_returns_its_best_step():
    """Steps 1, 2 and 4, at values of -1, -2 and -4; the next would be 8, at 64."""
    r = minimize(lambda x: hnp.where(x[0] > 6, x[0] ** 2, -x[0]), np.zeros(1), options={"line_search_maxiter": 3})
    assert (r.x, r.fun, r.jac, r.nfev, r.status) == (4, -4, -1, 4, 5)
