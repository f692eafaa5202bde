"""Reverse mode through loops of unknown length: values, what is computed again, and what is kept."""

from __future__ import annotations

import contextlib
import functools
from math import comb

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.control.loops import While
from handlax.effects.core.arrays import as_array
from handlax.effects.core.columns import EVALUATE
from handlax.effects.operations.elementwise.transcendental import Cos, Sin
from handlax.effects.programs.higher_order import HigherOrder
from handlax.testing.generator.unrolled import evaluated

X = np.array([0.3, 0.5])
W = np.array([1.2, 0.7])
ROOMS = [{"max_steps": 7}, {"max_steps": 20}, {"checkpoints": 1}, {"checkpoints": 2}, {"checkpoints": 3}]


def looped(n, **room):
    """``n`` runs over a carry of a float array, an integer and a boolean, with a shared operand."""

    def f(x, w):
        def step(state):
            i, even, y = state
            return i + 1, ~even, hnp.where(even, hnp.sin(y * w), y) + 0.1 * y

        return lax.while_loop(lambda state: state[0] < n, step, (0, True, x), **room)[2]

    return f


def unrolled(n):
    def f(x, w):
        for i in range(n):
            x = (hnp.sin(x * w) if i % 2 == 0 else x) + 0.1 * x
        return x

    return f


def summed(f):
    return lambda *xs: hnp.sum(f(*xs) ** 2)


@pytest.mark.each_choice
@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("compiled", [False, True])
def test_the_gradient_is_that_of_the_unrolled_loop(room, compiled):
    with contextlib.nullcontext() if compiled else evaluated():
        got = hx.grad(summed(looped(7, **room)), (0, 1))(X, W)
        want = hx.grad(summed(unrolled(7)), (0, 1))(X, W)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("room", ROOMS)
def test_the_gradient_of_a_smooth_loop_has_the_bits_of_the_unrolled_one(room):
    def loop(x, w):
        step = lambda state: (state[0] + 1, hnp.sin(state[1] * w))
        return lax.while_loop(lambda state: state[0] < 7, step, (0, x), **room)[1]

    def plain(x, w):
        for _ in range(7):
            x = hnp.sin(x * w)
        return x

    with evaluated():
        got, want = hx.grad(summed(loop), (0, 1))(X, W), hx.grad(summed(plain), (0, 1))(X, W)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


def test_the_gradient_is_that_of_a_scan():
    def f(x, w):
        return lax.scan(lambda y, _: (hnp.sin(y * w) + 0.1 * y, None), x, None, 6)[0]

    def g(x, w):
        step = lambda state: (state[0] + 1, hnp.sin(state[1] * w) + 0.1 * state[1])
        return lax.while_loop(lambda state: state[0] < 6, step, (0, x), checkpoints=2)[1]

    for a, b in zip(hx.jacrev(g, (0, 1))(X, W), hx.jacrev(f, (0, 1))(X, W)):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_no_run_at_all_passes_the_cotangent_on():
    dx, dw = hx.grad(summed(looped(0, checkpoints=3)), (0, 1))(X, W)
    np.testing.assert_array_equal(dx, 2 * X)
    np.testing.assert_array_equal(dw, np.zeros(2))


def test_the_number_of_runs_may_depend_on_values():
    def f(x, **room):
        return lax.while_loop(lambda y: y < 100.0, lambda y: y * y, x, **room)

    for start, power in ((2.0, 8), (5.0, 4), (200.0, 1)):
        for room in ({"max_steps": 10}, {"checkpoints": 2}):
            got = hx.grad(lambda x, room=room: f(x, **room))(start)
            assert float(got) == pytest.approx(power * start ** (power - 1), rel=1e-5)


@pytest.mark.parametrize("room", [{"max_steps": 5}, {"checkpoints": 2}])
def test_it_crosses_vmap_on_either_side_with_lanes_of_different_lengths(room):
    def f(x):
        return lax.while_loop(lambda y: y < 100.0, lambda y: y * hnp.sqrt(y), x, **room)

    xs = np.array([2.0, 5.0, 50.0, 200.0])
    alone = [hx.grad(f)(np.array(x)) for x in xs]
    np.testing.assert_allclose(hx.vmap(hx.grad(f))(xs), alone, rtol=1e-12)
    np.testing.assert_allclose(hx.grad(lambda xs: hnp.sum(hx.vmap(f)(xs)))(xs), alone, rtol=1e-12)
    np.testing.assert_allclose(hx.jit(hx.vmap(hx.grad(f)))(xs), alone, rtol=1e-12)


@pytest.mark.parametrize("room", [{"max_steps": 6}, {"checkpoints": 2}])
def test_derivatives_of_its_gradient_are_those_of_the_unrolled_loop(room):
    def twice(f):
        return hx.grad(lambda x: hnp.sum(hx.grad(summed(f))(x, W) ** 2))(X)

    f, g = looped(5, **room), unrolled(5)
    np.testing.assert_allclose(twice(f), twice(g), rtol=1e-12)
    for pushed in (hx.hessian, lambda f: hx.jacrev(hx.jacfwd(f)), lambda f: hx.jacfwd(hx.jacfwd(f))):
        got = pushed(lambda x: summed(f)(x, W))(X)
        np.testing.assert_allclose(got, pushed(lambda x: summed(g)(x, W))(X), rtol=1e-12)


def test_a_third_derivative_is_right():
    f = lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * s[1]), (0, x), checkpoints=2)[1]
    with evaluated():
        assert float(hx.grad(hx.grad(hx.grad(f)))(1.1)) == pytest.approx(8 * 7 * 6 * 1.1**5, rel=1e-4)


def test_nested_loops_have_a_gradient():
    def f(x):
        def outer(state):
            i, y = state
            inner = lambda s: (s[0] + 1, s[1] * 0.5 + hnp.sin(y))
            return i + 1, lax.while_loop(lambda s: s[0] < i, inner, (0, y), checkpoints=2)[1]

        return lax.while_loop(lambda s: s[0] < 4, outer, (0, x), checkpoints=2)[1]

    def g(x):
        for i in range(4):
            y = x
            for _ in range(i):
                x = x * 0.5 + hnp.sin(y)
        return x

    np.testing.assert_allclose(hx.grad(summed(f))(X), hx.grad(summed(g))(X), rtol=1e-13)


def test_it_crosses_scan_and_cond():
    def f(x):
        def step(y, go):
            return lax.cond(go, lambda y: looped(3, checkpoints=2)(y, W), lambda y: y * 2.0, y), None

        return lax.scan(step, x, np.array([True, False, True]))[0]

    g = lambda x: unrolled(3)(unrolled(3)(x, W) * 2.0, W)
    np.testing.assert_allclose(hx.jit(hx.grad(summed(f)))(X), hx.grad(summed(g))(X), rtol=1e-13)


def test_a_key_may_be_carried():
    def f(x):
        def step(state):
            i, key, y = state
            key, used = hx.random.split(key)
            return i + 1, key, y * (1.0 + hx.random.uniform(used))

        return lax.while_loop(lambda s: s[0] < 5, step, (0, hx.random.key(1), x), checkpoints=2)[2]

    assert float(hx.grad(f)(2.0)) == pytest.approx(float(f(1.0)), rel=1e-5)


def test_integers_known_only_while_running_cost_no_derivative():
    f = lambda x, n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2.0), (0, x), checkpoints=2)[1]
    assert float(hx.jit(hx.grad(f))(1.0, 5)) == 32.0


def counted(f, *xs):
    """The result of ``f``, and how often sin and cos were evaluated."""
    counts = {Sin: 0, Cos: 0}

    def counting(kind):
        rule = EVALUATE.find(kind)

        def evaluate(op, x):
            counts[kind] += 1
            return rule(op, x)

        return evaluate

    with evaluated(), hx.rules(evaluate={kind: counting(kind) for kind in counts}):
        f(*xs)
    return counts[Sin], counts[Cos]


def waves(n, **room):
    """One sine in each run; its derivative needs the cosine of the carry in front of the run."""
    step = lambda state: (state[0] + 1, hnp.sin(state[1]))
    return lambda x: lax.while_loop(lambda state: state[0] < n, step, (0, x), **room)[1]


@pytest.mark.parametrize(("n", "slots"), [(1, 1), (6, 1), (10, 2), (11, 2), (10, 3), (20, 3), (21, 3), (40, 4), (9, 9)])
def test_the_evaluations_are_those_of_the_binomial_schedule(n, slots):
    times = next(t for t in range(n) if comb(slots + t, t) >= n)
    again = times * n - comb(slots + times, times - 1) if times else 0
    sines, cosines = counted(hx.grad(waves(n, checkpoints=slots)), 0.5)
    assert (sines - n, cosines) == (again, n)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_a_bounded_loop_computes_each_carry_once_more(n):
    sines, cosines = counted(hx.grad(waves(n, max_steps=9)), 0.5)
    assert (sines, cosines) == (n + n - 1, n)


def operations(program):
    for op in program.ops:
        yield op
        if isinstance(op, HigherOrder):
            for body in op.bodies:
                yield from operations(body)


@pytest.mark.parametrize(("room", "rows"), [({"checkpoints": 3}, 3), ({"max_steps": 20}, 20)])
def test_exactly_so_many_carries_are_kept(room, rows):
    def f(x):
        return hnp.sum(lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, hnp.sin(s[1])), (0, x), **room)[1])

    program = hx.make_program(hx.grad(f))(np.zeros(5, np.float32))
    kept = {
        t.shape
        for op in operations(program)
        if isinstance(op, While)
        for t in op.bodies[1].in_types
        if t.dtype == np.float32
    }
    assert kept == {(5,), (rows, 5)}


def test_memory_grows_with_the_room_and_not_with_the_runs():
    def peak(n, slots):
        program = hx.jit(hx.grad(summed(waves(n, checkpoints=slots)))).lower(np.zeros(10_000, np.float32)).compile()
        return program.memory_analysis().temp_size_in_bytes

    assert peak(1000, 4) == peak(10, 4)
    assert peak(1000, 8) - peak(1000, 4) == pytest.approx(4 * 40_000, rel=0.1)


def test_a_bounded_loop_ends_at_its_bound():
    assert int(lax.while_loop(lambda x: True, lambda x: x + 1, 0, max_steps=5)) == 5
    assert int(lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0, max_steps=5)) == 3
    np.testing.assert_array_equal(
        hx.vmap(lambda x: lax.while_loop(lambda x: x < 3, lambda x: x + 1, x, max_steps=2))(np.arange(5)),
        [2, 3, 3, 3, 4],
    )


def test_without_room_the_message_shows_the_way():
    with pytest.raises(errors.NotDifferentiable, match=r"(?s)unknown length.*max_steps=, or checkpoints="):
        hx.grad(lambda x: lax.while_loop(lambda y: y < 9.0, lambda y: y * y, x))(2.0)
    assert float(hx.grad(lambda x: lax.while_loop(lambda y: y < 9.0, lambda y: y * y, x, max_steps=4))(2.0)) == 32.0


def test_a_room_that_makes_no_sense_is_refused():
    for room in ({"max_steps": 0}, {"checkpoints": -1}, {"max_steps": 3, "checkpoints": 3}):
        with pytest.raises(errors.BadArgument, match="while_loop"):
            lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0, **room)


@hx.effect(vmap="once", diff="stop")
class Note:
    def result_type(op):
        return None


notes = hx.handler({Note: lambda n, op: (n + 1, None)})


def noting(x):
    def step(state):
        hx.perform(Note())
        return state[0] + 1, state[1] * 2.0

    return lax.while_loop(lambda s: s[0] < 4, step, (0, x), checkpoints=2)[1]


def test_an_effect_handled_inside_is_performed_in_the_primal_pass():
    slope, count = hx.grad(lambda x: hx.handle(notes, 0)(noting)(x)[::-1], has_aux=True)(3.0)
    assert (float(slope), int(count)) == (16.0, 4)


@pytest.mark.parametrize("change", [lambda f: f, hx.checkpoint, hx.grad, lambda f: lambda x: hx.jvp(f, (x,), (x,))[1]])
def test_an_effect_handled_outside_is_performed_in_the_primal_pass_alone(change):
    plain = hx.grad(change(lambda x: lax.fori_loop(0, 4, lambda _, y: y * 2.0, x) ** 3))(3.0)
    for compiled in (lambda f: f, hx.jit):
        count, slope = compiled(hx.handle(notes, 0)(hx.grad(change(lambda x: noting(x) ** 3))))(3.0)
        assert (int(count), float(slope)) == (4, float(plain))


def test_an_effect_is_performed_where_the_gradient_needs_nothing_of_its_loop():
    def f(x):
        step = lambda state: (hx.perform(Note()), (state[0] + 1.0, state[1] * x))[1]
        n, y = lax.while_loop(lambda state: state[0] < x, step, (0.0, x))
        return n * x + lax.stop_gradient(y)

    for g in (hx.grad(f), hx.jit(hx.grad(f)), lambda x: hx.linearize(f, x)[1](1.0)):
        count, slope = hx.handle(notes, 0)(g)(2.5)
        assert (int(count), float(slope)) == (3, 3.0)


@hx.effect(vmap="once", diff="stop")
class Ask:
    like: object

    def result_type(op):
        return op.like


def test_an_answer_that_the_linear_part_needs_again_is_refused():
    def f(x):
        step = lambda state: (state[0] + 1, state[1] * hx.perform(Ask(as_array(1.0).type)))
        return lax.while_loop(lambda state: state[0] < 4, step, (0, x), checkpoints=2)[1]

    two = hx.handler({Ask: lambda op: as_array(2.0)})
    assert float(hx.grad(hx.handle(two)(f))(3.0)) == 16.0
    with pytest.raises(errors.CannotCross, match=r"(?s)ask.*second time.*handle it inside"):
        hx.handle(two)(hx.grad(f))(3.0)


@hx.effect(vmap="per_lane", diff="stop")
class Tell:
    def result_type(op, x):
        return None


total = hx.handler({Tell: lambda s, op, x: (s + x, None)})


def square(x):
    return x * x


def telling(x):
    hx.perform(Tell(), x)
    return x * x


def with_rule(f, *effects, primal=None):
    """``f`` with the derivative of a square by a rule that has these effects and calls itself or ``primal``."""
    ruled = hx.custom_jvp(f)

    def rule(primals, tangents):
        for effect in effects:
            effect(*primals)
        return (primal or ruled)(*primals), 2.0 * primals[0] * tangents[0]

    ruled.defjvp(rule)
    return ruled


def with_backward_rule(f):
    ruled = hx.custom_vjp(f)
    ruled.defvjp(lambda x: (ruled(x), x), lambda x, ct: (2.0 * x * ct,))
    return ruled


TELLING_RULES = {
    "it calls itself": with_rule(telling),
    "it calls the function": with_rule(telling, primal=telling),
    "the rule alone performs": with_rule(square, telling),
    "backward": with_backward_rule(telling),
}
STEPS = [lambda f: f, hx.jit, hx.checkpoint, lambda f: lambda x: lax.cond(x > 0.0, f, lambda x: x, x)]


@pytest.mark.each_choice
@pytest.mark.parametrize("room", [{"max_steps": 3}, {"checkpoints": 2}])
@pytest.mark.parametrize("rule", TELLING_RULES)
def test_a_function_with_a_rule_performs_what_it_does_unrolled(rule, room):
    f = TELLING_RULES[rule]
    steps = STEPS if room == {"max_steps": 3} else STEPS[:1]
    for derivative, chosen in ((hx.grad, steps), (lambda f: hx.grad(hx.grad(f)), steps[::3])):
        expected = hx.handle(total, 0.0)(derivative(lambda x: f(f(f(x)))))(1.5)
        loops = [functools.partial(lax.while_loop, lambda c: c < 6.0, change(f), **room) for change in chosen]
        found = hx.jit(lambda x: [hx.handle(total, 0.0)(derivative(loop))(x) for loop in loops])(1.5)
        assert found == [expected] * len(loops)


def test_a_rule_on_a_carry_without_tangent_is_asked_once_for_derivatives_further_out():
    f = with_rule(square, telling)

    def looped(k, x):
        return lax.while_loop(lambda c: c[0] < 6.0, lambda c: (f(c[0]), c[0] * c[1]), (k, x), max_steps=3)[1]

    def unrolled(k, x):
        for _ in range(3):
            k, x = f(k), k * x
        return x

    first, second = (
        hx.handle(total, 0.0)(hx.grad(lambda k, g=g: hx.grad(g, 1)(k, 2.0)))(1.5) for g in (looped, unrolled)
    )
    assert first == second
