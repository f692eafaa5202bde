"""Clauses that end the program: what follows is not performed, in loops, branches and lanes."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.program_sizes import equations_in, is_linear, programs_in

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.core import record


@hx.effect(vmap="per_lane")
class Halt:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane")
class Tock:
    def result_type(op):
        return None


safely = hx.handler({Halt: hx.final(lambda op, x: (False, x))}, returns=lambda y: (True, y))


def halt_above(limit, x):
    lax.cond(x > limit, lambda: hx.perform(Halt(), x), lambda: None)


def total(xs):
    def body(c, x):
        halt_above(2.0, c)
        return c + x, c

    return lax.scan(body, 0.0, xs)[0]


def in_one_lane(f):
    return lambda x: hx.tree.map(lambda y: y[0], hx.vmap(f)(hx.numpy.stack([x])))


XS = np.arange(4.0, dtype="float32")


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_a_loop_ends_where_a_clause_ends_the_program(wrap):
    ok, y = wrap(hx.handle(safely)(total))(XS)
    assert (bool(ok), float(y)) == (False, 3.0)
    ok, y = wrap(hx.handle(safely)(total))(XS / 10)
    assert bool(ok) and float(y) == pytest.approx(0.6)


def test_a_while_loop_has_a_real_early_exit():
    def endless(x):
        return lax.while_loop(lambda c: c > 0.0, lambda c: (halt_above(100.0, c), c * 2.0)[1], x)

    ok, y = hx.handle(safely)(endless)(1.0)
    assert (bool(ok), float(y)) == (False, 128.0)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, in_one_lane])
def test_the_test_of_a_loop_is_not_performed_after_its_end(wrap):
    @hx.handle(hx.handler({Tock: lambda n, op: (n + 1, None)}), 0)
    @hx.handle(safely)
    def count(x):
        return lax.while_loop(lambda c: (hx.perform(Tock()), c < 10.0)[1], lambda c: (halt_above(2.0, c), c + 1)[1], x)

    ticks, (ok, y) = wrap(count)(0.0)
    assert (int(ticks), bool(ok), float(y)) == (4, False, 3.0)  # at 0, 1, 2 and 3


def test_every_lane_ends_by_itself_inside_and_the_first_one_ends_all_outside():
    ok, _ = hx.vmap(hx.handle(safely)(total))(np.stack([XS, XS / 10]))
    assert ok.tolist() == [False, True]

    def outside(xs):
        return hx.vmap(lambda row: (halt_above(2.0, row.sum()), row.sum())[1])(xs).sum()

    ok, y = hx.handle(safely)(outside)(np.stack([XS, XS]))
    assert (bool(ok), float(y)) == (False, 6.0)
    ok, y = hx.handle(safely)(outside)(np.stack([XS, XS]) / 10)
    assert bool(ok) and float(y) == pytest.approx(1.2)


def test_what_follows_the_end_is_not_performed():
    counting = hx.handler({Tock: lambda n, op: (n + 1, None)})

    def f(x):
        hx.perform(Tock())
        halt_above(0.0, x)
        hx.perform(Tock())
        return x

    n, (ok, _) = hx.handle(counting, 0)(hx.handle(safely)(f))(1.0)
    assert (int(n), bool(ok)) == (1, False)
    n, (ok, _) = hx.handle(counting, 0)(hx.handle(safely)(f))(-1.0)
    assert (int(n), bool(ok)) == (2, True)


def test_a_final_clause_sees_the_state_of_its_moment():
    stateful = hx.handler(
        {Tock: lambda n, op: (n + 1, None), Halt: hx.final(lambda n, op, x: (False, n))},
        returns=lambda n, y: (True, n),
    )

    def f(x):
        return lax.fori_loop(0, 10, lambda i, c: (hx.perform(Tock()), halt_above(4.0, c), c + 1.0)[2], x)

    ok, n = hx.handle(stateful, 0)(f)(0.0)
    assert (bool(ok), int(n)) == (False, 6)
    ok, n = hx.handle(stateful, 0)(f)(-100.0)
    assert (bool(ok), int(n)) == (True, 10)


def test_the_gradient_is_that_of_the_path_taken():
    f = lambda x: hx.handle(safely)(lambda x: (halt_above(2.0, x), x * x)[1])(x)[1]
    assert float(hx.grad(f)(1.0)) == 2.0


def test_an_answer_of_another_type_is_refused():
    wrong = hx.handler({Halt: hx.final(lambda op, x: (False, 1, 2))}, returns=lambda y: (True, y))
    with pytest.raises(hx.errors.TreeMismatch, match="final"):
        hx.handle(wrong)(total)(XS)


@hx.effect(vmap="per_lane", diff="stop")
class Click:
    def result_type(op):
        return None


def test_an_early_end_without_results_is_seen_through_grad():
    def only_performs(x):
        lax.cond(x > 0, lambda: hx.perform(Click()), lambda: None)
        return x * x

    ended = hx.handler({Click: hx.final(lambda op: (False, 0.0))}, returns=lambda y: (True, y))
    slope = hx.handle(ended)(hx.grad(only_performs))
    assert [bool(x) for x in (slope(3.0)[0], slope(-3.0)[0])] == [False, True]


def many_failure_points(n):
    def f(x):
        for i in range(n):
            halt_above(100.0 + i, x)
            x = x * 1.5
        return x

    return hx.handle(safely)(f)


@pytest.mark.each_choice
@pytest.mark.parametrize("x", [1.0, 20.0, 1e3])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, in_one_lane])
def test_a_row_of_failure_points_ends_at_the_first(x, wrap):
    after = x
    for i in range(8):
        if after > 100.0 + i:
            break
        after *= 1.5
    ok, y = wrap(many_failure_points(8))(x)
    assert (bool(ok), float(y)) == (after == x * 1.5**8, after)
    slope = hx.grad(lambda x: wrap(many_failure_points(8))(x)[1])(x)
    assert float(slope) == pytest.approx(after / x)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: hx.grad(hx.jit(lambda x: f(x)[1]))])
def test_a_row_of_failure_points_is_a_flat_chain_of_guards(wrap):
    assert is_linear(lambda n: equations_in(hx.make_program(wrap(many_failure_points(n)))(1.0)))


def test_a_thousand_failure_points_are_a_flat_chain_of_guards():
    program = hx.make_program(many_failure_points(1000))(1.0)
    assert sum(op.name == "cond" for op in program.ops) == 1001
    assert len(programs_in(program)) < 5000


def test_the_users_line_is_looked_for_once_at_each_failure_point_and_handler(monkeypatch):
    def looked_for(n):
        kinds = [hx.effect(type(f"Halt{i}", (), {"result_type": lambda op, x: None})) for i in range(n)]

        def f(x):
            for kind in kinds:
                lax.cond(x > 1.0, lambda: hx.perform(kind(), x), lambda: None)
            return x

        for kind in kinds:
            f = hx.handle(hx.handler({kind: hx.final(lambda op, x: x)}))(f)
        counted = []
        monkeypatch.setattr(record, "user_site", lambda depth: counted.append(depth) or site(depth + 1))
        hx.make_program(f)(1.0)
        return len(counted)

    site = record.user_site
    assert is_linear(looked_for)


def test_what_follows_an_unconditional_end_is_left_out():
    def f(x):
        hx.perform(Halt(), x)
        return lax.while_loop(lambda c: c > 0, lambda c: c, x) + 1.0

    ok, y = hx.handle(safely)(f)(2.0)
    assert (bool(ok), float(y)) == (False, 2.0)


# functions with rules of their own: their derivatives and lanes stay those of the rule


@hx.effect(vmap="per_lane", diff="stop")
class Stop:
    def result_type(op, x):
        return None


RATE = 7.0
squared = hx.handler({Stop: hx.final(lambda op, x: x * x)})


def stop_above_one(x):
    lax.cond(x > 1.0, lambda: hx.perform(Stop(), x), lambda: None)


def stopping(x):
    stop_above_one(x)
    return hnp.sin(x)


def by_jvp(x):
    f = hx.custom_jvp(stopping)
    f.defjvp(lambda xs, ts: (f(xs[0]), RATE * xs[0] * ts[0]))
    return f(x)


def by_vjp(x):
    f = hx.custom_vjp(stopping)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (RATE * x * ct,))
    return f(x)


def by_root(x):
    def residual(y):
        stop_above_one(x)
        return y - RATE * x * x / 2

    return lax.custom_root(residual, 0.0, lambda f, y: y - f(y), lambda g, b: b / g(1.0))


PLACES = {
    "alone": lambda f: f,
    "jit": hx.jit,
    "checkpoint": hx.checkpoint,
    "cond": lambda f: lambda x: lax.cond(x > -5.0, f, lambda x: x, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, 1)[1][0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "inside another rule": lambda f: lambda x: with_slope_of(f)(x),
}
SLOPES = {
    "grad": hx.grad,
    "jvp": lambda f: lambda x: hx.jvp(f, (x,), (1.0,))[1],
    "linearize": lambda f: lambda x: hx.linearize(f, x)[1](1.0),
    "jit of grad": lambda f: hx.jit(hx.grad(f)),
    "vmap of grad": lambda f: lambda x: hx.vmap(hx.grad(f))(hnp.stack([x, x]))[1],
    "grad of vmap": lambda f: lambda x: hx.grad(lambda x: hx.vmap(f)(hnp.stack([x, x]))[1])(x),
}


def with_slope_of(f):
    """``f`` with a rule that is its derivative."""
    g = hx.custom_jvp(f)
    g.defjvp(lambda xs, ts: hx.jvp(f, xs, ts))
    return g


CASES = [
    *[(by_jvp, place, slope) for place in PLACES for slope in ("jvp", "grad")[: 1 + (place != "while")]],
    *[(ruled, "alone", slope) for ruled in (by_vjp, by_root) for slope in SLOPES],
    *[(by_jvp, "alone", slope) for slope in SLOPES if slope not in ("jvp", "grad")],
]


@pytest.mark.parametrize(("ruled", "place", "slope"), CASES)
def test_a_function_that_may_end_the_program_keeps_its_derivative_rule(ruled, place, slope):
    handled = hx.handle(squared)(PLACES[place](ruled))
    derivative = SLOPES[slope](handled)
    assert float(derivative(hnp.asarray(0.5))) == pytest.approx(RATE * 0.5)
    assert float(derivative(hnp.asarray(3.0))) == pytest.approx(6.0)  # that of the clause's answer


@pytest.mark.parametrize("ruled", [by_jvp, by_vjp])
def test_second_derivatives_too_are_those_of_the_rule(ruled):
    second = hx.grad(hx.grad(hx.handle(squared)(ruled)))
    assert (float(second(0.5)), float(second(3.0))) == (RATE, 2.0)


def test_a_rule_that_may_end_the_program_performs_once_and_reads_the_state():
    both = hx.handler(
        {Tock: lambda n, op: (n + 1, None), Stop: hx.final(lambda n, op, x: n * x)}, returns=lambda n, y: y
    )

    @hx.custom_jvp
    def f(x):
        hx.perform(Tock())
        stop_above_one(x)
        return x

    @f.defjvp
    def rule(xs, ts):
        return f(*xs), RATE * ts[0]

    g = lambda x: hx.handle(both, 2.0)(lambda x: f(hnp.sin(x)) + f(3.0 * x))(x)
    for x, y, slope in ((0.2, np.sin(0.2) + 0.6, RATE * (np.cos(0.2) + 3.0)), (1.0, 4.0 * 3.0, 4.0 * 3.0)):
        for derivative in (hx.value_and_grad(g), hx.jit(hx.value_and_grad(g))):
            assert [float(z) for z in derivative(x)] == pytest.approx([y, slope])


def test_the_rule_for_lanes_stays():
    @hx.custom_batching.custom_vmap
    def f(x):
        stop_above_one(x)
        return x

    @f.def_vmap
    def rule(size, mapped, x):
        return 10.0 * x, True

    handled = hx.handle(squared)(f)
    assert hx.vmap(handled)(hnp.array([0.25, 0.5])).tolist() == [2.5, 5.0]
    assert [float(handled(0.5)), float(handled(3.0)), float(hx.grad(handled)(0.5))] == [0.5, 9.0, 1.0]


def only_in_the_rule(x):
    f = hx.custom_jvp(hnp.sin)
    f.defjvp(lambda xs, ts: (stop_above_one(xs[0]), (hnp.sin(xs[0]), ts[0]))[1])
    return f(x)


def in_the_backward_rule(x):
    f = hx.custom_vjp(stopping)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (stop_above_one(x), (ct,))[1])
    return f(x)


def in_the_rule_for_lanes(x):
    f = hx.custom_batching.custom_vmap(stopping)
    f.def_vmap(lambda size, mapped, x: (hx.vmap(stopping)(x), True))
    return f(x)


@pytest.mark.parametrize(
    ("f", "rule"), [(only_in_the_rule, "custom_jvp"), (in_the_backward_rule, "backward rule"),
                    (in_the_rule_for_lanes, "custom_vmap")]
)
def test_an_end_that_a_rule_cannot_account_for_is_refused(f, rule):
    with pytest.raises(hx.errors.CannotCross, match=f"{rule}.*stop.* clause") as error:
        hx.vmap(hx.grad(hx.handle(squared)(f)))(hnp.array([0.5, 3.0]))
    assert error.value.hint is not None


def test_an_answer_of_another_structure_in_a_rule_is_refused():
    @hx.effect(vmap="per_lane", diff="stop")
    class Fields:
        count: int

        def result_type(op):
            return None

    @hx.custom_jvp
    def f(x):
        hx.perform(Fields(1))
        return x

    f.defjvp(lambda xs, ts: (hx.perform(Fields(2)), (xs[0], ts[0]))[1])
    handled = hx.handle(hx.handler({Fields: hx.final(lambda op: (0.0,) * op.count)}, returns=lambda y: (y,)))(f)
    with pytest.raises(hx.errors.TreeMismatch, match="final"):
        hx.grad(lambda x: handled(x)[0])(1.0)
