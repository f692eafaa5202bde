"""Functions with rules from inside which a clause ends the program or takes its rest: their value is the body's."""

from __future__ import annotations

import math

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op, x):
        return x


def with_jvp_rule(f):
    g = hx.custom_jvp(f)
    g.defjvp(lambda xs, ts: (g(*xs), 7.0 * ts[0]))
    return g


def with_vjp_rule(f):
    g = hx.custom_vjp(f)
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (7.0 * ct,))
    return g


def with_rule_for_lanes(f):
    g = hx.custom_batching.custom_vmap(f)
    g.def_vmap(lambda size, mapped, x: (x, True))
    return g


def in_a_solver(f):
    return lambda x: lax.custom_linear_solve(lambda y: 2.0 * y, 2.0 * x, lambda g, b: f(b / g(1.0)), symmetric=True)


def in_a_branch(f):
    return lambda x: lax.cond(x > -5.0, f, lambda x: x, x)


twice = hx.handle(hx.handler({Ask: hx.ctl(lambda resume, op, x: resume(x) + 10.0 * resume(2.0 * x))}))
ended = hx.handle(hx.handler({Ask: hx.final(lambda op, x: -x)}))
RULED = {"custom_jvp": with_jvp_rule, "custom_vjp": with_vjp_rule, "custom_vmap": with_rule_for_lanes,
         "linear_solve": in_a_solver}
DERIVED = {name: RULED[name] for name in ("custom_jvp", "custom_vjp", "linear_solve")}
PLACES = {"alone": lambda f: f, "jit": hx.jit, "checkpoint": hx.checkpoint, "a branch": in_a_branch}
WAYS = {"eager": lambda f: f, "compiled": hx.jit}


def asks(ruled):
    return lambda x: hnp.sin(ruled(lambda x: hx.perform(Ask(), x))(x))


def asks_above_one(ruled):
    return lambda x: hnp.sin(ruled(lambda x: lax.cond(x > 1.0, lambda: hx.perform(Ask(), x), lambda: x))(x))


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("ruled", RULED.values(), ids=RULED)
def test_the_value_is_that_of_the_body(ruled, place, way):
    resumed = way(twice(place(asks(ruled))))
    assert float(resumed(0.7)) == pytest.approx(math.sin(0.7) + 10.0 * math.sin(1.4))
    stopped = way(ended(place(asks_above_one(ruled))))
    assert [float(stopped(x)) for x in (0.5, 3.0)] == pytest.approx([math.sin(0.5), -3.0])


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("ruled", [with_jvp_rule, with_vjp_rule])
def test_a_derivative_inside_the_handler_is_that_of_the_rule(ruled, way):
    slope = way(twice(hx.grad(asks(ruled))))
    assert float(slope(0.7)) == pytest.approx(7.0 * (math.cos(0.7) + 10.0 * math.cos(1.4)))
    slope = way(ended(hx.grad(asks_above_one(ruled))))
    assert [float(slope(x)) for x in (0.5, 3.0)] == pytest.approx([7.0 * math.cos(0.5), -3.0])


@pytest.mark.parametrize("ruled", DERIVED.values(), ids=DERIVED)
def test_lanes_are_those_of_the_body_where_the_rule_is_about_derivatives(ruled):
    xs = hnp.array([0.5, 3.0])
    assert hx.vmap(twice(asks(ruled)))(xs).tolist() == pytest.approx([math.sin(x) + 10.0 * math.sin(2 * x) for x in xs])
    assert hx.vmap(ended(asks_above_one(ruled)))(xs).tolist() == pytest.approx([math.sin(0.5), -3.0])


def test_derivatives_are_those_of_the_body_where_the_rule_is_about_lanes():
    slope = hx.grad(twice(asks(with_rule_for_lanes)))
    assert float(slope(0.7)) == pytest.approx(math.cos(0.7) + 20.0 * math.cos(1.4))


def test_other_derivatives_are_as_ever():
    slope = hx.grad(lambda a: twice(lambda x: a * asks(with_jvp_rule)(x))(0.7))
    assert float(slope(2.0)) == pytest.approx(math.sin(0.7) + 10.0 * math.sin(1.4))


REFUSED = {
    "derivative of custom_jvp": (hx.grad(twice(asks(with_jvp_rule))), "custom_jvp of .*derivative"),
    "derivative of custom_vjp": (hx.grad(twice(asks(with_vjp_rule))), "custom_vjp of .*derivative"),
    "derivative of a solver": (hx.grad(twice(asks(in_a_solver))), "linear_solve.*derivative"),
    "compiled": (hx.jit(hx.grad(twice(asks(with_jvp_rule)))), "custom_jvp of .*derivative"),
    "of lanes": (hx.grad(lambda x: hx.vmap(twice(asks(with_vjp_rule)))(hnp.stack([x]))[0]), "custom_vjp of .*derivat"),
    "an end in a solver": (hx.grad(ended(asks_above_one(in_a_solver))), "linear_solve.*derivative"),
    "rule for lanes": (lambda x: hx.vmap(twice(asks(with_rule_for_lanes)))(hnp.stack([x])), "custom_vmap of .*lanes"),
}


@pytest.mark.parametrize(("f", "message"), REFUSED.values(), ids=REFUSED)
def test_what_only_the_rule_could_tell_is_refused(f, message):
    with pytest.raises(hx.errors.CannotCross, match=f"{message}.*ask") as error:
        f(0.5)
    lines = str(error.value).splitlines()
    assert len(lines) == 3 and "test_without_rule.py" in lines[1]
