"""States of handlers, and references, around a linear solve whose solver or product performs."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op, x):
        return x


@hx.effect(vmap="per_lane", diff="stop")
class Tell:
    def result_type(op, x):
        return None


def ask(x):
    return hx.perform(Ask(), x)


def solver(x):
    """s x / 2 with the state ``s``; the solver performs once."""
    return lax.custom_linear_solve(lambda y: 2.0 * y, x, lambda g, b: ask(b) / g(1.0), symmetric=True)


def product(x):
    """x / (2 s), where the state ``s`` is the answer's factor; the solver evaluates the product once."""
    return lax.custom_linear_solve(lambda y: 2.0 * ask(y), x, lambda g, b: b / g(1.0), symmetric=True)


scaled = hx.handler({Ask: lambda s, op, x: (s * x * x, s * x)})
logging = hx.handler({Ask: lambda log, op, x: ((*log, x), 2.0 * x)}, moves=hx.append)
WAYS = {"eager": lambda f: f, "jit": hx.jit, "checkpoint": hx.checkpoint}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_solver_reads_and_leaves_the_state(way):
    state, y = way(hx.handle(scaled, 2.0)(solver))(3.0)
    assert (float(state), float(y)) == (18.0, 3.0)
    state, y = hx.handle(scaled, 2.0)(way(lambda x: solver(x) + solver(1.0)))(3.0)
    assert (float(state), float(y)) == (18.0, 12.0)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_log_has_the_entries_of_the_solver_alone(way):
    for f, entry in ((solver, 3.0), (product, 1.0)):
        (logged,), _ = way(hx.handle(logging, ())(f))(3.0)
        assert float(logged) == entry


def by_jvp(f):
    return lambda x: hx.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("derivative", [hx.grad, by_jvp, lambda f: hx.jit(hx.grad(f))], ids=["grad", "jvp", "jit"])
def test_derivatives_are_those_of_the_equation_and_of_the_operations_that_make_the_state(derivative):
    assert float(derivative(lambda x: hx.handle(scaled, 2.0)(solver)(x)[1])(3.0)) == 1.0  # solved from the same start
    assert float(derivative(lambda x: hx.handle(scaled, 2.0)(solver)(x)[0])(3.0)) == 12.0  # of 2 x^2
    assert float(derivative(lambda s: hx.handle(scaled, s)(solver)(3.0)[0])(2.0)) == 9.0
    assert float(derivative(lambda x: hx.handle(scaled, 2.0)(product)(x)[1])(3.0)) == 0.25
    assert float(derivative(lambda s: hx.handle(scaled, s)(product)(3.0)[1])(2.0)) == -3.0 / 8.0


def test_second_derivatives_and_lanes():
    state = lambda x: hx.handle(scaled, 2.0)(solver)(x)[0]
    assert float(hx.grad(hx.grad(state))(3.0)) == 4.0
    assert hx.vmap(hx.grad(state))(hnp.array([3.0, 1.0])).tolist() == [12.0, 4.0]
    states, ys = hx.vmap(hx.handle(scaled, 2.0)(solver))(hnp.array([3.0, 1.0]))
    assert (states.tolist(), ys.tolist()) == ([18.0, 2.0], [3.0, 1.0])


def test_a_reference_is_written_by_the_solver():
    def f(x):
        ref = hx.new_ref(0.0)

        def solve(g, b):
            ref[...] += b * b
            return b / g(1.0)

        return lax.custom_linear_solve(lambda y: 2.0 * y, x, solve, symmetric=True) + ref[...]

    assert [float(way(f)(3.0)) for way in (*WAYS.values(), hx.grad)] == [10.5, 10.5, 10.5, 6.5]


def test_what_the_derivative_of_a_state_would_perform_again_is_refused():
    def f(x):
        solve = lambda g, b: (hx.perform(Tell(), b), ask(b) / g(1.0))[1]
        return lax.custom_linear_solve(lambda y: 2.0 * y, x, solve, symmetric=True)

    told = hx.handler({Tell: lambda s, op, x: (s + x, None)})
    handled = lambda x: hx.handle(scaled, 2.0)(f)(x)[0]
    assert [float(y) for y in hx.handle(told, 0.0)(handled)(3.0)] == [3.0, 18.0]
    with pytest.raises(hx.errors.CannotCross, match=r"linear_solve.*tell.*a second time") as error:
        hx.handle(told, 0.0)(hx.grad(handled))(3.0)
    assert error.value.hint is not None


def test_two_handlers_have_their_states_from_one_solver():
    def f(x):
        def solve(g, b):
            hx.perform(Tell(), b)
            return ask(b) / g(1.0)

        return lax.custom_linear_solve(lambda y: 2.0 * y, x, solve, symmetric=True)

    told = hx.handler({Tell: lambda total, op, x: (total + x, None)})
    for way in WAYS.values():
        total, (state, y) = way(hx.handle(told, 10.0)(hx.handle(scaled, 2.0)(f)))(3.0)
        assert (float(total), float(state), float(y)) == (13.0, 18.0, 3.0)
        state, (total, y) = way(hx.handle(scaled, 2.0)(hx.handle(told, 10.0)(f)))(3.0)
        assert (float(total), float(state), float(y)) == (13.0, 18.0, 3.0)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_bodies_and_clauses_close_over_stands_beside_the_state(way):
    """a y = x, where the product closes over a, and the clause over k; the state starts as an integer."""
    def f(a, k, x):
        counting = hx.handler({Ask: lambda s, op, b: (s + k * b, b)})
        solve = lambda x: lax.custom_linear_solve(lambda y: a * y, x, lambda g, b: ask(b) / g(1.0), symmetric=True)
        return hx.handle(counting, 1)(solve)(x)

    state, y = way(f)(2.0, 5.0, 3.0)
    assert (float(state), float(y)) == (16.0, 1.5)
    slopes = lambda i: [float(slope) for slope in hx.grad(lambda *v: way(f)(*v)[i], argnums=(0, 1, 2))(2.0, 5.0, 3.0)]
    assert (slopes(0), slopes(1)) == ([0.0, 3.0, 5.0], [-0.75, 0.0, 0.5])
    slope = lambda a, x: hx.grad(lambda x: way(f)(a, 5.0, x)[1] ** 2)(x)  # 2 x / a^2
    assert [float(y) for y in hx.grad(slope, argnums=(0, 1))(2.0, 3.0)] == [-1.5, 0.5]


@pytest.mark.parametrize("part", [0, 1, 2], ids=["outer state", "inner state", "solution"])
def test_each_of_two_states_has_its_derivative(part):
    def f(x):
        solve = lambda g, b: (hx.perform(Tell(), b * b), ask(b) / g(1.0))[1]
        return lax.custom_linear_solve(lambda y: 2.0 * y, x, solve, symmetric=True)

    told = hx.handler({Tell: lambda total, op, x: (total + x, None)})

    def parts(x):
        total, (state, y) = hx.handle(told, 10.0)(hx.handle(scaled, 2.0)(f))(x)
        return total, state, y

    def exchanged(x):
        state, (total, y) = hx.handle(scaled, 2.0)(hx.handle(told, 10.0)(f))(x)
        return total, state, y

    for both in (parts, exchanged):
        assert float(hx.grad(lambda x: both(x)[part])(3.0)) == [6.0, 12.0, 1.0][part]
