"""``odeint`` against solutions in closed form, with derivatives by all that it depends on."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.experimental import ode
from handlax.experimental.ode import odeint
from handlax.test_util import check_grads

TIMES = np.array([0.0, 0.3, 1.0, 2.5])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_solutions_are_those_in_closed_form(dtype):
    t = TIMES.astype(dtype)
    y0 = np.array([1.0, 0.5], dtype)
    found = odeint(lambda y, t: hnp.stack([y[1], -y[0]]), y0, t)
    expected = np.stack([np.cos(t) + 0.5 * np.sin(t), 0.5 * np.cos(t) - np.sin(t)], 1)
    assert found.dtype == dtype and found.shape == (4, 2)
    np.testing.assert_allclose(found, expected, atol=2e-7 if dtype == "float64" else 2e-5)
    logistic = odeint(lambda y, t, r: r * y * (1 - y), dtype and np.asarray(0.1, dtype), t, np.asarray(2.0, dtype))
    np.testing.assert_allclose(logistic, 1 / (1 + 9 * np.exp(-2 * t)), atol=2e-7 if dtype == "float64" else 2e-5)
    in_time = odeint(lambda y, t: t * y, np.asarray(1.0, dtype), t)
    np.testing.assert_allclose(in_time, np.exp(t**2 / 2), rtol=1e-6 if dtype == "float64" else 1e-4)


def test_the_error_follows_the_tolerance():
    f = lambda y, t: -y * hnp.sin(t) * 3
    exact = np.exp(3 * (np.cos(TIMES) - 1))
    errors_ = [np.max(np.abs(odeint(f, 1.0 + 0 * TIMES[0], TIMES, rtol=tol, atol=tol) - exact)) for tol in (1e-4, 1e-8)]
    assert errors_[1] < 1e-7 and errors_[0] < 1e-2 and errors_[1] < errors_[0] / 100


def test_the_gradient_has_few_copies_of_the_equation():
    f = lambda y, t, a: a * hnp.sin(y)
    program = hx.make_program(hx.grad(lambda a: hnp.sum(odeint(f, np.ones(2), TIMES, a))))(2.0)
    assert str(program).count(" = cos") == 3  # of the adjoint equation: at the start twice, and in the loop of stages


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_slopes_by_a_loop_are_those_of_the_unrolled_step(dtype):
    y = np.array([0.5, -0.2], dtype)
    f = lambda y, t: hnp.sin(y) * t
    state = ode._StepState(y, f(y, 0.5), *map(hnp.float32, (0.5, 0.1)), None, None)
    np.testing.assert_allclose(ode._looped_slopes(f, state), hnp.stack(ode._unrolled_slopes(f, state)), rtol=1e-5)


def test_trees_of_arrays_and_lanes():
    f = lambda y, t, a: {"x": a * y["v"], "v": -a * y["x"]}
    y0 = {"x": np.ones(3), "v": np.zeros(3)}
    found = odeint(f, y0, TIMES, np.array([1.0, 2.0, 0.5]))
    np.testing.assert_allclose(found["x"], np.cos(TIMES[:, None] * [1.0, 2.0, 0.5]), atol=1e-6)
    lanes = hx.vmap(lambda a: odeint(lambda y, t: a * y, np.float64(1.0), TIMES))(np.array([-1.0, 0.5]))
    np.testing.assert_allclose(lanes, np.exp(np.array([[-1.0], [0.5]]) * TIMES), rtol=1e-6)


def test_derivatives_by_start_times_and_arguments():
    f = lambda y0, t, a: odeint(lambda y, t, a: -a * y + hnp.sin(t), y0, t, a, rtol=1e-10, atol=1e-10)
    check_grads(f, (np.array([1.0, 2.0]), TIMES, np.float64(0.7)), 1, modes=["rev"], atol=1e-5, rtol=1e-5)
    gradient = hx.jit(hx.grad(lambda a: odeint(lambda y, t: -a * y, np.float64(2.0), TIMES)[-1]))(0.3)
    np.testing.assert_allclose(gradient, -2.5 * 2 * np.exp(-0.3 * 2.5), rtol=1e-5)  # by what the function captures


def test_times_that_decrease():
    times = 0.5 - TIMES
    f = lambda y0, t, a: odeint(lambda y, t, a: -a * y * t, y0, t, a, rtol=1e-10, atol=1e-10)
    closed = lambda y0, t, a: y0 * hnp.exp(-a * (t**2 - t[0] ** 2) / 2)
    args = np.array(1.2), times, np.array(0.7)
    loss = lambda f: lambda *args: (f(*args) * hnp.arange(1.0, 5.0)).sum()
    expected = [closed(*args), *hx.grad(loss(closed), (0, 1, 2))(*args)]
    for g in (f, hx.jit(f)):  # in the second the direction is not known
        for found, right in zip([g(*args), *hx.grad(loss(g), (0, 1, 2))(*args)], expected):
            np.testing.assert_allclose(found, right, rtol=1e-7, atol=1e-8)
    both = hx.vmap(lambda t: odeint(lambda y, t: -y, np.float64(1.0), t))(np.stack([TIMES, -TIMES]))
    np.testing.assert_allclose(both, np.exp([-TIMES, TIMES]), rtol=1e-6)


def test_times_that_turn_back_are_not_silent():
    f = lambda t: odeint(lambda y, t: -y, np.float64(1.0), t)
    times = np.array([0.0, 2.0, 1.0, 1.0, 3.0])
    with pytest.raises(errors.BadArgument, match="t must increase or decrease"):
        f(times)
    np.testing.assert_allclose(hx.jit(f)(times), np.exp(-times) * [1, 1, np.nan, np.nan, 1], rtol=1e-6)


def test_too_many_steps_are_not_silent():
    found = odeint(lambda y, t: -1e4 * y, np.float64(1.0), TIMES, mxstep=10)
    assert found[0] == 1 and np.isnan(found[1:]).all()
    found = odeint(lambda y, t: y * y, np.float64(1.0), np.array([0.0, 0.5, 2.0]))  # infinite at 1
    np.testing.assert_allclose(found[1], 2.0, rtol=1e-6)
    assert np.isnan(found[2])


def test_times_that_are_no_vector_are_refused():
    with pytest.raises(errors.ShapeMismatch, match="t must be a vector"):
        odeint(lambda y, t: y, 1.0, 1.0)


def test_forward_mode_is_refused_as_the_steps_depend_on_the_tangent():
    f = lambda k: odeint(lambda x, t: k * x, 1.0, hnp.linspace(0.0, 1.0, 4)).sum()
    with pytest.raises(hx.errors.NotDifferentiable, match="not linear"):
        hx.jacfwd(f)(3.0)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_derivative_without_value_ends_the_solution(value, dtype):
    """Steps too short to change the time were accepted, and grew again, forever."""
    f = lambda y, t: hnp.where(t > 0.5, value, -y)
    times = np.array([0.0, 0.25, 1.0, 2.0], dtype)
    found = odeint(f, np.ones((), dtype), times)
    np.testing.assert_allclose(found, [1, np.exp(-0.25), np.nan, np.nan], rtol=1e-6)
    assert np.isnan(hx.grad(lambda y: odeint(f, y, times)[-1])(np.ones((), dtype)))


@pytest.mark.parametrize("times", [[0.0, 0.5, 1.0], [0.0, 1.0]], ids=str)
def test_the_derivative_is_not_evaluated_beyond_the_last_time(times):
    f = lambda y, t: hnp.sqrt(1 - t) + 0 * y
    found = odeint(f, np.float64(0.0), np.array(times))
    np.testing.assert_allclose(found, 2 / 3 - 2 / 3 * np.sqrt(1 - np.array(times)) ** 3, rtol=1e-6)


@pytest.mark.each_choice
@pytest.mark.parametrize(("start", "stop"), [(0.5, 1.5), (1.5, 0.5), (-1.0, 1.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_complex_solutions(dtype, start, stop):
    kind = np.result_type(dtype, np.complex64)
    solve = lambda y0, t, w: odeint(lambda y, t, w: 1j * w * y * t, y0, t, w)
    closed = lambda y0, t, w: y0 * hnp.exp(1j * w * (t**2 - t[0] ** 2) / 2)
    loss = lambda f: lambda *args: (hnp.abs(f(*args) - 0.3) ** 2).sum()
    args = hnp.array(1 + 1j, kind), hnp.linspace(start, stop, 3, dtype=dtype), hnp.array(1.5 + 0.2j, kind)
    tolerance = 1e-6 if dtype == "float64" else 1e-4
    for found, right in zip(hx.grad(loss(solve), (0, 1, 2))(*args), hx.grad(loss(closed), (0, 1, 2))(*args)):
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


def test_steps_near_large_times_are_as_long_as_the_times_say():
    times = np.array([1000.0, 1001.0], np.float32)
    found = odeint(lambda y, t: 1 + 0 * y, np.float32(0.0), times, hmax=1e-3)
    np.testing.assert_allclose(found, [0, 1], rtol=1e-5)


def test_integer_arguments_have_no_derivative_and_leave_that_of_the_others():
    f = lambda y, t, n, a: -n["n"] * a * y
    value = lambda a, n: odeint(f, np.float64(2.0), TIMES, {"n": n}, a)[-1]
    expected = hx.grad(value)(0.3, 2.0)
    np.testing.assert_allclose(hx.grad(value)(0.3, 2), expected, rtol=1e-6)
    np.testing.assert_allclose(hx.jit(hx.grad(value))(0.3, hnp.asarray(2)), expected, rtol=1e-6)
    assert hx.grad(value, (0, 1), allow_int=True)(0.3, 2)[1].dtype == hx.dtypes.float0
