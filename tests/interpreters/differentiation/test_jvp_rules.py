"""Derivatives as rules, under handlers: what they perform, and the value beside a derivative."""

from __future__ import annotations

import math

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect(vmap="per_lane", diff="stop")
class Triple:
    def result_type(op, x):
        return x


@hx.effect(vmap="per_lane", diff="stop")
class Add:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Leave:
    def result_type(op, x):
        return None


adding = hx.handle(hx.handler({Add: lambda s, op, x: (s + x, None)}), 0.0)
leaving = hx.handle(hx.handler({Leave: hx.final(lambda op, x: (x, x))}, returns=lambda y: (y, y)))
counting = hx.handle(hx.handler({Triple: lambda s, op, x: (s + 1.0, 3.0 * s * x * x)}), 1.0)


@pytest.mark.parametrize("handled", [adding, leaving], ids=["a state", "an early end"])
@pytest.mark.parametrize("between", [lambda f: f, hx.jit, lambda f: lambda x: hx.vmap(f)(hnp.stack([x]))])
def test_what_a_rule_performs_is_differentiated_through_the_clauses_of_all_handlers(handled, between):
    @hx.custom_jvp
    def f(x):
        y = hx.perform(Triple(), x)
        hx.perform(Add() if handled is adding else Leave(), y)
        return x

    f.defjvp(lambda xs, ts: (f(*xs), 7.0 * ts[0]))
    value = lambda x: counting(lambda x: hnp.ravel(between(lambda x: handled(f)(x)[0])(x))[0])(x)[1]
    (y, dy) = hx.jvp(value, (2.0,), (1.0,))
    assert (float(y), float(dy), float(hx.grad(value)(2.0))) == (12.0, 12.0, 12.0)


def with_slope(f, rate, called=lambda g: g):
    g = hx.custom_jvp(f)
    g.defjvp(lambda xs, ts: (called(g)(*xs), rate * ts[0]))
    return g


def with_pulled_slope(f, rate, called=lambda g: g):
    g = hx.custom_vjp(f)
    g.defvjp(lambda x: (called(g)(x), None), lambda _, ct: (rate * ct,))
    return g


def in_branch(g):
    return lambda x: lax.cond(x > -1.0, g, lambda x: x, x)


def in_loop(g):
    return lambda x: lax.scan(lambda c, _: (g(c), None), x, None, length=1)[0]


def after_an_end(g):
    return lambda x: (lax.cond(x > 9.0, lambda: hx.perform(Leave(), x), lambda: None), g(x))[1]


@pytest.mark.parametrize("ruled", [with_slope, with_pulled_slope])
def test_a_rule_in_another_of_the_same_text_is_not_taken_for_it(ruled):
    inner = ruled(hnp.sin, 5.0)
    outer = ruled(lambda x: (hx.perform(Add(), inner(x)), x)[1], 7.0)
    _, (state_slope, slope) = hx.jvp(adding(outer), (2.0,), (1.0,))
    assert (float(state_slope), float(slope)) == (5.0, 7.0)


CALLS = {"at once": lambda g: g, "in jit": hx.jit, "in a branch": in_branch, "in a loop": in_loop}
CASES = {
    **{f"a state, called {name}": (adding, called) for name, called in CALLS.items()},
    **{f"an early end, called {name}": (leaving, called) for name, called in CALLS.items()},
    "an early end, called after another": (leaving, after_an_end),
}


@pytest.mark.each_choice
@pytest.mark.parametrize(("handled", "called"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("ruled", [with_slope, with_pulled_slope])
def test_the_value_beside_a_derivative_has_the_derivative_of_the_rule_too(handled, called, ruled):
    def f(x):
        lax.cond(x > 5.0, lambda: hx.perform(Add() if handled is adding else Leave(), x), lambda: None)
        return hnp.sin(x)

    value = lambda x: handled(ruled(f, 7.0, called))(x)[1]
    for inner in (hx.value_and_grad(value), lambda x: hx.jvp(value, (x,), (1.0,))):
        _, (dy, second) = hx.jvp(inner, (2.0,), (1.0,))
        assert (float(dy), float(second)) == (7.0, 0.0)


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op):
        return None


ticking = hx.handle(hx.handler({Tick: lambda n, op: (n + 1, None)}), 0)


@pytest.mark.parametrize("called", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("ruled", [with_slope, with_pulled_slope])
def test_what_a_function_leaves_is_performed_once_where_the_value_beside_a_derivative_has_its_rule(ruled, called):
    f = ruled(lambda x: (hx.perform(Add(), x), hx.perform(Tick()), hnp.sin(x))[2], 7.0, called)
    slope = lambda x: hx.jvp(lambda x: adding(f)(x)[1], (x,), (1.0,))
    ticks, ((y, dy), (by_x, second)) = ticking(lambda x: hx.jvp(slope, (x,), (1.0,)))(2.0)
    assert int(ticks) == 1 and float(y) == pytest.approx(math.sin(2.0))
    assert (float(dy), float(by_x), float(second)) == (7.0, 7.0, 0.0)


def test_the_value_of_a_function_that_asks_further_out_is_not_differentiated_beside_a_derivative():
    f = with_slope(lambda x: (hx.perform(Add(), x), hx.perform(Triple(), x))[1], 7.0)
    slope = lambda x: hx.jvp(lambda x: adding(f)(x)[1], (x,), (1.0,))
    assert [float(y) for y in counting(slope)(2.0)[1]] == [12.0, 7.0]
    with pytest.raises(hx.errors.CannotCross, match="performs triple, which its rule would perform a second time"):
        counting(lambda x: hx.jvp(slope, (x,), (1.0,)))(2.0)


@pytest.mark.parametrize("nested", [lambda f: f, hx.jit])
def test_the_value_beside_a_derivative_by_what_a_function_captured_has_its_rule(nested):
    value = lambda a, x: with_slope(lambda y: a * hnp.sin(y), 7.0)(x)
    by_captured = nested(lambda x: hx.jvp(lambda a: value(a, x), (3.0,), (1.0,)))
    _, (dy, second) = hx.jvp(by_captured, (2.0,), (1.0,))
    assert (float(dy), float(second)) == (7.0, pytest.approx(math.cos(2.0)))


cubing = lambda f: hx.handle(hx.handler({Triple: lambda op, x: x**3}))(f)


@pytest.mark.parametrize("handled", [cubing, lambda f: lambda x: counting(f)(x)[1]], ids=["no state", "a state"])
@pytest.mark.parametrize("mode", ["jvp", "vjp"])
def test_an_effect_on_a_captured_value_in_a_rule_is_differentiated_through_its_clause(handled, mode):
    def f(x):
        value = lambda y: hnp.sin(y) + hx.perform(Triple(), x)
        if mode == "jvp":
            g = hx.custom_jvp(value)
            g.defjvp(lambda ys, ts: (value(*ys), 7.0 * ts[0]))
        else:
            g = hx.custom_vjp(value)
            g.defvjp(lambda y: (value(y), None), lambda _, ct: (7.0 * ct,))
        return handled(g)(x)

    slope = 3.0 * 2.0**2 + 7.0  # of the cube, which both clauses give for the first effect, and of the rule
    assert [float(d) for d in (hx.jvp(f, (2.0,), (1.0,))[1], hx.grad(f)(2.0), hx.jit(hx.grad(f))(2.0))] == [slope] * 3


def test_a_backward_rule_that_is_not_linear_works_under_a_handler_with_a_state():
    clipped = hx.custom_vjp(lambda x: x)
    clipped.defvjp(lambda x: (x, x), lambda x, ct: (x * hnp.clip(ct, -1.0, 1.0),))
    f = lambda x: (hx.perform(Add(), x), 10.0 * clipped(x * x))[1]
    assert float(hx.grad(lambda x: adding(f)(x)[1])(3.0)) == 9.0 * 2.0 * 3.0


def by_forward_mode(f, c):
    return hx.jvp(f, (c,), (1.0,))


@pytest.mark.each_choice
@pytest.mark.parametrize("ruled", [with_slope, with_pulled_slope])
@pytest.mark.parametrize("derived", [by_forward_mode, lambda f, c: hx.value_and_grad(f)(c)], ids=["jvp", "grad"])
@pytest.mark.parametrize("called", [lambda f: f, hx.jit, in_branch, in_loop])
def test_a_derivative_by_a_captured_value_performs_once_and_has_derivatives_by_the_arguments(ruled, derived, called):
    def value(x, c):
        f = lambda x: c * hx.perform(Triple(), x)
        return ruled(f, 7.0, lambda g: f)(x)  # the rule calls the function without a rule

    both = lambda x: called(lambda x: derived(lambda c: value(x, c), 5.0)[1])(x)
    state, slope = counting(both)(2.0)
    assert (float(state), float(slope)) == (2.0, 12.0)
    _, (state_slope, second) = hx.jvp(counting(both), (2.0,), (1.0,))
    assert (float(state_slope), float(second)) == (0.0, 12.0)  # of 3 s x^2, with the state s = 1


def test_what_a_rule_performs_needs_a_derivative_and_nothing_else_of_it():
    host = lambda x: hx.pure_callback(lambda v: v * v, hx.ShapeDtypeStruct((), "float32"), x)
    of_host = with_slope(lambda x: (hx.perform(Add(), 3.0 * x), host(x))[1], 5.0)
    state, value = hx.jvp(adding(of_host), (2.0,), (1.0,))[1]
    assert (float(state), float(value)) == (3.0, 5.0)
    told = with_slope(lambda x: (hx.perform(Add(), host(x)), x)[1], 5.0)
    with pytest.raises(hx.errors.NotDifferentiable, match="pure_callback: a Python function has no known derivative"):
        hx.jvp(adding(told), (2.0,), (1.0,))
