"""What the known part of a program computes once, and what leaves it once."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.differentiation.partial_eval import partial_eval_program, split_operation
from handlax.interpreters.differentiation.partial_eval_bodies import KnownResult

X = np.linspace(0.1, 1.0, 4).astype("float32")


@hx.effect
class Click:
    def result_type(op, x):
        return x


def names(program):
    return [op.name for op in program.ops]


def whole(split, known, unknown):
    """What both parts of a program compute together, of its unknown results."""
    made = split.known(*known)
    return split.rest(*split.residual_values(known, made), *unknown)


def test_what_is_computed_twice_of_known_values_is_computed_and_kept_once():
    program = hx.make_program(lambda x, u: (hnp.cos(x) * u, hnp.exp(hnp.cos(x)) * hnp.sin(u)))(X, X)
    split = partial_eval_program(program, [False, True])
    assert names(split.known) == ["cos", "exp"]
    assert len(split.residuals) == 2
    np.testing.assert_array_equal(np.asarray(whole(split, [X], [X])), np.asarray(program(X, X)))


def test_operations_that_differ_in_a_field_are_both_computed():
    program = hx.make_program(lambda x, u: hnp.sum(x, 0) * hnp.sum(x, 1) * u)(np.ones((3, 3)), np.ones(3))
    split = partial_eval_program(program, [False, True])
    assert names(split.known)[:2] == ["reduce_sum", "reduce_sum"]


def test_what_has_several_results_is_computed_as_often_as_it_stands_there():
    def f(x, u):
        first, second = lax.optimization_barrier((x, x * 2.0))
        again, _ = lax.optimization_barrier((x, x * 2.0))
        return (first + second + again) * u

    program = hx.make_program(f)(X, X)
    split = partial_eval_program(program, [False, True])
    assert names(split.known).count("optimization_barrier") == 2
    np.testing.assert_array_equal(whole(split, [X], [X])[0], program(X, X)[0])


def test_an_effect_on_known_values_is_performed_as_often_as_it_stands_there():
    program = hx.make_program(lambda x, u: (hx.perform(Click(), x) + hx.perform(Click(), x)) * u)(X, X)
    assert names(partial_eval_program(program, [False, True]).known) == ["click", "click", "add"]


def test_a_policy_is_asked_of_each_equation_by_itself():
    program = hx.make_program(lambda x, u: (hnp.cos(x) * u, hnp.cos(x) * hnp.sin(u)))(X, X)
    asked = []

    def policy(primitive, *types, **params):
        asked.append(primitive.name)
        return len(asked) > 1

    split = partial_eval_program(program, [False, True], policy=policy)
    assert asked == ["cos", "cos"]
    assert names(split.rest).count("cos") == 1
    np.testing.assert_array_equal(np.asarray(whole(split, [X], [X])), np.asarray(program(X, X)))


def test_a_known_result_that_the_rest_takes_leaves_once():
    program = hx.make_program(lambda x, u: (hnp.exp(x), hnp.exp(x) * u))(X, X)
    split = partial_eval_program(program, [False, True])
    assert len(split.known.outs) == 1
    assert split.residuals == (KnownResult(0),)


@pytest.mark.parametrize("length", [1, 4])
def test_what_a_loop_stacks_as_result_and_residual_is_stacked_once(length):
    def step(c, x):
        y = hnp.exp(x)
        return c * y, y

    program = hx.make_program(lambda c, xs: lax.scan(step, c, xs))(X, np.ones((length, 4), "float32"))
    (op,) = program.ops
    ((known, _),) = split_operation(op, (True, False)).known
    assert len(known.bodies[0].outs) == 1


def test_the_last_carry_is_not_the_carry_of_each_run():
    """The carry is a result of the known part, and the next one is a residual: they differ outside the last run."""

    def f(a, b):
        def step(c, _):
            known, moving = c
            grown = hnp.exp(known) * 0.5
            return (grown, moving * grown), grown

        (last, moved), rows = lax.scan(step, (hnp.asarray(X), b), None, 3)
        return hnp.sum(last) + hnp.sum(moved * a) + hnp.sum(rows)

    slope = hx.grad(f, argnums=1)(hnp.asarray(X), hnp.asarray(X))
    expected, known = X, X
    for _ in range(3):
        known = np.exp(known) * 0.5
        expected = expected * known
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


@pytest.mark.parametrize("going", [True, False])
def test_branches_share_no_place_of_a_result(going):
    def f(p, x, u):
        one, other = lambda x, u: (hnp.exp(x), hnp.exp(x) * u), lambda x, u: (x * 2.0, hnp.sin(x) * u)
        return lax.cond(p, one, other, x, u)[1].sum()

    slope = hx.grad(f, argnums=2)(going, hnp.asarray(X), hnp.asarray(X))
    np.testing.assert_allclose(slope, np.exp(X) if going else np.sin(X), rtol=1e-5)


def test_derivatives_of_derivatives_keep_each_value_once():
    """Of ``sin x`` they need its sine and cosine, and the sign of one of them, however often they are taken."""

    def level(f):
        return lambda x: hnp.sum(hx.grad(hx.jit(f))(x))

    f = lambda x: hnp.sum(hnp.sin(x))
    for _ in range(4):
        f = level(f)
    (op,) = [op for op in hx.make_program(f)(X).ops if op.name == "call"][:1]
    while op.bodies[0].ops[0].name == "call":
        op = op.bodies[0].ops[0]
    assert names(op.bodies[0]).count("sin") == names(op.bodies[0]).count("cos") == 1


@hx.effect(vmap="per_lane", diff="stop")
class Tap:
    def result_type(op):
        return None


counter = hx.handler({Tap: lambda n, op: (n + 1, None)})


def tick():
    hx.perform(Tap())


def only_performs(x):
    lax.cond(x > 0, tick, lambda: None)
    return x * x


def counted(f):
    return lambda *args: int(hx.handle(counter, 0)(f)(*args)[0])


@pytest.mark.parametrize("boundary", [hx.jit, hx.checkpoint])
@pytest.mark.parametrize("transform", [hx.grad, hx.hessian, lambda f: lambda x: hx.linearize(f, x)[1](x)])
def test_an_operation_that_only_performs_stays_in_the_known_part(boundary, transform):
    def f(x):
        boundary(lambda x: lax.cond(x > 0, tick, lambda: None))(x)
        return x * x

    assert counted(transform(f))(2.0) == 1
    assert counted(transform(f))(-2.0) == 0


def test_what_only_performs_on_unknown_operands_stays_in_the_rest():
    program = hx.make_program(only_performs)(1.0)
    split = hx.partial_eval_program(program, [True])
    assert [effect.name for effect in split.rest.effects] == ["tap"] and not split.known.effects


@hx.effect(vmap="per_lane", diff="stop")
class Shout:
    def result_type(op, x):
        return x


@hx.effect(vmap="per_lane", diff="stop")
class Whisper:
    def result_type(op, x):
        return x


def heard(s, op, x):
    """The last twenty values that were heard, and an answer that depends on them all."""
    return hnp.concatenate([s[1:], hnp.reshape(x, (1,))]), x + hnp.sum(s * hnp.linspace(0.1, 0.9, 20))


def statement(draw, depth):
    """A random function ``(known, unknown) -> (known, unknown)`` that performs effects of two kinds."""
    around = ["jit", "cond", "scan", "scan", "checkpoint"] * (depth > 0)
    kind = draw.choice(["known", "unknown", "unknown", "mixed", *around])
    if kind in ("known", "unknown", "mixed"):
        op, rate = draw.choice([Shout, Shout, Whisper])(), draw.randint(1, 9) / 10

        def performing(k, u):
            if kind == "known":
                return hx.perform(op, rate * k), u
            return k, hx.perform(op, rate * u) if kind == "unknown" else u + hx.perform(op, rate * (k + u))

        return performing
    parts = [statement(draw, depth - 1) for _ in range(draw.randint(1, 3))]

    def inner(k, u):
        for part in parts:
            k, u = part(k, u)
        return k, u

    if kind == "cond":
        return lambda k, u: lax.cond(k > 0.3, inner, lambda k, u: (k, u), k, u)
    if kind == "scan":
        return lambda k, u: lax.scan(lambda c, x: (inner(c[0] + x, c[1]), None), (k, u), np.float64([0.1, 0.2]))[0]
    return {"jit": hx.jit, "checkpoint": hx.checkpoint}[kind](inner)


@pytest.mark.parametrize("seed", range(12))
def test_the_effects_of_one_kind_stay_in_order_known_or_not(seed):
    draw = Random(seed)
    parts = [statement(draw, 2) for _ in range(3)]

    def f(k, u):
        for part in parts:
            k, u = part(k, u)
        return k, u

    inputs = np.full((), 0.7), np.full((), 1.3)
    program = hx.make_program(f)(*inputs)
    split = partial_eval_program(program, [False, True])

    def in_two_parts(k, u):
        made = split.known(k)
        rest, known = iter(split.rest(*split.residual_values([k], made), u)), iter(made)
        return [next(rest) if yes else next(known) for yes in split.unknown]

    hearing = lambda op: hx.handler({op: heard})
    for first, second in ((Shout, Whisper), (Whisper, Shout)):
        runs = [
            hx.handle(hearing(first), np.zeros(20))(hx.handle(hearing(second), np.zeros(20))(g))(*inputs)
            for g in (program, in_two_parts)
        ]
        for expected, found in zip(*map(hx.tree.leaves, runs)):
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)


@pytest.mark.parametrize("around", ["nothing", "jit", "while"])
def test_a_known_effect_behind_an_unknown_one_of_its_kind_waits_for_it(around):
    def first(u):
        return hx.perform(Shout(), u)

    def f(x, u):
        y = hx.jit(first)(u) if around == "jit" else first(u)
        z = hx.perform(Shout(), x)
        if around == "while":
            z = lax.while_loop(lambda c: c < 4.0, lambda c: hx.perform(Shout(), c + 1.0), x)
        return y, z, hx.perform(Whisper(), x)

    split = partial_eval_program(hx.make_program(f)(1.0, 2.0), [False, True])
    assert split.unknown == (True, True, False)
    assert {effect.name for effect in split.known.effects} == {"whisper"}
    assert {effect.name for effect in split.rest.effects} == {"shout"}


def test_in_a_loop_a_known_effect_before_an_unknown_one_of_its_kind_waits_for_it():
    def body(c, x):
        return c, (hx.perform(Shout(), x), hx.perform(Shout(), c + x), hx.perform(Whisper(), x))

    program = hx.make_program(lambda u: lax.scan(body, u, X))(1.0)
    split = partial_eval_program(program, [True])
    assert split.unknown == (True, True, True, False)
    assert {effect.name for effect in split.known.effects} == {"whisper"}


@pytest.mark.parametrize("outside", [lambda f: f, hx.jit, hx.checkpoint], ids=["nothing", "jit", "checkpoint"])
def test_what_waits_with_an_effect_of_another_kind_is_waited_for_too(outside):
    def both(x):
        return hx.perform(Shout(), x) + hx.perform(Whisper(), x)

    def f(x, u):
        return hx.perform(Shout(), u), hx.jit(both)(x), hx.perform(Whisper(), x)

    split = partial_eval_program(hx.make_program(outside(f))(1.0, 2.0), [False, True])
    assert split.unknown == (True, True, True)
    assert not split.known.effects
