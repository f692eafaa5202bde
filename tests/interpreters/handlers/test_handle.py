"""Handlers of the user's, in direct mode."""

from __future__ import annotations

import contextvars
import threading

import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.transcendental import Cos, Sin


@hx.effect
class Pulse:
    by: int = 1

    def result_type(op):
        return None


@hx.effect(vmap="once", diff="stop")
class Ask:
    like: object

    def result_type(op):
        return op.like


ENDING = hx.handler({Ask: hx.final(lambda s, op: (s, None))})
counter = hx.handler({Pulse: lambda n, op: (n + op.by, None)})


def ticking(x):
    hx.perform(Pulse())
    hx.perform(Pulse(3))
    return hnp.sin(x)


def counting(kind):
    """A handler that counts what it forwards, and the list that counts."""
    seen = []

    def clause(op, *xs):
        seen.append(op)
        return hx.perform(op, *xs)

    return hx.handler({kind: clause}), seen


def test_a_state_is_handed_from_clause_to_clause():
    n, y = hx.handle(counter, 10)(ticking)(1.0)
    assert n == 14
    assert float(y) == pytest.approx(0.8414710)


def test_a_state_crosses_jit_by_interpreting_its_body():
    jitted = hx.jit(ticking)
    assert hx.handle(counter, 0)(jitted)(1.0)[0] == 4
    assert hx.handle(counter, 0)(lambda x: jitted(jitted(x)))(1.0)[0] == 8


def test_an_effect_that_nobody_handles_is_named():
    with pytest.raises(errors.UnhandledEffect, match="pulse") as caught:
        ticking(1.0)
    assert caught.value.hint is not None
    with pytest.raises(errors.UnhandledEffect, match="Pulse"):
        hx.jit(ticking)(1.0)
    assert hx.handle(counter, 0)(ticking)(1.0)[0] == 4


def test_a_clause_forwards_to_the_handler_outside():
    twice = hx.handler({Sin: lambda op, x: 2 * hx.perform(op, x)})
    thrice = hx.handler({Sin: lambda op, x: 3 * hx.perform(op, x)})
    y = hx.handle(thrice)(hx.handle(twice)(hnp.sin))(1.0)
    assert float(y) == pytest.approx(6 * 0.8414710)


def test_the_order_of_handlers_is_their_meaning():
    """A clause outside grad sees what the rule of sin performs; inside, it sees what the function performs."""
    handler, seen = counting(Cos)
    hx.handle(handler)(hx.grad(hnp.sin))(1.0)
    assert len(seen) == 1
    seen.clear()
    hx.grad(hx.handle(handler)(hnp.sin))(1.0)
    assert seen == []


@pytest.mark.parametrize(
    ("transform", "argument"),
    [
        (lambda f: lambda x: hx.jvp(f, (x,), (x,))[1], 0.5),
        (hx.grad, 0.5),
        (hx.vmap, [0.5, 0.6]),
        (lambda f: hx.vmap(hx.grad(f)), [0.5, 0.6]),
        (lambda f: hx.grad(hx.grad(f)), 0.5),
    ],
)
def test_a_clause_inside_any_transformation_answers_once(transform, argument):
    handler, seen = counting(Cos)
    argument = hnp.asarray(argument)
    inside = transform(hx.handle(handler)(hnp.cos))(argument)
    assert len(seen) == 1
    assert hnp.allclose(inside, transform(hnp.cos)(argument))


def test_a_replaced_operation_is_differentiated_as_replaced():
    square = hx.handler({Sin: lambda op, x: x * x})
    assert float(hx.grad(hx.handle(square)(hnp.sin))(3.0)) == 6.0
    assert float(hx.handle(square)(hx.grad(hnp.sin))(3.0)) == pytest.approx(-0.9899925)


def test_otherwise_counts_every_pure_operation():
    def count(n, op, *xs):
        return n + 1, hx.perform(op, *xs)

    counts = hx.handler(otherwise=count, over=hx.is_pure)

    def f(x):
        return hnp.sin(x) * x + 1.0

    n, y = hx.handle(counts, 0)(f)(2.0)
    assert n == 3
    assert hx.handle(counts, 0)(hx.jit(f))(2.0)[0] == 3
    assert float(y) == pytest.approx(float(f(2.0)))


@hx.effect(vmap="per_lane", diff="stop")
class Tell:
    def result_type(op, x):
        return None


def telling(x):
    inner = lambda x: (hx.perform(Tell(), x), 2 * x)[1]
    return lax.cond(x > 0, hx.jit(inner), lambda x: x, x)


@pytest.mark.parametrize("moves", [hx.carry, hx.append, hx.split(lambda s, n: s + hnp.arange(n))], ids=str)
def test_otherwise_stands_beside_bodies_in_which_it_answers_nothing(moves):
    """Lanes that perform what it does not answer stay lanes, and a key is not split for them."""
    state = () if moves == hx.append else 0
    over = lambda op: isinstance(op, Ask)
    idle = hx.handler(otherwise=lambda s, op, *xs: (s, hx.perform(op, *xs)), over=over, moves=moves)
    for f in (hx.vmap(telling), hx.jit(hx.vmap(telling)), lambda xs: lax.map(telling, xs)):
        alone = hx.make_program(f)(hnp.arange(3.0))
        under = hx.make_program(lambda xs: hx.handle(idle, state)(f)(xs)[1])(hnp.arange(3.0))
        assert str(under).split("\n")[1:] == str(alone).split("\n")[1:]
    inner = hx.handler(otherwise=lambda s, op, x: (s + 1, None), over=lambda op: isinstance(op, Tell))
    assert hx.handle(inner, 0)(hx.vmap(telling))(hnp.arange(3.0))[0] == 2


def test_an_answer_has_the_type_of_the_operation():
    wrong = hx.handler({Sin: lambda op, x: hnp.zeros((2,))})
    with pytest.raises(errors.ShapeMismatch, match="sin"):
        hx.handle(wrong)(hnp.sin)(1.0)
    weak = hx.handler({Sin: lambda op, x: 1})
    assert hx.handle(weak)(hnp.sin)(hnp.float32(2.0)).dtype == hnp.float32


def test_an_effect_crosses_vmap_as_it_declares():
    like = hx.make_program(lambda x: x)(1.0).in_avals[0]
    ask = hx.handler({Ask: lambda op: 7.0})
    y = hx.handle(ask)(hx.vmap(lambda x: x + hx.perform(Ask(like))))(hnp.arange(3.0))
    assert y.tolist() == [7.0, 8.0, 9.0]
    with pytest.raises(errors.CannotCross, match="vmap='refuse'"):
        hx.handle(counter, 0)(hx.vmap(ticking))(hnp.arange(3.0))
    n, _ = hx.vmap(hx.handle(counter, 0)(ticking))(hnp.arange(3.0))
    assert n.tolist() == [4, 4, 4]


def test_returns_sees_the_final_state():
    h = hx.handler({Pulse: lambda n, op: (n + op.by, None)}, returns=lambda n, y: {"ticks": n, "value": y})
    assert hx.handle(h, 0)(ticking)(0.0)["ticks"] == 4


def test_what_the_test_of_a_loop_performs_changes_the_state_of_otherwise():
    def count(n, op, *xs):
        return n + 1, hx.perform(op, *xs)

    counts = hx.handler(otherwise=count, over=lambda op: op.name == "lt")
    f = lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x)
    n, y = hx.handle(counts, 0)(f)(1.0)
    assert (int(n), float(y)) == (5, 16.0)


@pytest.mark.parametrize("over", [lambda f: f, hx.vmap])
def test_a_weak_answer_is_as_strong_as_the_result_of_its_operation(over):
    half = hx.handler({Sin: lambda op, x: hnp.full(x.shape, 0.5)})
    y = hx.handle(half)(over(lambda x: hnp.sin(x) * hnp.ones(2, "bfloat16")))(hnp.ones((3, 2)))
    assert y.dtype == hnp.float32 and not y.weak_type


def test_a_weak_answer_that_the_type_cannot_hold_is_refused():
    like = hx.make_program(lambda x: x)(1).in_avals[0]
    program = hx.make_program(lambda: hx.perform(Ask(like)) + 0)()
    answering = lambda x: hx.handle(hx.handler({Ask: lambda op: x}))(lambda: program())()
    assert int(answering(7)[0]) == 7
    with pytest.raises(errors.DTypeMismatch, match="ask"):
        answering(2.5)


# with blocks


def test_an_installation_is_a_value_that_every_block_and_call_starts_from():
    installation = hx.handle(counter, 5)
    for _ in range(2):
        with installation as run:
            hx.perform(Pulse())
        assert run.current == 6
        assert installation(lambda: hx.perform(Pulse()))()[0] == 6
    with pytest.raises(AttributeError):
        installation.state = 0


def test_one_installation_opened_twice_is_two_runs():
    installation = hx.handle(counter, 0)
    with installation as outer, installation as inner:
        hx.perform(Pulse())
    assert (outer.current, inner.current) == (0, 1)


def test_blocks_of_one_installation_in_two_threads_are_apart():
    installation, barrier, seen = hx.handle(counter, 0), threading.Barrier(2, timeout=60), []

    def work(i):
        times = i + 1
        with installation as run:
            barrier.wait()
            for _ in range(times):
                hx.perform(Pulse())
            barrier.wait()
            seen.append((times, run.current))
        barrier.wait()

    together(2, work)
    assert sorted(seen) == [(1, 1), (2, 2)]
    assert hx.handlers() == ()


def test_blocks_closed_out_of_order_are_all_closed_and_refused():
    outer, inner = hx.handle(counter, 0), hx.handle(counter, 10)
    outer.__enter__()
    run = inner.__enter__()
    with pytest.raises(errors.BadCall, match="closed before"):
        outer.__exit__(None, None, None)
    assert hx.handlers() == () and run.ended
    with pytest.raises(errors.BadCall, match="not open"):
        inner.__exit__(None, None, None)
    with pytest.raises(errors.UnhandledEffect):
        hx.perform(Pulse())


def test_an_error_in_a_block_is_not_hidden_by_the_order_of_blocks():
    outer, inner = hx.handle(counter, 0), hx.handle(counter, 10)
    outer.__enter__()
    inner.__enter__()
    assert outer.__exit__(ZeroDivisionError, None, None) is None
    assert inner.__exit__(ZeroDivisionError, None, None) is None
    assert hx.handlers() == ()


def test_a_block_is_not_closed_inside_a_transformation_in_it():
    block = hx.handle(counter, 0)
    block.__enter__()
    with pytest.raises(errors.BadCall, match="contains"):
        hx.vmap(lambda x: (block.__exit__(None, None, None), x)[1])(hnp.arange(2.0))
    hx.perform(Pulse())
    block.__exit__(None, None, None)
    assert hx.handlers() == ()


@pytest.mark.parametrize(
    "f",
    [
        lambda: hx.perform(Pulse()),
        lambda: hx.lax.fori_loop(0, 2, lambda i, c: (hx.perform(Pulse()), c)[1], 0.0),
        lambda: hx.jit(lambda: hx.perform(Pulse()))(),
    ],
)
def test_a_state_that_is_no_tree_of_arrays_is_refused_by_name(f):
    with pytest.raises(errors.StateTypeError, match="state of a handler must be a tree of arrays, got 'a'"):
        hx.handle(counter, "a")(f)()


def test_a_thousand_handlers_may_be_nested():
    @hx.effect
    class Count:
        def result_type(op, x):
            return x

    bottom = hx.handler({Count: lambda op, x: x})
    above = hx.handler({Count: lambda op, x: hx.perform(Count(), x + 1)})
    f = lambda x: hx.perform(Count(), x)
    for _ in range(1000):
        f = hx.handle(above)(f)
    for run in (hx.handle(bottom)(f), hx.jit(hx.handle(bottom)(f))):
        assert int(run(0)) == 1000


async def asynchronous():
    hx.perform(Pulse())


def generator():
    yield hx.perform(Pulse())


@pytest.mark.parametrize(("f", "hint"), [(asynchronous, "await it inside"), (generator, r"list\(generator\(...\)\)")])
def test_a_function_of_which_a_call_executes_nothing_is_refused(f, hint):
    with pytest.raises(errors.BadArgument, match=rf"(?s)nothing is executed yet.*hint: .*{hint}"):
        hx.handle(counter, 0)(f)()


def test_what_consumes_a_generator_is_handled_with_it():
    assert hx.handle(counter, 0)(lambda: len(list(generator())))() == (1, 1)
    with hx.handle(counter, 0) as run:
        list(generator())
    assert run.current == 1


def test_a_block_in_a_generator_answers_its_consumer_too():
    def counting():
        with hx.handle(counter, 0) as run:
            yield run

    run = (suspended := counting()).__next__()
    hx.perform(Pulse())
    assert run.current == 1
    suspended.close()


def test_a_clause_cannot_change_in_place_what_the_next_call_starts_from():
    def clause(state, op):
        state += 1
        return state, None

    installed = hx.handle(hx.handler({Pulse: clause}), np.zeros(2))
    for _ in range(2):
        assert installed(lambda: hx.perform(Pulse()))()[0].tolist() == [1, 1]


def appending(s, op):
    s["n"].append(op.by)
    return s, None


@pytest.mark.parametrize("kind", [hx.handler, lambda clauses: hx.handler(clauses) | ENDING], ids=["direct", "reified"])
def test_each_call_starts_from_the_state_that_was_given(kind):
    start = {"n": [], "pair": ([1],)}
    installation = hx.handle(kind({Pulse: appending}), start)
    pulse = lambda: hx.perform(Pulse())
    for f in (installation(pulse), installation(pulse)):
        assert f()[0] == f()[0] == {"n": [1], "pair": ([1],)}
    assert start == {"n": [], "pair": ([1],)}


def test_each_block_starts_from_the_state_that_was_given():
    installation = hx.handle(hx.handler({Pulse: appending}), {"n": []})
    for _ in range(2):
        with installation as run:
            hx.perform(Pulse())
        assert run.current == {"n": [1]}


@pytest.mark.parametrize("state", [(), (0,)], ids=["stateless", "state"])
def test_what_is_performed_under_a_handler_that_has_ended_is_refused(state):
    clause = (lambda n, op: (n + 1, None)) if state else (lambda op: None)
    kept = []
    hx.handle(hx.handler({Pulse: clause}), *state)(lambda: kept.append(contextvars.copy_context()))()
    loop = lambda: lax.fori_loop(0, 2, lambda i, c: (hx.perform(Pulse()), c)[1], 0)
    for late in (lambda: hx.perform(Pulse()), loop):
        with pytest.raises(errors.UnhandledEffect, match=r"handler\(Pulse\), whose function or block has ended"):
            kept[0].run(late)
    assert kept[0].run(lambda: hnp.sin(0.0)) == 0.0


@pytest.mark.parametrize("more", [{}, {"clauses": {Ask: hx.final(lambda *_: 0.0)}}], ids=["direct", "reified"])
def test_returns_takes_the_state_where_there_is_one(more):
    of_result = hx.handler(returns=lambda y: y, **more)
    of_state = hx.handler(returns=lambda s, y: y, **more)
    for text, installation in ((r"\(state, y\)", hx.handle(of_result, 0)), (r"\(y\)", hx.handle(of_state))):
        with pytest.raises(errors.BadCall, match=f"returns= takes .*, it is called with {text}"):
            installation(hnp.sin)(0.0)
    assert hx.handle(of_result)(hnp.sin)(0.0) == hx.handle(of_state, 0)(hnp.sin)(0.0) == 0.0


@pytest.mark.parametrize("wrapped", [lambda x: x, lambda x: {"a": x}, lambda x: [x], lambda x: (x,)])
def test_a_clause_cannot_change_the_initial_state_in_place(wrapped):
    def clause(s, op):
        (leaf,) = hx.tree.leaves(s)
        leaf += 1.0
        return wrapped(leaf), None

    given = np.zeros(2)
    installation = hx.handle(hx.handler({Pulse: clause}), wrapped(given))
    for _ in range(2):
        state, _ = installation(lambda: hx.perform(Pulse()))()
        assert hx.tree.leaves(state)[0].tolist() == [1.0, 1.0] and given.tolist() == [0.0, 0.0]


def test_what_follows_a_loop_has_a_site_of_its_own():
    where = hx.handler({Pulse: lambda op: sites.append(hx.site().line)})
    sites = []

    def f(x):
        x = lax.fori_loop(0, 2, lambda i, c: ticking(c), x)
        hx.perform(Pulse())
        hx.perform(Pulse())
        return x

    hx.handle(where)(f)(1.0)
    first = f.__code__.co_firstlineno
    assert sites[-2:] == [first + 2, first + 3]


def test_a_loop_whose_test_changes_the_state_and_performs_what_is_forwarded():
    @hx.effect(vmap="per_lane")
    class Limit:
        def result_type(op):
            return hx.ShapeDtypeStruct((), "int32")

    def more(c):
        hx.perform(Pulse())
        return c < hx.perform(Limit())

    asked = hx.handler({Limit: lambda n, op: (n + 1, 3)})
    f = lambda c: lax.while_loop(more, lambda c: c + 1, c)
    for start, tests in ((0, 4), (2, 2), (5, 1)):
        for g in (f, hx.jit(f)):
            n, (m, c) = hx.handle(asked, 0)(hx.handle(counter, 0)(g))(start)
            assert (n, m, c) == (tests, tests, max(start, 3))
