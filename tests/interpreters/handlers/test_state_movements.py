"""A user's effect crosses every higher-order operation and every transformation by one law, or is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.control.loops import Scan
from handlax.effects.core.operation import operation
from handlax.effects.operations.elementwise.arithmetic import Mul
from handlax.effects.programs.higher_order import HigherOrder
from handlax.effects.programs.program import Program


@hx.effect(vmap="per_lane")
class Step:
    by: int = 1

    def result_type(op):
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Note:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane")
class Draw:
    def result_type(op):
        return hx.ShapeDtypeStruct((), "float32").type


@hx.effect(vmap="once")
class Shared:
    def result_type(op):
        return None


@hx.effect
class Strict:
    def result_type(op, x):
        return x


counter = hx.handler({Step: lambda n, op: (n + op.by, None)})
log = hx.handler({Note: lambda entries, op, x: ((*entries, x), None)}, moves=hx.append)
linear = hx.handler({Draw: lambda s, op: (s + 1.0, s)})


def step(by=1):
    hx.perform(Step(by))


def note(x):
    hx.perform(Note(), hnp.asarray(x))


def draw():
    return hx.perform(Draw())


def steps(f):
    """How often ``f`` steps, as a number."""
    return lambda *args: int(hx.handle(counter, 0)(f)(*args)[0])


def walk(x):
    def body(c, y):
        step()
        return c + y, c

    return lax.scan(body, 0.0, x)[0]


XS = np.arange(4.0, dtype="float32")


# ten probes


def test_multiplications_are_counted_through_scan_cond_while_and_jit():
    times = hx.handler({Mul: lambda n, op, x, y: (n + 1, hx.perform(op, x, y))})

    def count(f, x):
        return int(hx.handle(times, 0)(f)(hnp.float32(x))[0])

    def doubling(x):
        return lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x)

    twice = hx.jit(lambda x: x * 3.0)
    assert count(lambda x: lax.scan(lambda c, _: (c * 2.0, None), x, None, 3)[0], 1.0) == 3
    assert count(lambda x: lax.cond(x > 0, lambda: x * 2.0, lambda: x), 1.0) == 1
    assert count(doubling, 1.0) == 4
    assert count(lambda x: twice(x) + twice(x), 1.0) == 2


@pytest.mark.parametrize(
    ("name", "f", "entries"),
    [
        ("cond", lambda x: lax.cond(x > 0, lambda: (note(x), x)[1], lambda: x), 1),
        ("jit", hx.jit(lambda x: (note(x), x)[1]), 1),
        ("scan", lambda x: lax.scan(lambda c, _: (note(c), (c + 1, None))[1], x, None, 3)[0], 1),
        ("grad", lambda x: hx.grad(lambda y: (note(y), y * y)[1])(x), 1),
        ("nest", lambda x: hx.jit(lambda y: lax.cond(y > 0, lambda: (note(y), y)[1], lambda: y))(x), 1),
    ],
)
def test_a_log_keeps_what_is_written_inside(name, f, entries):
    written, _ = hx.handle(log, ())(f)(2.0)
    assert len(written) == entries


def test_a_log_inside_a_while_is_refused_with_the_remedy():
    with pytest.raises(hx.errors.CannotCross, match="length"):
        hx.handle(log, ())(lambda x: lax.while_loop(lambda c: c < 3.0, lambda c: (note(c), c + 1.0)[1], x))(0.0)


def test_the_entries_of_an_untaken_branch_are_marked_so():
    f = lambda x: lax.cond(x > 0, lambda: (note(x), x)[1], lambda: (note(-x), note(x), x)[2])
    entries, _ = hx.handle(log, ())(f)(2.0)
    assert [bool(entry.taken) for entry in entries] == [False, False, True]
    assert float(entries[2].value) == 2.0
    entries, _ = hx.handle(log, ())(hx.vmap(f))(np.float32([1.0, -1.0]))
    assert [entry.taken.tolist() for entry in entries] == [[False, True], [False, True], [True, False]]


def test_draws_in_a_scan_and_in_lanes_are_all_distinct():
    s, ys = hx.handle(linear, 0.0)(lambda: lax.scan(lambda c, _: (c, draw()), 0, None, 4)[1])()
    assert ys.tolist() == [0, 1, 2, 3] and float(s) == 4
    s, ys = hx.handle(linear, 0.0)(hx.vmap(lambda x: (draw(), draw())))(XS)
    assert sorted([*ys[0].tolist(), *ys[1].tolist()]) == [0, 1, 2, 3, 4, 5, 6, 7]
    s, ys = hx.handle(linear, 0.0)(hx.vmap(lambda x: lax.scan(lambda c, _: (c, draw()), 0, None, 2)[1]))(XS)
    assert sorted(ys.reshape(-1).tolist()) == list(range(8))


def test_a_key_is_split_among_lanes_without_a_loop():
    f = hx.handle(keyed, hx.random.key(0))(hx.vmap(lambda x: draw() + draw()))
    program = hx.make_program(f)(XS)
    assert Scan not in program.operations
    assert len(set(f(XS)[1].tolist())) == 4


keyed = hx.handler(
    {Draw: lambda key, op: (hx.random.split(key)[0], hx.random.uniform(hx.random.split(key)[1]))},
    moves=hx.split(hx.random.split),
)


def test_state_inside_a_gradient_and_lanes_has_its_documented_value():
    square = lambda x: (step(), x * walk(XS) * x)[1]
    assert steps(square)(3.0) == 5
    assert steps(hx.grad(square))(3.0) == 5  # the primal pass, once
    assert steps(hx.vmap(square))(XS) == 20
    inner = hx.vmap(lambda x: hx.handle(counter, 0)(square)(x)[0])(XS)
    assert inner.tolist() == [5, 5, 5, 5]  # one state for each lane
    value, slope = hx.value_and_grad(lambda x: hx.handle(counter, 0)(square)(x)[1])(3.0)
    assert float(value) == 54.0 and float(slope) == 36.0


def test_traced_programs_with_effects_survive_pickle_and_text():
    branch = lambda x: lax.cond(x[0] > 0, lambda: (step(), x)[1], lambda: x)
    for f in (walk, hx.jit(walk), branch):
        program = hx.make_program(f)(XS)
        assert program.effects == {Step()}
        assert pickle.loads(pickle.dumps(program)) == program
        assert Program.parse(str(program), program.constants) == program


def test_both_calls_of_a_jitted_function_step():
    f = hx.jit(walk)
    assert steps(lambda x: f(x) + f(x))(XS) == 8


def test_only_lanes_that_take_the_branch_step():
    f = lambda x: lax.cond(x > 1.5, lambda: (step(), x)[1], lambda: x)
    assert steps(hx.vmap(f))(XS) == 2


# the pitfalls, each silent at first


def test_a_chain_of_many_carries_reaches_its_fix_point():
    def f(x):
        def body(c, _):
            return (x, *c[:-1]), None

        return lax.scan(body, (0.0,) * 12, None, 30)[0][-1]

    assert float(hx.jvp(f, (2.0,), (3.0,))[1]) == 3.0
    assert float(hx.grad(f)(2.0)) == 1.0
    assert hx.vmap(f)(XS).tolist() == XS.tolist()


@pytest.mark.parametrize("effect", [Shared, Strict])
def test_an_effect_that_does_not_say_per_lane_is_refused_where_lanes_part(effect):
    operands = (np.float32(1.0),) if effect is Strict else ()
    f = lambda x: lax.cond(x > 1.5, lambda: (hx.perform(effect(), *operands), x)[1], lambda: x)
    with pytest.raises(hx.errors.CannotCross, match=r"diverge(.|\n)*hint"):
        hx.vmap(f)(XS)


def test_a_state_that_one_branch_changes_in_structure_is_refused():
    grow = hx.handler({Step: lambda s, op: ((*s, 1.0), None)})
    f = lambda x: lax.cond(x > 0, lambda: (step(), x)[1], lambda: x)
    with pytest.raises(hx.errors.StateTypeError, match="structure"):
        hx.handle(grow, ())(f)(1.0)


def test_an_answer_keeps_the_type_that_was_recorded():
    f = hx.jit(lambda x: x + draw())
    wide = hx.handler({Draw: lambda op: np.array(1.0, "float64")})
    with pytest.raises(hx.errors.DTypeMismatch, match="answer"):
        hx.handle(wide)(f)(1.0)


def test_a_state_may_become_strong_and_nothing_else():
    strong = hx.handler({Step: lambda s, op: (s + np.ones((), "float32"), None)})
    assert float(hx.handle(strong, 0)(walk)(XS)[0]) == 4.0
    shaped = hx.handler({Step: lambda s, op: (hnp.ones(2) + s, None)})
    with pytest.raises(hx.errors.StateTypeError, match="type"):
        hx.handle(shaped, 0.0)(walk)(XS)
    halves = hx.handler({Step: lambda s, op: (s + 0.5, None)})
    with pytest.raises(hx.errors.StateTypeError, match=r"f32\[\]~ and i32\[\](.|\n)*start from a value of type f32"):
        hx.handle(halves, hnp.asarray(0, "int32"))(walk)(XS)


def test_clauses_may_run_often_while_tracing_and_change_nothing():
    seen = []
    noisy = hx.handler({Step: lambda n, op: (seen.append(1), (n + 1, None))[1]})
    n, _ = hx.handle(noisy, 0)(walk)(XS)
    assert int(n) == 4
    assert len(seen) >= 1


def test_a_failed_crossing_leaves_the_state_alone():
    grow = hx.handler({Step: lambda s, op: ((*s, 1.0), None)})

    def f(x):
        with pytest.raises(hx.errors.StateTypeError):
            lax.cond(x > 0, lambda: (step(), x)[1], lambda: x)
        return x

    assert hx.handle(grow, ())(f)(1.0)[0] == ()


def test_residuals_that_a_loop_does_not_make_are_not_stacked():
    total = lambda s: lax.scan(lambda c, x: (c + (hnp.sin(s) * x).sum(), None), 0.0, XS)[0]
    program = hx.make_program(hx.grad(total))(np.ones(5, "float32"))
    scans = [eqn for eqn in program.eqns if isinstance(eqn.op, Scan)]
    stacked = [out.aval.shape for eqn in scans for out in eqn.outvars[eqn.op.carry :]]
    assert (4, 5) not in stacked


def test_a_clause_outside_the_gradient_also_meets_the_backward_pass():
    times = hx.handler({Mul: lambda n, op, x, y: (n + 1, hx.perform(op, x, y))})
    forward = hx.grad(lambda x: hx.handle(times, 0)(lambda y: y * y)(x)[1])
    assert float(forward(3.0)) == 6.0
    assert int(hx.handle(times, 0)(hx.grad(lambda y: y * y))(3.0)[0]) > 1


# a test that performs, states of many kinds, nesting


def test_a_loop_whose_test_steps_steps_once_more_than_it_runs():
    def f(x):
        return lax.while_loop(lambda c: (step(), c < 10.0)[1], lambda c: (step(10), c * 2.0)[1], x)

    assert steps(f)(3.0) == 3 + 20
    assert steps(hx.jit(f))(3.0) == 23


def test_any_tree_of_arrays_is_a_state():
    both = hx.handler(
        {
            Step: lambda s, op: ({**s, "n": s["n"] + op.by}, None),
            Note: lambda s, op, x: ({**s, "last": x, "sum": s["sum"] + x}, None),
        }
    )

    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: (step(), note(c), c * 2.0)[2], x)

    state, y = hx.handle(both, {"n": 0, "last": 0.0, "sum": 0.0})(hx.jit(f))(1.0)
    assert (int(state["n"]), float(state["last"]), float(state["sum"]), float(y)) == (3, 4.0, 7.0, 8.0)


def test_handlers_nest_in_both_orders():
    f = lambda x: (step(), note(x), x)[2]
    n, (entries, _) = hx.handle(counter, 0)(hx.handle(log, ())(f))(1.0)
    entries2, (m, _) = hx.handle(log, ())(hx.handle(counter, 0)(f))(1.0)
    assert int(n) == int(m) == 1
    assert [float(e) for e in entries] == [float(e) for e in entries2] == [1.0]


def test_a_clause_that_forwards_reaches_the_outer_handler_from_inside_a_loop():
    doubling = hx.handler({Step: lambda op: hx.perform(Step(2 * op.by))})
    assert steps(hx.handle(doubling)(walk))(XS) == 8


def test_a_branch_chosen_by_a_known_value_steps_as_it_says():
    f = lambda i: lax.switch(i, [lambda: step(1), lambda: step(10), lambda: step(100)])
    assert [steps(f)(i) for i in (-1, 0, 1, 2, 7)] == [1, 1, 10, 100, 100]


def test_an_operation_added_later_is_crossed_without_a_word():
    @operation
    class Twice(HigherOrder):
        bodies: tuple[Program, ...]
        shared: int = 0
        carry: int = 1
        backwards: bool = False
        runs = "loop"
        length = 2
        name = "test_twice"

    def twice(f, x):
        body = hx.make_program(f)(x)
        return hx.perform(Twice((body,)), hnp.asarray(x))[0]

    f = lambda x: twice(lambda y: (step(), hnp.sin(y) * 2.0)[1], x)
    g = lambda x: twice(lambda y: hnp.sin(y) * 2.0, x)
    plain = lambda x: hnp.sin(hnp.sin(x) * 2.0) * 2.0
    assert steps(f)(1.0) == 2
    assert float(g(1.0)) == pytest.approx(float(plain(1.0)))
    assert float(hx.grad(g)(1.0)) == pytest.approx(float(hx.grad(plain)(1.0)), rel=1e-5)
    assert hx.vmap(g)(XS) == pytest.approx(hx.vmap(plain)(XS))
    assert float(hx.grad(hx.grad(g))(1.0)) == pytest.approx(float(hx.grad(hx.grad(plain))(1.0)), rel=1e-5)


def test_the_adjoint_of_a_loop_added_later_goes_backwards():
    @operation
    class Thrice(HigherOrder):
        bodies: tuple[Program, ...]
        shared: int
        carry: int
        backwards: bool = False
        runs = "loop"
        length = 3
        name = "test_thrice"

    def thrice(w, x):
        body = hx.make_program(lambda w, x: hnp.sin(w * x))(w, x)
        return hx.perform(Thrice((body,), 1, 1), w, x)[0]

    plain = lambda w, x: hnp.sin(w * hnp.sin(w * hnp.sin(w * x)))
    w, x = hnp.float32(1.7), hnp.float32(0.6)
    assert float(hx.grad(thrice)(w, x)) == pytest.approx(float(hx.grad(plain)(w, x)), rel=1e-5)


def test_a_loop_that_could_not_go_backwards_is_refused():
    with pytest.raises(hx.errors.RegistrationError, match="shared, carry, backwards"):
        @operation
        class Forth(HigherOrder):
            bodies: tuple[Program, ...]
            shared: int
            carry: int
            length: int
            runs = "loop"
            name = "test_forth"


# effects under differentiation


def test_an_operand_with_a_tangent_is_refused_and_the_message_shows_the_way():
    with pytest.raises(hx.errors.NotDifferentiable, match="handle it inside"):
        hx.grad(lambda x: hx.perform(Strict(), x))(1.0)
    with pytest.raises(hx.errors.NotDifferentiable, match="handle it inside"):
        hx.grad(lambda x: lax.scan(lambda c, _: (hx.perform(Strict(), c), None), x, None, 2)[0])(1.0)


def test_the_state_can_be_differentiated_as_a_result():
    summing = hx.handler({Note: lambda s, op, x: (s + x * x, None)})

    def total(x):
        noted = lambda x: lax.scan(lambda c, _: (note(c), (c * 2.0, None))[1], x, None, 3)[0]
        return hx.handle(summing, 0.0)(noted)(x)[0]

    assert float(hx.grad(total)(1.0)) == 2.0 * (1 + 4 + 16)


# rows


def test_the_row_of_a_program_is_what_it_leaves_unhandled():
    f = lambda x: (step(), note(x), x)[2]
    assert hx.effects_of(f)(1.0) == {Step(), Note()}
    assert hx.effects_of(hx.handle(log, ())(f))(1.0) == {Step()}
    assert hx.effects_of(lambda x: lax.cond(x > 0, lambda: f(x), lambda: x))(1.0) == {Step(), Note()}
    assert "! {" in str(hx.make_program(f)(1.0))


def test_what_nobody_handles_never_reaches_the_device():
    for f in (hx.jit(walk), walk):
        with pytest.raises(hx.errors.UnhandledEffect, match="Step"):
            f(XS)


def test_a_discharged_state_is_the_program_of_a_state_passed_by_hand():
    def by_hand(x):
        def body(c, y):
            total, n = c
            n = n + 1
            return (total + y, n), total

        return lax.scan(body, (0.0, 0), x)[0]

    discharged = lambda x: hx.handle(counter, 0)(walk)(x)[::-1]
    one, two = (hx.jit(f).lower(XS).as_text() for f in (discharged, by_hand))
    assert one.replace("jit_discharged", "").split("{", 1)[1] == two.split("{", 1)[1]


# installing


def test_a_with_block_handles_eagerly_and_is_refused_in_a_trace():
    with hx.handle(counter, 0) as run:
        step()
        step(4)
        assert run.current == 5
    with pytest.raises(hx.errors.CannotCross, match="with block"):
        hx.jit(lambda x: hx.handle(counter, 0).__enter__())(1.0)


def test_handlers_show_the_stack_as_a_value():
    _, shown = hx.handle(counter, 0)(lambda: hx.handlers())()
    assert shown[0] == "handler(Step)" and str(shown) == "0  handler(Step)"


def test_a_clause_that_takes_a_state_too_many_or_too_few_is_named():
    with pytest.raises(hx.errors.BadCall, match=r"clause takes \(n, op\)(.|\n)*under hx.handle\(h, state\)\(f\) it"):
        hx.handle(counter)(step)()
    with pytest.raises(hx.errors.BadCall, match="clause takes"):
        hx.handle(hx.handler({Step: lambda op: None}), 0)(step)()
    weights = hx.handler({Step: lambda: 1}, moves=hx.tally(0, lambda a, b: a + b, max, lambda n, times: n * times))
    with pytest.raises(hx.errors.BadCall, match="clause takes"):
        hx.handle(weights, 0)(lambda: lax.fori_loop(0, 2, lambda i, c: (step(), c)[1], 0))()


FACTOR = 1


def test_a_clause_that_reads_what_has_changed_is_not_remembered():
    global FACTOR
    scaled = hx.handler({Step: lambda n, op: (n + FACTOR, None)})

    def f():
        step()
        lax.fori_loop(0, 2, lambda i, c: (step(), c)[1], 0)

    counts = []
    for FACTOR in (1, 5):  # noqa: B007  the clause reads it
        counts.append(int(hx.handle(scaled, 0)(f)()[0]))
    FACTOR = 1
    assert counts == [3, 15]


def test_effects_of_one_kind_keep_their_order_when_a_program_is_split():
    say = hx.jit(lambda x: (note(x), x)[1])
    program = hx.make_program(lambda x, y: (say(x), note(y), y)[2])(1.0, 2.0)
    halves = hx.partial_eval_program(program, [True, False])
    assert not halves.known.effects and len(halves.rest.effects) == 1


def test_a_gradient_of_a_jitted_function_does_not_pass_for_it():
    assert not hasattr(hx.grad(hx.jit(lambda x: x * x)), "lower")


def test_a_movement_prints_as_it_is_written():
    assert repr(hx.carry) == "carry"
    assert repr(hx.append) == "append"


def test_what_a_rule_performs_is_answered_inside_a_compiled_function_too():
    @hx.custom_jvp
    def stepping(x):
        return x * x

    @stepping.defjvp
    def _(primals, tangents):
        step(10)
        return primals[0] ** 2, 2 * primals[0] * tangents[0]

    for compiled in (stepping, hx.jit(stepping), hx.jit(hx.jit(stepping))):
        value, slope = hx.value_and_grad(lambda x, f=compiled: hx.handle(counter, 0)(f)(x)[1])(3.0)
        assert (float(value), float(slope)) == (9.0, 6.0)


GRID = np.arange(6.0, dtype="float32").reshape(2, 3)


def noted(x):
    note(x)
    return hx.library.sow(x, "x")


@pytest.mark.parametrize("compiled", [lambda f: f, hx.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "nest",
    [
        lambda f: hx.vmap(hx.vmap(f)),
        lambda f: hx.vmap(lambda row: hx.vmap(f)(row)),
        lambda f: hx.vmap(hx.jit(hx.vmap(f))),
        lambda f: lambda rows: lax.map(hx.vmap(f), rows),
        lambda f: hx.vmap(hx.vmap(lambda x: lax.cond(x >= 0, f, f, x))),
    ],
)
def test_the_axes_of_a_log_stand_as_those_of_the_result_and_of_what_is_sown(nest, compiled):
    reaped = compiled(lambda xs: hx.library.call_and_reap(nest(noted))(xs))
    (entry, *others), (y, sown) = hx.handle(log, ())(reaped)(GRID)
    entry, value = (each.value if isinstance(each, hx.When) else each for each in (entry, sown["x"]))
    assert np.asarray(y).tolist() == GRID.tolist()
    assert len(others) <= 1 and np.asarray(value).tolist() == GRID.tolist()
    assert all(np.asarray(each.value).shape == (2, 3) for each in others) and np.asarray(entry).shape == (2, 3)
    assert others or np.asarray(entry).tolist() == GRID.tolist()


def test_lanes_of_lanes_are_answered_in_the_order_of_the_result():
    _, ys = hx.handle(linear, 0.0)(hx.vmap(hx.vmap(lambda x: draw())))(GRID)
    assert ys.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_a_log_is_no_matter_to_a_loop_of_unknown_length_that_appends_nothing():
    @hx.custom_jvp
    def doubled(x):
        return 2 * x

    doubled.defjvp(lambda xs, ts: (2 * xs[0], 2 * ts[0]))
    f = lambda x: lax.while_loop(lambda c: c < 3.0, lambda c: doubled(c) + 1.0, x)
    assert hx.handle(log, ())(f)(1.0) == ((), 3.0)


@pytest.mark.parametrize("derivative", [hx.grad, hx.jacfwd, lambda f: hx.jit(hx.grad(f))])
def test_what_lanes_share_has_the_sum_of_their_cotangents(derivative):
    def f(x):
        def lane(z):
            return lax.cond(z > 0.5, lambda x, z: x * z, lambda x, z: draw() + x * x, x, z)

        return hx.vmap(lane)(hnp.array([0.25, 0.75])).sum()

    _, slope = hx.handle(linear, 0.0)(derivative(f))(2.0)
    assert slope.shape == () and float(slope) == 2 * 2.0 + 0.75


SHIFT = 1.0


@pytest.mark.parametrize("moves", ["split", "merge"])
def test_a_changed_global_of_the_function_that_moves_a_state_is_seen(moves):
    global SHIFT
    if moves == "split":
        movement, clause = hx.split(lambda k, n: k + SHIFT * hnp.arange(n)), lambda k, op: (k * 2, k)
    else:
        movement, clause = hx.merge(lambda a, b: a + SHIFT * b, 0.0), lambda k, op: (k + 1.0, hnp.float32(0.0))
    h = hx.handler({Draw: clause}, moves=movement)
    f = hx.vmap(lambda x: lax.fori_loop(0, 1, lambda i, c: hx.perform(Draw()), x))
    try:
        first, _ = hx.handle(h, hnp.float32(0.0))(f)(hnp.ones(3))
        SHIFT = 2.0
        second, _ = hx.handle(h, hnp.float32(0.0))(f)(hnp.ones(3))
    finally:
        SHIFT = 1.0
    assert float(second) == 2 * float(first) != 0


@pytest.mark.parametrize("compiled", [lambda f: f, hx.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "handled",
    [
        lambda f: lambda x: f(x, lambda: None),
        lambda f: lambda x: hx.handle(counter, 0)(lambda x: f(x, step))(x)[1],
        lambda f: hx.handle(hx.handler({Draw: lambda op: hx.perform(op)}))(lambda x: f(x, lambda: None)),
    ],
    ids=["nobody", "of another effect", "that forwards"],
)
def test_lanes_execute_a_loop_with_its_first_test_alone_whoever_handles_a_part_of_it(compiled, handled):
    def count_down(x, also):
        return lax.while_loop(lambda c: (also(), c > 0.25 * draw())[1], lambda c: c - 1.0, x)

    expected, drawn = [], 0
    for x in (2.0, 0.5, 3.0):
        while x > 0.25 * drawn:
            x, drawn = x - 1.0, drawn + 1
        expected, drawn = [*expected, x], drawn + 1
    last, ys = hx.handle(linear, 0.0)(compiled(hx.vmap(handled(count_down))))(hnp.array([2.0, 0.5, 3.0]))
    assert ys.tolist() == expected and float(last) == drawn


@pytest.mark.parametrize("shape", [lambda n: (n + 3,), lambda n: (n - 1,), lambda n: ()])
def test_a_split_that_gives_another_number_of_keys_is_refused(shape):
    splitting = hx.handler({Draw: lambda key, op: (key, key)}, moves=hx.split(lambda key, n: hnp.zeros(shape(n))))
    with pytest.raises(hx.errors.BadArgument, match="must give n keys"):
        hx.handle(splitting, 0.0)(lambda xs: hx.vmap(lambda x: x + draw())(xs))(hnp.ones(3))
