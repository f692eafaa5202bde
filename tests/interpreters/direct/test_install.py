"""Handlers in direct style: values, Python control flow on answers, state, laws against the recorded style."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.source_locations import Site

F32 = hx.ArrayType((), "float32")


@hx.effect(vmap="per_lane")
class Ask:
    def result_type(op):
        return F32


@hx.effect(vmap="per_lane", diff="stop")
class Say:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane")
class Coin:
    def result_type(op):
        return hx.ArrayType((), "bool")


@hx.effect(vmap="per_lane")
class Stop:
    def result_type(op, x):
        return None


@hx.effect
class Fetch:
    what: str

    def result_type(op):
        return object


STYLES = [pytest.param(False, id="resumed"), pytest.param(True, id="replayed")]
styles = pytest.mark.parametrize("replay", STYLES)

count = hx.handler({Say: lambda n, op, x: (n + 1, None)})
weighted = hx.handler({Coin: hx.ctl(lambda resume, op: 0.3 * resume(True) + 0.7 * resume(False))})
both = hx.handler({Coin: hx.ctl(lambda resume, op: resume(True) + resume(False))}, returns=lambda y: [y])
doubled = hx.jit(lambda x: hnp.sin(x) * 2)


def walk(x):
    """A loop, an if and a call that depend on answers."""
    n = 0
    while n < 3 and hx.perform(Coin()):
        x = doubled(x)
        n += 1
        hx.perform(Say(), x)
    if n == 0:
        return x * 0.5
    return last(x) if n == 3 else x + n


def last(x):
    return x**2 if hx.perform(Coin()) else -x


def expected_walk(x):
    a = 2 * np.sin(x)
    b = 2 * np.sin(a)
    c = 2 * np.sin(b)
    return 0.7 * (x * 0.5) + 0.3 * (0.7 * (a + 1) + 0.3 * (0.7 * (b + 2) + 0.3 * (0.3 * c**2 + 0.7 * -c)))


def slope(f, x, step=1e-6):
    return (f(x + step) - f(x - step)) / (2 * step)


def walked(replay):
    handled = hx.direct(weighted, replay=replay)(walk)
    return lambda x: hx.handle(count, 0)(handled)(x)[1]


@styles
def test_python_control_flow_reads_answers_and_outer_effects_are_performed_once(replay):
    said, y = hx.handle(count, 0)(hx.direct(weighted, replay=replay)(walk))(hnp.float32(0.7))
    assert int(said) == 3
    np.testing.assert_allclose(float(y), expected_walk(0.7), rtol=1e-5)


@styles
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint], ids=["eager", "jit", "checkpoint"])
def test_a_gradient_around_is_that_of_the_sum_over_worlds(replay, wrap):
    np.testing.assert_allclose(hx.grad(wrap(walked(replay)))(0.7), slope(expected_walk, 0.7), rtol=1e-4)


@styles
def test_lanes_around_are_executed_together(replay):
    y = hx.vmap(hx.grad(walked(replay)))(hnp.array([0.7, 0.2], "float32"))
    np.testing.assert_allclose(y, [slope(expected_walk, 0.7), slope(expected_walk, 0.2)], rtol=1e-4)


@styles
def test_it_may_be_the_body_of_a_scan(replay):
    def thrice(x):
        return lax.scan(lambda c, _: (walked(replay)(c), None), x, None, length=3)[0]

    x = 0.7
    for _ in range(3):
        x = expected_walk(x)
    np.testing.assert_allclose(float(thrice(hnp.float32(0.7))), x, rtol=1e-5)


def straight(x):
    y = hx.perform(Ask()) * x
    hx.perform(Say(), y)
    return y + hx.perform(Ask())


AMB = hx.handler({Ask: hx.ctl(lambda resume, op: resume(2.0) + 10 * resume(3.0))})


@styles
def test_it_equals_the_recorded_style_where_nothing_depends_on_answers(replay):
    recorded = hx.handle(count, 0)(hx.handle(AMB)(straight))(5.0)
    executed = hx.handle(count, 0)(hx.direct(AMB, replay=replay)(straight))(5.0)
    assert [float(y) for y in executed] == [float(y) for y in recorded]


@styles
def test_the_rest_includes_the_rest_of_a_gradient(replay):
    y = hx.direct(AMB, replay=replay)(lambda x: hx.grad(lambda x: x * x * hx.perform(Ask()))(x))(5.0)
    assert float(y) == 2 * 5 * 2 + 10 * 2 * 5 * 3


@styles
@pytest.mark.parametrize(
    "clause",
    [
        lambda resume, op: hx.vmap(resume)(hnp.arange(3.0)).sum(),
        lambda resume, op: sum([hx.jit(resume)(float(i)) for i in range(3)]),
        lambda resume, op: lax.scan(lambda c, y: (c + resume(y), None), hnp.float32(0), hnp.arange(3.0))[0],
    ],
    ids=["vmap", "jit", "scan"],
)
def test_a_rest_may_be_mapped_compiled_and_looped_over(replay, clause):
    handled = hx.direct(hx.handler({Ask: hx.ctl(clause)}), replay=replay)
    assert float(handled(lambda x: (hx.perform(Ask()) + x) ** 2)(1.0)) == 1 + 4 + 9


@styles
def test_the_derivative_of_a_rest(replay):
    slopes = hx.handler({Ask: hx.ctl(lambda resume, op: hx.grad(resume)(3.0))})
    assert float(hx.direct(slopes, replay=replay)(lambda x: hx.perform(Ask()) ** 2 * x)(5.0)) == 30.0


@styles
def test_handlers_nest_and_each_world_of_the_outer_one_has_those_of_the_inner_one(replay):
    def inner(x):
        return hx.direct(weighted, replay=replay)(lambda: hx.perform(Ask()) * (x if hx.perform(Coin()) else -x))()

    # answers a weigh .3 a - .7 a; the outer sum is (-.4)(2) + 10 (-.4)(3), once per world of the inner handler
    plain = hx.handler({Ask: hx.ctl(lambda resume, op: resume(2.0))})
    assert float(hx.direct(plain, replay=replay)(inner)(1.0)) == pytest.approx(-0.8)
    assert float(hx.direct(AMB, replay=replay)(inner)(1.0)) == pytest.approx(-12.8)


@styles
def test_state_goes_through_resume_and_plain_clauses(replay):
    stateful = hx.handler(
        {
            Coin: hx.ctl(lambda resume, s, op: resume(s + 1, True) + resume(s + 10, False)),
            Say: lambda s, op, x: (2 * s, None),
        },
        returns=lambda s, y: [(int(s), float(y))],
    )

    def f(x):
        a = hx.perform(Coin())
        hx.perform(Say(), x)
        return x + 1 if a and hx.perform(Coin()) else x

    assert hx.direct(stateful, 0, replay=replay)(f)(1.0) == [(3, 2.0), (12, 1.0), (20, 1.0)]


@styles
def test_a_final_clause_beside_a_ctl_clause_ends_its_world(replay):
    searching = both | hx.handler({Stop: hx.final(lambda op, x: [float(x)])})

    def f():
        if hx.perform(Coin()):
            hx.perform(Stop(), -1.0)
        return 1.0 if hx.perform(Coin()) else 2.0

    assert hx.direct(searching, replay=replay)(f)() == [-1.0, 1.0, 2.0]


def test_both_kinds_work_in_the_recorded_style_too():
    searching = hx.handler(
        {Ask: hx.ctl(lambda resume, op: resume(1.0) + resume(2.0)), Stop: hx.final(lambda op, x: 10 * x)}
    )

    def f():
        y = hx.perform(Ask())
        hx.perform(Stop(), y)
        return y

    assert float(hx.handle(searching)(f)()) == float(hx.direct(searching)(f)()) == 30.0


@styles
def test_answers_may_be_python_objects(replay):
    store = {"a": [1, 2], "b": {"c"}}
    fetching = hx.handler({Fetch: hx.ctl(lambda resume, op: resume(store[op.what]))})
    found = hx.direct(fetching, replay=replay)(lambda: (hx.perform(Fetch("a")), hx.perform(Fetch("b"))))()
    assert found == ([1, 2], {"c"})
    assert found[0] is store["a"]
    assert hx.handle(hx.handler({Fetch: lambda op: store[op.what]}))(lambda: hx.perform(Fetch("b")))() == {"c"}


def test_a_python_object_is_no_answer_in_a_recorded_program():
    with pytest.raises(hx.errors.PythonAnswer, match="fetch: its answer is a Python object"):
        hx.make_program(lambda: hx.perform(Fetch("a")))()


@styles
def test_jitted_functions_and_chosen_branches_are_entered(replay):
    def f(x):
        y = hx.jit(lambda x: x * hx.perform(Ask()))(x)
        return lax.cond(x > 1, lambda y: y + hx.perform(Ask()), lambda y: y, y)

    assert float(hx.direct(AMB, replay=replay)(f)(5.0)) == float(hx.handle(AMB)(f)(5.0))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.scan(lambda c, _: (c + hx.perform(Ask()), None), x, None, length=3)[0],
        lambda x: hx.vmap(lambda x: x * hx.perform(Ask()))(hnp.stack([x, x])).sum(),
        lambda x: hx.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c * hx.perform(Ask()), x))(x),
    ],
    ids=["scan", "vmap", "jit of fori_loop"],
)
def test_bodies_that_are_programs_are_refused(f):
    with pytest.raises(hx.errors.CannotCross, match=r"ask: (its clause in direct style|a clause that) takes"):
        hx.direct(AMB)(f)(hnp.float32(1.0))


def test_plain_clauses_cross_bodies_by_the_law():
    handler = AMB | hx.handler({Say: lambda op, x: None})

    def f(x):
        y = lax.scan(lambda c, _: (hx.perform(Say(), c), (c * 2, None))[1], x, None, length=3)[0]
        return y * hx.perform(Ask())

    assert float(hx.direct(handler)(f)(1.0)) == 8 * 2 + 10 * 8 * 3


def test_once_executes_nothing_twice_and_resumes_once():
    executed = []

    def f():
        executed.append("start")
        y = hx.perform(Ask())
        executed.append("end")
        return y

    resumed = hx.handler({Ask: hx.once(lambda resume, op: 2 * resume(3.0))})
    assert float(hx.direct(resumed)(f)()) == 6.0
    assert executed == ["start", "end"]
    again = hx.handler({Ask: hx.once(lambda resume, op: resume(3.0) + resume(4.0))})
    for style in (hx.direct, hx.handle):
        with pytest.raises(hx.errors.BadCall, match="resumes at most once"):
            style(again)(f)()
    mapped = hx.handler({Ask: hx.once(lambda resume, op: hx.vmap(resume)(hnp.arange(3.0)).sum())})
    executed.clear()
    assert float(hx.direct(mapped)(f)()) == 3.0
    assert executed == ["start", "end"]


def test_resume_tail_runs_on_a_flat_stack():
    summed = hx.handler({Ask: hx.ctl(lambda resume, s, op: resume.tail(s + 1, s))})

    def f():
        return sum([hx.perform(Ask()) for _ in range(2000)])

    n, total = hx.direct(summed, hnp.float32(0))(f)()
    assert (float(n), float(total)) == (2000, sum(range(2000)))
    assert float(hx.handle(summed, hnp.float32(0))(lambda: hx.perform(Ask()) + hx.perform(Ask()))()[1]) == 1.0


def test_thousands_of_rests_may_be_within_each_other():
    nested = hx.handler({Ask: hx.ctl(lambda resume, op: 1 + resume(1.0))})

    def f():
        for _ in range(3000):
            hx.perform(Ask())
        return hnp.float32(0)

    assert float(hx.direct(nested)(f)()) == 3000.0


@styles
def test_a_loop_is_a_checkpoint_of_what_is_executed_again(replay):
    handler = hx.handler({Coin: hx.ctl(lambda resume, op: resume(True) + resume(False)), Ask: lambda op: 1.0},
                         returns=lambda y: [float(y)])
    executed = []

    def f(within):
        def body(i, x):
            executed.append(i)
            return x + hx.perform(Ask())

        x = within(0, 50, body, 0.0)
        return x + 1 if hx.perform(Coin()) else x

    assert hx.direct(handler, replay=replay)(f)(hx.loop) == [51.0, 50.0]
    assert len(executed) == 50


@styles
def test_a_loop_whose_iterations_take_the_rest(replay):
    def f(within):
        def body(i, x):
            return 2 * x + (1 if hx.perform(Coin()) else 0)

        return within(0, 4, body, 0)

    def plain(lower, upper, body_fun, val):
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    assert hx.direct(both, replay=replay)(f)(hx.loop) == hx.direct(both, replay=replay)(f)(plain)
    assert hx.direct(both, replay=replay)(f)(hx.loop) == list(range(15, -1, -1))


def test_jitted_calls_are_executed_once():
    calls = []

    def f(x):
        y = hx.pure_callback(lambda x: (calls.append(1), x)[1], F32, x)
        y = hx.jit(lambda y: hx.pure_callback(lambda y: (calls.append(2), y)[1], F32, y))(y)
        return y + 1 if hx.perform(Coin()) else y

    assert [float(y) for y in hx.direct(both)(f)(hnp.float32(1))] == [2.0, 1.0]
    assert (calls.count(1), calls.count(2)) == (2, 1)


@styles
def test_exceptions_of_the_function_are_its_own(replay):
    def f(x):
        try:
            hx.perform(Ask())
            raise ValueError("of the function")
        except ValueError:
            return x

    assert float(hx.direct(AMB, replay=replay)(f)(1.0)) == 11.0
    with pytest.raises(ValueError, match="of the function"):
        hx.direct(AMB, replay=replay)(lambda: (hx.perform(Ask()), int("of the function")))()
    assert not hx.handlers()


@styles
def test_an_error_of_a_clause_goes_to_the_caller(replay):
    failing = hx.handler({Ask: hx.ctl(lambda resume, op: 1 / 0)})
    with pytest.raises(ZeroDivisionError):
        hx.direct(failing, replay=replay)(lambda: hx.perform(Ask()))()
    assert not hx.handlers()


def test_what_leaves_a_function_must_not_be_caught():
    def f():
        with contextlib.suppress(BaseException):
            hx.perform(Stop(), 1.0)
        return 2.0

    ending = hx.handler({Stop: hx.final(lambda op, x: x)})
    with pytest.raises(hx.errors.BadCall, match="caught what leaves it"):
        hx.direct(ending)(f)()


def test_a_function_that_is_not_resumed_is_closed():
    closed = []

    def f():
        try:
            return hx.perform(Ask())
        finally:
            closed.append(True)

    never = hx.handler({Ask: hx.ctl(lambda resume, op: hnp.float32(9))})
    assert float(hx.direct(never)(f)()) == 9.0
    gc.collect()
    assert closed == [True]


@styles
def test_a_function_that_performs_other_operations_the_second_time_is_refused(replay):
    seen = []

    def f():
        seen.append(1)
        if len(seen) % 2:
            hx.perform(Ask())
        else:
            hx.perform(Coin())
        return hx.perform(Ask())

    handler = AMB | hx.handler({Coin: hx.ctl(lambda resume, op: resume(True))})
    with pytest.raises(hx.errors.BadCall, match="when it was executed before"):
        hx.direct(handler, replay=replay)(f)()


@pytest.mark.parametrize("answer", [hnp.ones(3), "a"], ids=["shape", "kind"])
@styles
def test_an_answer_of_another_type_is_refused_where_it_is_given(replay, answer):
    wrong = hx.handler({Ask: hx.ctl(lambda resume, op: resume(answer))})
    with pytest.raises((hx.errors.ShapeMismatch, hx.errors.NotAnArray), match="ask: the answer of a clause"):
        hx.direct(wrong, replay=replay)(lambda: hx.perform(Ask()))()


def test_generators_and_missing_functions_are_refused():
    with pytest.raises(hx.errors.BadArgument, match="returns a generator"):
        hx.direct(AMB)(lambda: (x for x in range(3)))()
    with pytest.raises(hx.errors.BadArgument, match="direct: a function is needed"):
        hx.direct(AMB)(3)
    with pytest.raises(hx.errors.CannotCross, match="a with block"):
        hx.direct(AMB).__enter__()


def test_what_a_clause_performs_stands_at_the_line_that_it_answers():
    def asks():
        return hx.perform(Ask()) + 1

    handler = hx.handler({Ask: hx.ctl(lambda resume, op: resume(hnp.sin(1.5)) * 3)})
    lines = {}
    for style in (hx.handle, hx.direct):
        program = hx.make_program(lambda x: hx.numpy.cos(style(handler)(asks)() * x))(1.0)
        lines[style] = [(op.name, Site(*site).line) for op, site in zip(program.ops, program.sites)]
    assert lines[hx.direct] == lines[hx.handle]


def test_a_clause_finds_the_site_of_what_it_answers():
    found = []

    def clause(resume, op):
        found.append((hx.site().function, hx.site().scopes))
        y = resume(1.0)
        found.append((hx.site().function, hx.site().scopes))
        return y

    def asks():
        with hx.named_scope("layer"):
            return hx.perform(Ask()) + 1

    direct = hx.direct(hx.handler({Ask: hx.ctl(clause)}))
    for f in (direct(asks), hx.jit(direct(asks))):
        found.clear()
        f()
        assert found == [("asks", ("layer",))] * 2


# loops of known length


@hx.effect(vmap="per_lane")
class Letter:
    def result_type(op):
        return hx.ArrayType((), "int32")


@hx.effect(vmap="per_lane")
class Weight:
    def result_type(op, w):
        return None


def a_word(weights, read):
    """A chain of choices between two others; the first one is read by Python if ``read``."""
    first = hx.perform(Letter())
    hx.perform(Weight(), (2.0 if first == 1 else 1.0) if read else hnp.where(first == 1, 2.0, 1.0))

    def letter(last, w):
        z = hx.perform(Letter())
        hx.perform(Weight(), w[last, z])
        return z, None

    last, _ = lax.scan(letter, first, weights)
    return 1.0 + last + hx.perform(Letter())


@pytest.mark.parametrize("replay", [False, True])
def test_a_loop_is_crossed_by_tables_as_in_the_recorded_style(replay):
    weights = hnp.asarray(np.random.default_rng(0).uniform(size=(4, 2, 2)), "float32")
    summed = hx.handler({
        Letter: hx.ctl(lambda resume, op: resume(0) + 0.5 * resume(1), support=2),
        Weight: hx.ctl(lambda resume, op, w: w * resume(None)),
    })
    direct = lambda weights: hx.direct(summed, replay=replay)(a_word)(weights, True)
    recorded = lambda weights: hx.handle(summed)(lambda w: a_word(w, False))(weights)
    np.testing.assert_allclose(direct(weights), recorded(weights), rtol=1e-5)
    np.testing.assert_allclose(hx.grad(direct)(weights), hx.grad(recorded)(weights), rtol=1e-5)
    assert direct(weights[:0]) == recorded(weights[:0]) == (1 + 0.5 * 2) + 0.5 * 2 * (2 + 0.5 * 3)


def test_a_loop_in_direct_style_that_has_no_table_is_refused():
    summed = hx.handler({Letter: hx.ctl(lambda resume, op: resume(0) + resume(1), support=2)})
    with pytest.raises(hx.errors.CannotCross, match="all earlier iterations"):
        hx.direct(summed)(lambda: lax.fori_loop(0, 3, lambda i, c: c + hx.perform(Letter()), 0))()
