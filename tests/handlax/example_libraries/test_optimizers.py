"""Optimizers: their first steps by hand, their minima, and states as trees."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.example_libraries import optimizers

X, G = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]), np.array([[0.3, -0.1, 0.2], [0.0, 1.0, -2.0]])

# The parameters after two steps of size .1 with the same gradient G.
RULES = {
    "sgd": (optimizers.sgd, (), lambda x, g: x - 0.2 * g),
    "momentum": (optimizers.momentum, (0.5,), lambda x, g: x - 0.1 * g - 0.1 * 1.5 * g),
    "nesterov": (optimizers.nesterov, (0.5,), lambda x, g: x - 0.1 * 1.5 * g - 0.1 * 1.75 * g),
    "adagrad": (optimizers.adagrad, (0.0,), lambda x, g: x - 0.1 * np.sign(g) * (1 + 0.5**0.5)),
    "rmsprop": (optimizers.rmsprop, (0.5, 1e-12),
                lambda x, g: x - 0.1 * (g / (0.5 * g * g + 1e-12) ** 0.5 + g / (0.75 * g * g + 1e-12) ** 0.5)),
    "rmsprop_momentum": (optimizers.rmsprop_momentum, (0.5, 1e-12, 0.0),
                         lambda x, g: x - 0.1 * (g / (0.5 * g * g + 1e-12) ** 0.5 + g / (0.75 * g * g + 1e-12) ** 0.5)),
    "adam": (optimizers.adam, (), lambda x, g: x - 0.2 * np.sign(g)),
    "adamax": (optimizers.adamax, (), lambda x, g: x - 0.2 * np.sign(g)),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_two_steps_are_those_of_the_rule(name, wrap):
    make, options, want = RULES[name]
    init, update, get_params = make(0.1, *options)
    with hx.configure(default_float="float64"):
        state = init({"w": X, "b": [X[0]]})
        for i in range(2):
            state = wrap(update)(i, {"w": G, "b": [G[0]]}, state)
        params = get_params(state)
    np.testing.assert_allclose(np.asarray(params["w"]), want(X, G), atol=1e-5)
    np.testing.assert_allclose(np.asarray(params["b"][0]), want(X[0], G[0]), atol=1e-5)


def test_sm3_keeps_one_sum_for_each_row_and_column():
    init, update, get_params = optimizers.sm3(0.1, 0.0)
    state = init({"w": X, "s": 2.0})
    assert sorted(np.size(leaf) for leaf in hx.tree.leaves(state)) == [1, 1, 1, 2, 3, 6, 6]
    rows, columns, x = np.zeros(2), np.zeros(3), X
    for i in range(3):
        state = update(i, {"w": G, "s": 1.0}, state)
        squares = np.minimum(rows[:, None], columns) + G**2
        x = x - 0.1 * G / np.where(squares > 0, squares, 1) ** 0.5
        rows, columns = squares.max(1), squares.max(0)
    np.testing.assert_allclose(np.asarray(get_params(state)["w"]), x, rtol=1e-5)


@pytest.mark.parametrize("make", [
    lambda: optimizers.sgd(0.2), lambda: optimizers.momentum(0.1, 0.5), lambda: optimizers.nesterov(0.1, 0.5),
    lambda: optimizers.adagrad(1.0), lambda: optimizers.rmsprop(optimizers.exponential_decay(0.3, 20, 0.5)),
    lambda: optimizers.rmsprop_momentum(optimizers.inverse_time_decay(0.05, 10, 1.0)),
    lambda: optimizers.adam(optimizers.polynomial_decay(0.3, 300, 0.0)), lambda: optimizers.adamax(0.1),
    lambda: optimizers.sm3(1.0),
])
def test_a_compiled_loop_finds_the_minimum(make):
    init, update, get_params = make()
    loss = lambda p: ((p["w"] - 1.0) ** 2).sum() + (p["b"] + 2.0) ** 2

    def step(i, state):
        return update(i, hx.grad(loss)(get_params(state)), state)

    state = hx.jit(lambda state: lax.fori_loop(0, 400, step, state))(init({"w": hnp.zeros(3), "b": 0.5}))
    assert float(loss(get_params(state))) < 1e-2


@pytest.mark.parametrize(("schedule", "want"), [
    (optimizers.constant(0.3), [0.3, 0.3, 0.3]),
    (optimizers.exponential_decay(1.0, 2, 0.25), [1.0, 0.5, 0.25]),
    (optimizers.inverse_time_decay(1.0, 2, 1.0), [1.0, 1 / 1.5, 0.5]),
    (optimizers.inverse_time_decay(1.0, 2, 1.0, staircase=True), [1.0, 1.0, 0.5]),
    (optimizers.polynomial_decay(1.0, 2, 0.5, 2.0), [1.0, 0.625, 0.5]),
    (optimizers.piecewise_constant([0, 1], [3.0, 2.0, 1.0]), [3.0, 2.0, 1.0]),
])
def test_schedules(schedule, want):
    np.testing.assert_allclose([float(schedule(i)) for i in range(3)], want, rtol=1e-6)
    np.testing.assert_allclose([float(hx.jit(lambda i: schedule(i) * 1.0)(i)) for i in range(3)], want, rtol=1e-6)


def test_gradients_are_scaled_down_to_the_norm():
    grads = {"a": hnp.array([3.0, 0.0]), "b": 4.0}
    assert float(optimizers.l2_norm(grads)) == 5.0
    clipped = optimizers.clip_grads(grads, 1.0)
    np.testing.assert_allclose(np.asarray(clipped["a"]), [0.6, 0.0], rtol=1e-6)
    assert float(optimizers.clip_grads(grads, 6.0)["b"]) == 4.0


def test_a_state_is_unpacked_and_packed():
    state = optimizers.adam(0.1)[0]({"a": X, "b": 1.0})
    unpacked = optimizers.unpack_optimizer_state(state)
    assert isinstance(unpacked["a"], optimizers.JoinPoint)
    again = optimizers.pack_optimizer_state(unpacked)
    assert hx.tree.structure(again) == hx.tree.structure(state)
    assert all(x is y for x, y in zip(hx.tree.leaves(again), hx.tree.leaves(state)))


@pytest.mark.parametrize(("call", "error"), [
    (lambda: optimizers.make_schedule(X), errors.BadArgument),
    (lambda: optimizers.piecewise_constant([1], [1.0]), errors.ShapeMismatch),
    (lambda: optimizers.sgd(0.1)[1](0, [1.0], optimizers.sgd(0.1)[0]({"a": 1.0})), errors.TreeMismatch),
    (lambda: optimizers.pack_optimizer_state({"a": 1.0}), errors.TreeMismatch),
])
def test_what_does_not_fit_is_refused(call, error):
    with pytest.raises(error):
        call()
